/**
 * Requests that other nodes carry out for this one, and the answers that they get from it: both in
 * frames, all of one turn to one peer together.
 *
 * Owns the calls in flight and the frames in the making. Invariants: 1. Every call ends exactly
 * once, never in the turn in which it was made: by its answer, its deadline, the end of the link,
 * or because the partition has another leader now (P-049). 2. An answer ends the call of its id
 * only if it comes from the node that was asked, in this life of this node (P-033). 3. "unsent" and
 * "overloaded" are certain: nothing left this node. "lost" says nothing about the effect. 4. A peer
 * that does not answer holds half of what this node admits at most. 5. A node that stops says
 * farewell behind its last answer: what it was asked and has not answered, it did not take (C12).
 * It says none to a life of a peer that may have lost an answer: with a link that was down here,
 * which the peer need not have noticed, or in a lane without room. 6. A farewell says nothing of
 * what was asked before the link, or a frame that may have held answers, was lost (it may be late).
 */
import { assert } from "../../base/assert.js";
import { ByteWriter } from "../../base/codec.js";
import { DeadlineSweep } from "../../host/requests/deadline-sweep.js";
import type { ClockPort, EntropyPort, LoggerPort, TimerPort } from "../../ports.js";
import { isWaiting } from "../api/requests.js";
import type { Trace } from "../api/tracing.js";
import {
  type CallAnswer,
  type CallRequest,
  isLock,
  writeAnswer,
  writeCall,
} from "../wire/calls.js";
import { Draft, type Frame, type OutFrame } from "../wire/frames.js";
import { Call, type CallResult, hopEnding } from "./call.js";
import { HeardCalls } from "./heard-calls.js";

/** The lane to the other nodes on which calls and their answers travel. */
export interface CallsPort {
  /** Queues a frame; false: it was dropped, nothing of it will arrive. */
  send(to: number, bytes: Uint8Array): boolean;
  /** Bytes queued for `to`: what is not sent while there are any has found the lane full. */
  queuedBytes?(to: number): number;
}

export interface CallsPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
  /** Absent in a node that has no peers. */
  readonly calls?: CallsPort;
}

/** What is asked of another node. */
export interface Asking {
  readonly to: number;
  /** The partition that `to` is believed to lead; NO_PARTITION: it need not lead any. */
  readonly partition: number;
  readonly request: CallRequest;
  readonly requestId: string;
  readonly trace?: Trace | undefined;
  /** On this node's monotonic clock (ms). */
  readonly deadlineMs: number;
}

export const NO_PARTITION = -1;

/** What is held of and for one peer. */
interface Peer {
  /** The last call made before its link or a frame of it was lost: no farewell is of it. */
  formerId: number;
  readonly heard: HeardCalls;
  readonly calls: Draft;
  readonly answers: Draft;
  /** It said farewell: nothing reaches it until its link is up again. */
  isLeaving: boolean;
  inFlight: number;
  inFlightBytes: number;
  /** Frames with answers that the lane had no room for. */
  stalled: Uint8Array[];
  stalledTries: number;
}

/** What became of a frame at the lane. */
type Sending = "sent" | "unsent" | "overloaded";

const UNSENT: CallResult = { status: "unsent" };

/** Bytes of calls in flight to one peer. */
const IN_FLIGHT_BYTES_MAX = 64 * 1024 * 1024;
/** How often calls in flight are compared with who leads now (ms). */
const WATCH_MS = 50;
/** The same for calls that wait for locks (ms). */
const WATCH_WAITING_MS = 250;
/** They may be thousands, each with a deadline of its own: those of so long end together (ms). */
const WAITING_LATE_MS = 20;
/** Time for the word that somebody waits no more (ms). */
const CANCEL_MS = 5000;
/** The asked node is given so much less time (ms), that its answer arrives within the deadline. */
const MARGIN_MS = 50;
/** A peer that could not be reached is tried again after this (ms). */
const UNREACHABLE_MS = 100;
const STALLED_RETRY_MS = 10;
const STALLED_TRIES_MAX = 200;
const STALLED_FRAMES_MAX = 256;

