/**
 * When a member was heard last: by this node, and by those that this node asks.
 *
 * Hearing is a link that stands: its echoes prove a living process with the data directory that the
 * member list names. For the removal of members that are gone (contract 5.3 rule 3): a detector
 * advises, a person decides, and this confirms (P-095). Frames go on the lane "control" and begin
 * with a byte that no other frame there begins with. Invariants: 1. A node that does not answer
 * says nothing: neither that the member lives nor that it does not. 2. Every question ends exactly
 * once, within `ANSWER_MS`, and in no turn. 3. What is held is bounded by the members there can be.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { MEMBERS_MAX } from "../../base/limits.js";
import { ControlMark } from "../replication/control-marks.js";

export interface HearingDeps {
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  isLinked(node: number): boolean;
  /** Sends a frame on the lane "control"; false: it was dropped. */
  send(to: number, bytes: Uint8Array): boolean;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

/** Whoever was heard within this is alive (ms; contract 5.3 rule 3). */
export const HEARD_WITHIN_MS = 30_000;
/** Others are waited for so long (ms; contract 5.3 rule 3). */
export const ANSWER_MS = 3000;

const MARK = ControlMark.hearing;
const ASK = 1;
const ANSWER = 2;
const FRAME_BYTES = 32;

interface Question {
  readonly member: number;
  readonly untilMs: number;
  readonly unanswered: Set<number>;
  readonly done: (isHeard: boolean) => void;
}

/** Whether `bytes`, from the lane "control", are for `Hearing`. */
export function isHearingFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

export class Hearing {
  /** When the link to a node ended last. */
  private readonly lastMs = new Map<number, number>();
  private readonly questions = new Map<number, Question>();
  private nextId = 1;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly deps: HearingDeps) {}

  /** Whether this node heard `member` within `HEARD_WITHIN_MS`, in this life of the process. */
  isHeard(member: number): boolean {
    if (this.deps.isLinked(member)) return true;
    return this.deps.nowMs() - (this.lastMs.get(member) ?? -Infinity) <= HEARD_WITHIN_MS;
  }

  /** The link to `node` stood until now. */
  linkDown(node: number): void {
    this.lastMs.delete(node);
    this.lastMs.set(node, this.deps.nowMs());
    for (const oldest of this.lastMs.keys()) {
      if (this.lastMs.size <= MEMBERS_MAX) break;
      this.lastMs.delete(oldest);
    }
  }

  /** `done` hears whether this node or one of `others` that answers in time heard `member`. */
  ask(member: number, others: readonly number[], done: (isHeard: boolean) => void): void {
    const { deps } = this;
    if (this.isHeard(member)) return deps.soon(() => done(true));
    const id = this.nextId++;
    const writer = new ByteWriter(FRAME_BYTES).uint8(MARK).uint8(ASK).uint53(id).uint32(member);
    const bytes = writer.finish();
    const asked = others.filter((node) => node !== member && deps.send(node, bytes));
    if (asked.length === 0) return deps.soon(() => done(false));
    const untilMs = deps.nowMs() + ANSWER_MS;
    this.questions.set(id, { member, untilMs, unanswered: new Set(asked), done });
    deps.tickSoon();
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.questions.size > 0;
  }

  /** Once per tick. */
  tick(nowMs: number): void {
    for (const [id, question] of [...this.questions]) {
      const isOver = question.unanswered.size === 0 || nowMs >= question.untilMs;
      if (isOver) this.end(id, question, this.isHeard(question.member));
    }
  }

  /** A frame of these came from another node. */
  frame(from: number, bytes: Uint8Array): void {
    const reader = new ByteReader(bytes);
    reader.uint8();
    const kind = reader.uint8();
    const id = reader.uint53();
    const value = reader.uint32();
    if (!reader.isComplete()) this.badFrames++;
    else if (kind === ASK) this.answer(from, id, value);
    else if (kind === ANSWER) this.answered(from, id, value !== 0);
    else this.badFrames++;
  }

  private answer(to: number, id: number, member: number): void {
    const heard = this.isHeard(member) ? 1 : 0;
    const writer = new ByteWriter(FRAME_BYTES).uint8(MARK).uint8(ANSWER).uint53(id).uint32(heard);
    this.deps.send(to, writer.finish());
  }

  private answered(from: number, id: number, isHeard: boolean): void {
    const question = this.questions.get(id);
    if (question?.unanswered.delete(from) !== true) return;
    if (isHeard) this.end(id, question, true);
  }

  private end(id: number, { done }: Question, isHeard: boolean): void {
    this.questions.delete(id);
    this.deps.soon(() => done(isHeard));
  }
}
