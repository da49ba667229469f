/** The operations that tell what changes, as data. */
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";
import { WATCH_DOCUMENT } from "./schemas.js";

function watch(
  what: string,
  valueName: string,
  meaning: string,
  answers: readonly string[],
): CommandSpec {
  return command({
    name: `--watch-${what}`,
    valueName,
    area: "Watching",
    meaning,
    optional: ["--initial", "--cursor", "--count", "--for"],
    examples: [
      `svc-cli --watch-${what} jobs --initial`,
      `svc-cli --watch-${what} jobs --count 1 --for 60 --format json`,
    ],
    answers: [...answers, "-- merged", "-- reset"],
    module: "watches",
    limited: false,
    document: WATCH_DOCUMENT,
  });
}

const KEYS = ["r3 set config/color blue", "r3 deleted config/color", "expired config/color"];
const LOCKS = ["f7 locked jobs/1 host-7", "f7 unlocked jobs/1", "f7 lock-expired jobs/1"];

export const WATCH_COMMANDS: readonly CommandSpec[] = [
  watch("key", "key", "tell what becomes of a key, until Ctrl+C", KEYS),
  watch("prefix", "prefix", "tell what becomes of the keys that begin so", KEYS),
  watch("bucket", "bucket", "tell what becomes of the keys of a bucket", KEYS),
  watch("lock", "resource", "tell who is granted a lock, and when it ends", LOCKS),
  watch("locks", "prefix", "tell who is granted the locks that begin so", LOCKS),
  watch("sequence", "name", "tell what becomes of a sequence", ["r1 sequence-created jobs"]),
];
