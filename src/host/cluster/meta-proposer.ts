/**
 * Commands that a node wants decided by the meta partition, whoever leads it: proposed here, or
 * sent to the leader, who proposes them and answers. Which ones, is in the table next door.
 *
 * For the host's own meta proposals (its line in the member list, joins, leaves, replicas); clients'
 * requests travel on their own. Frames go on the lane "control", which drops its oldest when it is full:
 * what is not answered is asked again. They begin with a byte that no other frame there begins
 * with. Invariants: 1. `done` comes exactly once, by the deadline at the latest, and in no turn. 2.
 * "refused" and "later" mean certainly not proposed; whatever may have been is "unknown". 3. One
 * hop: who is asked and does not lead refuses. 4. Reading is strict and bounded, and only what the
 * table lets the sender ask is taken (P-128). 5. An ask is carried out once, however often it
 * arrives, unless a repeat of it changes nothing. 6. No
 * id is given out again while a group still lists it (P-097).
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { ClusterView } from "../../control/membership.js";
import { commandSizeBytes, readCommand, writeCommand } from "../../machine/commands/codec.js";
import type { AddMemberCommand, Command } from "../../machine/commands/command.js";
import { programOf } from "../../machine/meta/meta-members.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import { ControlMark } from "../replication/control-marks.js";
import { judgeId } from "./id-reuse.js";
import {
  META_PROPOSALS,
  META_PROPOSAL_MAX_BYTES,
  type MetaProposal,
  type MetaResult,
  isMetaProposal,
  maySend,
  readMetaResult,
  writeMetaResult,
} from "./meta-proposals.js";
import type { ProposalDone, ProposalResult } from "../requests/results.js";

const MARK = ControlMark.metaProposal;
const ASK = 1;
const ANSWER = 2;
/** What stands before a command. */
const HEAD_BYTES = 14;
const FRAME_MAX_BYTES = HEAD_BYTES + META_PROPOSAL_MAX_BYTES;
const PENDING_MAX = 256;
const WAIT_MAX_MS = 60_000;
/** What is not answered within this is asked again (ms). */
const ASK_AGAIN_MS = 1000;
/** Asks of others that are remembered, so that a repeat is not carried out again. */
const TAKEN_MAX = 1024;
/** An ask is remembered so much longer than its asker waits (ms). */
const TAKEN_GRACE_MS = 2000;

export type MetaDone = (result: MetaResult) => void;

/** How a command of the table gets to the meta partition. */
export type ProposeOnMeta = (command: MetaProposal, deadlineMs: number, done: MetaDone) => void;

export interface MetaProposerDeps {
  readonly nodeId: number;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** Who leads the meta partition, as far as is known here; 0 = unknown. */
  leader(): number;
  /** The records of the meta partition as applied here; null before there are any. */
  metaReads(): MetaReads | null;
  /** The whole cluster as seen here; null unless all groups that are on every node are here. */
  clusterView(): ClusterView | null;
  /** Proposes on the meta partition of this node; refused unless it leads. */
  propose(command: Command, sizeBytes: number, deadlineMs: number, done: ProposalDone): void;
  /** Sends a frame on the lane "control"; false: it was dropped. */
  send(to: number, bytes: Uint8Array): boolean;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

interface Pending {
  readonly to: number;
  readonly command: MetaProposal;
  readonly deadlineMs: number;
  readonly done: MetaDone;
  againMs: number;
}

/** An ask of another node: under way, or how it ended. */
interface Taken {
  readonly from: number;
  readonly untilMs: number;
  result: MetaResult | null;
}

const REFUSED: MetaResult = { status: "refused" };
const LATER: MetaResult = { status: "later" };
const UNKNOWN: MetaResult = { status: "unknown" };

/** Whether `bytes`, from the lane "control", are for `MetaProposer`. */
export function isMetaProposalFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

function resultOf(result: ProposalResult): MetaResult {
  if (result.status === "applied") {
    const { outcome } = result;
    if (outcome.kind !== "meta") return UNKNOWN;
    const { status, generation, items } = outcome;
    return { status: "applied", outcome: status, version: generation, items };
  }
  return result.status === "unknown" ? UNKNOWN : REFUSED;
}

export class MetaProposer {
  private readonly pending = new Map<number, Pending>();
  private readonly taken = new Map<string, Taken>();
  private nextId = 1;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly deps: MetaProposerDeps) {}

