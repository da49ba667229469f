/** Planted bugs of replicas that come and go by the partition map, and come again. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const host = plantedIn("host");
const control = plantedIn("control");
const disk = plantedIn("disk");

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
      "const founders = incarnation > 0 ? [] :",
      "const founders = incarnation > 0 ? [this.deps.nodeId] :",
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
