/**
 * The key/value operations on one key: set, extend, delete, get, exists.
 *
 * Invariants: 1. Persistent changes are decided in apply, ephemeral ones in the leader's table in
 * the turn of a confirmed round. 2. A read tells nothing about an expiry that the log has not seen:
 * it commits the clock first (P-051). 3. One turn reads a bounded number of bytes; a read that
 * comes too late for it joins a later round.
 */
import { assert } from "../../base/assert.js";
import { textSizeBytes } from "../../base/bytes.js";
import type { KvCommand } from "../../machine/commands/command.js";
import { visitsOf } from "../../machine/kv/page-builder.js";
import type { KvReading } from "../../machine/decision/reading.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvAnswer } from "../api/answers.js";
import type { ReadTurn } from "../admission/read-turn.js";
import {
  Durability,
  type KvDeleteRequest,
  type KvExtendRequest,
  type KvGetRequest,
  type KvSetRequest,
} from "../api/requests.js";
import type { Fail, KeyPlace, Serving } from "../serving.js";
import { kvAnswer } from "../api/shapes.js";
import type { TurnShare } from "../admission/slices.js";

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
      if (table === null) return fail("moved", null, group);
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
  place: KeyPlace,
  request: KvGetRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const { group, origin } = place;
  const { readTurn } = serving;
  const answer = ({ type, revision, lastModified, value, state, leaseEndMs }: KvReading): void => {
    done({
      ...kvAnswer(type, revision, origin, null, lastModified),
      value,
      expires: serving.expires(group, leaseEndMs),
      state,
    });
  };
  serving.confirm(group, deadlineMs, fail, (leaseMs) => {
    if (!readTurn.hasRoom) {
      return readTurn.later(() => readKey(serving, place, request, deadlineMs, fail, done));
    }
    const isEphemeral = request.durability === Durability.ephemeral;
    const source = isEphemeral ? group.ephemeral : group.machine;
    if (source === null) return fail("moved", null, group);
    const reading = readCounted(
      readTurn,
      source,
      request,
      isEphemeral ? ephemeralNowMs(group) : leaseMs,
    );
    const { leaseEndMs } = reading;
    if (isEphemeral || leaseEndMs === null || leaseEndMs > group.leaseNowMs()) {
      return answer(reading);
    }
    serving.advance(group, leaseEndMs, deadlineMs, fail, (committedMs) => {
      answer(readCounted(readTurn, group.machine, request, committedMs));
    });
  });
}

function readCounted(
  turn: ReadTurn,
  source: ReadSource,
  request: KvGetRequest,
  nowMs: number,
): KvReading {
  const reading = readOne(source, request, nowMs);
  turn.spend(reading.value?.length ?? 0);
  return reading;
}

/** Ephemeral leases end by the leader's own clock: no log records them. */
function ephemeralNowMs(group: GroupAccess): number {
  return Math.floor(group.leaseNowMs());
}

/** What the values of one answer may still take. */
export interface ReadBudget {
  leftBytes: number;
}

type Readings = readonly (KvReading | null)[];

/**
 * Reads several keys of one group and one durability, in slices when they are many. Null for those
 * that `budget` has no room for: they are not even read.
 */
export function readKeys(
  serving: Serving,
  group: GroupAccess,
  requests: readonly KvGetRequest[],
  budget: ReadBudget,
  deadlineMs: number,
  fail: Fail,
  then: (readings: Readings) => void,
): void {
  const [first] = requests;
  assert(first !== undefined, "a read is for at least one key");
  serving.confirm(group, deadlineMs, fail, (leaseMs) => {
    const table = group.ephemeral;
    if (first.durability === Durability.ephemeral) {
      const source = (): ReadSource | null => (group.ephemeral === table ? table : null);
      const read = new KeysRead(serving, group, source, requests, budget, deadlineMs, fail);
      return read.begin(ephemeralNowMs(group), then);
    }
    const before = budget.leftBytes;
    const source = (): ReadSource => group.machine;
    const read = new KeysRead(serving, group, source, requests, budget, deadlineMs, fail);
    read.begin(leaseMs, (readings) => {
      const ended = latestEnded(
        readings.filter((reading) => reading !== null),
        group.leaseNowMs(),
      );
      if (ended === null) return then(readings);
      budget.leftBytes = before;
      serving.advance(group, ended, deadlineMs, fail, (committedMs) => {
        read.begin(committedMs, then);
      });
    });
  });
}

type ReadSource = Pick<GroupAccess["machine"], "reads">;

/** One pass over the keys of a read; those of several slices are each as they are in theirs. */
class KeysRead {
  constructor(
    private readonly serving: Serving,
    private readonly group: GroupAccess,
    /** Null when the table that was proved is gone. */
    private readonly source: () => ReadSource | null,
    private readonly requests: readonly KvGetRequest[],
    private readonly budget: ReadBudget,
    private readonly deadlineMs: number,
    private readonly fail: Fail,
  ) {}

  begin(nowMs: number, then: (readings: Readings) => void): void {
    const readings: (KvReading | null)[] = [];
    this.serving.sliced.next((turn) => this.slice(turn, nowMs, readings, then));
  }

  private slice(
    turn: TurnShare,
    nowMs: number,
    readings: (KvReading | null)[],
    then: (readings: Readings) => void,
  ): void {
    const { serving, group, requests, budget, fail } = this;
    const source = this.source();
    if (source === null) return fail("moved", null, group);
    while (turn.visitsLeft > 0) {
      const request = requests[readings.length];
      if (request === undefined) break;
      const reading = budget.leftBytes > 0 ? readOne(source, request, nowMs) : null;
      const sizeBytes = reading?.value?.length ?? 0;
      turn.visitsLeft -= visitsOf(sizeBytes);
      budget.leftBytes -= sizeBytes;
      readings.push(sizeBytes > 0 && budget.leftBytes < 0 ? null : reading);
    }
    if (readings.length === requests.length) return then(readings);
    if (serving.node.shuttingDown) return fail("aborted", null, group);
    if (serving.ports.clock.monotonicMs() >= this.deadlineMs) return fail("mustRetry", null, group);
    serving.sliced.next((later) => this.slice(later, nowMs, readings, then));
  }
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

function readOne(source: ReadSource, request: KvGetRequest, nowMs: number): KvReading {
  const { key, revision } = request;
  return request.kind === "kv-get"
    ? source.reads.kvGet(key, revision, nowMs)
    : source.reads.kvExists(key, revision, nowMs);
}
