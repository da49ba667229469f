/**
 * One transfer of a group's snapshot to one other node, from the leader's side.
 *
 * Makes the snapshot chunk by chunk as acknowledgements come, keeps what is not acknowledged, and
 * sends it again from where the receiver says. Driven by frames and by `tick`; has no timers. May
 * call: base, raft types, machine, this folder.
 *
 * Invariants: 1. It ends exactly once: done, failed, or superseded by the end of the leadership
 * (P-037). 2. Memory: `windowChunks` chunks and what the snapshot holds; beyond that the snapshot
 * begins anew, `snapshotsMax` times at most (P-035). 3. Progress moves the deadline, nothing else
 * does; the whole has a least pace. 4. Nothing is sent in the name of another term than the one it
 * began in (P-040).
 */
import { assert } from "../../base/assert.js";
import type { SnapshotSource } from "../../machine/snapshot/source.js";
import type { SnapshotMeta } from "../../raft/state/types.js";
import { decodeMembership } from "../replication/config-entries.js";
import type { SnapshotCode, SnapshotFrame } from "./snapshot-frames.js";
import { isTooSlow } from "./snapshot-limits.js";
import type { SnapshotGroup, SnapshotLink } from "./snapshot-types.js";

export type SendEnd = "done" | "failed" | "superseded";

interface KeptChunk {
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

/** Chunks made in one go: the rest of the window follows with the answers. */
const CHUNKS_PER_GO = 2;

export class SnapshotSender {
  private session = 0;
  private source: SnapshotSource | null = null;
  private meta: SnapshotMeta | null = null;
  private kept: KeptChunk[] = [];
  /** The chunk to make next. */
  private nextSequence = 0;
  /** The first chunk that was not sent, or is to be sent again. */
  private sendFrom = 0;
  private begun = false;
  private madeLast = false;
  private snapshots = 0;
  private startAtMs: number;
  private readonly startedMs: number;
  private progressAtMs: number;
  private heardAtMs: number;
  /** How it ended; null while it goes on. */
  end: SendEnd | null = null;
  endReason = "";
  /** Bytes of chunks sent, repeats included. */
  sentBytes = 0;
  /** The index of the snapshot that was installed; 0 unless one was. */
  installedIndex = 0;
  private acknowledgedBytes = 0;
  private readonly term: number;

  constructor(
    private readonly link: SnapshotLink,
    readonly group: SnapshotGroup,
    readonly to: number,
    nowMs: number,
  ) {
    this.term = group.core.term;
    this.startedMs = nowMs;
    this.startAtMs = nowMs;
    this.progressAtMs = nowMs;
    this.heardAtMs = nowMs;
  }

  /** The index of the snapshot on its way; Infinity before there is one. */
  get index(): number {
    return this.meta?.index ?? Infinity;
  }

  /** Chunks that the receiver has acknowledged. */
  get acknowledged(): number {
    return this.nextSequence - this.kept.length;
  }

  get heldBytes(): number {
    let bytes = this.source?.heldBytes ?? 0;
    for (const chunk of this.kept) bytes += chunk.bytes.length;
    return bytes;
  }

  tick(nowMs: number): void {
    if (this.end !== null) return;
    const { settings } = this.link;
    if (this.group.core.role !== "leader" || this.group.core.term !== this.term) {
      return this.finish("superseded", "the leadership ended");
    }
    if (isTooSlow(settings, nowMs - this.startedMs, this.acknowledgedBytes)) {
      return this.finish("failed", "took too long");
    }
    if (nowMs - this.progressAtMs >= settings.progressMs) {
      return this.finish("failed", "no progress");
    }
    if (this.begun && nowMs - this.heardAtMs >= settings.askAfterMs) this.ask(nowMs);
    this.pump(nowMs);
  }

  /** The link is there again: the receiver is asked where it is. */
  linkUp(nowMs: number): void {
    if (this.end === null && this.begun) this.ask(nowMs);
  }

  /** A frame from the receiver. */
  take(frame: SnapshotFrame, nowMs: number): void {
    if (this.end !== null || !this.begun || frame.session !== this.session) return;
    this.heardAtMs = nowMs;
    if (frame.kind === "ack") this.acknowledge(frame.next, frame.resend, nowMs);
    else if (frame.kind === "result") this.result(frame.code, nowMs);
    if (this.stillGoing) this.pump(nowMs);
  }

  /** The group leaves, or the node stops. */
  close(): void {
    if (this.end === null) this.finish("superseded", "closed");
  }

  private get stillGoing(): boolean {
    return this.end === null;
  }

