/**
 * The key/value operations on one key: set, extend, delete, get, exists.
 *
 * Invariants: 1. Persistent changes are decided in apply, ephemeral ones in the leader's table in
 * the turn of a confirmed round. 2. A read tells nothing about an expiry that the log has not seen:
 * it commits the clock first (P-051). 3. One turn reads a bounded number of bytes; a read that
 * comes too late for it joins a later round. 4. What is read is owned in the turn of the read: also
 * when the clock was committed in between (P-100).
 */
import { assert } from "../../base/assert.js";
import type { KvOutcome } from "../../machine/commands/command.js";
import { visitsOf } from "../../machine/kv/page-builder.js";
import type { KvReading } from "../../machine/decision/reading.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvAnswer } from "../api/answers.js";
import type { ReadTurn } from "../admission/read-turn.js";
import { Durability, type KvGetRequest, type RequestOf } from "../api/requests.js";
import {
  type KvChangeRequest,
  isKvChange,
  kvCommandOf,
  kvCommandSizeBytes,
} from "../api/kv-requests.js";
import type { Attempt } from "../serving/attempt.js";
import { kvAnswer } from "../api/shapes.js";
import type { TurnShare } from "../admission/slices.js";

/** Carries out one acceptable request about one key. */
export function executeKey(attempt: Attempt<KvAnswer>, request: RequestOf<"key">): void {
  if (isKvChange(request)) changeKey(attempt, request);
  else readKey(attempt, request);
}

/** Carries out one acceptable change. */
export function changeKey(attempt: Attempt<KvAnswer>, request: KvChangeRequest): void {
  const { serving, origin } = attempt;
  const command = kvCommandOf(request, serving.settings.revisionsRetained);
  const decided = ({ type, revision, lastModified }: KvOutcome): void => {
    attempt.done(kvAnswer(type, revision, origin, null, lastModified));
  };
  if (request.durability === Durability.ephemeral) attempt.decideEphemeral(command, "kv", decided);
  else attempt.decideKey(command, kvCommandSizeBytes(command), decided);
}

/** Carries out one acceptable get or exists. */
function readKey(attempt: Attempt<KvAnswer>, request: KvGetRequest): void {
  const { serving, group, origin } = attempt;
  const { readTurn } = serving;
  const answer = ({ type, revision, lastModified, value, state, leaseEndMs }: KvReading): void => {
    attempt.done({
      ...kvAnswer(type, revision, origin, null, lastModified),
      value,
      expires: serving.expires(group, leaseEndMs),
      state,
    });
  };
  attempt.confirm((leaseMs) => {
    if (!readTurn.hasRoom) return readTurn.later(() => readKey(attempt, request));
    const isEphemeral = request.durability === Durability.ephemeral;
    const source = isEphemeral ? group.ephemeral : group.machine;
    if (source === null) return attempt.moved();
    if (!group.machine.owns(request.key)) return attempt.unowned();
    const nowMs = isEphemeral ? ephemeralNowMs(group) : leaseMs;
    const reading = readCounted(readTurn, source, request, nowMs);
    const { leaseEndMs } = reading;
    if (isEphemeral || leaseEndMs === null || leaseEndMs > group.leaseNowMs()) {
      return answer(reading);
    }
    attempt.advance(leaseEndMs, (committedMs) => {
      if (!group.machine.owns(request.key)) return attempt.unowned();
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

/** "unowned": the group does not own the key, which was not looked at. */
export type ItemReading = KvReading | "unowned" | null;
export type Readings = readonly ItemReading[];

/**
 * Reads several keys of one group and one durability, in slices when they are many. Null for those
 * that `budget` has no room for: they are not even read.
 */
export function readKeys(
  attempt: Attempt<Readings>,
  requests: readonly KvGetRequest[],
  budget: ReadBudget,
): void {
  const { group } = attempt;
  const [first] = requests;
  assert(first !== undefined, "a read is for at least one key");
  attempt.confirm((leaseMs) => {
    const table = group.ephemeral;
    if (first.durability === Durability.ephemeral) {
      const source = (): ReadSource | null => (group.ephemeral === table ? table : null);
      const read = new KeysRead(attempt, source, requests, budget);
      return read.begin(ephemeralNowMs(group), attempt.done);
    }
    const before = budget.leftBytes;
    const read = new KeysRead(attempt, () => group.machine, requests, budget);
    read.begin(leaseMs, (readings) => {
      const found = readings.filter((reading) => reading !== null && reading !== "unowned");
      const ended = latestEnded(found, group.leaseNowMs());
      if (ended === null) return attempt.done(readings);
      budget.leftBytes = before;
      attempt.advance(ended, (committedMs) => read.begin(committedMs, attempt.done));
    });
  });
}

type ReadSource = Pick<GroupAccess["machine"], "reads">;

/** One pass over the keys of a read; those of several slices are each as they are in theirs. */
class KeysRead {
  constructor(
    private readonly attempt: Attempt<Readings>,
    /** Null when the table that was proved is gone. */
    private readonly source: () => ReadSource | null,
    private readonly requests: readonly KvGetRequest[],
    private readonly budget: ReadBudget,
  ) {}

  begin(nowMs: number, then: (readings: Readings) => void): void {
    const readings: ItemReading[] = [];
    this.attempt.serving.sliced.next((turn) => this.slice(turn, nowMs, readings, then));
  }

  private slice(
    turn: TurnShare,
    nowMs: number,
    readings: ItemReading[],
    then: (readings: Readings) => void,
  ): void {
    const { attempt, requests, budget } = this;
    const { serving, group, deadlineMs } = attempt;
    const source = this.source();
    if (source === null) return attempt.moved();
    while (turn.visitsLeft > 0) {
      const request = requests[readings.length];
      if (request === undefined) break;
      if (!group.machine.owns(request.key)) {
        turn.visitsLeft--;
        readings.push("unowned");
        continue;
      }
      const reading = budget.leftBytes > 0 ? readOne(source, request, nowMs) : null;
      const sizeBytes = reading?.value?.length ?? 0;
      turn.visitsLeft -= visitsOf(sizeBytes);
      budget.leftBytes -= sizeBytes;
      readings.push(sizeBytes > 0 && budget.leftBytes < 0 ? null : reading);
    }
    if (readings.length === requests.length) return then(readings);
    if (serving.node.shuttingDown) return attempt.fail("aborted", null, group);
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return attempt.retry();
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
