/**
 * Commands of range moves that a node wants decided by a data partition, whoever leads it: proposed
 * here, or sent to the leader, who proposes them and answers.
 *
 * For the mover, which runs where the source is led: the target may be led elsewhere. Frames of
 * imports go on the lane "bulk", all others on the lane "control". Invariants: 1. `done` comes
 * exactly once, by the deadline at the latest, and in no turn. 2. "refused" means certainly not
 * proposed by this ask; whatever may have been is "unknown". 3. One hop: who is asked and does not
 * lead refuses. 4. Reading is strict and bounded, and only range commands of members are taken
 * (P-128). 5. Every range command may be repeated: a late copy of one is stale or changes nothing,
 * so that an ask which is not answered is sent again.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { type PartitionId, partitionId } from "../../base/ids.js";
import { ENTRY_PAYLOAD_MAX_BYTES, PARTITION_ID_MAX } from "../../base/limits.js";
import { commandSizeBytes, readCommand, writeCommand } from "../../machine/commands/codec.js";
import type {
  Command,
  RangeCommand,
  RangeOutcome,
  RangeStatus,
} from "../../machine/commands/command.js";
import { ControlMark } from "../replication/control-marks.js";
import type { ProposalDone, ProposalResult } from "../requests/results.js";

const MARK = ControlMark.rangeProposal;
const ASK = 1;
const ANSWER = 2;
const FRAME_MAX_BYTES = ENTRY_PAYLOAD_MAX_BYTES + 64;
const PENDING_MAX = 256;
const WAIT_MAX_MS = 10_000;
/** What is not answered within this is asked again (ms). */
const ASK_AGAIN_MS = 500;
/** A frame that was dropped is sent again (ms). */
const DROPPED_AGAIN_MS = 20;

/** How an ask ended. */
export type RangeResult =
  | { readonly status: "applied"; readonly outcome: RangeOutcome }
  /** Certainly not proposed: nobody known leads, or nobody took it. */
  | { readonly status: "refused" }
  | { readonly status: "unknown" };

export type RangeDone = (result: RangeResult) => void;

/** How a range command gets to the partition that is to decide it. */
export type ProposeRange = (
  partition: PartitionId,
  command: RangeCommand,
  deadlineMs: number,
  done: RangeDone,
) => void;

export interface RangeProposerDeps {
  readonly nodeId: number;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** Who leads the partition, as far as is known here; 0 = unknown. */
  leader(partition: PartitionId): number;
  isMember(node: number): boolean;
  /** Proposes on the group of this node; refused unless it leads. */
  propose(
    partition: PartitionId,
    command: Command,
    sizeBytes: number,
    deadlineMs: number,
    done: ProposalDone,
  ): void;
  /** Sends a frame; false: it was dropped. */
  send(to: number, lane: "control" | "bulk", bytes: Uint8Array): boolean;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

interface Pending {
  readonly to: number;
  readonly partition: PartitionId;
  readonly command: RangeCommand;
  readonly deadlineMs: number;
  readonly done: RangeDone;
  againMs: number;
  asks: number;
}

/** Statuses as they travel. */
const STATUS_NUMBERS: Readonly<Record<RangeStatus, number>> = {
  done: 0,
  unchanged: 1,
  closed: 2,
  stale: 3,
  unsettled: 4,
  gap: 5,
  mismatch: 6,
  "not-owned": 7,
  more: 8,
  invalid: 9,
};
const STATUSES = Object.keys(STATUS_NUMBERS) as RangeStatus[];

const TAKEN: Readonly<Record<RangeCommand["kind"], true>> = {
  "range-open": true,
  "range-import": true,
  "range-close": true,
  "range-adopt": true,
  "range-drop": true,
  "range-freeze": true,
  "range-unfreeze": true,
  "range-release": true,
  "range-purge": true,
};

function isRangeCommand(command: Command): command is RangeCommand {
  return Object.hasOwn(TAKEN, command.kind);
}

const REFUSED: RangeResult = { status: "refused" };
const UNKNOWN: RangeResult = { status: "unknown" };

/** Whether `bytes`, from the lanes "control" and "bulk", are for `RangeProposer`. */
export function isRangeProposalFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

function resultOf(result: ProposalResult): RangeResult {
  if (result.status === "applied") {
    const { outcome } = result;
    return outcome.kind === "range" ? { status: "applied", outcome } : UNKNOWN;
  }
  return result.status === "unknown" ? UNKNOWN : REFUSED;
}

const CODES = ["applied", "refused", "unknown"] as const;

function writeResult(writer: ByteWriter, result: RangeResult): void {
  writer.uint8(CODES.indexOf(result.status));
  if (result.status !== "applied") return;
  const { status, nextImport, keys, dropped } = result.outcome;
  writer.uint8(STATUS_NUMBERS[status]).uint53(nextImport).uint53(keys).uint53(dropped);
}

/** Null when the rest of the bytes is no result. */
function readResult(reader: ByteReader): RangeResult | null {
  const code = CODES[reader.uint8()];
  if (code === undefined) return null;
  if (code !== "applied") return reader.isComplete() ? { status: code } : null;
  const status = STATUSES[reader.uint8()];
  const counts = {
    nextImport: reader.uint53(),
    keys: reader.uint53(),
    dropped: reader.uint53(),
  };
  if (status === undefined || !reader.isComplete()) return null;
  return { status: code, outcome: { kind: "range", status, ...counts } };
}

export class RangeProposer {
  private readonly pending = new Map<number, Pending>();
  private nextId = 1;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly deps: RangeProposerDeps) {}

