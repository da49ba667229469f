/** A meta partition with a founded cluster, and short forms of the commands about placement. */
import { FIRST_LEVEL, configIndex, placementGeneration } from "../../../src/base/ids.js";
import type {
  Command,
  MetaOutcome,
  PartitionRecord,
  ReplicaChange,
  ReplicaRecord,
} from "../../../src/machine/commands/command.js";
import { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import { encodeMember } from "../../../src/machine/meta/meta-rows.js";
import { RowKind, uint32Key } from "../../../src/machine/store/keys.js";
import { Bench } from "./bench.js";
import { member, newMember } from "./members.js";

export function orders(
  generation: number,
  change: ReplicaChange,
  partitionId = 1,
): Extract<Command, { kind: "change-replicas" }> {
  const item = { partitionId, generation: placementGeneration(generation), change };
  return { kind: "change-replicas", items: [item] };
}

export function report(
  index: number,
  voters: readonly number[],
  learners: readonly number[] = [],
  restsOn = 1000,
): Extract<Command, { kind: "report-replicas" }> {
  const rest = { voters, learners, restsOn: placementGeneration(restsOn) };
  return {
    kind: "report-replicas",
    items: [{ partitionId: 1, configIndex: configIndex(index), ...rest }],
  };
}

export function place(
  generation: number,
  index: number,
  voters: readonly number[],
  learners: readonly number[] = [],
): Extract<Command, { kind: "place-partition" }> {
  const rest = { voters, learners, generation: placementGeneration(generation) };
  return {
    kind: "place-partition",
    items: [{ partitionId: 1, configIndex: configIndex(index), ...rest }],
  };
}

/** Replicas in short: "2 voter", "5 learner@3 for 2", "4 removing@7". */
export function inShort({ nodeId, role, incarnation: life, replaces }: ReplicaRecord): string {
  const of = life === 0 ? "" : `@${life}`;
  return `${nodeId} ${role}${of}${replaces === 0 ? "" : ` for ${replaces}`}`;
}

export class MetaBench extends Bench {
  /** Founded by nodes 1 to `nodes`, with so many partitions. */
  constructor(nodes: number, factor: number, partitions = 1) {
    super();
    const members = Array.from({ length: nodes }, (_, at) =>
      newMember(at + 1, `h${at + 1}:1`, `s${at + 1}`),
    );
    this.one(0, {
      ...{ kind: "found-cluster", clusterId: "c", dataPartitions: partitions },
      ...{ replicationFactor: factor, level: FIRST_LEVEL, members },
    });
  }

  /** A member with this line of the list, in whatever state. */
  setMember(nodeId: number, more: Parameters<typeof member>[1] = {}): void {
    this.machine.rewrite(({ rows }) => {
      rows.put(RowKind.member, uint32Key(nodeId), encodeMember(member(nodeId, more)));
    });
  }

  /** All records, by reads that kept nothing. */
  recordsAnew(): readonly PartitionRecord[] {
    return new MetaReads(this.machine.meta["rows"]).partitions();
  }

  record(partitionId = 1): PartitionRecord {
    const record = this.machine.meta.partition(partitionId);
    if (record === null) throw new Error(`there is no partition ${partitionId}`);
    return record;
  }

  /** The record in short: generation, configuration, replicas. */
  now(partitionId = 1): string {
    const { generation, configIndex: index, replicas } = this.record(partitionId);
    return `${generation} at ${index}: ${replicas.map(inShort).join(", ")}`;
  }

  meta(command: Command): MetaOutcome {
    return this.one(0, command) as MetaOutcome;
  }

  /** What became of the one item: its status and the generation of its record. */
  item(command: Command): string {
    const { status, items } = this.meta(command);
    const [first] = items;
    return first === undefined ? status : `${first.status} ${first.generation}`;
  }
}