  /** Has `command` decided; see `MetaResult`. */
  readonly propose: ProposeOnMeta = (command, deadlineMs, done) => {
    const { deps } = this;
    const later = (result: MetaResult): void => deps.soon(() => done(result));
    const leader = deps.leader();
    const nowMs = deps.nowMs();
    const isLarge = commandSizeBytes(command) > META_PROPOSALS[command.kind].maxBytes;
    if (leader === 0 || nowMs >= deadlineMs || isLarge) return later(REFUSED);
    if (leader === deps.nodeId) return this.decide(command, deadlineMs, later);
    if (this.pending.size >= PENDING_MAX) return later(REFUSED);
    const id = this.nextId++;
    const pending = { to: leader, command, deadlineMs, done, againMs: nowMs + ASK_AGAIN_MS };
    if (!this.ask(id, pending, nowMs)) return later(REFUSED);
    this.pending.set(id, pending);
    this.deps.tickSoon();
  };

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.pending.size + this.taken.size > 0;
  }

  /** Ends what waited until its deadline, and asks again what may be lost; once per tick. */
  tick(nowMs: number): void {
    for (const [id, pending] of [...this.pending]) {
      if (pending.deadlineMs <= nowMs) {
        this.pending.delete(id);
        pending.done(UNKNOWN);
      } else if (pending.againMs <= nowMs) {
        pending.againMs = nowMs + ASK_AGAIN_MS;
        this.ask(id, pending, nowMs);
      }
    }
    for (const [key, { untilMs }] of this.taken) if (untilMs <= nowMs) this.taken.delete(key);
  }

  /**
   * The link to `node` is gone: what it was asked may have been proposed or not, and its own ids
   * may begin anew.
   */
  linkDown(node: number): void {
    for (const [id, { to, done }] of [...this.pending]) {
      if (to !== node) continue;
      this.pending.delete(id);
      this.deps.soon(() => done(UNKNOWN));
    }
    for (const [key, { from }] of this.taken) if (from === node) this.taken.delete(key);
  }

  private ask(id: number, { to, command, deadlineMs }: Pending, nowMs: number): boolean {
    const writer = new ByteWriter(256).uint8(MARK).uint8(ASK).uint53(id);
    writer.uint32(Math.min(WAIT_MAX_MS, Math.ceil(deadlineMs - nowMs)));
    writeCommand(writer, command);
    return this.deps.send(to, writer.finish());
  }

  /** Proposes `command` here, where the meta partition is led. */
  private decide(command: MetaProposal, deadlineMs: number, done: MetaDone): void {
    const { deps } = this;
    if (command.kind === "add-member") {
      const judgement = judgeId(command, deps.metaReads(), deps.clusterView());
      if (judgement === "later") return deps.soon(() => done(LATER));
      if (judgement === "held") return this.confirmHeld(command, deadlineMs, done);
    }
    const sizeBytes = commandSizeBytes(command);
    deps.propose(command, sizeBytes, deadlineMs, (result) => done(resultOf(result)));
  }

  /**
   * Another data directory seems to have the id. The member may be removed by what is on its way,
   * and the id must not be given out behind that: what is proposed changes nothing and adds nobody.
   */
  private confirmHeld({ nodeId }: AddMemberCommand, deadlineMs: number, done: MetaDone): void {
    const { deps } = this;
    const member = deps.metaReads()?.member(nodeId) ?? null;
    if (member === null) return deps.soon(() => done(LATER));
    const line = { endpoint: member.endpoint, storageId: "", ...programOf(member) };
    const question = { kind: "update-member", nodeId, ...line } as const;
    deps.propose(question, commandSizeBytes(question), deadlineMs, (proposed) => {
      const result = resultOf(proposed);
      if (result.status !== "applied") return done(result);
      const isHeld = result.outcome === "unchanged" || result.outcome === "done";
      done(isHeld ? { ...result, outcome: "storage-lost" } : LATER);
    });
  }

  /** A frame of these came from another node. */
  frame(from: number, bytes: Uint8Array): void {
    const reader = new ByteReader(bytes);
    const isWhole = bytes.length <= FRAME_MAX_BYTES && reader.uint8() === MARK;
    const kind = reader.uint8();
    const id = reader.uint53();
    if (isWhole && !reader.failed) {
      if (kind === ASK && this.asked(from, id, reader)) return;
      if (kind === ANSWER && this.answered(from, id, reader)) return;
    }
    this.badFrames++;
  }

  private asked(from: number, id: number, reader: ByteReader): boolean {
    const waitMs = reader.uint32();
    const sizeBytes = reader.remainingBytes;
    const command = readCommand(reader);
    if (command === null || command === "unknown" || !reader.isComplete()) return false;
    if (waitMs > WAIT_MAX_MS || !isMetaProposal(command)) return false;
    const rule = META_PROPOSALS[command.kind];
    if (sizeBytes > rule.maxBytes) return false;
    const { deps } = this;
    const key = `${from}/${id}`;
    const known = this.taken.get(key);
    if (known !== undefined) {
      if (known.result !== null) this.answer(from, id, known.result);
      return true;
    }
    const isMember = (deps.metaReads()?.member(from) ?? null) !== null;
    const isTaken = deps.leader() === deps.nodeId && this.taken.size < TAKEN_MAX;
    if (!isTaken || !maySend(from, isMember, command)) {
      this.answer(from, id, REFUSED);
      return true;
    }
    const deadlineMs = deps.nowMs() + waitMs;
    const taken: Taken = { from, untilMs: deadlineMs + TAKEN_GRACE_MS, result: null };
    this.taken.set(key, taken);
    this.deps.tickSoon();
    this.decide(command, deadlineMs, (result) => {
      taken.result = result;
      // In another life of the asker the id may belong to another ask.
      if (this.taken.get(key) !== taken) return;
      if (rule.repeats === "always") this.taken.delete(key);
      this.answer(from, id, result);
    });
    return true;
  }

  private answer(to: number, id: number, result: MetaResult): void {
    const writer = new ByteWriter(32).uint8(MARK).uint8(ANSWER).uint53(id);
    writeMetaResult(writer, result);
    // An answer that is lost is asked for again.
    this.deps.send(to, writer.finish());
  }

  private answered(from: number, id: number, reader: ByteReader): boolean {
    const result = readMetaResult(reader);
    if (result === null) return false;
    const waiting = this.pending.get(id);
    if (waiting?.to !== from) return true;
    this.pending.delete(id);
    waiting.done(result);
    return true;
  }
}
