/**
 * Commands about members that a node wants decided by the meta partition, whoever leads it:
 * proposed here, or sent to the leader, who proposes them and answers.
 *
 * For the host's own errands (its line in the roster, joins, leaves); clients' requests travel on
 * their own. Frames go on the lane "control" and begin with a byte that no other frame there
 * begins with. May call: base, machine, ports, this folder. Invariants: 1. `done` comes exactly
 * once, by the deadline at the latest, and in no turn. 2. "refused" means certainly not proposed;
 * whatever may have been is "unknown". 3. One hop: who is asked and does not lead refuses. 4.
 * Reading is strict and bounded, and only commands about members are taken (P-128).
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import { readCommand } from "../machine/command-reader.js";
import { writeCommand } from "../machine/command-writer.js";
import type { Command, MetaStatus } from "../machine/command.js";
import type { MemberCommand } from "../machine/meta-members.js";
import type { ProposalDone, ProposalResult } from "./results.js";

/** What a frame of this file begins with. */
const MARK = 0xe1;
const ASK = 1;
const ANSWER = 2;
const FRAME_MAX_BYTES = 4096;
const COMMAND_BYTES = 2600;
const PENDING_MAX = 256;
const WAIT_MAX_MS = 60_000;

const STATUSES: readonly MetaStatus[] = [
  "done",
  "unchanged",
  "unknown-partition",
  "not-founded",
  "invalid",
  "not-a-member",
  "storage-lost",
  "was-removed",
  "too-many-members",
  "too-many-voters",
  "last-voter",
  "drain-in-progress",
];

export type MetaResult =
  | { readonly status: "applied"; readonly outcome: MetaStatus; readonly version: number }
  /** Certainly not proposed: nobody known leads, or nobody took it. */
  | { readonly status: "refused" }
  | { readonly status: "unknown" };

export type MetaDone = (result: MetaResult) => void;

/** How a command about members gets to the meta partition. */
export type ProposeOnMeta = (command: MemberCommand, deadlineMs: number, done: MetaDone) => void;

export interface MetaErrandsWorld {
  readonly nodeId: number;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** Who leads the meta partition, as far as is known here; 0 = unknown. */
  leader(): number;
  /** Proposes on the meta partition of this node; refused unless it leads. */
  propose(command: Command, sizeBytes: number, deadlineMs: number, done: ProposalDone): void;
  /** Sends a frame on the lane "control"; false: it was dropped. */
  send(to: number, bytes: Uint8Array): boolean;
}

interface Pending {
  readonly to: number;
  readonly deadlineMs: number;
  readonly done: MetaDone;
}

const REFUSED: MetaResult = { status: "refused" };
const UNKNOWN: MetaResult = { status: "unknown" };

/** Whether `bytes`, from the lane "control", are for `MetaErrands`. */
export function isErrandFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

function resultOf(result: ProposalResult): MetaResult {
  if (result.status === "applied") {
    const { outcome } = result;
    if (outcome.kind !== "meta") return UNKNOWN;
    return { status: "applied", outcome: outcome.status, version: outcome.generation };
  }
  return result.status === "unknown" ? UNKNOWN : REFUSED;
}

function isMemberCommand(command: Command): command is MemberCommand {
  const { kind } = command;
  if (kind === "update-member" || kind === "add-member") return true;
  return kind === "set-member-role" || kind === "remove-member";
}

export class MetaErrands {
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly world: MetaErrandsWorld) {}

  /** Has `command` decided; see `MetaResult`. */
  readonly propose: ProposeOnMeta = (command, deadlineMs, done) => {
    const { world } = this;
    const later = (result: MetaResult): void => world.soon(() => done(result));
    const leader = world.leader();
    const nowMs = world.nowMs();
    if (leader === 0 || nowMs >= deadlineMs) return later(REFUSED);
    if (leader === world.nodeId) {
      world.propose(command, COMMAND_BYTES, deadlineMs, (result) => later(resultOf(result)));
      return;
    }
    if (this.pending.size >= PENDING_MAX) return later(REFUSED);
    const id = this.nextId++;
    const writer = new ByteWriter(256).uint8(MARK).uint8(ASK).uint53(id);
    writer.uint32(Math.min(WAIT_MAX_MS, Math.ceil(deadlineMs - nowMs)));
    writeCommand(writer, command);
    if (!world.send(leader, writer.finish())) return later(REFUSED);
    this.pending.set(id, { to: leader, deadlineMs, done });
  };

  /** Ends what waited until its deadline; once per beat. */
  tick(nowMs: number): void {
    for (const [id, { deadlineMs, done }] of [...this.pending]) {
      if (deadlineMs > nowMs) continue;
      this.pending.delete(id);
      done(UNKNOWN);
    }
  }

  /** The link to `node` is gone: what it was asked may have been proposed or not. */
  linkDown(node: number): void {
    for (const [id, { to, done }] of [...this.pending]) {
      if (to !== node) continue;
      this.pending.delete(id);
      this.world.soon(() => done(UNKNOWN));
    }
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
    const command = readCommand(reader);
    if (command === null || command === "unknown" || !reader.isComplete()) return false;
    if (waitMs > WAIT_MAX_MS || !isMemberCommand(command)) return false;
    const { world } = this;
    if (world.leader() !== world.nodeId) this.answer(from, id, REFUSED);
    else {
      const deadlineMs = world.nowMs() + waitMs;
      world.propose(command, COMMAND_BYTES, deadlineMs, (result) => {
        this.answer(from, id, resultOf(result));
      });
    }
    return true;
  }

  private answer(to: number, id: number, result: MetaResult): void {
    const writer = new ByteWriter(32).uint8(MARK).uint8(ANSWER).uint53(id);
    if (result.status === "applied") {
      writer.uint8(0).uint8(STATUSES.indexOf(result.outcome)).uint53(result.version);
    } else writer.uint8(result.status === "refused" ? 1 : 2);
    // An answer that is lost ends at the asker's deadline.
    this.world.send(to, writer.finish());
  }

  private answered(from: number, id: number, reader: ByteReader): boolean {
    const code = reader.uint8();
    let result: MetaResult = code === 1 ? REFUSED : UNKNOWN;
    if (code === 0) {
      const outcome = STATUSES[reader.uint8()];
      const version = reader.uint53();
      if (outcome === undefined) return false;
      result = { status: "applied", outcome, version };
    }
    if (!reader.isComplete() || code > 2) return false;
    const waiting = this.pending.get(id);
    if (waiting?.to !== from) return true;
    this.pending.delete(id);
    waiting.done(result);
    return true;
  }
}
