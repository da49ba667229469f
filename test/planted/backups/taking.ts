/** Planted bugs of whoever takes a backup: what a cut counts on, what is in it, what is left of it. */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

type Caught = readonly [pitfall: string, file: string, test: string];

function taking(
  name: string,
  [pitfall, file, test]: Caught,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  const edits = [edit(`src/${path}.ts`, from, to)];
  return { name, pitfall, edits, file, test: `${pitfall} ${test}` };
}

const LOSSES = "host/backups/taking-losses.test";
const WHOLE: Caught = ["P-132", "host/backups/taking.test", "P-133 a Full has every partition"];
const CHANGED: Caught = ["P-132", "host/backups/taking.test", "what changed between two reads"];
const LEASES = "host/backups/taking-leases.test";

export const takingBugs: readonly RecordBug[] = [
  taking(
    "a cut counts although a pause was not proved",
    ["P-134", LOSSES, "a cut whose pauses are not proved"],
    "host/keeping/cut",
    'proofs.every((proof) => proof?.kind === "verified" && proof.isProved)',
    "proofs.length > 0",
  ),
  taking(
    "a cut is no later than the slowest answer",
    ["P-134", "control/backup-plan.test", "a cut is above every stamp"],
    "control/backup-plan",
    "Math.max(0, ...toldMs) + delta",
    "Math.max(0, ...toldMs) + Math.min(delta, 1)",
  ),
  taking(
    "a replica that differs from its leader ships",
    ["P-130", LOSSES, "P-133 a replica whose digest differs"],
    "host/keeping/artifacts",
    "    if (answer.chain !== mark.chain) return done(this.differs(part));\n",
    "",
  ),
  taking(
    "the meta partition is left out",
    WHOLE,
    "host/keeping/keeper",
    "topology.partitions.map(newPart)",
    "topology.partitions.filter((id) => id > 0).map(newPart)",
  ),
  taking(
    "an image is believed to be where the mark is",
    WHOLE,
    "host/keeping/manifest-of",
    "fromIndex: before.index + 1, fromStamp",
    "fromIndex: mark.index, fromStamp",
  ),
  taking(
    "holds are left when a backup ends",
    WHOLE,
    "host/keeping/shippers",
    "    for (const part of this.parts) this.leave(part);\n",
    "",
  ),
  taking(
    "meta is read once, before",
    CHANGED,
    "host/keeping/topology",
    "  if (!isSame) {",
    "  if (!isSame && now.level < 0) {",
  ),
  taking(
    "whoever does not lead meta any more publishes a cut",
    CHANGED,
    "host/keeping/topology",
    "(isLed && now.term === before.term)",
    "isLed",
  ),
  taking(
    "a log that was let go is waited for",
    ["P-135", LOSSES, "where the log does not go on"],
    "host/keeping/shippers",
    'said.has("compacted") ? { status: "compacted" } : null',
    "null",
  ),
  taking(
    "a keeper holds a lease on its parents alone",
    ["P-141", LEASES, "full: what is written"],
    "host/keeping/keeper",
    "const backups = [backupId, ...parents];",
    "const backups = parents;",
  ),
  taking(
    "a keeper does not hear that its lease is lost",
    ["P-141", LEASES, "full: whoever lost its lease"],
    "backup/lease",
    "    this.onLost?.(fault);\n",
    "",
  ),
  taking(
    "a backup that was cancelled goes on",
    ["P-140", LOSSES, "a backup that is cancelled"],
    "host/keeping/keeper",
    "this.cancelled !== null || this.isEnded",
    "this.isEnded",
  ),
];