export class Calls {
  /** Names this life of this node: ids begin again after a restart. */
  private readonly epoch: number;
  private readonly open = new Map<number, Call>();
  /** Of them, those that wait for locks. */
  private readonly waiting = new Set<number>();
  private waitingWatchedMs = 0;
  /** The earliest deadline among them, or an earlier time. */
  private waitingDueMs = Infinity;
  private readonly peers = new Map<number, Peer>();
  private readonly unreachable = new Map<number, number>();
  private readonly scratch = new ByteWriter(1024);
  private readonly sweep: DeadlineSweep;
  private lastId = 0;

  /** `leaderOf`: who leads a partition as far as this node knows; 0 = unknown. */
  constructor(
    private readonly ports: CallsPorts,
    private readonly perPeerMax: number,
    private readonly leaderOf: (partition: number) => number,
    /**
     * What a deposed leader still gets to answer in (ms): what it had proposed may commit yet, and
     * after a planned move does.
     */
    private readonly movedGraceMs: number,
    /** The nodes of the cluster know all about locks that this one does, and traces. */
    private readonly knowsLatest: () => boolean = () => true,
  ) {
    this.epoch = ports.entropy.uint32();
    this.sweep = new DeadlineSweep(ports, (nowMs) => this.expire(nowMs));
  }

  /** Calls that left or are about to, and are not answered. */
  get inFlight(): number {
    return this.open.size;
  }

  /** False for a short time after it turned out that nothing reaches `node`. */
  isReachable(node: number, nowMs: number): boolean {
    if (this.ports.calls === undefined || this.peers.get(node)?.isLeaving === true) return false;
    const sinceMs = this.unreachable.get(node);
    if (sinceMs === undefined) return true;
    if (nowMs - sinceMs < UNREACHABLE_MS) return false;
    this.unreachable.delete(node);
    return true;
  }

  /** The id of the call; null: it did not begin. */
  ask(asking: Asking, done: (result: CallResult) => void): number | null {
    const { to, deadlineMs, request, requestId } = asking;
    const nowMs = this.ports.clock.monotonicMs();
    const peer = this.peer(to);
    // Requests that wait are bounded by who takes them in; they hold up nobody here.
    const waits = isWaiting(request) || request.kind === "watch-pull";
    const isFull = peer.inFlight >= this.perPeerMax || peer.inFlightBytes >= IN_FLIGHT_BYTES_MAX;
    if (isFull && !waits) {
      this.ports.timer.soon(() => done({ status: "overloaded" }));
      return null;
    }
    const id = ++this.lastId;
    const { logger } = this.ports;
    if (logger.wantsDebug !== false) {
      const fields = { requestId, to, partition: asking.partition, kind: request.kind };
      logger.log("debug", "request to another node", fields);
    }
    const leftMs = Math.max(0, deadlineMs - nowMs);
    const budgetMs = Math.floor(Math.max(1, leftMs - Math.min(MARGIN_MS, leftMs / 4)));
    const hop = asking.trace !== undefined && this.knowsLatest() ? asking.trace.hop(to) : null;
    const writer = this.scratch.reset();
    writeCall(writer, {
      budgetMs,
      requestId,
      request,
      knowsLocks: isLock(request) && this.knowsLatest(),
      trace: hop?.parent ?? null,
    });
    const body = writer.finish();
    const ended = hop === null ? done : hopEnding(hop, done);
    const size = body.length;
    const call = new Call(to, asking.partition, requestId, deadlineMs, size, waits, ended);
    this.open.set(id, call);
    if (waits) {
      this.waiting.add(id);
      this.waitingDueMs = Math.min(this.waitingDueMs, deadlineMs);
    } else {
      peer.inFlight++;
      peer.inFlightBytes += body.length;
    }
    const watchMs = waits ? WATCH_WAITING_MS : WATCH_MS;
    this.sweep.expectBy(Math.min(deadlineMs, nowMs + watchMs));
    this.queue(to, peer.calls, this.epoch, id, body);
    return id;
  }

  /**
   * Tells the node that was asked by the call `id` that nobody waits for the lock any more; its
   * answer comes all the same. False: the call has ended.
   */
  cancelWait(id: number, mayReturn: boolean): boolean {
    const call = this.open.get(id);
    if (call === undefined) return false;
    const { to, partition, requestId } = call;
    const request = { kind: "cancel-wait", id, mayReturn } as const;
    const deadlineMs = this.ports.clock.monotonicMs() + CANCEL_MS;
    this.ask({ to, partition, request, requestId, deadlineMs }, () => undefined);
    return true;
  }