  /** Has `command` decided by `partition`; see `RangeResult`. */
  readonly propose: ProposeRange = (partition, command, deadlineMs, done) => {
    const { deps } = this;
    const nowMs = deps.nowMs();
    const leader = deps.leader(partition);
    const later = (result: RangeResult): void => deps.soon(() => done(result));
    if (leader === 0 || nowMs >= deadlineMs) return later(REFUSED);
    if (leader === deps.nodeId) return this.decide(partition, command, deadlineMs, later);
    if (this.pending.size >= PENDING_MAX) return later(REFUSED);
    const id = this.nextId++;
    const pending = { to: leader, partition, command, deadlineMs, done, againMs: nowMs, asks: 0 };
    this.pending.set(id, pending);
    this.ask(id, pending, nowMs);
    deps.tickSoon();
  };

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.pending.size > 0;
  }

  /** Ends what waited until its deadline, and asks again what may be lost; once per tick. */
  tick(nowMs: number): void {
    for (const [id, pending] of [...this.pending]) {
      if (pending.deadlineMs <= nowMs) {
        this.pending.delete(id);
        pending.done(UNKNOWN);
      } else if (pending.againMs <= nowMs) this.ask(id, pending, nowMs);
    }
  }

  /** The link to `node` is gone: what it was asked may have been proposed or not. */
  linkDown(node: number): void {
    for (const [id, { to, done }] of [...this.pending]) {
      if (to !== node) continue;
      this.pending.delete(id);
      this.deps.soon(() => done(UNKNOWN));
    }
  }

  private ask(id: number, pending: Pending, nowMs: number): void {
    const { to, partition, command, deadlineMs } = pending;
    const writer = new ByteWriter(256).uint8(MARK).uint8(ASK).uint53(id).uint32(partition);
    writer.uint32(Math.min(WAIT_MAX_MS, Math.ceil(deadlineMs - nowMs)));
    writeCommand(writer, command);
    const lane = command.kind === "range-import" ? "bulk" : "control";
    const isSent = this.deps.send(to, lane, writer.finish());
    if (isSent) pending.asks++;
    pending.againMs = nowMs + (isSent ? ASK_AGAIN_MS : DROPPED_AGAIN_MS);
  }

  private decide(
    partition: PartitionId,
    command: RangeCommand,
    deadlineMs: number,
    done: RangeDone,
  ): void {
    const sizeBytes = commandSizeBytes(command);
    this.deps.propose(partition, command, sizeBytes, deadlineMs, (result) => {
      done(resultOf(result));
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
    const partition = reader.uint32();
    const waitMs = reader.uint32();
    const command = readCommand(reader);
    if (command === null || command === "unknown" || !reader.isComplete()) return false;
    if (waitMs > WAIT_MAX_MS || partition < 1 || partition > PARTITION_ID_MAX) return false;
    if (!isRangeCommand(command)) return false;
    const { deps } = this;
    const group = partitionId(partition);
    if (deps.leader(group) !== deps.nodeId || !deps.isMember(from)) {
      this.answer(from, id, REFUSED);
      return true;
    }
    this.decide(group, command, deps.nowMs() + waitMs, (result) => this.answer(from, id, result));
    return true;
  }

  private answer(to: number, id: number, result: RangeResult): void {
    const writer = new ByteWriter(32).uint8(MARK).uint8(ANSWER).uint53(id);
    writeResult(writer, result);
    // An answer that is lost is asked for again.
    this.deps.send(to, "control", writer.finish());
  }

  private answered(from: number, id: number, reader: ByteReader): boolean {
    const result = readResult(reader);
    if (result === null) return false;
    const waiting = this.pending.get(id);
    if (waiting?.to !== from) return true;
    this.pending.delete(id);
    // An earlier copy may have been taken where this one was not.
    const isOpen = result.status === "refused" && waiting.asks > 1;
    waiting.done(isOpen ? UNKNOWN : result);
    return true;
  }
}
