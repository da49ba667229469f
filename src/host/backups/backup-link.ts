/**
 * Questions and words about backups between nodes, this one included: what is asked of itself goes
 * the same way, without the network.
 *
 * The lane "control" drops its oldest frames when it is full: what is not answered is asked again.
 * Invariants: 1. A question ends once, with an answer, or null when none came by its deadline or
 * the link went down, and in no turn. 2. A question is carried out once, however often it arrives.
 * 3. What is remembered is bounded and ends.
 */
import type { Program } from "../../base/levels.js";
import {
  type BackupAnswer,
  type BackupAsk,
  type BackupFrame,
  type BackupWord,
  decodeBackupFrame,
  encodeBackupFrame,
} from "./backup-messages.js";

/** What is not answered within this is asked again (ms). */
const ASK_AGAIN_MS = 1000;
const WAIT_MAX_MS = 60_000;
const PENDING_MAX = 4096;
const TAKEN_MAX = 4096;
/** A question is remembered so much longer than its asker waits (ms). */
const TAKEN_GRACE_MS = 2000;

export type Answered = (answer: BackupAnswer | null) => void;

export interface BackupLinkDeps {
  readonly nodeId: number;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** What a linked node supports; null when it is not linked. */
  programOf(node: number): Program | null;
  send(to: number, lane: "control" | "bulk", bytes: Uint8Array): boolean;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

/** Who answers, and who hears words. */
export interface BackupListener {
  asked(
    from: number,
    ask: BackupAsk,
    deadlineMs: number,
    answer: (with_: BackupAnswer) => void,
  ): void;
  told(from: number, word: BackupWord): void;
}

interface Pending {
  readonly to: number;
  readonly ask: BackupAsk;
  readonly deadlineMs: number;
  readonly done: Answered;
  againMs: number;
}

/** A question of another node: being answered, or how it was. */
interface Taken {
  readonly from: number;
  readonly untilMs: number;
  answer: BackupAnswer | null;
}

export class BackupLink {
  private readonly pending = new Map<number, Pending>();
  private readonly taken = new Map<string, Taken>();
  private nextId = 1;
  private listener: BackupListener | null = null;
  /** Frames that could not be read. */
  badFrames = 0;

  constructor(private readonly deps: BackupLinkDeps) {}

  listen(listener: BackupListener): void {
    this.listener = listener;
  }

  get nodeId(): number {
    return this.deps.nodeId;
  }

  /** The node can be asked, as far as is known. */
  reaches(node: number): boolean {
    return node === this.deps.nodeId || this.deps.programOf(node) !== null;
  }

  ask(to: number, ask: BackupAsk, deadlineMs: number, done: Answered): void {
    const { deps } = this;
    const nowMs = deps.nowMs();
    const id = this.nextId++;
    const pending = { to, ask, deadlineMs, done, againMs: nowMs + ASK_AGAIN_MS };
    const mayAsk = this.pending.size < PENDING_MAX && nowMs < deadlineMs;
    if (!mayAsk || (to !== deps.nodeId && !this.send(id, pending, nowMs))) {
      return deps.soon(() => done(null));
    }
    this.pending.set(id, pending);
    deps.tickSoon();
    if (to === deps.nodeId) {
      deps.soon(() => {
        this.listener?.asked(to, ask, deadlineMs, (answer) => {
          deps.soon(() => this.answered(to, id, answer));
        });
      });
    }
  }

  /** False: it was dropped. */
  tell(to: number, word: BackupWord): boolean {
    const { deps } = this;
    if (to === deps.nodeId) {
      deps.soon(() => this.listener?.told(to, word));
      return true;
    }
    const isStream = word.kind === "piece" || word.kind === "end" || word.kind === "broken";
    return deps.send(to, isStream ? "bulk" : "control", encodeBackupFrame({ class: "word", word }));
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.pending.size + this.taken.size > 0;
  }

  /** Ends what waited until its deadline, and asks again what may be lost; once per tick. */
  tick(nowMs: number): void {
    for (const [id, pending] of [...this.pending]) {
      if (pending.deadlineMs <= nowMs) {
        this.pending.delete(id);
        this.deps.soon(() => pending.done(null));
      } else if (pending.againMs <= nowMs && pending.to !== this.deps.nodeId) {
        pending.againMs = nowMs + ASK_AGAIN_MS;
        this.send(id, pending, nowMs);
      }
    }
    for (const [key, { untilMs }] of this.taken) if (untilMs <= nowMs) this.taken.delete(key);
  }

  linkDown(node: number): void {
    for (const [id, { to, done }] of [...this.pending]) {
      if (to !== node) continue;
      this.pending.delete(id);
      this.deps.soon(() => done(null));
    }
    for (const [key, { from }] of this.taken) if (from === node) this.taken.delete(key);
  }

  /** Takes a frame if it is one of these; false: it is not. */
  frame(from: number, bytes: Uint8Array): void {
    const frame = decodeBackupFrame(bytes);
    if (frame === null) this.badFrames++;
    else if (frame.class === "ask") this.asked(from, frame);
    else if (frame.class === "answer") this.answered(from, frame.id, frame.answer);
    else this.listener?.told(from, frame.word);
  }

  private send(id: number, { to, ask, deadlineMs }: Pending, nowMs: number): boolean {
    const waitMs = Math.min(WAIT_MAX_MS, Math.ceil(deadlineMs - nowMs));
    const { deps } = this;
    return deps.send(to, "control", encodeBackupFrame({ class: "ask", id, waitMs, ask }));
  }

  private asked(from: number, frame: Extract<BackupFrame, { class: "ask" }>): void {
    const { id, ask, waitMs } = frame;
    const key = `${from}/${id}`;
    const known = this.taken.get(key);
    if (known !== undefined) {
      if (known.answer !== null) this.answer(from, id, known.answer);
      return;
    }
    if (this.taken.size >= TAKEN_MAX || waitMs > WAIT_MAX_MS) {
      return this.answer(from, id, { kind: "no", why: "busy" });
    }
    const deadlineMs = this.deps.nowMs() + waitMs;
    const taken: Taken = { from, untilMs: deadlineMs + TAKEN_GRACE_MS, answer: null };
    this.taken.set(key, taken);
    this.deps.tickSoon();
    this.listener?.asked(from, ask, deadlineMs, (answer) => {
      // In another life of the asker the id may belong to another question.
      if (this.taken.get(key) !== taken || taken.answer !== null) return;
      taken.answer = answer;
      this.answer(from, id, answer);
    });
  }

  private answer(to: number, id: number, answer: BackupAnswer): void {
    // An answer that is lost is asked for again.
    this.deps.send(to, "control", encodeBackupFrame({ class: "answer", id, answer }));
  }

  private answered(from: number, id: number, answer: BackupAnswer): void {
    const waiting = this.pending.get(id);
    if (waiting?.to !== from) return;
    this.pending.delete(id);
    waiting.done(answer);
  }
}
