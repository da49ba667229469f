/**
 * The search for an order against one that leaves nothing out: random small histories of one sequence, true ones and ones
 * with a changed answer, must get the same verdict from both.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import type { Attempt, Operation, OperationResult, SequenceResult } from "../history.js";
import type { Model, Step } from "../linear/model.js";
import { searchOrder } from "../linear/search.js";
import { leaseTime } from "../models/lease-time.js";
import { SequenceModel } from "../models/sequence.js";

t.setTimeout(300_000);

const BLOCK = 3;
const NAME = "s";

/** A sequence as one plain object. */
interface Plain {
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly served: bigint;
  readonly blockEnd: bigint;
  readonly revision: bigint;
  readonly incarnation: bigint;
  readonly keys: ReadonlyMap<string, OperationResult>;
}

const NUMBERING = { maxValue: null, blockSize: null } as const;

function seenOf(plain: Plain): SequenceResult {
  const { initialValue, increment, revision, incarnation, served } = plain;
  const sequence = { currentValue: served, initialValue, increment, revision, incarnation };
  return { type: "Success", sequence: { ...sequence, ...NUMBERING }, revision };
}

function drawOperation(prng: Prng): Operation {
  const draw = prng.below(12);
  if (draw < 2) {
    const numbers = { initialValue: BigInt(prng.below(3)), increment: BigInt(1 + prng.below(2)) };
    return { kind: "create-sequence", name: NAME, ...numbers, ...NUMBERING };
  }
  if (draw === 2) return { kind: "delete-sequence", name: NAME };
  if (draw === 3) {
    const currentValue = prng.chance(1, 2) ? BigInt(prng.below(12)) : null;
    const increment = currentValue === null || prng.chance(1, 3) ? BigInt(1 + prng.below(2)) : null;
    const rest = { initialValue: null, removeMaxValue: false, removeBlockSize: false };
    return { kind: "update-sequence", name: NAME, currentValue, increment, ...rest, ...NUMBERING };
  }
  if (draw < 6) return { kind: "get-sequence", name: NAME };
  const idempotencyKey = prng.chance(1, 2) ? `k${prng.below(3)}` : null;
  return { kind: "allocate", name: NAME, count: 1 + prng.below(2), idempotencyKey };
}

function perform(
  plain: Plain | null,
  operation: Operation,
  prng: Prng,
): readonly [Plain | null, OperationResult] {
  const none: SequenceResult = { type: "NotFound", sequence: null, revision: -1n };
  switch (operation.kind) {
    case "create-sequence": {
      if (plain !== null) return [plain, { ...none, type: "AlreadyExists" }];
      const { initialValue, increment } = operation;
      const values = { initialValue, increment, served: initialValue, blockEnd: initialValue };
      const made: Plain = { ...values, revision: 0n, incarnation: 0n, keys: new Map() };
      return [made, seenOf(made)];
    }
    case "delete-sequence":
      return plain === null ? [null, none] : [null, { ...none, type: "Success", revision: 0n }];
    case "get-sequence":
      return [plain, plain === null ? none : seenOf(plain)];
    case "update-sequence": {
      if (plain === null) return [null, none];
      const served = operation.currentValue ?? plain.served;
      const increment = operation.increment ?? plain.increment;
      const { revision, incarnation } = plain;
      const numbers = { served, blockEnd: served, increment, keys: new Map() };
      const made = { ...plain, ...numbers, revision: revision + 1n, incarnation: incarnation + 1n };
      return [made, seenOf(made)];
    }
    case "allocate":
      return allocate(plain, operation.count, operation.idempotencyKey, prng);
    default:
      throw new Error("nothing else is drawn");
  }
}

function allocate(
  plain: Plain | null,
  count: number,
  key: string | null,
  prng: Prng,
): readonly [Plain | null, OperationResult] {
  const nothing = { start: 0n, end: 0n, count: 0, revision: 0n } as const;
  if (plain === null) return [null, { type: "NotFound", ...nothing }];
  const known = key === null ? undefined : plain.keys.get(key);
  if (known !== undefined) {
    const isSame = (known as { readonly count: number }).count === count;
    return [plain, isSame ? known : { type: "InvalidInput", ...nothing }];
  }
  const { increment, blockEnd } = plain;
  const size = BigInt(count) * increment;
  let { served, revision } = plain;
  let end = blockEnd;
  if (key !== null || served + size > blockEnd || plain.revision === 0n) {
    // Now and then the rest of a block goes with its leader.
    if (prng.chance(1, 4)) served = blockEnd;
    const reserved = key === null ? BigInt(Math.max(BLOCK, count)) * increment : size;
    end = served + reserved;
    revision++;
  }
  const start = served + increment;
  const result = { type: "Success", start, end: served + size, count, revision } as const;
  const keys = key === null ? plain.keys : new Map([...plain.keys, [key, result]]);
  return [{ ...plain, served: served + size, blockEnd: end, revision, keys }, result];
}

