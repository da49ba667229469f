/**
 * Planted bugs of replicas that come and go by the partition map, and come again; and of where they
 * are: orders, reports, the next step of a group, balance, drains and removals by force.
 */
import type { PlanOverrides } from "../plan/plan.js";
import { edit, plantedIn, type Mutation } from "./mutation.js";

const host = plantedIn("host");
const control = plantedIn("control");
const disk = plantedIn("disk");
const machine = plantedIn("machine");

export const replicaBugs: readonly Mutation[] = [
  host("P-089", "messages of a former life of a replica are listened to", "placed", [
    edit(
      "src/host/replication/peer-lives.ts",
      '    if (toLife !== this.own) return "receiver-life";\n    return fromLife < this.of(node) ? "sender-life" : null;',
      "    return null;",
    ),
  ]),
  host("P-003", "a replica that is dropped takes its term along", "placed", [
    edit(
      "src/host/group/replica.ts",
      "return { incarnation: this.lives.own, term, vote, lastGeneration };",
      "return { incarnation: this.lives.own, term: term * 0, vote: vote * 0, lastGeneration };",
    ),
  ]),
  host("P-088", "a replica that was added begins with its own vote", "placed", [
    edit(
      "src/host/cluster/map-follower.ts",
      "return { founders: [], incarnation,",
      "return { founders: [this.deps.nodeId], incarnation,",
    ),
    edit(
      "src/host/storage/recovery.ts",
      "const awaitsSnapshot = beginning.isAdded && machine.installed.index === 0;",
      "const awaitsSnapshot = false;",
    ),
  ]),
  host("P-097", "a replica is made where nobody placed it", "placed", [
    edit(
      "src/control/hosting.ts",
      "    if (life === null || (known !== null && life <= known.incarnation)) return STAY;\n    return",
      '    if (known !== null) return STAY;\n    if (life === null) return { kind: "come", incarnation: record.generation as never };\n    return',
    ),
  ]),
  control("P-097", "a replica goes while its record still lists it", "placed", [
    edit(
      "src/control/hosting.ts",
      "return record.replicas.find((replica) => replica.nodeId === nodeId)?.incarnation ?? null;",
      'return record.replicas.find((replica) => replica.nodeId === nodeId && replica.role !== "removing")?.incarnation ?? null;',
    ),
  ]),
  disk("P-097", "the log shows what it found of a group that was forgotten since", "placed", [
    edit("src/disk/log/wal.ts", "    this.recoveredLogs.delete(group);\n", ""),
    edit(
      "src/host/cluster/map-follower.ts",
      "const recovered = this.unhosted.get(partition) ?? null;",
      "const recovered = (this.deps.log as never as { recovered(): Map<unknown, RecoveredGroupLog> }).recovered().get(partition) ?? null;",
    ),
  ]),
  host("P-097", "a replica is forgotten before that is durable", "placed", [
    edit(
      "src/host/cluster/replica-lives.ts",
      "    this.deps.flushSoon(() => this.forget(partition));\n",
      "    this.forget(partition);\n",
    ),
  ]),
  host("P-084", "a replica is reported gone before that is durable", "placed", [
    edit(
      "src/host/reports/replica-reports.ts",
      "      if (!group.members.isEstablished) {\n",
      "      if (!group.members.isEstablished && atMs < 0) {\n",
    ),
  ]),
];

/** Leaders that know old records: they hear nothing of meta, and leaderships change. */
const DEAF: PlanOverrides = { faults: ["old-heirs", "old-heirs", "meta-deaf", "kill-leader"] };

const RECORDS = "src/machine/meta/meta-placement.ts";
const GROUP = "src/control/placed-plan.ts";
const PLAN = "src/control/placement-plan.ts";

