/**
 * What goes into the log, and in which order: frames the operations of all groups into the growing
 * batch, and keeps the group indexes in step with what was framed.
 *
 * Owns the queue and the group indexes.
 *
 * Invariants: 1. Records reach the log in the order of their operations; nothing overtakes within a
 * group. 2. `done` of an operation runs after all its records are durable. 3. A hard state never
 * names a commit index whose entry is not before it in the log, so that a torn write leaves a
 * consistent group.
 */
import { assert } from "../../base/assert.js";
import { EMPTY_BYTES } from "../../base/bytes.js";
import type { PartitionId } from "../../base/ids.js";
import type { HardState, LogEntry, LogPosition, LogWrite } from "../../ports.js";
import type { Kernels } from "../../wasm/kernels.js";
import { Batches } from "./batches.js";
import { type EntryPlace, GroupIndex } from "./groupindex.js";
import { FLOOR_BYTES, encodeFloor, logKind } from "./records.js";
import type { LogPorts } from "./segment.js";
import type { SegmentSet } from "./segments.js";

/** An entry on its way to a newer segment. */
export interface RestatedEntry {
  readonly index: GroupIndex;
  readonly entry: LogEntry;
  readonly from: EntryPlace;
}

/** One thing to write, with how far its framing got. */
export type Operation =
  | { readonly kind: "write"; readonly write: LogWrite; begun: boolean; framed: number }
  | {
      readonly kind: "install";
      readonly group: PartitionId;
      readonly floor: LogPosition;
      readonly hardState: HardState;
      readonly done: () => void;
    }
  | { readonly kind: "drop"; readonly group: PartitionId; readonly done: () => void }
  | {
      readonly kind: "restate";
      readonly entries: readonly RestatedEntry[];
      framed: number;
      readonly done: () => void;
    }
  | { readonly kind: "close"; readonly done: () => void };

export class Appender {
  readonly groups = new Map<PartitionId, GroupIndex>();
  /** Operations that did not fit the growing batch, in order. */
  private queue: Operation[] = [];
  private queueHead = 0;
  /** Groups whose state record must be written again: a raised floor, or one that moves forward. */
  private readonly states = new Set<GroupIndex>();
  private readonly batches: Batches;
  private scheduled = false;
  /**
   * Payload bytes that groups wrote, and what was there at the start: what rewriting is measured
   * by.
   */
  clientBytes = 0;
  private readonly floorBytes = new Uint8Array(FLOOR_BYTES);

  constructor(
    private readonly segments: SegmentSet,
    kernels: Kernels,
    private readonly ports: LogPorts,
    /** Called after each durable write, before its operations hear of it. */
    private readonly written: () => void,
  ) {
    this.batches = new Batches(segments, kernels, ports, (answers) => this.complete(answers));
  }

  /** After recovery: everything in the segments is durable. */
  start(): void {
    this.batches.start();
    this.clientBytes = this.segments.sizeBytes();
  }

  /** Operations that wait for room in a batch. */
  get waiting(): number {
    return this.queue.length - this.queueHead;
  }

  get hasStopped(): boolean {
    return this.batches.hasStopped;
  }

  isDurable(place: EntryPlace): boolean {
    return this.batches.isDurable(place);
  }

  groupIndex(group: PartitionId): GroupIndex {
    let index = this.groups.get(group);
    if (index === undefined) {
      index = new GroupIndex(group, this.segments);
      this.groups.set(group, index);
    }
    return index;
  }

  submit(operation: Operation): void {
    if (this.hasStopped) return;
    if (this.waiting > 0 || this.states.size > 0 || !this.frame(operation)) {
      this.queue.push(operation);
    }
    this.schedule();
  }

  /** Has the state record of a group written again. */
  restateGroup(index: GroupIndex): void {
    this.states.add(index);
    this.schedule();
  }

  /** Sees to it that what is queued is issued at the end of this turn. */
  schedule(): void {
    if (this.scheduled || this.hasStopped || this.batches.isWriting) return;
    this.scheduled = true;
    this.ports.timers.soon(() => {
      this.scheduled = false;
      this.pump();
    });
  }

  /** Frames what fits, and issues the batch if no other is in flight. */
  private pump(): void {
    if (this.hasStopped) return;
    this.fill();
    if (!this.batches.isReady) return;
    // With every state record framed, this batch carries all that emptied segments so far.
    this.batches.issue(this.states.size === 0);
    this.fill();
  }

  private fill(): void {
    for (const index of this.states) {
      if (!this.putState(index, index.hardState, true)) return;
    }
    while (this.queueHead < this.queue.length) {
      if (!this.frame(this.queue[this.queueHead] as Operation)) break;
      this.queueHead++;
    }
    if (this.queueHead === this.queue.length || this.queueHead > 1024) {
      this.queue = this.queue.slice(this.queueHead);
      this.queueHead = 0;
    }
  }