  private acknowledge(next: number, resend: boolean, nowMs: number): void {
    // Nothing that was not sent can be asked for, and what was let go cannot be sent again.
    if (next > this.nextSequence) return;
    if (next < this.acknowledged) {
      if (resend) this.restart(nowMs, "chunks are asked for that are gone");
      return;
    }
    if (next > this.acknowledged) {
      for (const { sequence, bytes } of this.kept) {
        if (sequence < next) this.acknowledgedBytes += bytes.length;
      }
      this.kept = this.kept.filter((chunk) => chunk.sequence >= next);
      this.progressAtMs = nowMs;
    }
    if (resend || this.sendFrom < next) this.sendFrom = next;
    assert(this.acknowledged === next, "what is acknowledged is let go");
  }

  private result(code: SnapshotCode, nowMs: number): void {
    switch (code) {
      case "installed":
        this.installedIndex = this.index;
        return this.finish("done", code);
      case "not-needed":
        return this.finish("done", code);
      case "unknown":
        if (this.acknowledged > 0) return this.restart(nowMs, "the receiver lost the session");
        // Nothing was taken yet: the same snapshot can be announced again.
        this.begun = false;
        this.sendFrom = 0;
        this.startAtMs = nowMs + this.link.settings.askAfterMs;
        return;
      case "damaged":
        return this.restart(nowMs, "the snapshot arrived damaged");
      case "busy":
      case "outdated":
        return this.finish("failed", code);
    }
  }

  private ask(nowMs: number): void {
    this.heardAtMs = nowMs;
    this.link.send(this.to, { kind: "query", group: this.group.partition, session: this.session });
  }

  private restart(nowMs: number, why: string): void {
    const { settings, logger } = this.link;
    const { partition } = this.group;
    const fields = { partition, to: this.to, why, snapshots: this.snapshots };
    logger.log("info", "A snapshot begins anew.", fields);
    this.abort();
    this.release();
    if (this.snapshots >= settings.snapshotsMax) return this.finish("failed", why);
    this.startAtMs = nowMs + settings.retryMs;
  }

  private release(): void {
    this.source?.close();
    this.source = null;
    this.meta = null;
    this.kept = [];
    this.nextSequence = 0;
    this.sendFrom = 0;
    this.begun = false;
    this.madeLast = false;
  }

  private open(): void {
    const { machine, partition, members } = this.group;
    this.session = this.link.nextSession();
    this.snapshots++;
    this.source = machine.openSnapshot(this.link.settings.heldBytesMax);
    const { appliedIndex: index, appliedTerm: term, membership: blob } = this.source.record;
    const membership = blob === null ? members.membership : decodeMembership(blob);
    assert(membership !== null, `the membership of partition ${partition} is readable`);
    this.meta = { index, term, membership };
  }

  /** Sends and makes what may leave now. */
  private pump(nowMs: number): void {
    if (nowMs < this.startAtMs) return;
    if (this.source === null && !this.madeLast) this.open();
    const { group, meta, session, term } = this;
    assert(meta !== null, "a snapshot has a position");
    if (!this.begun) {
      const { lives, partition } = group;
      const between = { fromLife: lives.own, toLife: lives.of(this.to) };
      const frame = { kind: "begin", group: partition, session, ...between, term, meta } as const;
      if (!this.link.send(this.to, frame)) return;
      this.begun = true;
      this.heardAtMs = nowMs;
    }
    if (!this.sendKept()) return;
    for (let made = 0; made < CHUNKS_PER_GO && this.mayMake; made++) {
      if (!this.make(nowMs) || !this.sendKept()) return;
    }
  }

  private get mayMake(): boolean {
    if (this.madeLast || this.kept.length >= this.link.settings.windowChunks) return false;
    return this.link.maySend(this.group, this.to);
  }

  /** False: the snapshot was overrun by changes. */
  private make(nowMs: number): boolean {
    const { source, link } = this;
    assert(source !== null, "chunks are made of an open snapshot");
    const chunk = source.next(link.settings.chunkBytes);
    if (chunk === "overrun") {
      this.restart(nowMs, "too much changed meanwhile");
      return false;
    }
    this.kept.push({ sequence: this.nextSequence, bytes: chunk.bytes });
    this.nextSequence++;
    this.madeLast = chunk.last;
    if (chunk.last) this.source = null;
    return true;
  }

  /** Sends what is made and not sent; false when something found no room. */
  private sendKept(): boolean {
    for (const { sequence, bytes } of this.kept) {
      if (sequence < this.sendFrom) continue;
      const { session, group } = this;
      const frame = { kind: "chunk", group: group.partition, session, sequence, bytes } as const;
      if (!this.link.send(this.to, frame)) return false;
      this.link.charge(group, this.to, bytes.length);
      this.sentBytes += bytes.length;
      this.sendFrom = sequence + 1;
    }
    return true;
  }

  private finish(end: SendEnd, reason: string): void {
    assert(this.end === null, "a transfer ends once");
    this.end = end;
    this.endReason = reason;
    if (end !== "done") this.abort();
    this.release();
  }

  private abort(): void {
    if (!this.begun) return;
    this.link.send(this.to, { kind: "abort", group: this.group.partition, session: this.session });
  }
}
