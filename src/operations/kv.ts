/**
 * The key/value operations on one key: set, extend, delete, get, exists.
 *
 * May call base, machine, host and this folder. Invariants: 1. Persistent changes are decided in
 * apply, ephemeral ones in the leader's table in the turn of a confirmed round. 2. A read tells
 * nothing about an expiry that the log has not seen: it commits the clock first (P-051). 3. One
 * turn reads a bounded number of bytes; a read that comes too late for it joins a later round.
 */
import { assert } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import type { KvCommand } from "../machine/command.js";
import type { KvReading } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvAnswer } from "./answers.js";
import type { ReadTurn } from "./read-turn.js";
import {
  Durability,
  type KvDeleteRequest,
  type KvExtendRequest,
  type KvGetRequest,
  type KvSetRequest,
} from "./requests.js";
import type { Fail, KeyPlace, Serving } from "./serving.js";
import { kvAnswer } from "./shapes.js";

export type KvChangeRequest = KvSetRequest | KvExtendRequest | KvDeleteRequest;
type Done = (answer: KvAnswer) => void;

/** Bytes of a key/value command beside its key and values, at most. */
const COMMAND_BYTES = 64;

/** Carries out one acceptable set, extend or delete. */
export function changeKey(
  serving: Serving,
  { group, origin }: KeyPlace,
  request: KvChangeRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const command = commandOf(request, serving.settings.revisionsRetained);
  if (request.durability === Durability.ephemeral) {
    serving.confirm(group, deadlineMs, fail, () => {
      const table = group.ephemeral;
      if (table === null) return fail("mustRetry", null, group);
      const outcome = table.apply(command, group.nextStamp());
      if (outcome === "full") return fail("mustRetry", "overloaded", null);
      assert(outcome.kind === "kv", "a key/value command has a key/value outcome");
      const { type, revision, lastModified } = outcome;
      done(kvAnswer(type, revision, origin, null, lastModified));
    });
    return;
  }
  group.propose(command, sizeOf(command), deadlineMs, (result) => {
    const outcome = serving.outcomeOf(group, result, fail);
    if (outcome === null) return;
    assert(outcome.kind === "kv", "a key/value command has a key/value outcome");
    const { type, revision, lastModified } = outcome;
    done(kvAnswer(type, revision, origin, null, lastModified));
  });
}

function commandOf(request: KvChangeRequest, revisionsRetained: number): KvCommand {
  const { key } = request;
  if (request.kind === "kv-extend") {
    return { kind: "kv-extend", key, expiresMs: request.expiresMs };
  }
  if (request.kind === "kv-delete") return { kind: "kv-delete", key, revisionsRetained };
  const { value, compareValue, compareRevision, flags, expiresMs } = request;
  return {
    kind: "kv-set",
    key,
    value,
    compareValue,
    compareRevision,
    flags,
    expiresMs,
    revisionsRetained,
  };
}

function sizeOf(command: KvCommand): number {
  const sizeBytes = COMMAND_BYTES + textSizeBytes(command.key);
  if (command.kind !== "kv-set") return sizeBytes;
  return sizeBytes + (command.value?.length ?? 0) + (command.compareValue?.length ?? 0);
}

/** Carries out one acceptable get or exists. */
export function readKey(
  serving: Serving,
  { group, origin }: KeyPlace,
  request: KvGetRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const budget = { leftBytes: Infinity };
  readKeys(serving, group, [request], budget, deadlineMs, fail, ([reading]) => {
    assert(reading !== undefined && reading !== null, "one key has one reading");
    const { type, revision, lastModified, state, leaseEndMs } = reading;
    done({
      ...kvAnswer(type, revision, origin, null, lastModified),
      value: reading.value,
      expires: serving.expires(group, leaseEndMs),
      state,
    });
  });
}

/** What the values of one answer may still take. */
export interface ReadBudget {
  leftBytes: number;
}

/**
 * Reads several keys of one group and one durability in one turn. Null for those that `budget` has
 * no room for: they are not even read.
 */
export function readKeys(
  serving: Serving,
  group: GroupAccess,
  requests: readonly KvGetRequest[],
  budget: ReadBudget,
  deadlineMs: number,
  fail: Fail,
  then: (readings: readonly (KvReading | null)[]) => void,
): void {
  const [first] = requests;
  assert(first !== undefined, "a read is for at least one key");
  const { readTurn } = serving;
  serving.confirm(group, deadlineMs, fail, (leaseMs) => {
    if (!readTurn.hasRoom) {
      return readTurn.later(() => {
        readKeys(serving, group, requests, budget, deadlineMs, fail, then);
      });
    }
    if (first.durability === Durability.ephemeral) {
      const table = group.ephemeral;
      if (table === null) return fail("mustRetry", null, group);
      return then(readAll(readTurn, table, requests, Math.floor(group.leaseNowMs()), budget));
    }
    const before = budget.leftBytes;
    const readings = readAll(readTurn, group.machine, requests, leaseMs, budget);
    const nowMs = group.leaseNowMs();
    const ended = latestEnded(
      readings.filter((reading) => reading !== null),
      nowMs,
    );
    if (ended === null) return then(readings);
    budget.leftBytes = before;
    serving.advance(group, ended, deadlineMs, fail, (committedMs) => {
      then(readAll(readTurn, group.machine, requests, committedMs, budget));
    });
  });
}

function readAll(
  turn: ReadTurn,
  source: Pick<GroupAccess["machine"], "reads">,
  requests: readonly KvGetRequest[],
  nowMs: number,
  budget: ReadBudget,
): (KvReading | null)[] {
  return requests.map((request) => {
    if (budget.leftBytes <= 0) return null;
    const reading = readOne(source, request, nowMs);
    const sizeBytes = reading.value?.length ?? 0;
    turn.spend(sizeBytes);
    budget.leftBytes -= sizeBytes;
    return sizeBytes > 0 && budget.leftBytes < 0 ? null : reading;
  });
}

/**
 * The latest lease end among what was read as living that lies at or before `nowMs`; null when
 * there is none.
 */
export function latestEnded(
  readings: readonly { readonly leaseEndMs: number | null }[],
  nowMs: number,
): number | null {
  let latest: number | null = null;
  for (const { leaseEndMs } of readings) {
    if (leaseEndMs === null || leaseEndMs > nowMs) continue;
    if (latest === null || leaseEndMs > latest) latest = leaseEndMs;
  }
  return latest;
}

function readOne(
  source: Pick<GroupAccess["machine"], "reads">,
  request: KvGetRequest,
  nowMs: number,
): KvReading {
  const { key, revision } = request;
  return request.kind === "kv-get"
    ? source.reads.kvGet(key, revision, nowMs)
    : source.reads.kvExists(key, revision, nowMs);
}
