/** The operations that find out what is wrong with a cluster, as data. */
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";
import { BUNDLE_DOCUMENT } from "./schemas.js";

export const DIAGNOSIS_COMMANDS: readonly CommandSpec[] = [
  command({
    name: "--debug-bundle",
    kind: "file",
    valueName: "file",
    area: "Diagnosis",
    meaning: "write what there is to find out what is wrong, of every node, into one .tar.gz",
    optional: ["--profile"],
    examples: [
      "svc-cli --debug-bundle svc-debug.tar.gz",
      "svc-cli -c http://a:8083,http://b:8083 --debug-bundle svc-debug.tar.gz --profile 10",
    ],
    answers: [
      "Wrote svc-debug.tar.gz: 3 of 3 nodes, 482113 bytes",
      "Wrote svc-debug.tar.gz: 2 of 3 nodes, 311790 bytes (exit code 1)",
      "node 3 (http://c:8083): connection refused",
    ],
    module: "bundle",
    limited: false,
    document: BUNDLE_DOCUMENT,
  }),
];
