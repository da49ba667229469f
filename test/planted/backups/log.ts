/** Planted bugs of what the log keeps for backups, and of how it is read for them. */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const HELD = "P-135 what a backup holds";
const BOUNDED = "P-135 a hold is bounded";
const WINDOW = "P-135 the log stays for one window";
const LARGEST = "P-135 beyond their bound";
const WHOLE = "P-135 a stretch is read whole";
const GAP = "P-135 a log with a gap";

function log(
  name: string,
  test: string,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  const edits = [edit(`src/host/${path}.ts`, from, to)];
  return { name, pitfall: "P-135", edits, file: "host/backups/log-backups.test", test };
}

export const logBugs: readonly RecordBug[] = [
  log(
    "the log that goes into a backup ends before its mark",
    WHOLE,
    "group/group",
    "new LogStretch(shared.ports.log, partition, after, last)",
    "new LogStretch(shared.ports.log, partition, after, { ...last, index: Math.max(after.index, last.index - 1) })",
  ),
  log(
    "an incremental backup begins at the end of its parent, not behind it",
    WHOLE,
    "group/group",
    "new LogStretch(shared.ports.log, partition, after, last)",
    "new LogStretch(shared.ports.log, partition, { ...after, index: after.index - 1 }, last)",
  ),
  log(
    "the term at the end of the parent is not compared",
    WHOLE,
    "storage/log-stretch",
    '    if (found.term !== term) return "other-history";\n',
    "",
  ),
  log(
    "a hold is lost, and the gap is not seen",
    GAP,
    "storage/log-stretch",
    "if (entry.index !== index + 1 || entry.term < term)",
    "if (entry.term < term)",
  ),
  log(
    "a hold keeps nothing",
    HELD,
    "storage/backup-floors",
    "else from = Math.min(from, hold.fromIndex);",
    "",
  ),
  log(
    "a hold that nobody renews lasts",
    HELD,
    "storage/backup-floors",
    'else if (nowMs >= this.renewedMs + HOLD_LAPSES_MS) this.end("lapsed");',
    "",
  ),
  log(
    "a hold is renewed without end",
    BOUNDED,
    "storage/backup-floors",
    "nowMs >= this.sinceMs + HOLD_MAX_MS",
    "nowMs >= this.renewedMs + HOLD_MAX_MS",
  ),
  log(
    "a hold fills the disk",
    BOUNDED,
    "storage/backup-floors",
    'if (hold.keptBytes > HOLD_MAX_BYTES) hold.end("too-large");\n      else from',
    "from",
  ),
  log(
    "a full disk waits for a backup",
    BOUNDED,
    "storage/backup-floors",
    "    if (this.deps.isLogFull()) this.giveUp(group, floor);\n",
    "",
  ),
  log(
    "a hold outlives the log that it holds",
    BOUNDED,
    "storage/backup-floors",
    'if (this.group.floorIndex > this.fromIndex) this.end("compacted");\n    else if',
    "if",
  ),
  log(
    "after a start the log of before goes at once",
    WINDOW,
    "storage/log-samples",
    "    return this.base;",
    "    return this.base === 0 ? Infinity : this.base;",
  ),
  log(
    "entries that are in the window go",
    WINDOW,
    "storage/log-samples",
    "slots[0].atMs <= oldMs",
    "slots[0].atMs <= nowMs - this.windowMs / 2",
  ),
  log(
    "windows keep what they like",
    LARGEST,
    "storage/backup-floors",
    "    while (this.windowBytes > this.deps.windowBytesMax()) this.loseLargest();\n",
    "",
  ),
  log(
    "the smallest window goes first",
    LARGEST,
    "storage/backup-floors",
    "window.keptBytes > (largest?.keptBytes ?? 0)",
    "window.keptBytes > 0 && window.keptBytes < (largest?.keptBytes ?? Infinity)",
  ),
];
