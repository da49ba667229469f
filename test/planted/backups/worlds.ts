/**
 * Planted bugs of backups and restores. Most of them are those that tests of the rooms find, see
 * the files beside this one: here whole clusters have to show them.
 */
import { backupBugs as roomBugs } from "./machine.js";
import type { PlanOverrides } from "../../sim/plan/plan.js";
import { type Floor, edit, type Mutation, plantedIn } from "../../sim/planted/mutation.js";

/** The bug of a room with this name. */
function known(floor: Floor, name: string, overrides: PlanOverrides = {}): Mutation {
  const found = roomBugs.find((bug) => bug.name === name);
  if (found === undefined) throw new Error(`no planted bug "${name}"`);
  const { pitfall, edits } = found;
  return plantedIn(floor)(pitfall, name, "backup", edits, overrides);
}

const host = plantedIn("host");
const PAUSE = "pauses.cut.lasts(epoch, leadership.term, nowMs)";
/** Cuts one after the other, while many write in chains. */
const CUTS: PlanOverrides = {
  backups: { askEveryMs: 400, chainWriters: 3, chainThinkMs: 1, asks: asksOf("coordinated") },
  groups: 4,
};
/** The same backup, again and again. */
const RESTORES: PlanOverrides = { backups: { restores: 3, isForced: false } };
const LOCKS: PlanOverrides = {
  ...RESTORES,
  operations: { lock: 6, "ephemeral-lock": 6, unlock: 4, set: 2 },
  locks: 1,
};
const SEQUENCES: PlanOverrides = {
  ...RESTORES,
  operations: { create: 6, next: 6, "get-sequence": 8, set: 2 },
  sequences: 1,
};

/** This kind of ask and no other, but for a few that others need. */
function asksOf(kind: "coordinated" | "incremental") {
  const none = { full: 0, coordinated: 0, incremental: 0, validate: 0, collect: 0, list: 0 };
  return { ...none, full: 1, [kind]: 8 };
}

export const backupBugs: readonly Mutation[] = [
  host(
    "P-134",
    "a cut marks its groups, pauses none and proves that they are led",
    "backup",
    [
      edit("src/host/group/group.ts", "    pauses.cut.begin(epoch, leadership.term, nowMs);\n", ""),
      edit("src/host/group/group.ts", ` && ${PAUSE}`, ""),
    ],
    { ...CUTS, faults: ["clog", "clog", "slow"] },
  ),
  known("host", "a cut counts although a pause was not proved", {
    ...CUTS,
    faults: ["kill-leader", "strand-leader", "pause-leader", "crash-inside"],
  }),
  known("host", "a pause is proved without a round", {
    ...CUTS,
    faults: ["strand-leader", "isolate", "partition", "pause-leader"],
  }),
  known("host", "the stamp of a cut is in the memory of the leader, not in the log", CUTS),
  known("host", "a new leader stamps from its own clock", {
    backups: { askEveryMs: 400, clocksApartMs: 40_000, asks: asksOf("coordinated") },
    faults: ["kill-leader"],
  }),
  known("host", "the log that goes into a backup ends before its mark"),
  known("host", "an incremental backup begins at the end of its parent, not behind it"),
  known("host", "a hold is lost, and the gap is not seen"),
  host(
    "P-132",
    "a parent is gone on from whatever its topology and its history are",
    "backup",
    [
      edit(
        "src/control/backup-plan.ts",
        "return isTopology && isWhole ?",
        "return (isTopology || parent.topologyGeneration >= 0) && isWhole ?",
      ),
      edit(
        "src/host/storage/log-stretch.ts",
        '    if (found.term !== term) return "other-history";\n',
        "",
      ),
    ],
    { backups: { isForced: true, asks: asksOf("incremental") }, ticks: 24_000 },
  ),
  known("host", "an image is believed to be where the mark is"),
  known("disk", "one copy of an artifact is hashed, another one is used"),
  known("disk", "a manifest gets its name before the artifacts are durable", {
    backups: { callMs: 3, askEveryMs: 400 },
    faults: ["power-loss", "power-loss-all"],
  }),
  known("host", "the meta partition is left out"),
  known("machine", "the token floor is not lifted by a restore", LOCKS),
  known("machine", "the token floor is lifted once for two restores", LOCKS),
  known("machine", "the ephemeral floor is lifted by as much as the tokens of locks", LOCKS),
  known("machine", "a restored sequence keeps its incarnation", SEQUENCES),
  known("machine", "a restored cluster has the members of the old one"),
  known("machine", "a restored cluster has the id of the old one"),
  known("machine", "the lease clock begins anew"),
  known("machine", "what was written in the last millisecond is not restored", RESTORES),
  known("host", "meta is read once, before"),
  known("control", "the collection removes the root first", {
    backups: {
      retention: { maxChains: 1, maxAgeMs: 0, maxBytes: 0 },
      asks: asksOf("incremental"),
    },
  }),
  plantedIn("host")(
    "P-137",
    "a restore is counted by nobody",
    "backup",
    [edit("src/host/restoring/claims.ts", "      write(0);\n", "      look();\n")],
    LOCKS,
  ),
];
