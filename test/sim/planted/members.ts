/** Planted bugs of membership: who joins, votes, leaves, and under which identity. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const core = plantedIn("core");
const control = plantedIn("control");
const host = plantedIn("host");

export const memberBugs: readonly Mutation[] = [
  core("P-083", "two membership changes are on their way at once", "members", [
    edit(
      "src/raft/roles/proposals.ts",
      "return raft.pendingChangeIndex > raft.log.applied || joint !== leaving;",
      "return joint !== leaving;",
    ),
  ]),
  core("P-087", "learners are counted for commits", "members", [
    edit(
      "src/raft/state/tracker.ts",
      "return jointIndex(this.membership, this.matchOf);",
      "const { voters, learners } = this.membership;\n    return jointIndex({ ...this.membership, voters: [...voters, ...learners] }, this.matchOf);",
    ),
  ]),
  core("P-019", "half of the voters are a majority", "members", [
    edit(
      "src/raft/state/quorum.ts",
      "return Math.floor(count / 2) + 1;",
      "return Math.ceil(count / 2);",
    ),
  ]),
  control("P-091", "a learner votes before it has caught up", "members", [
    edit(
      "src/control/group-plan.ts",
      "const caughtUp = learners.find((node) => facts.isLive(node) && facts.isCaughtUp(node));",
      "const caughtUp = learners.find((node) => facts.isLive(node));",
    ),
  ]),
  control("P-096", "a voter goes before its heir votes", "members", [
    edit(
      "src/control/group-plan.ts",
      "if (isLive && coming !== undefined &&",
      "if (!isLive && coming !== undefined &&",
    ),
  ]),
  host("P-097", "an id is given out again while groups still list it", "members", [
    edit(
      "src/host/cluster/id-reuse.ts",
      "return isFresh && !allMembers(membership).includes(command.nodeId);",
      "return isFresh && membership !== null;",
    ),
  ]),
  host("P-090", "another data directory is welcome under the id of a member", "members", [
    edit("src/host/cluster/id-reuse.ts", '"propose" : "held";', '"propose" : "propose";'),
  ]),
  control("P-191", "an empty founder founds although others know the cluster", "wiped", [
    edit("src/control/founding.ts", '  if (isLate) return { kind: "join" };\n', ""),
  ]),
  control("P-191", "a founder that is silent counts as empty", "wiped", [
    edit(
      "src/control/founding.ts",
      'if (missing.length > 0) return { kind: "wait", missing };',
      'for (const { nodeId: id } of others) if (!directories.some((one) => one.nodeId === id)) directories.push({ nodeId: id, storageId: "" });',
    ),
  ]),
  host("P-190", "an older copy of a data directory is welcome", "rolled-back", [
    edit(
      "src/host/cluster/peer-admission.ts",
      'if (this.known.isOvertaken(hello)) return "storage-lost";',
      "",
    ),
  ]),
  host("P-088", "a node that left is heard as before", "members", [
    edit(
      "src/host/cluster/peer-admission.ts",
      "former?.storageIds.includes(storageId) === true) {",
      "former?.storageIds.includes(storageId) === null) {",
    ),
  ]),
];
