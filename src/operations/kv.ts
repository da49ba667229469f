/**
 * The key/value operations on one key: set, extend, delete, get, exists.
 *
 * May call base, machine, host and this folder. Invariants: 1. Persistent changes are decided in
 * apply, ephemeral ones in the leader's table in the turn of a confirmed round. 2. A read tells
 * nothing about an expiry that the log has not seen: it commits the clock first (P-051).
 */
import { assert } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import type { KvCommand } from "../machine/command.js";
import type { KvReading } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvAnswer } from "./answers.js";
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
  readKeys(serving, group, [request], deadlineMs, fail, ([reading]) => {
    assert(reading !== undefined, "one key has one reading");
    const { type, revision, lastModified, state, leaseEndMs } = reading;
    done({
      ...kvAnswer(type, revision, origin, null, lastModified),
      value: reading.value,
      expires: serving.expires(group, leaseEndMs),
      state,
    });
  });
}

/** Reads several keys of one group and one durability in one turn. */
export function readKeys(
  serving: Serving,
  group: GroupAccess,
  requests: readonly KvGetRequest[],
  deadlineMs: number,
  fail: Fail,
  then: (readings: readonly KvReading[]) => void,
): void {
  const [first] = requests;
  assert(first !== undefined, "a read is for at least one key");
  serving.confirm(group, deadlineMs, fail, (leaseMs) => {
    if (first.durability === Durability.ephemeral) {
      const table = group.ephemeral;
      if (table === null) return fail("mustRetry", null, group);
      const nowMs = Math.floor(group.leaseNowMs());
      return then(requests.map((request) => readOne(table, request, nowMs)));
    }
    const readings = requests.map((request) => readOne(group.machine, request, leaseMs));
    const nowMs = group.leaseNowMs();
    const ended = latestEnded(readings, nowMs);
    if (ended === null) return then(readings);
    serving.advance(group, ended, deadlineMs, fail, (committedMs) => {
      then(requests.map((request) => readOne(group.machine, request, committedMs)));
    });
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