export const placementBugs: readonly Mutation[] = [
  control("P-205", "a removal is reported before it is applied", "placed", [
    edit(
      GROUP,
      "  if (allMembers(membership).includes(nodeId)) return false;\n",
      "  if (nodeId < 0) return false;\n",
    ),
    edit(
      GROUP,
      "  const { voters, learners } = membership;\n  const { partitionId } = record;\n",
      "  const going = record.replicas.filter(({ role }) => role === 'removing').map(({ nodeId }) => nodeId);\n" +
        "  const [voters, learners] = [membership.voters, membership.learners].map((nodes) =>\n" +
        "    nodes.filter((node) => !going.includes(node)),\n" +
        "  ) as [number[], number[]];\n" +
        "  const { partitionId } = record;\n",
    ),
  ]),
  host("P-091", "a learner is as far as its former life was", "placed", [
    edit(
      "src/host/cluster/reconcile.ts",
      "isCaughtUp ? Math.min(known.caughtUpSinceMs, nowMs) : Infinity;",
      "Math.min(known.caughtUpSinceMs, isCaughtUp ? nowMs : Infinity);",
    ),
  ]),
  control("P-097", "a replica goes by a map that is older than itself", "placed", [
    edit(
      "src/control/hosting.ts",
      "return isIts || record.generation <= known.incarnation ? STAY",
      "return isIts ? STAY",
    ),
  ]),
  host("P-042", "rows of a new life are swept with those of the former", "placed", [
    edit(
      "src/host/cluster/replica-lives.ts",
      'this.put(partition, { ...last, state: "dropping" });',
      'this.put(partition, { ...last, state: "dropping", lastGeneration: 0 });',
    ),
  ]),
  control(
    "P-097",
    "a member goes because the record known here is without it",
    "placed",
    [
      edit(
        GROUP,
        "  if (dueReport(facts) !== null) return",
        "  const listed = record.replicas.map(({ nodeId }) => nodeId);\n" +
          "  const absent = facts.membership.voters.find((node) => !listed.includes(node));\n" +
          "  if (absent !== undefined) {\n" +
          '    const change = changeOf({ kind: "remove", node: absent });\n' +
          '    return guarded(facts, change, absent, "absent");\n' +
          "  }\n" +
          "  if (dueReport(facts) !== null) return",
      ),
      edit(
        GROUP,
        "  if (record.generation < placedGeneration) {\n    return wait",
        "  if (record.generation < 0) {\n    return wait",
      ),
    ],
    DEAF,
  ),
  control(
    "P-205",
    "a leader whose record is older than its configuration plans on",
    "placed",
    [
      edit(
        GROUP,
        "  if (record.generation < placedGeneration) {\n    return wait",
        "  if (record.generation < 0) {\n    return wait",
      ),
      edit(GROUP, " || record.generation < placedGeneration) return null;", ") return null;"),
    ],
    DEAF,
  ),
  machine("P-092", "two replicas of a partition are on their way at once", "placed", [
    edit(RECORDS, '  if (!replicas.every(isVoter)) return "busy";\n', ""),
  ]),
  machine("P-096", "the report of an old leader counts", "placed", [
    edit(RECORDS, '  if (report.configIndex < record.configIndex) return "stale";\n', ""),
  ]),
  machine("P-094", "an order that was decided on an older record is carried out", "placed", [
    edit(
      RECORDS,
      '  if (order.generation !== record.generation) return "stale";\n  const replicas = changed(',
      "  const replicas = changed(",
    ),
  ]),
  control("P-091", "a learner on a member that is gone is waited for", "placed", [
    edit(
      PLAN,
      'if (!isLost && !isUseless && this.ledger.standing(nodeId) !== "leaving") continue;',
      "if (!isUseless) continue;",
    ),
  ]),
  control("P-096", "who leaves is a target of new replicas", "placed", [
    edit(
      "src/control/placement-ledger.ts",
      'standing === "sound" || standing === "silent"',
      'standing !== "dead"',
    ),
  ]),
  control("P-106", "balance moves at a difference of one", "placed", [
    edit("src/control/placement-balance.ts", "const DIFFERENCE = 2;", "const DIFFERENCE = 1;"),
  ]),
  host("P-106", "a node counts the leaders of its own groups alone", "placed", [
    edit(
      "src/host/leaders/balancer.ts",
      "reported?.leads ?? this.countLed(replicas)",
      "this.countLed(replicas)",
    ),
  ]),
  control("P-096", "a member is removed while a record names it", "placed", [
    edit(
      "src/control/membership.ts",
      "const isNamed = placedOn.has(nodeId);",
      "const isNamed = placedOn.size < 0;",
    ),
    // Apply refuses it as well: either guard alone is enough.
    edit(
      "src/machine/meta/meta-members.ts",
      "some((record) => isListed(record, nodeId));",
      "some((record) => isListed(record, -nodeId));",
    ),
  ]),
  control("P-092", "a voter that the group is without is waited for", "placed", [
    edit(GROUP, "[...missingVoters(facts), ...leaving, ...coming]", "[...leaving, ...coming]"),
  ]),
  control("P-092", "majorities are counted in the record", "placed", [
    edit(
      GROUP,
      "const { voters, votersOutgoing } = result.membership;",
      "const listed = facts.record.replicas.filter(({ role }) => role === 'voter');\n" +
        "  const [voters, votersOutgoing] = [listed.map(({ nodeId }) => nodeId), [] as number[]];",
    ),
  ]),
  host("P-095", "a member that others hear is removed by force", "placed", [
    edit(
      "src/host/cluster/member-removal.ts",
      "const isAlive = member === deps.nodeId || deps.hearing.isHeard(member);",
      "const isAlive = member === deps.nodeId;",
    ),
    edit(
      "src/host/cluster/member-removal.ts",
      "if (isHeard) this.end(",
      "if (isHeard && call.member < 0) this.end(",
    ),
  ]),
  host("P-042", "a group that left keeps its sequence blocks", "placed", [
    edit(
      "src/operations/serving/serving.ts",
      "if (this.blocksByGroup.get(partition) === blocks) this.blocksByGroup.delete(partition);",
      "this.blocksByGroup.get(partition);",
    ),
  ]),
];
