/** Planted bugs of whoever carries a restore out, or forces a cluster out of what is left. */
import type { RecordBug } from "../records.js";
import { backup } from "./bug.js";

const FILE = "host/backups/restore.test";
const LIVE = [FILE, "P-132 a restored state"] as const;
const OTHERWISE = [FILE, "P-130 a replay that leads elsewhere"] as const;
const TARGET = [FILE, "7.5 a target time"] as const;
const TWICE = [FILE, "P-137 L14 S6 one backup restored"] as const;
const ROOT = [FILE, "P-137 the root counts too"] as const;
const PLACES = [FILE, "P-139 a target is judged"] as const;
const FAILS = [FILE, "P-140 whatever fails"] as const;
const DAMAGED = [FILE, "P-137 a damaged claim"] as const;
const TOGETHER = [FILE, "P-137 of two restores"] as const;
const BACK = [FILE, "P-140 what is read back"] as const;
const FORCED = ["host/backups/forced.test", "7.7 what is known to be committed"] as const;
const AGAIN = ["host/backups/forced.test", "P-140 cut short at any write"] as const;

const restoring = "host/restoring";

export const engineBugs: readonly RecordBug[] = [
  backup(
    "P-130",
    "the digest of the live replica is not compared with what was replayed",
    OTHERWISE,
    `${restoring}/partition-replay`,
    "if (this.hasEnded || machine.chainDigest === end.chain) return",
    "if (this.hasEnded || machine.chainDigest !== end.index.toString()) return",
  ),
  backup(
    "P-134",
    "behind the target what has no later stamp is restored all the same",
    TARGET,
    `${restoring}/partition-replay`,
    "      this.hasEnded = true;\n      return;",
    "      return;",
  ),
  backup(
    "P-137",
    "what earlier restores set is not looked at",
    TWICE,
    `${restoring}/claims`,
    "      const earlier = floorsOf(before.value);",
    "      const earlier = floorsOf([]);",
  ),
  backup(
    "P-137",
    "restores are counted in the catalogue alone",
    ROOT,
    `${restoring}/claims`,
    "const places = [backups, targets];",
    "const places = [backups];",
  ),
  backup(
    "P-137",
    "a damaged claim counts as one that was never finished",
    DAMAGED,
    `${restoring}/claims`,
    "!== signatures.sha256(encodeText(body))) return damaged;",
    "!== signatures.sha256(encodeText(body))) return ok(null);",
  ),
  backup(
    "P-137",
    "whoever has made its claim does not look at the others again",
    TOGETHER,
    `${restoring}/claims`,
    "          if (!same) return attempt(count + 1);\n",
    "",
  ),
  backup(
    "P-137",
    "sequences that went on after the target are not told",
    TARGET,
    `${restoring}/state-facts`,
    "later.currentValue > there.currentValue",
    "later.currentValue < there.currentValue",
  ),
  backup(
    "P-139",
    "a target may lead up again",
    PLACES,
    `${restoring}/restore-target`,
    ' && name !== ".." &&',
    " &&",
  ),
  backup(
    "P-139",
    "a target in another case than live storage is another place",
    PLACES,
    `${restoring}/restore-target`,
    "const [first, second] = [a.toLowerCase(), b.toLowerCase()];",
    "const [first, second] = [a, b];",
  ),
  backup(
    "P-140",
    "what a failed restore staged stays",
    FAILS,
    `${restoring}/restore`,
    "      targets.removeTree(this.staging, () => {\n        targets.syncDirectory",
    "      targets.examine(this.staging, () => {\n        targets.syncDirectory",
  ),
  backup(
    "P-140",
    "what was written is not read back",
    BACK,
    `${restoring}/restore`,
    "      (next) => this.readBack(next),\n",
    "",
  ),
  backup(
    "P-138",
    "the new cluster has the id that it is told by nobody",
    LIVE,
    `${restoring}/restore`,
    "      ...{ clusterId: this.clusterId, leafId: this.request.leafId,",
    "      ...{ clusterId: this.staging, leafId: this.request.leafId,",
  ),
  backup(
    "P-140",
    "a cluster is forced out of entries that nobody knows to be committed",
    FORCED,
    `${restoring}/forced-state`,
    "Math.max(appliedIndex, Math.min(commit, lastIndex))",
    "Math.max(appliedIndex, commit, lastIndex)",
  ),
  backup(
    "P-138",
    "a node out of which a cluster was forced knows who it was",
    FORCED,
    `${restoring}/forced-state`,
    "    for (const key of doomed) memtable.delete(key);",
    "    for (const key of doomed.slice(0, 0)) memtable.delete(key);",
  ),
  backup(
    "P-140",
    "a partition is lifted once more when a forced cluster is begun again",
    AGAIN,
    `${restoring}/forced-state`,
    "      if (isLifted(partition)) return next(ok(null));\n",
    "      isLifted(partition);\n",
  ),
];
