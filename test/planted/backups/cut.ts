/** Planted bugs of coordinated cuts: the pause of a group, its mark, and what its leader proves. */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

function cut(
  name: string,
  test: string,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  const edits = [edit(`src/host/${path}.ts`, from, to)];
  return {
    name,
    pitfall: "P-134",
    edits,
    file: "host/backups/cut-pause.test",
    test: `P-134 ${test}`,
  };
}

export const cutBugs: readonly RecordBug[] = [
  cut(
    "a cut marks its groups, and pauses none",
    "behind the mark",
    "group/group",
    "    pauses.cut.begin(epoch, leadership.term, nowMs);\n",
    "",
  ),
  cut(
    "a break of a pause is not noticed",
    "an entry that comes anyway",
    "group/proposer",
    "    this.group.pauses.cut.drop();\n",
    "",
  ),
  cut(
    "a pause is proved without a round",
    "a leader that cannot reach",
    "group/group",
    'done(status === "confirmed" && pauses.cut.lasts',
    'done(status !== "aborted" && pauses.cut.lasts',
  ),
  cut(
    "the stamp of a cut is in the memory of the leader, not in the log",
    "whoever leads next",
    "group/leadership",
    "return this.stamps.reach(stamp) ? this.entryStamp(stamp, monotonicMs) : null;",
    "const before = this.stamps.latest;\n    return this.stamps.reach(stamp) ? this.entryStamp(before, monotonicMs) : null;",
  ),
  cut(
    "a new leader stamps from its own clock",
    "whoever leads next",
    "group/leadership",
    "    this.stamps.seen(this.machine.lastStamp, nowMs);\n    this.table",
    "    this.table",
  ),
  cut(
    "cuts that follow each other hold a group for as long as they like",
    "a pause is bounded",
    "pauses/cut-pause",
    "this.sinceMs = Math.min(this.sinceMs, nowMs);",
    "this.sinceMs = nowMs;",
  ),
  cut(
    "a message that comes late pauses a group again",
    "a pause is bounded",
    "pauses/cut-pause",
    "compareEpochs(epoch, this.latest) <= 0 ||",
    "",
  ),
];
