/**
 * Locks, carried out once: nothing here renews a lease or releases a lock on its own.
 *
 * Invariants: 1. The owner is known before the request is sent and printed whatever the answer is,
 * so that a lock that may have been granted can be released. 2. A doubt is never printed as a grant
 * or as a refusal.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { doubted } from "../../client/values/errors.js";
import { SvcError, type LockGrant, type TryStep } from "../../client/mod.js";
import {
  INVALID_INPUT_REMARK,
  durabilityOf,
  outcome,
  type Outcome,
  type RunContext,
  type RunTable,
} from "../invocation/context.js";
import { doubt, isRefusal } from "../invocation/failures.js";
import { ownerText } from "../terminal/format.js";
import { newOwner, noteBytes, ownerBytes } from "../lock-run/owners.js";
import { tellPlace } from "../lock-run/place.js";
import type { OptionValues } from "../commands/values.js";
import { DOES_NOT_EXIST, INVALID_INPUT, INVALID_OWNER, UNLOCKED } from "./lock-types.js";

/** What the service does not accept is a refusal like others. */
async function orInvalid<T>(action: Promise<T>): Promise<T | null> {
  try {
    return await action;
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}

const RETRY_MS = 100;

/** A failure after a try that may have been granted. */
function keepDoubt(error: unknown): never {
  throw error instanceof SvcError ? doubted(error) : doubt("interrupted after a lost answer");
}

/**
 * Tries until the lock is granted or `waitMs` is over; null: the request is not acceptable. Once a
 * try may have been granted, every end but a grant is a doubt.
 */
async function tryUntil(
  resource: string,
  step: Omit<TryStep, "waitMs">,
  waitMs: number,
  context: RunContext,
): Promise<LockGrant | null> {
  const client = await context.client();
  const endMs = performance.now() + waitMs;
  let isDoubtful = false;
  for (;;) {
    const waitMsLeft = Math.max(0, Math.floor(endMs - performance.now()));
    const askedMs = performance.now();
    const asked = { ...context.calling(), ...step, waitMs: waitMsLeft };
    const call = client.locks.tryLock(resource, asked);
    const grant: LockGrant | null = await orInvalid(isDoubtful ? call.catch(keepDoubt) : call);
    if (grant?.acquired === true) return grant;
    isDoubtful ||= grant?.doubtful === true;
    const leftMs = endMs - performance.now();
    if (grant === null || leftMs <= 0) {
      if (!isDoubtful) return grant;
      throw doubt(`${resource}: not granted now; an earlier try whose answer was lost may be`);
    }
    // It waited at the service, where its place is kept for a moment.
    if (grant.waitedMs !== null && performance.now() - askedMs >= RETRY_MS) continue;
    // Jitter keeps waiters apart that were started together.
    const pauseMs = Math.min(leftMs, RETRY_MS * (0.5 + Math.random()));
    const pause = sleep(pauseMs, undefined, { signal: context.signal });
    await (isDoubtful ? pause.catch(keepDoubt) : pause);
  }
}

async function lock(values: OptionValues, context: RunContext): Promise<Outcome> {
  const resource = values.requiredText("--lock");
  const owner = values.text("--owner") ?? newOwner();
  const step = {
    owner: ownerBytes(owner),
    leaseMs: values.requiredNumber("--expires"),
    durability: durabilityOf(values),
    note: noteBytes(values),
  };
  let grant: LockGrant | null;
  try {
    const waitMs = values.number("--wait") ?? 0;
    const client = await context.client();
    const wait = (): Promise<LockGrant | null> => tryUntil(resource, step, waitMs, context);
    grant = await tellPlace(context, client, resource, step, wait);
  } catch (error) {
    if (error instanceof SvcError && error.outcome === "unknown") {
      const command = context.isShell
        ? `unlock ${resource} (or leaving the shell)`
        : `--unlock ${resource} --owner ${owner}`;
      context.note(`if it was granted, ${command} releases it`);
    }
    throw error;
  }
  const isAcquired = grant?.acquired ?? false;
  const fencingToken = isAcquired ? (grant?.fencingToken ?? 0n) : 0n;
  const line = `f${fencingToken} ${isAcquired ? "acquired" : "not acquired"} ${owner}`;
  const remark = grant === null ? INVALID_INPUT_REMARK : null;
  return outcome(isAcquired, [line], { resource, isAcquired, fencingToken, owner }, remark);
}

async function extendLock(values: OptionValues, context: RunContext): Promise<Outcome> {
  const resource = values.requiredText("--extend-lock");
  const owner = values.requiredText("--owner");
  const client = await context.client();
  const leaseMs = values.requiredNumber("--expires");
  const answer = await orInvalid(
    client.locks.tryExtend(resource, {
      ...context.calling(),
      owner: ownerBytes(owner),
      leaseMs,
      durability: durabilityOf(values),
    }),
  );
  const extended = answer?.extended ?? false;
  const fencingToken = extended ? (answer?.fencingToken ?? 0n) : 0n;
  const line = `f${fencingToken} ${extended ? "extended" : "not extended"}`;
  const remark = answer === null ? INVALID_INPUT_REMARK : null;
  return outcome(extended, [line], { resource, extended, fencingToken, owner }, remark);
}

async function unlock(values: OptionValues, context: RunContext): Promise<Outcome> {
  const resource = values.requiredText("--unlock");
  const client = await context.client();
  const answer = await orInvalid(
    client.locks.unlock(resource, {
      ...context.calling(),
      owner: ownerBytes(values.requiredText("--owner")),
      durability: durabilityOf(values),
    }),
  );
  // "Not held" after a lost answer says neither that this released it nor that it did not.
  if (answer !== null && answer.doubtful && answer.refusal !== null) {
    throw doubt(
      `${resource}: not held by this owner now; an earlier try whose answer was lost may have ` +
        "released it",
    );
  }
  const unlocked = answer?.unlocked ?? false;
  let type = UNLOCKED;
  if (answer === null) type = INVALID_INPUT;
  else if (!unlocked) type = answer.refusal === "other-owner" ? INVALID_OWNER : DOES_NOT_EXIST;
  const remark = answer === null ? INVALID_INPUT_REMARK : null;
  const line = unlocked ? "unlocked" : "not unlocked";
  return outcome(unlocked, [line], { resource, unlocked, type }, remark);
}

async function getLock(values: OptionValues, context: RunContext): Promise<Outcome> {
  const resource = values.requiredText("--get-lock");
  const client = await context.client();
  const options = { ...context.calling(), durability: durabilityOf(values) };
  let remark: string | null = null;
  const info = await client.locks.info(resource, options).catch((error: unknown) => {
    if (!isRefusal(error)) throw error;
    remark = INVALID_INPUT_REMARK;
    return null;
  });
  if (info === null) return outcome(false, ["not found"], null, remark);
  const owner = ownerText(info.owner);
  const { fencingToken, expires } = info;
  const document = { resource, owner, fencingToken, expires: { ...expires } };
  return outcome(true, [`f${fencingToken} ${owner}`], document);
}

export const LOCKS_RUN: RunTable = {
  "--lock": lock,
  "--extend-lock": extendLock,
  "--unlock": unlock,
  "--get-lock": getLock,
};
