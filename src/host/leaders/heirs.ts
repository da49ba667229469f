/**
 * The heir's side of planned moves: whether this node would lead a group, and the ephemeral rows
 * that came for it.
 *
 * Owns those rows until the group is led here. Invariants: 1. Rows belong to one order of one
 * leader: they are given out only to the leadership that came of exactly that order, in the term
 * after (`RaftCore.inheritedToken` says so); else they are dropped, as a crash would drop them. 2.
 * Nothing but whole sets is given out. 3. What is held for others is bounded in bytes and time. 4.
 * A node that is about to stop, or has no room for writes, refuses.
 */
import type { GroupOwner } from "../group/group-owner.js";
import type { EphemeralTable } from "../../machine/ephemeral.js";
import {
  type MoveAnswer,
  type MoveAsk,
  type MoveName,
  type MoveRows,
  decodeMoveFrame,
  encodeMoveFrame,
  isMoveFrame,
} from "../replication/move-frames.js";

/** Rows of all groups together that are held for moves under way (bytes). */
const HELD_BYTES_MAX = 64 << 20;
/** What a table may have grown by between the question and the rows (bytes). */
const GROWTH_BYTES = 1 << 20;
/** A move that did not come to its end in so long is forgotten (ms). */
const HOLD_MS = 20_000;

interface Held extends MoveName {
  readonly from: number;
  readonly table: EphemeralTable;
  readonly maxBytes: number;
  readonly untilMs: number;
  frames: number;
  isWhole: boolean;
}

/** A group that this node could lead. */
export interface HeirGroup {
  readonly isVoter: boolean;
  readonly isInstalling: boolean;
  /** An empty table as a leadership in `term` would begin with. */
  emptyTable(term: number): EphemeralTable;
  /** The heir of a move of this node's leadership answered. */
  answered(from: number, answer: MoveAnswer): void;
}

export interface HeirsDeps {
  nowMs(): number;
  group(group: number): HeirGroup | null;
  /** This node may take groups over: it has room and goes on. */
  isWilling(): boolean;
  sendControl(to: number, bytes: Uint8Array): void;
}

export class Heirs implements GroupOwner {
  private readonly held = new Map<number, Held>();
  private heldBytes = 0;
  /** Groups taken over with ephemeral rows. */
  inherited = 0;

  constructor(private readonly deps: HeirsDeps) {}

  /** Takes a frame if it is one of a move; false: it is not. */
  frame(from: number, bytes: Uint8Array): boolean {
    if (!isMoveFrame(bytes)) return false;
    const frame = decodeMoveFrame(bytes);
    if (frame?.kind === "ask") this.asked(from, frame);
    else if (frame?.kind === "rows") this.rows(from, frame);
    else if (frame?.kind === "answer") this.deps.group(frame.group)?.answered(from, frame);
    return true;
  }

  /** The rows for the leadership of `group` in `term` that came of the order `token`. */
  take(group: number, term: number, token: number): EphemeralTable | null {
    const held = this.held.get(group);
    if (held === undefined) return null;
    this.drop(held);
    const isIts = token !== 0 && held.token === token && held.term + 1 === term;
    if (!isIts || !held.isWhole) return null;
    this.inherited++;
    return held.table;
  }

  /** Forgets what nobody came for; once per tick. */
  tick(): void {
    const nowMs = this.deps.nowMs();
    for (const held of [...this.held.values()]) if (held.untilMs <= nowMs) this.drop(held);
  }

  removed({ partition }: { readonly partition: number }): void {
    const held = this.held.get(partition);
    if (held !== undefined) this.drop(held);
  }

  private asked(from: number, ask: MoveAsk): void {
    const { group: id, term, token, sizeBytes } = ask;
    const known = this.held.get(id);
    if (known !== undefined) this.drop(known);
    const group = this.deps.group(id);
    const mayLead = group !== null && group.isVoter && !group.isInstalling;
    const maxBytes = sizeBytes === 0 ? 0 : sizeBytes + GROWTH_BYTES;
    const accepted =
      mayLead && this.deps.isWilling() && this.heldBytes + maxBytes <= HELD_BYTES_MAX;
    if (accepted && maxBytes > 0) {
      const table = group.emptyTable(term + 1);
      const untilMs = this.deps.nowMs() + HOLD_MS;
      const fresh = { group: id, term, token, from, table, maxBytes, untilMs };
      this.held.set(id, { ...fresh, frames: 0, isWhole: false });
      this.heldBytes += maxBytes;
    }
    this.answer(from, ask, accepted, 0);
  }

  private rows(from: number, frame: MoveRows): void {
    const held = this.held.get(frame.group);
    const isIts =
      held !== undefined &&
      held.from === from &&
      held.term === frame.term &&
      held.token === frame.token &&
      held.frames === frame.sequence &&
      !held.isWhole;
    if (!isIts) return;
    const isTaken = held.table.takeOver(frame.rows, frame.head);
    if (!isTaken || held.table.sizeBytes > held.maxBytes) {
      this.drop(held);
      return this.answer(from, frame, false, 0);
    }
    held.frames++;
    held.isWhole = frame.isLast;
    this.answer(from, frame, true, held.frames);
  }

  private answer(to: number, move: MoveName, accepted: boolean, frames: number): void {
    const { group, term, token } = move;
    const frame: MoveAnswer = { kind: "answer", group, term, token, accepted, frames };
    this.deps.sendControl(to, encodeMoveFrame(frame));
  }

  private drop(held: Held): void {
    this.held.delete(held.group);
    this.heldBytes -= held.maxBytes;
  }
}