  /**
   * Sends `answer` to the call `id` that `from` made in its life `epoch`. `knowsLocks`: as it did.
   */
  reply(from: number, epoch: number, id: number, answer: CallAnswer, knowsLocks = false): void {
    const writer = this.scratch.reset();
    writeAnswer(writer, answer, knowsLocks);
    this.queue(from, this.peer(from).answers, epoch, id, writer.finish());
  }

  /** Ends the calls that a frame of answers from `from` belongs to. */
  answersCame(from: number, frame: Extract<Frame, { direction: "answers" }>): void {
    this.unreachable.delete(from);
    if (frame.epoch !== this.epoch) return;
    for (const { id, content } of frame.items) {
      const call = this.open.get(id);
      if (call?.to !== from) continue;
      if (content === null) {
        const { requestId } = call;
        this.ports.logger.log("warn", "unreadable answer of a peer", { from, requestId });
      }
      this.end(id, content === null ? { status: "lost" } : { status: "answered", answer: content });
    }
  }

  /** A frame of `node` cannot be read: it may have held answers to all that it was asked until now. */
  unreadableCame(node: number): void {
    this.peer(node).formerId = this.lastId;
  }

  linkUp(node: number): void {
    this.unreachable.delete(node);
    this.peer(node).isLeaving = false;
  }

  /** Calls of `node` came: it is there. */
  callsCame(node: number, { epoch, items }: Extract<Frame, { direction: "calls" }>): void {
    this.linkUp(node);
    this.peer(node).heard.came(epoch, items.at(-1)?.id ?? 0);
  }

  /** Tells every peer whose answers all arrive that nothing else was taken, nor will be. */
  farewell(): void {
    for (const [node, { answers, stalled, heard }] of this.peers) {
      const frame = answers.isEmpty && stalled.length === 0 ? heard.farewell : null;
      if (frame !== null) this.ports.calls?.send(node, frame);
    }
  }

  /** `node` said farewell: what it has not answered is asked elsewhere. */
  farewellCame(node: number, frame: Extract<Frame, { direction: "farewell" }>): void {
    const peer = this.peer(node);
    if (frame.epoch !== this.epoch || frame.lastId <= peer.formerId) return;
    peer.isLeaving = true;
    for (const [id, call] of [...this.open]) if (call.to === node) this.end(id, UNSENT);
  }

  /** What was on its way to or from `node` is gone. */
  linkDown(node: number): void {
    this.unreachable.set(node, this.ports.clock.monotonicMs());
    const peer = this.peers.get(node);
    if (peer === undefined) return;
    const unsent = new Set(peer.calls.take().flatMap(({ ids }) => ids));
    peer.formerId = this.lastId;
    peer.answers.take();
    peer.stalled = [];
    peer.heard.mayHaveLost();
    for (const [id, call] of [...this.open]) {
      if (call.to === node) this.end(id, { status: unsent.has(id) ? "unsent" : "lost" });
    }
  }

  /** Nothing will be heard of other nodes any more: whoever waits for one of them hears that. */
  endAll(): void {
    for (const id of [...this.open.keys()]) this.end(id, { status: "lost" });
  }

  private peer(node: number): Peer {
    let peer = this.peers.get(node);
    if (peer === undefined) {
      const calls = new Draft("calls");
      const answers = new Draft("answers");
      const inFlight = { inFlight: 0, inFlightBytes: 0 };
      const own = { calls, answers, isLeaving: false, stalled: [], stalledTries: 0 };
      peer = { formerId: 0, heard: new HeardCalls(), ...own, ...inFlight };
      this.peers.set(node, peer);
    }
    return peer;
  }

  private queue(to: number, draft: Draft, epoch: number, id: number, body: Uint8Array): void {
    if (draft.isEmpty) this.ports.timer.soon(() => this.flush(to, draft));
    draft.add(epoch, id, body);
  }

  private flush(to: number, draft: Draft): void {
    const unsent = new Set<number>();
    let status: "unsent" | "overloaded" = "unsent";
    for (const frame of draft.take()) {
      if (draft.direction === "answers") {
        this.sendAnswers(to, frame.bytes);
        continue;
      }
      const sent: Sending = frame.ids.some((id) => unsent.has(id))
        ? status
        : this.sendCalls(to, frame);
      if (sent !== "sent") {
        status = sent;
        // Of a call that left in part only, nothing can be carried out.
        for (const id of frame.ids) unsent.add(id);
      }
    }
    for (const id of unsent) this.end(id, { status });
  }