  /** What the last batch carried is durable. */
  private complete(answers: readonly (() => void)[]): void {
    // The answers come first: whoever writes again on hearing one joins the batch that is issued at
    // the end of this turn. Issuing what grew before them would split callers into two halves that
    // take turns on the disk, each with half a batch.
    this.written();
    for (const done of answers) done();
    this.tidy();
    this.schedule();
  }

  /** Tries again to remove what is needless. */
  tidy(): void {
    this.segments.removeEmptied(this.batches.completed);
  }

  private frame(operation: Operation): boolean {
    switch (operation.kind) {
      case "write":
        return this.frameWrite(operation);
      case "install":
        return this.frameInstall(operation);
      case "restate":
        return this.frameRestated(operation);
      case "drop":
        return this.frameDrop(operation);
      case "close":
        return (
          this.batches.put(logKind.close, 0, 0, 0, 0, EMPTY_BYTES, true) > 0 &&
          this.batches.join(operation.done)
        );
    }
  }

  private frameWrite(operation: Extract<Operation, { kind: "write" }>): boolean {
    const { group, hardState, entries, done } = operation.write;
    const index = this.groupIndex(group);
    const first = entries[0];
    // The commit index of the record before the entries stays below them; see invariant 3.
    const early = first !== undefined && hardState !== null && hardState.commit >= first.index;
    if (!operation.begun) {
      const reachable = first === undefined || first.index <= index.lastIndex + 1;
      assert(reachable && (first?.index ?? Infinity) > index.floor.index, "entries join the log");
      if (hardState !== null) {
        const commit = early ? first.index - 1 : hardState.commit;
        if (!this.putState(index, { ...hardState, commit }, false)) return false;
      }
      operation.begun = true;
    }
    while (operation.framed < entries.length) {
      const entry = entries[operation.framed] as LogEntry;
      const { kind, term, payload } = entry;
      const at = this.batches.put(logKind.entry, group, kind, entry.index, term, payload, false);
      if (at === 0) return false;
      const segment = this.segments.active.sequence;
      const taken = index.append(entry.index, term, kind, segment, at, payload.length);
      assert(taken, "entries of a write are contiguous");
      this.clientBytes += payload.length;
      operation.framed++;
    }
    if (early && !this.putState(index, hardState, false)) return false;
    return this.batches.join(done);
  }

  private frameInstall(operation: Extract<Operation, { kind: "install" }>): boolean {
    const { group, floor, hardState, done } = operation;
    const index = this.groupIndex(group);
    const body = encodeFloor(floor);
    const { vote, commit, term } = hardState;
    if (this.batches.put(logKind.install, group, vote, commit, term, body, false) === 0)
      return false;
    index.install(floor, hardState);
    index.moveState(this.segments.active.sequence);
    this.states.delete(index);
    return this.batches.join(done);
  }

  private frameDrop(operation: Extract<Operation, { kind: "drop" }>): boolean {
    const index = this.groups.get(operation.group);
    if (this.batches.put(logKind.drop, operation.group, 0, 0, 0, EMPTY_BYTES, true) === 0)
      return false;
    if (index !== undefined) {
      index.drop();
      this.states.delete(index);
      this.groups.delete(operation.group);
    }
    return this.batches.join(operation.done);
  }

  private frameRestated(operation: Extract<Operation, { kind: "restate" }>): boolean {
    const { entries, done } = operation;
    while (operation.framed < entries.length) {
      const { index, entry, from } = entries[operation.framed] as RestatedEntry;
      const now = index.place(entry.index);
      if (now !== null && now.segment === from.segment && now.offset === from.offset) {
        const { kind, term, payload } = entry;
        const at = this.batches.put(
          logKind.restated,
          index.group,
          kind,
          entry.index,
          term,
          payload,
          false,
        );
        if (at === 0) return false;
        const segment = this.segments.active.sequence;
        const taken = index.restate(entry.index, term, kind, segment, at, payload.length);
        assert(taken, "a restated entry takes its own place");
      }
      operation.framed++;
    }
    return this.batches.join(done);
  }

  private putState(index: GroupIndex, hardState: HardState, reserved: boolean): boolean {
    const { vote, commit, term } = hardState;
    encodeFloorInto(this.floorBytes, index.floor);
    const body = this.floorBytes;
    if (this.batches.put(logKind.state, index.group, vote, commit, term, body, reserved) === 0)
      return false;
    index.hardState = hardState;
    index.moveState(this.segments.active.sequence);
    this.states.delete(index);
    return true;
  }

  /** Nothing is written any more. */
  stop(): void {
    this.batches.stop();
  }
}

function encodeFloorInto(target: Uint8Array, floor: LogPosition): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  view.setUint32(0, floor.index, true);
  view.setUint32(4, Math.floor(floor.index / 0x1_0000_0000), true);
  view.setUint32(8, floor.term, true);
  view.setUint32(12, Math.floor(floor.term / 0x1_0000_0000), true);
}
