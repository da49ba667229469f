/**
 * Property: what a change of the ranges is answered is true of the map. `determinate` is said with the
 * statuses that are, a refusal of that kind never has an effect afterwards, and a success names what the
 * map has.
 *
 * Invariants: 1. Map and moves are told before the answers that were made from them. 2. A split that
 * begins is held against a refused call only if no other call, and nobody by himself, may have begun it.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenMove, type SeenRange, intervalText } from "./seen-moves.js";

export interface AskedChange {
  readonly kind: "register" | "unregister" | "split" | "merge";
  /** "" for a merge. */
  readonly keySpace: string;
  /** "" but for a split. */
  readonly splitKey: string;
}

export interface ToldChange {
  readonly status: string;
  readonly success: boolean;
  /** null: the answer has no such member. */
  readonly determinate: boolean | null;
  /** Of a split that succeeded, else 0. */
  readonly partitionId: number;
  readonly generation: number;
  /** Of a merge. */
  readonly merges: number;
}

interface Call {
  readonly ask: AskedChange;
  readonly askedMs: number;
  /** null: none yet. */
  answer: ToldChange | null;
  /** The key space had no ranges, had some, and a move, at some time of the call. */
  sawNone: boolean;
  sawSome: boolean;
  sawMove: boolean;
  /** Merges that were cut since it was asked. */
  merges: number;
}

interface Begun {
  readonly move: SeenMove;
  isCut: boolean;
}

const SUCCESS = new Set(["Seeded", "AlreadySeeded", "Removed", "Succeeded", "Completed"]);
const REFUSALS = new Set([
  ...["InvalidInput", "KeyRangeDisabled", "QuiesceWindowOpen", "NotLeader", "NoRange"],
  ...["InvalidSplitKey", "BelowMinRangeSize", "ProbeIndeterminate", "PartitionCreationFailed"],
  "UnsettledMovingIntents",
]);
const OPEN = new Set([
  ...["TransferFailed", "QuiesceFailed", "CutoverFailed", "ConcurrentSplit", "Indeterminate"],
]);
/** Calls that are remembered for what begins later. */
const CALLS_MAX = 512;
const MINIMUM = { answers: 50, "splits done": 5, "refusals for good": 10 };

export class HonestStatus {
  private readonly findings: Findings;
  private readonly calls = new Map<number, Call>();
  private readonly begun = new Map<number, Begun>();
  private readonly known = new Set<string>();
  private readonly spaces = new Map<string, number>();
  private readonly moving = new Map<string, number>();

  /** `isManual`: nobody splits or merges without a call. */
  constructor(
    private readonly isManual: boolean,
    minimum: Readonly<Record<string, number>> = MINIMUM,
  ) {
    this.findings = new Findings("answers to changes of ranges are true", minimum);
  }

  map(spaces: ReadonlyMap<string, readonly SeenRange[]>): void {
    for (const keySpace of this.spaces.keys()) {
      if (!spaces.has(keySpace)) this.spaces.set(keySpace, 0);
    }
    for (const [keySpace, ranges] of spaces) {
      this.spaces.set(keySpace, ranges.length);
      for (const range of ranges) this.known.add(nameOf(range));
    }
    for (const call of this.calls.values()) if (call.answer === null) this.note(call);
  }

  /** A key space has ranges, or none, in the middle of an entry: the map shows only what follows. */
  passed(keySpace: string, hasRanges: boolean): void {
    for (const call of this.calls.values()) {
      if (call.answer !== null || call.ask.keySpace !== keySpace) continue;
      if (hasRanges) call.sawSome = true;
      else call.sawNone = true;
    }
  }

  private note(call: Call): void {
    const { keySpace } = call.ask;
    const count = this.spaces.get(keySpace) ?? 0;
    if (count === 0) call.sawNone = true;
    else call.sawSome = true;
    if (this.moving.has(keySpace)) call.sawMove = true;
  }

  asked(id: number, ask: AskedChange, atMs: number): void {
    const none = { sawNone: false, sawSome: false, sawMove: false, merges: 0 };
    const call: Call = { ask, askedMs: atMs, answer: null, ...none };
    this.note(call);
    this.calls.set(id, call);
    for (const [oldest, { answer }] of this.calls) {
      if (this.calls.size <= CALLS_MAX) break;
      if (answer !== null) this.calls.delete(oldest);
    }
  }

