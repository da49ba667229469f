/**
 * Property: every operation on one lock, one sequence and one key takes effect at one instant between call and answer
 * (C1, C10), as the models of ../models say.
 *
 * The history is split by object; a read of many keys counts as a read of each key that the history knows. Invariants:
 * 1. What could not be decided within the budget is reported as undecided. 2. The evidence counts objects, operations
 * with a result, and operations that overlapped another one on the same object.
 */
import type { Attempt, History, KvResult, SequenceResult } from "../../history.js";
import type { Model } from "../../linear/model.js";
import { BUDGET, type SearchBudget, type SearchVerdict, searchOrder } from "../../linear/search.js";
import type { FirstStates } from "../../models/first-states.js";
import { KeySpaceModel } from "../../models/key-space.js";
import { FLAG, KV_OPTIONS, KvModel, type KvModelOptions } from "../../models/kv.js";
import { type LeaseTime, leaseTime } from "../../models/lease-time.js";
import { LOCK_OPTIONS, LockModel, type LockModelOptions } from "../../models/lock.js";
import { SEQUENCE_OPTIONS, SequenceModel } from "../../models/sequence.js";
import { byObject, endOrder } from "../intervals.js";
import { withManyReads } from "./many-reads.js";
import { Findings, type Verdict, attemptText } from "../verdict.js";

export interface LinearizabilityOptions {
  readonly time: LeaseTime;
  readonly lock: Omit<LockModelOptions, "time" | "ephemeral">;
  readonly sequence: typeof SEQUENCE_OPTIONS;
  readonly kv: Omit<KvModelOptions, "time" | "ephemeral" | "valuesNamed" | "readsRevisions">;
  readonly budget: SearchBudget;
  /** Least operations with a result per kind of object; 0 switches a kind off that the workload does not use. */
  readonly minimum: Readonly<Partial<Record<ObjectKind, number>>>;
  /** What there was before the history began; absent: nothing. */
  readonly first?: FirstStates;
}

