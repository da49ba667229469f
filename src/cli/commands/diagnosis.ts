/** The operations that find out what is wrong with a cluster, as data. */
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";
import { CHECK_DEFAULTS } from "./options.js";
import { BUNDLE_DOCUMENT, CHECK_DOCUMENT } from "./schemas.js";

export const DIAGNOSIS_COMMANDS: readonly CommandSpec[] = [
  command({
    name: "--check",
    area: "Diagnosis",
    meaning:
      "hold every node against limits: latency, clocks, disks, versions, certificates, backups",
    optional: Object.keys(CHECK_DEFAULTS),
    examples: ["svc-cli --check", "svc-cli --check --max-latency 20 --min-free 10240"],
    answers: [
      "ok: 29 checks",
      "FAILED: 29 checks, 1 failed, 2 beyond their limits (exit code 1)",
      "(table)",
    ],
    module: "check",
    limited: false,
    document: CHECK_DOCUMENT,
  }),
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
