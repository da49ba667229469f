/**
 * The snapshots that other nodes send to this one: which transfers are let in, and which of them a
 * frame belongs to.
 *
 * Invariants: 1. A group takes one snapshot at a time; one of a newer term, or begun anew by the
 * same leader, takes its place, unless the core may have it already (P-040). 2. At most
 * `receiversMax` are taken at the same time. 3. The last result of a group is kept, so that a
 * sender who missed it hears it when it asks.
 */
import { assert, present } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { isMember } from "../../raft/state/membership.js";
import type { BeginFrame, SnapshotCode, SnapshotFrame } from "./snapshot-frames.js";
import { SnapshotReceiver } from "./snapshot-receiver.js";
import type { SnapshotTally } from "./snapshot-tally.js";
import type { InstallOrder, SnapshotGroup, SnapshotDeps } from "./snapshot-types.js";

/** What a sender says. */
export type SenderFrame = Exclude<SnapshotFrame, { kind: "ack" | "result" }>;

interface Incoming {
  readonly session: number;
  readonly receiver: SnapshotReceiver;
}

/** The last result told for a group, in case it was lost. */
interface Told {
  readonly from: number;
  readonly session: number;
  readonly code: SnapshotCode;
}

export class SnapshotArrivals {
  private readonly incoming = new Map<PartitionId, Incoming>();
  private readonly told = new Map<PartitionId, Told>();
  /** Snapshots installed in this life. */
  installed = 0;
  /** Transfers that failed here, and those that nobody wanted any more. */
  failed = 0;
  aborted = 0;

  /** `onEnd` is called when a group may have rows that nobody needs any more. */
  constructor(
    private readonly deps: SnapshotDeps,
    private readonly tally: SnapshotTally,
    private readonly send: (to: number, frame: SnapshotFrame) => void,
    private readonly onEnd: (group: SnapshotGroup) => void,
  ) {}

  get size(): number {
    return this.incoming.size;
  }

  get receivers(): readonly SnapshotReceiver[] {
    return [...this.incoming.values()].map(({ receiver }) => receiver);
  }

  tick(nowMs: number): void {
    for (const receiver of this.receivers) receiver.tick(nowMs);
  }

  install(group: SnapshotGroup, order: InstallOrder): void {
    const receiver = this.incoming.get(group.partition)?.receiver;
    assert(receiver?.isFor(order.meta) === true, "an install is of the snapshot that was offered");
    present(receiver, "there is a transfer").install(order);
  }

  frame(from: number, group: SnapshotGroup, frame: SenderFrame, nowMs: number): void {
    if (frame.kind === "begin") return this.begin(from, group, frame);
    const incoming = this.incoming.get(group.partition);
    const receiver = incoming?.session === frame.session ? incoming.receiver : undefined;
    if (receiver === undefined || receiver.from !== from) {
      if (frame.kind === "abort") return;
      const told = this.told.get(group.partition);
      const isTold = told?.from === from && told.session === frame.session;
      // A chunk that follows a refusal needs no answer of its own.
      if (isTold && frame.kind === "chunk") return;
      return this.tell(from, frame, isTold ? told.code : "unknown");
    }
    if (frame.kind === "chunk") {
      this.tally.count("in", group.members.membership, this.deps.nodeId, frame.bytes.length);
      receiver.take(frame, nowMs);
    } else if (frame.kind === "query") receiver.query();
    else if (!receiver.isOffered) receiver.abandon("unknown");
  }

  /** The group left this node. */
  removed(partition: PartitionId): void {
    const incoming = this.incoming.get(partition);
    if (incoming !== undefined) this.aborted++;
    incoming?.receiver.close();
    this.incoming.delete(partition);
    this.told.delete(partition);
  }

  private begin(from: number, group: SnapshotGroup, frame: BeginFrame): void {
    const incoming = this.incoming.get(group.partition);
    if (incoming?.session === frame.session && incoming.receiver.from === from) {
      return incoming.receiver.query();
    }
    const refusal = this.refusal(from, group, frame, incoming?.receiver ?? null);
    if (refusal !== null) {
      this.told.set(group.partition, { from, session: frame.session, code: refusal });
      return this.tell(from, frame, refusal);
    }
    incoming?.receiver.abandon("outdated");
    const { session } = frame;
    const ack = (next: number, resend: boolean): void => {
      this.send(from, { kind: "ack", group: group.partition, session, next, resend });
    };
    const receiver = new SnapshotReceiver(this.deps, group, from, frame, ack, (code) => {
      this.ended(from, group, session, code);
    });
    this.incoming.set(group.partition, { session, receiver });
  }

  private refusal(
    from: number,
    group: SnapshotGroup,
    frame: BeginFrame,
    current: SnapshotReceiver | null,
  ): SnapshotCode | null {
    const { term, meta, fromLife, toLife } = frame;
    const stray = group.lives.strayReason(from, fromLife, toLife);
    if (stray !== null) {
      this.deps.stray(stray);
      return "outdated";
    }
    if (term < group.core.term || !isMember(meta.membership, this.deps.nodeId)) return "outdated";
    if (meta.index <= group.core.commitIndex) return "not-needed";
    if (current === null) {
      return this.incoming.size >= this.deps.settings.receiversMax ? "busy" : null;
    }
    if (current.isOffered) return "busy";
    const { begin } = current;
    if (term !== begin.term) return term < begin.term ? "outdated" : null;
    // One leader per term; and of that one, a snapshot begun anew is at least as new.
    return from !== current.from || meta.index < begin.meta.index ? "outdated" : null;
  }

  private ended(from: number, group: SnapshotGroup, session: number, code: SnapshotCode): void {
    this.incoming.delete(group.partition);
    this.told.set(group.partition, { from, session, code });
    this.tell(from, { group: group.partition, session }, code);
    if (code === "installed") this.installed++;
    else if (code === "outdated" || code === "not-needed") this.aborted++;
    else this.failed++;
    this.onEnd(group);
    const fields = { partition: group.partition, from, result: code };
    this.deps.logger.log("info", "Taking a snapshot ended.", fields);
  }

  tell(
    to: number,
    about: { readonly group: number; readonly session: number },
    code: SnapshotCode,
  ): void {
    const { group, session } = about;
    this.send(to, { kind: "result", group, session, code });
  }
}
