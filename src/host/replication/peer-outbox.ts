/**
 * The Raft messages of one turn to the other nodes, gathered into one frame per node and lane.
 *
 * Owns which links are up. Invariants: 1. Messages of all groups of a turn to one node share its
 * frames. 2. Nothing is kept for a node that cannot be reached: Raft sends again what matters. 3.
 * Groups whose entries were dropped are told, so that they probe instead of going on blindly. 4. No
 * frame is larger than PEER_FRAME_MAX_BYTES: the port takes none (P-189). A message that alone is
 * larger is dropped and counted.
 */
import { PEER_FRAME_MAX_BYTES } from "../../base/limits.js";
import type { LogEntry, PeerLane, PeerPort } from "../../ports.js";
import type { Message } from "../../raft/state/types.js";
import {
  type HeartbeatSign,
  FRAME_HEAD_BYTES,
  FrameRoom,
  RaftFrameWriter,
  itemSizeBytes,
} from "./raft-frames.js";

/** A frame is sent before the end of the turn when it has grown to this (bytes). */
const FRAME_TARGET_BYTES = 1 << 20;

interface Lanes {
  readonly control: RaftFrameWriter;
  readonly log: RaftFrameWriter;
}

export class PeerOutbox {
  private readonly lanes = new Map<number, Lanes>();
  private readonly room = new FrameRoom();
  private readonly up = new Set<number>();
  /** Since when a node that is not up has been missed. */
  private readonly missedMs = new Map<number, number>();
  /** Frames that the port dropped. */
  droppedFrames = 0;
  /** Messages that are larger than a frame may be. */
  oversizedMessages = 0;
  sentFrames = 0;
  sentBytes = 0;

  /** `undelivered` is called inside a turn for each group whose entries to `to` were dropped. */
  constructor(
    private readonly port: PeerPort | null,
    private readonly undelivered: (group: number, to: number) => void,
  ) {}

  isUp(node: number): boolean {
    return this.up.has(node);
  }

  /** The nodes that are up. */
  linked(): Iterable<number> {
    return this.up;
  }

  /** How long a node has not been linked, as far as anybody asked (ms); 0 while it is. */
  unlinkedMs(node: number, nowMs: number): number {
    if (this.up.has(node)) return 0;
    const sinceMs = this.missedMs.get(node) ?? nowMs;
    this.missedMs.set(node, sinceMs);
    return nowMs - sinceMs;
  }

  linkUp(node: number): void {
    this.missedMs.delete(node);
    this.up.add(node);
  }

  linkDown(node: number): void {
    this.up.delete(node);
    this.lanes.delete(node);
  }

  /**
   * Adds a message with the entries that it carries, between those lives of the two replicas. The
   * link to `message.to` is up.
   */
  add(
    group: number,
    message: Message,
    entries: readonly LogEntry[],
    sign: HeartbeatSign,
    fromLife = 0,
    toLife = 0,
  ): void {
    let lanes = this.lanes.get(message.to);
    if (lanes === undefined) {
      const { room } = this;
      lanes = { control: new RaftFrameWriter(room), log: new RaftFrameWriter(room) };
      this.lanes.set(message.to, lanes);
    }
    const lane = message.kind === "append" || message.kind === "appendAnswer" ? "log" : "control";
    const writer = lanes[lane];
    const sizeBytes = itemSizeBytes(message.kind, entries, fromLife, toLife);
    if (FRAME_HEAD_BYTES + sizeBytes > PEER_FRAME_MAX_BYTES) return this.drop(group, message);
    if (writer.sizeBytes + sizeBytes > PEER_FRAME_MAX_BYTES) this.send(message.to, lane, writer);
    writer.add(group, message, entries, sign, fromLife, toLife, sizeBytes);
    if (writer.sizeBytes >= FRAME_TARGET_BYTES) this.send(message.to, lane, writer);
  }

  /** Hands over everything that was gathered. */
  flush(): void {
    for (const [to, { control, log }] of this.lanes) {
      if (control.sizeBytes > 0) this.send(to, "control", control);
      if (log.sizeBytes > 0) this.send(to, "log", log);
    }
  }

  private drop(group: number, message: Message): void {
    this.oversizedMessages++;
    if (message.kind === "append") this.undelivered(group, message.to);
  }

  private send(to: number, lane: PeerLane, writer: RaftFrameWriter): void {
    const frame = writer.take();
    if (frame === null || this.port === null) return;
    if (this.port.send(to, lane, frame)) {
      this.sentFrames++;
      this.sentBytes += frame.length;
      writer.forgetGroups();
      return;
    }
    this.droppedFrames++;
    const groups = [...writer.groupsWithEntries];
    writer.forgetGroups();
    for (const group of groups) this.undelivered(group, to);
  }
}