  began(move: SeenMove): void {
    this.begun.set(move.moveId, { move, isCut: false });
    this.moving.set(move.keySpace, move.moveId);
    for (const call of this.calls.values()) if (call.answer === null) this.note(call);
    if (move.kind === "split") this.explain(move);
  }

  cut(moveId: number): void {
    const begun = this.begun.get(moveId);
    if (begun === undefined) return;
    begun.isCut = true;
    if (begun.move.kind === "split") this.explain(begun.move);
    if (begun.move.kind !== "merge") return;
    for (const call of this.calls.values()) if (call.answer === null) call.merges++;
  }

  /** It may be told again when the next move of the key space runs. */
  ended(moveId: number): void {
    const keySpace = this.begun.get(moveId)?.move.keySpace ?? "";
    if (this.moving.get(keySpace) === moveId) this.moving.delete(keySpace);
  }

  told(id: number, answer: ToldChange): void {
    const call = this.calls.get(id);
    if (call === undefined) return;
    call.answer = answer;
    const { status, success, determinate } = answer;
    this.findings.count("answers");
    const isKnown = SUCCESS.has(status) || REFUSALS.has(status) || OPEN.has(status);
    if (!isKnown) this.tell(call, "a status that there is not");
    if (success !== SUCCESS.has(status)) this.tell(call, `success ${success}`);
    if (determinate !== null && determinate === OPEN.has(status)) {
      this.tell(call, `determinate ${determinate}`);
    }
    this.checkTruth(call, answer);
    if (call.ask.kind !== "split" || !REFUSALS.has(status)) return;
    this.findings.count("refusals for good");
    for (const { move } of this.begun.values()) if (isAbout(move, call)) this.explain(move);
  }

  private checkTruth(call: Call, answer: ToldChange): void {
    const { keySpace, splitKey } = call.ask;
    switch (answer.status) {
      case "Succeeded": {
        this.findings.count("splits done");
        const { partitionId, generation } = answer;
        const range = { keySpace, startKey: splitKey, partitionId, generation };
        if (!this.known.has(nameOf(range))) this.tell(call, `no such range: ${nameOf(range)}`);
        return;
      }
      case "Removed":
        if (!call.sawNone) this.tell(call, "there were ranges all the time");
        return;
      case "Seeded":
      case "AlreadySeeded":
        if (!call.sawSome) this.tell(call, "there was no range at any time");
        return;
      case "QuiesceWindowOpen":
        if (!call.sawMove) this.tell(call, "there was no move at any time");
        return;
      case "Completed":
        this.findings.count("merges told", answer.merges);
        if (answer.merges > call.merges) this.tell(call, `${call.merges} merges were made`);
    }
  }

  /** A split has begun, or was cut: whoever was refused for good must not be the one who began it. */
  private explain(move: SeenMove): void {
    if (!this.isManual) return;
    const isCut = this.begun.get(move.moveId)?.isCut === true;
    let refused: Call | null = null;
    for (const call of this.calls.values()) {
      if (!isAbout(move, call)) continue;
      const status = call.answer?.status ?? "";
      if (!REFUSALS.has(status)) return;
      // A partition that could not be made was begun, and is given up.
      if (status === "PartitionCreationFailed" && !isCut) return;
      refused = call;
    }
    if (refused === null) return;
    const what = isCut ? "was cut" : "began";
    this.tell(refused, `move ${move.moveId} of ${intervalText(move)} ${what}`);
  }

  private tell({ ask, askedMs, answer }: Call, what: string): void {
    const { kind, keySpace, splitKey } = ask;
    const asked = `${kind} ${keySpace} ${splitKey} of ${askedMs.toFixed(0)} ms`;
    this.findings.violation(`${asked} is answered ${answer?.status ?? "nothing"}: ${what}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

function isAbout(move: SeenMove, { ask }: Call): boolean {
  if (ask.kind !== "split" || move.kind !== "split") return false;
  return ask.keySpace === move.keySpace && ask.splitKey === move.startKey;
}

function nameOf(range: Pick<SeenRange, "keySpace" | "startKey" | "partitionId" | "generation">) {
  const { keySpace, startKey, partitionId, generation } = range;
  return `${keySpace} from ${startKey ?? ""} at ${partitionId}, generation ${generation}`;
}