/** So many operations that overlap now and then; some have no answer, and of those some never happened. */
function drawHistory(seed: number, count: number): Attempt[] {
  const prng = new Prng(seed);
  let plain: Plain | null = null;
  const attempts: Attempt[] = [];
  for (let id = 0; id < count; id++) {
    // The first one most often begins the sequence.
    let operation = drawOperation(prng);
    while (id === 0 && operation.kind !== "create-sequence" && prng.chance(7, 8)) {
      operation = drawOperation(prng);
    }
    const isAnswered = !prng.chance(1, 3);
    let result: OperationResult | null = null;
    if (isAnswered || prng.chance(2, 3)) [plain, result] = perform(plain, operation, prng);
    const atOrder = (id + 1) * 100;
    const callOrder = atOrder - prng.below(prng.chance(1, 2) ? 40 : 180) * 1;
    const returnOrder = atOrder + 1 + prng.below(prng.chance(1, 2) ? 40 : 180);
    const isKnown = isAnswered && result !== null;
    attempts.push({
      ...{ id, process: `p${id}`, node: 1, operation, callOrder, callMs: callOrder },
      ...{ boundMs: null, term: null, answers: 0, lost: null },
      returnOrder: isKnown ? returnOrder : null,
      returnMs: isKnown ? returnOrder : null,
      outcome: isKnown ? { kind: "ok", result: result as OperationResult } : null,
    });
  }
  return attempts;
}

/** Another answer to one of the allocations or looks. */
function spoiled(attempts: readonly Attempt[], seed: number): Attempt[] {
  const prng = new Prng(seed).fork("spoiled");
  const chosen = prng.below(attempts.length);
  return attempts.map((attempt, at) => {
    if (at !== chosen || attempt.outcome?.kind !== "ok") return attempt;
    const result = attempt.outcome.result as unknown as Record<string, unknown>;
    const by = prng.chance(1, 2) ? 1n : -1n;
    const fields = Object.keys(result).filter((name) => typeof result[name] === "bigint");
    const field = fields[prng.below(fields.length)] ?? "revision";
    let changed: Record<string, unknown> = { ...result, [field]: (result[field] as bigint) + by };
    const seen = result["sequence"] as Record<string, unknown> | null | undefined;
    if (seen !== null && seen !== undefined && prng.chance(2, 3)) {
      const names = ["currentValue", "increment", "incarnation", "revision"];
      const name = names[prng.below(names.length)] as string;
      changed = { ...result, sequence: { ...seen, [name]: (seen[name] as bigint) + by } };
    }
    return { ...attempt, outcome: { kind: "ok", result: changed as unknown as OperationResult } };
  });
}

function modelOf(): SequenceModel {
  return new SequenceModel({
    time: leaseTime(0),
    ...{ defaultBlockSize: BLOCK, keysRetainedMax: 256, keysRetainedMs: 600_000 },
    ...{ hasUnknownAllocations: true, mayBegin: () => true },
    keysRepeated: new Set(["k0", "k1", "k2"]),
  });
}

function endOf(attempt: Attempt): number {
  return attempt.outcome?.kind === "ok" ? (attempt.returnOrder ?? Infinity) : Infinity;
}

/** Tries every order of every choice of operations without an answer. */
function hasOrder<State>(model: Model<State>, attempts: readonly Attempt[]): boolean {
  const go = (state: State, left: readonly Attempt[], nowMs: number): boolean => {
    const due = Math.min(...left.map(endOf));
    if (due === Infinity) return true;
    return left.some((attempt) => {
      if (attempt.callOrder > due) return false;
      const { outcome, operation, callOrder, callMs, term } = attempt;
      const step: Step = {
        ...{ operation, callOrder, term, askedMs: callMs },
        result: outcome?.kind === "ok" ? outcome.result : null,
        fromMs: Math.max(nowMs, callMs),
        toMs: due,
        returnOrder: endOf(attempt),
      };
      const rest = left.filter((other) => other !== attempt);
      return model.step(state, step).some((next) => go(next, rest, Math.max(nowMs, callMs)));
    });
  };
  return go(model.initial, attempts, -Infinity);
}

t.test("P-169 small histories get the verdict of a search that leaves nothing out", (t) => {
  const seen = { good: 0, bad: 0, unknown: 0 };
  const run = (attempts: readonly Attempt[], name: string): void => {
    const relevant = attempts.filter(
      ({ outcome, operation }) => outcome !== null || operation.kind !== "get-sequence",
    );
    const expected = hasOrder(modelOf(), relevant);
    const { kind } = searchOrder(modelOf(), relevant);
    if (kind !== (expected ? "linearizable" : "violation")) t.fail(`${name}: ${kind}`);
    if (expected) seen.good++;
    else seen.bad++;
    seen.unknown += relevant.filter(({ outcome }) => outcome === null).length;
  };
  const histories = Number(process.env["SMALL_HISTORIES"] ?? 3000);
  for (let seed = 1; seed <= histories; seed++) {
    const attempts = drawHistory(seed, 3 + (seed % 5));
    run(attempts, `true history ${seed}`);
    run(spoiled(attempts, seed), `changed history ${seed}`);
  }
  t.ok(seen.good > histories && seen.bad > histories / 5, JSON.stringify(seen));
  t.ok(seen.unknown > histories, "many have operations without an answer");
  t.end();
});