  /** A lane that is full says nothing against its node: only a link that is down does. */
  private sendCalls(to: number, frame: OutFrame): Sending {
    const { calls, clock } = this.ports;
    if (calls?.send(to, frame.bytes) === true) return "sent";
    if ((calls?.queuedBytes?.(to) ?? 0) > 0) return "overloaded";
    this.unreachable.set(to, clock.monotonicMs());
    return "unsent";
  }

  /** An answer that finds no room in the lane is tried again: the work is done. */
  private sendAnswers(to: number, bytes: Uint8Array): void {
    const peer = this.peer(to);
    if (peer.stalled.length === 0 && this.ports.calls?.send(to, bytes) === true) return;
    if (peer.stalled.length >= STALLED_FRAMES_MAX) {
      peer.stalled.shift();
      peer.heard.mayHaveLost();
    }
    peer.stalled.push(bytes);
    if (peer.stalled.length > 1) return;
    peer.stalledTries = 0;
    this.ports.timer.after(STALLED_RETRY_MS, () => this.sendStalled(to));
  }

  private sendStalled(to: number): void {
    const peer = this.peer(to);
    while (peer.stalled.length > 0) {
      const [oldest] = peer.stalled;
      assert(oldest !== undefined, "a list that is not empty has a first");
      if (this.ports.calls?.send(to, oldest) !== true) break;
      peer.stalled.shift();
      peer.stalledTries = 0;
    }
    if (peer.stalled.length === 0) return;
    if (++peer.stalledTries > STALLED_TRIES_MAX) {
      peer.stalled = [];
      peer.heard.mayHaveLost();
    } else this.ports.timer.after(STALLED_RETRY_MS, () => this.sendStalled(to));
  }

  private end(id: number, result: CallResult): void {
    const call = this.open.get(id);
    if (call === undefined) return;
    this.open.delete(id);
    if (call.waits) this.waiting.delete(id);
    else {
      const peer = this.peer(call.to);
      peer.inFlight--;
      peer.inFlightBytes -= call.sizeBytes;
    }
    call.done(result);
  }

  /** Ends what is due, or waits at a node that leads no more; returns when to look again. */
  private expire(nowMs: number): number {
    const nextMs = this.expireSome(false, nowMs, WATCH_MS);
    if (this.waiting.size === 0) return nextMs;
    // Those who wait are many, and in no hurry but at their end.
    if (nowMs >= this.waitingWatchMs) {
      this.waitingWatchedMs = nowMs;
      this.waitingDueMs = Infinity;
      const dueMs = this.expireSome(true, nowMs, Infinity);
      this.waitingDueMs = Math.min(this.waitingDueMs, dueMs);
    }
    return this.waiting.size === 0 ? nextMs : Math.min(nextMs, this.waitingWatchMs);
  }

  /** When those who wait are looked at next. */
  private get waitingWatchMs(): number {
    const dueMs = Math.max(this.waitingDueMs, this.waitingWatchedMs + WAITING_LATE_MS);
    return Math.min(dueMs, this.waitingWatchedMs + WATCH_WAITING_MS);
  }

  private expireSome(waits: boolean, nowMs: number, watchMs: number): number {
    let nextMs = Infinity;
    const newest = this.lastId;
    const leaders = new Map<number, number>();
    for (const [id, call] of this.open) {
      // What begins meanwhile has time yet, and announces itself.
      if (id > newest) break;
      if (call.waits !== waits) continue;
      let leader = leaders.get(call.partition);
      if (leader === undefined) {
        leader = call.partition === NO_PARTITION ? 0 : this.leaderOf(call.partition);
        leaders.set(call.partition, leader);
      }
      if (leader === 0 || leader === call.to) call.movedMs = 0;
      else if (call.movedMs === 0) call.movedMs = nowMs;
      const moved = call.movedMs > 0 && nowMs - call.movedMs >= this.movedGraceMs;
      if (moved || call.deadlineMs <= nowMs) this.end(id, { status: "lost" });
      else nextMs = Math.min(nextMs, call.deadlineMs, nowMs + watchMs);
    }
    return nextMs;
  }
}
