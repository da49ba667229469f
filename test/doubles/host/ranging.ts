/**
 * A cluster whose key ranges move: commands to the meta partition, keys written and read wherever
 * their range is led, and what moves leave behind.
 *
 * Invariant: a read is of a leader that has proved itself, and of keys that its partition owns.
 */
import { assert, present } from "../../../src/base/assert.js";
import { type PartitionId, partitionId } from "../../../src/base/ids.js";
import { findRange } from "../../../src/control/ranges.js";
import { hashPartition, keySpaceHashText, keySpaceOf } from "../../../src/base/routing.js";
import type { Node } from "../../../src/host/node.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { Command, RangeMove } from "../../../src/machine/commands/command.js";
import type { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import { RowKind, textToByteKey } from "../../../src/machine/store/keys.js";
import { Cluster } from "./peerworld.js";
import { setCommand } from "./world.js";

const POOL = 2;

export class RangingCluster extends Cluster {
  constructor(size: number, settings: Partial<HostSettings> = {}) {
    super(size, { initialPartitions: POOL, flushAgeMs: 50, ...settings });
  }

  /** The records that the leader of meta has applied, else those of any node. */
  get records(): MetaReads {
    const id = this.serverOf(0) ?? [...this.nodes.keys()][0];
    return this.node(present(id, "a node runs")).metaGroup().machine.meta;
  }

  /** Has a command decided by the meta partition; its status, or what became of the proposal. */
  decide(command: Command): string {
    const id = this.serverOf(0);
    if (id === null) return "no leader";
    let end: string | null = null;
    this.node(id)
      .metaGroup()
      .proposeFinal(command, 200, this.nowMs + 5000, (result) => {
        const outcome = result.status === "applied" ? result.outcome : null;
        end = outcome?.kind === "meta" ? outcome.status : result.status;
      });
    this.passUntil(() => end !== null);
    return end ?? "open";
  }

  home(keySpace: string): number {
    return hashPartition(keySpaceHashText(keySpace), POOL);
  }

  register(keySpace: string): void {
    const status = this.decide({
      kind: "register-range",
      keySpace,
      partitionId: this.home(keySpace),
    });
    assert(status === "done", `the key space is registered: ${status}`);
  }

  /** Begins a split at the key. */
  split(splitKey: string): string {
    const keySpace = keySpaceOf(splitKey);
    const range = present(
      findRange(this.records.ranges(keySpace), splitKey),
      "a range has the key",
    );
    const { partitionId: source, generation, endKey } = range;
    const interval = { startKey: splitKey, endKey };
    return this.decide({
      kind: "begin-move",
      move: "split",
      keySpace,
      ...interval,
      source,
      target: 0,
      generation,
    });
  }

  /** Begins a merge of the range that lies on a partition into a neighbour's. */
  merge(keySpace: string, source: number, target: number): string {
    const ranges = this.records.ranges(keySpace);
    const range = present(
      ranges.find(({ partitionId: each }) => each === source),
      "a range lies there",
    );
    const { startKey, endKey, generation } = range;
    const interval = { startKey, endKey, source, target, generation };
    return this.decide({ kind: "begin-move", move: "merge", keySpace, ...interval });
  }

  move(keySpace: string): RangeMove | null {
    return this.records.move(keySpace);
  }

  ownerOf(key: string): PartitionId {
    const range = findRange(this.records.ranges(keySpaceOf(key)), key);
    return partitionId(range?.partitionId ?? this.home(keySpaceOf(key)));
  }

  private leaderOf(key: string): Node | null {
    const id = this.serverOf(this.ownerOf(key));
    return id === null ? null : this.node(id);
  }

  /** Writes a key where it lives; "moved": it did nothing. */
  write(key: string, value = key): string {
    const group = this.leaderOf(key)?.group(this.ownerOf(key)) ?? null;
    if (group === null) return "no leader";
    let end: string | null = null;
    const command = setCommand(key, new TextEncoder().encode(value));
    group.propose(command, 200, this.nowMs + 3000, (result) => {
      const outcome = result.status === "applied" ? result.outcome : null;
      end = outcome?.kind === "moved" ? "moved" : result.status;
    });
    this.passUntil(() => end !== null);
    return end ?? "open";
  }

  /** The value of a key as its owner says; null: there is none; "moved": it says nothing. */
  read(key: string): string | null {
    const group = present(this.leaderOf(key)?.group(this.ownerOf(key)), "the owner is led");
    let end: { readonly value: string | null } | null = null;
    group.read(this.nowMs + 3000, (result) => {
      if (result.status !== "confirmed") end = { value: result.status };
      else if (!group.machine.ownership.owns(textToByteKey(key))) end = { value: "moved" };
      else {
        const { value } = group.machine.reads.kvGet(key, -1n, result.leaseMs);
        end = { value: value === null ? null : new TextDecoder().decode(value) };
      }
    });
    this.passUntil(() => end !== null);
    return (end as { readonly value: string | null } | null)?.value ?? null;
  }

  /** Puts a value into each key, many at a time. */
  fill(keys: readonly string[], value: (key: string) => string): void {
    let open = keys.length;
    for (const key of keys) {
      const group = present(this.leaderOf(key)?.group(this.ownerOf(key)), "the owner is led");
      const command = setCommand(key, new TextEncoder().encode(value(key)));
      group.propose(command, 5000, this.nowMs + 5000, ({ status }) => {
        assert(status === "applied", "the cluster is well when it is filled");
        open--;
      });
    }
    this.passUntil(() => open === 0);
  }

  /** Rows of values that replicas hold beside those that their partition owns. */
  leftOver(): string[] {
    const found: string[] = [];
    for (const [id, node] of this.nodes) {
      for (const { machine, partition } of node.groups()) {
        machine["groupRows"].scan(RowKind.value, "", null, (key) => {
          if (!machine.ownership.owns(key)) found.push(`${key} in ${partition} of node ${id}`);
          return true;
        });
      }
    }
    return found;
  }

  /** Runs what is due, event by event, until it comes true after one of them. */
  creepUntil(until: () => boolean, limitMs = 8000): boolean {
    for (const endMs = this.nowMs + limitMs; this.nowMs < endMs;) {
      for (let moved = true; moved;) {
        moved = false;
        for (const { timer } of this.worlds.values()) {
          if (!timer.step()) continue;
          if (until()) return true;
          moved = true;
        }
      }
      const nowMs = this.nowMs + 1;
      for (const { timer } of this.worlds.values()) timer.nowMs = nowMs;
    }
    return false;
  }

  /** Waits until no move is under way and nothing is left of any; false: it did not come to that. */
  comeToRest(limitMs = 60_000): boolean {
    const endMs = this.nowMs + limitMs;
    while (this.nowMs < endMs) {
      if (this.isAtRest) return true;
      this.pass(50);
    }
    return this.isAtRest;
  }

  get isAtRest(): boolean {
    const id = this.serverOf(0);
    if (id === null || this.records.moves().length > 0) return false;
    return this.records.partitions().every(({ partitionId: partition, state }) => {
      if (state === "Removed")
        return [...this.nodes.values()].every(
          (node) => node.group(partitionId(partition)) === null,
        );
      const leader = this.serverOf(partition);
      if (leader === null) return false;
      const rows = present(
        this.node(leader).group(partitionId(partition)),
        "led here",
      ).machine.ownership.all();
      return rows.every(
        ({ state: held, isPurged }) => held === "here" || (held === "left" && isPurged),
      );
    });
  }
}