export const OBJECT_KINDS = [
  "lock",
  "ephemeral-lock",
  "sequence",
  "key",
  "ephemeral-key",
  "key-space",
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

export const LINEARIZABILITY: LinearizabilityOptions = {
  time: leaseTime(0),
  lock: LOCK_OPTIONS,
  sequence: SEQUENCE_OPTIONS,
  kv: KV_OPTIONS,
  budget: BUDGET,
  minimum: { lock: 50, sequence: 50, key: 50 },
};

/** One verdict per kind of object that the workload uses or must use. */
export function checkLinearizability(
  history: History,
  options: LinearizabilityOptions = LINEARIZABILITY,
): Verdict[] {
  const objects = byObject(withManyReads(history));
  const findings = new Map<ObjectKind, Findings>();
  for (const kind of OBJECT_KINDS) {
    const least = options.minimum[kind] ?? 0;
    const minimum = { operations: least, overlapping: least === 0 ? 0 : 1 };
    findings.set(kind, new Findings(`linearizable ${kind}s`, minimum));
  }
  const used = new Set<ObjectKind>(OBJECT_KINDS.filter((kind) => (options.minimum[kind] ?? 0) > 0));
  for (const [object, attempts] of objects) {
    const kind = object.slice(0, object.indexOf(" ")) as ObjectKind;
    used.add(kind);
    checkObject(findings.get(kind) as Findings, object, kind, attempts, options);
  }
  return OBJECT_KINDS.filter((kind) => used.has(kind)).map((kind) =>
    (findings.get(kind) as Findings).verdict(),
  );
}

function checkObject(
  findings: Findings,
  object: string,
  kind: ObjectKind,
  attempts: readonly Attempt[],
  options: LinearizabilityOptions,
): void {
  findings.count("objects");
  let latestEnd = 0;
  for (const attempt of attempts) {
    if (attempt.outcome?.kind !== "ok") findings.count("unknown");
    else findings.count("operations");
    if (attempt.callOrder < latestEnd) findings.count("overlapping");
    if (endOrder(attempt) < Infinity) latestEnd = Math.max(latestEnd, endOrder(attempt));
  }
  const name = object.slice(kind.length + 1);
  const verdict = searchObject(kind, name, attempts, options);
  findings.count("steps", verdict.steps);
  if (verdict.kind === "undecided") {
    findings.undecided(`${object}: ${attempts.length} attempts, ${verdict.steps} steps`);
  } else if (verdict.kind === "violation") {
    findings.violation(violationText(object, verdict), [verdict.stuck]);
  }
}

function searchObject(
  kind: ObjectKind,
  name: string,
  attempts: readonly Attempt[],
  options: LinearizabilityOptions,
): SearchVerdict {
  const { time, budget, first } = options;
  const search = <State>(model: Model<State>, among = attempts): SearchVerdict =>
    searchOrder(model, among, budget);
  if (kind === "sequence") {
    const hasUnknownAllocations = attempts.some(
      (attempt) => attempt.operation.kind === "allocate" && attempt.outcome?.kind !== "ok",
    );
    const keysRepeated = repeatedKeys(attempts);
    const more = { time, hasUnknownAllocations, keysRepeated, mayBegin: beginnings(attempts) };
    const model = new SequenceModel(
      { ...options.sequence, ...more },
      (remembered) => first?.sequence(name, remembered) ?? null,
    );
    return search(model, withLostTries(attempts));
  }
  if (kind === "key-space") return search(new KeySpaceModel());
  const ephemeral = kind.startsWith("ephemeral");
  if (kind === "lock" || kind === "ephemeral-lock") {
    const held = ephemeral ? null : (first?.lock(name) ?? null);
    return search(new LockModel({ ...options.lock, time, ephemeral }, held));
  }
  const readsRevisions = attempts.some(
    ({ operation }) =>
      (operation.kind === "kv-get" || operation.kind === "kv-exists") && operation.revision >= 0n,
  );
  const valuesNamed = namedValues(attempts);
  const kvOptions = { ...options.kv, time, ephemeral, valuesNamed, readsRevisions };
  const before = ephemeral ? undefined : first;
  return search(new KvModel(kvOptions, (kept) => before?.key(name, kept) ?? null));
}

/**
 * The attempts, and beside each keyless allocation that others overlap one that nobody heard of: a leader
 * that went may have reserved a block for it, and the call was carried to the next one (S8).
 */
function withLostTries(attempts: readonly Attempt[]): readonly Attempt[] {
  return attempts.flatMap((attempt) => {
    const { operation, outcome, callOrder } = attempt;
    const isKeyless =
      operation.kind === "allocate" && (operation.idempotencyKey ?? "").trim() === "";
    // While one leader served all the time, nothing was lost with another.
    const wasCarried = attempt.term === null;
    if (!isKeyless || outcome?.kind !== "ok" || !wasCarried) return [attempt];
    const isOverlapped = attempts.some((other) => {
      const isOther = other !== attempt && endOrder(other) > callOrder;
      return isOther && other.callOrder < endOrder(attempt);
    });
    if (!isOverlapped) return [attempt];
    const reason = "a try that was lost with its leader";
    const earlierTryOf = attempt.id;
    const lost = { ...attempt, outcome: { kind: "unknown", reason }, earlierTryOf } as const;
    return [attempt, { ...lost, returnOrder: null }];
  });
}

/** Tells whether a create may have taken effect between two orders. */
function beginnings(attempts: readonly Attempt[]): (fromOrder: number, toOrder: number) => boolean {
  const creates = attempts.filter(({ operation, outcome }) => {
    if (operation.kind !== "create-sequence") return false;
    return outcome?.kind !== "ok" || (outcome.result as SequenceResult).type === "Success";
  });
  return (fromOrder, toOrder) =>
    creates.some((create) => create.callOrder < toOrder && endOrder(create) > fromOrder);
}

/** Keys of several attempts, at least one of them with an answer: that one may be a replay. */
function repeatedKeys(attempts: readonly Attempt[]): Set<string> {
  const counts = new Map<string, number>();
  const answered = new Set<string>();
  for (const { operation, outcome } of attempts) {
    if (operation.kind !== "allocate" || operation.idempotencyKey === null) continue;
    const key = operation.idempotencyKey.trim();
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (outcome?.kind === "ok") answered.add(key);
  }
  return new Set([...answered].filter((key) => (counts.get(key) ?? 0) > 1));
}

/** Every value that a read saw or a condition compares with. */
function namedValues(attempts: readonly Attempt[]): Set<string | null> {
  const named = new Set<string | null>();
  for (const { operation, outcome } of attempts) {
    if (operation.kind === "kv-set" && (operation.flags & FLAG.ifEqualToValue) !== 0) {
      named.add(operation.compareValue).add("").add(null);
    }
    if (operation.kind === "kv-get" && outcome?.kind === "ok") {
      named.add((outcome.result as KvResult).value);
    }
  }
  return named;
}

function violationText(
  object: string,
  verdict: SearchVerdict & { readonly kind: "violation" },
): string {
  const lines = [`${object}: no order explains an answer. In the longest order tried, it found:`];
  lines.push(`    state: ${verdict.state}`);
  for (const attempt of verdict.before) lines.push(`    placed: ${attemptText(attempt)}`);
  for (const attempt of verdict.open) lines.push(`    open:   ${attemptText(attempt)}`);
  lines.push("    the answer:");
  return lines.join("\n");
}
