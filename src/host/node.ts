/**
 * One node: all its groups, their shared turn, start and stop. Signature only for the moment; the bodies follow.
 *
 * May call: base, raft, machine, ports, this folder.
 * Invariants: 1. One turn at a time; nothing re-enters it. 2. A partition id is hosted at most once. 3. A stop answers
 * everything that was accepted.
 */
import { AssertionError } from "../base/assert.js";
import type { PartitionId } from "../base/ids.js";
import type { Result } from "../base/result.js";
import type { Group } from "./group.js";
import type { HealthFacts, NodeFacts, ReadyCheck } from "./results.js";
import type { HostPorts, HostSettings } from "./settings.js";

export type StartRefusal = "state-ahead-of-log" | "state-behind-log" | "damaged-state";

function pending(): never {
  throw new AssertionError("not written yet");
}

/* eslint-disable @typescript-eslint/no-unused-vars */
export class Node {
  /**
   * Recovers every group and begins to elect and replay; a new data directory founds a cluster. Serving begins by
   * itself, some turns later (`health`). A failure names the group, the index and the remedy.
   */
  static open(_settings: HostSettings, _ports: HostPorts): Result<Node, StartRefusal> {
    pending();
  }
  /** The group of the partition that `hashText` is placed in (contract 6.1); null until the cluster is founded. */
  route(_hashText: string): Group | null {
    pending();
  }
  /** The group of `partition`; null when this node does not host it. */
  group(_partition: PartitionId): Group | null {
    pending();
  }
  metaGroup(): Group {
    pending();
  }
  /** Meta first, then by partition id. */
  groups(): readonly Group[] {
    pending();
  }
  /** The roster and the partition map are applied here. */
  get initialized(): boolean {
    pending();
  }
  get shuttingDown(): boolean {
    pending();
  }
  /** Monotonic ms, for deadlines. */
  nowMs(): number {
    pending();
  }
  health(): HealthFacts {
    pending();
  }
  checks(): readonly ReadyCheck[] {
    pending();
  }
  facts(): NodeFacts {
    pending();
  }
  /** `hook` runs once for every group, those that exist and those to come (to attach resets, stop hooks, tables). */
  onGroup(_hook: (group: Group) => void): void {
    pending();
  }
  /**
   * Graceful stop: ends intake, lets stop hooks propose, answers what was accepted (at `deadlineMs` at the latest),
   * flushes, closes log and store. Calls `done` once.
   */
  stop(_deadlineMs: number, _done: () => void): void {
    pending();
  }
}
