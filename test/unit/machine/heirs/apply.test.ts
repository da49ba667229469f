/**
 * What apply makes of locks, heirs included, is what the rules say over plain values: texts and
 * numbers, one row for each lock, no bytes, no store.
 */
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { Prng } from "../../../../src/base/prng.js";
import { LockType } from "../../../../src/base/result-types.js";
import type { Command, Outcome } from "../../../../src/machine/commands/command.js";
import { decodeLockRow } from "../../../../src/machine/locks/lock-row.js";
import {
  type ListDecided,
  type LockDecided,
  type SuccessionRow,
  type Values,
  type When,
  appendHeirs,
  extend,
  forceUnlock,
  isOrphaned,
  setHeirs,
  tryLock,
  unlock,
} from "../../../../src/machine/locks/succession.js";
import { RowKind, textToByteKey } from "../../../../src/machine/store/keys.js";
import {
  Bench,
  bytes,
  collect,
  extend as extendAny,
  extendGrant,
  lock,
  lockNoted,
  unlock as unlockAny,
  unlockGrant,
} from "../../../doubles/machine/bench.js";

t.setTimeout(120_000);

type Decided = LockDecided | ListDecided;
type Row = SuccessionRow<string, number>;

const HISTORIES = Number(process.env["SVC_HEIR_HISTORIES"] ?? 700);
const SEED = Number(process.env["SVC_HEIR_SEED"] ?? 1);
const STEPS = 60;
const HORIZON_MS = 20;
const RESOURCES = ["r", "s"];
const OWNERS = ["a", "b", "c", "d", "e"];

const NAMES: Readonly<Record<Exclude<Decided, "written" | "stale">, number>> = {
  locked: LockType.locked,
  extended: LockType.extended,
  unlocked: LockType.unlocked,
  busy: LockType.busy,
  "must-retry": LockType.mustRetry,
  "invalid-owner": LockType.invalidOwner,
  "not-held": LockType.doesNotExist,
};

function newRow(): Row {
  const base = { token: -1, owner: "", waitId: 0, attempt: 0, note: null };
  return { isHeld: false, base, endMs: 0, heirs: [], listTerm: 0, untilMs: 0, top: -1 };
}

class Plain {
  readonly rows = new Map<string, Row>();
  floor = 0;
  readonly when: { term: number; nowMs: number } = { term: 1, nowMs: 0 };

  row(resource: string): Row {
    let row = this.rows.get(resource);
    if (row === undefined) this.rows.set(resource, (row = newRow()));
    return row;
  }

  get values(): Values<string, number> {
    const next = (token: number): number => (token < this.floor ? this.floor : token + 1);
    return { same: (one, other) => one === other, next };
  }

  collect(retentionMs: number): void {
    const { nowMs } = this.when;
    for (const [resource, row] of this.rows) {
      const endMs = Math.max(row.endMs, row.heirs.length > 0 ? row.untilMs : 0);
      if (row.top < 0 || (row.isHeld && row.endMs > nowMs) || endMs + retentionMs > nowMs) continue;
      this.floor = Math.max(this.floor, row.top + 1);
      this.rows.delete(resource);
    }
  }
}

/** A command as both sides take it. */
interface Step {
  readonly command: Command;
  readonly decide: (row: Row, values: Values<string, number>, when: When) => Decided;
}

function nullable<T>(random: Prng, value: T): T | null {
  return random.chance(1, 2) ? value : null;
}

/** Something about a lock that stands so: mostly what somebody of it could say. */
function stepOf(random: Prng, resource: string, row: Row): Step {
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)] as T;
  const members = [row.base, ...row.heirs];
  const member = random.chance(2, 3) ? pick(members) : pick(members.slice(0, 2));
  const isKnown = member.owner !== "" && random.chance(3, 4);
  const owner = isKnown ? member.owner : pick(OWNERS);
  const token = isKnown ? member.token : random.below(row.top + 3);
  const leaseMs = 1 + random.below(12);
  const note = nullable(random, `n${random.below(9)}`);
  const named = nullable(random, token);
  const bytesOf = (value: string | null): Uint8Array | null =>
    value === null ? null : bytes(value);
  const wait = (): { waitId: number; attempt: number } => {
    const waitId = isKnown && random.chance(3, 4) ? member.waitId : 1 + random.below(4);
    return { waitId, attempt: isKnown ? member.attempt + random.below(3) : random.below(4) };
  };
  const added = (): {
    owner: string;
    waitId: number;
    attempt: number;
    leaseMs: number;
    note: string | null;
  }[] =>
    Array.from({ length: random.below(4) }, () => ({
      owner: pick(OWNERS),
      ...{ waitId: 1 + random.below(4), attempt: random.below(4), leaseMs: 1 + random.below(12) },
      note: nullable(random, "h"),
    }));
  const addedBytes = (list: ReturnType<typeof added>) =>
    list.map((heir) => ({
      ...heir,
      owner: bytes(heir.owner),
      waitId: BigInt(heir.waitId),
      attempt: BigInt(heir.attempt),
      note: bytesOf(heir.note),
    }));
  switch (random.below(9)) {
    case 0: {
      const command =
        note === null ? lock(resource, owner, leaseMs) : lockNoted(resource, owner, leaseMs, note);
      const ask = { owner, waitId: 0, attempt: 0, leaseMs, note };
      return { command, decide: (at, values, when) => tryLock(values, at, when, ask) };
    }
    case 1:
    case 2: {
      const { waitId, attempt } = wait();
      const who = { resource, owner: bytes(owner), expiresMs: leaseMs, note: bytesOf(note) };
      const told = { waitId: BigInt(waitId), attempt: BigInt(attempt) };
      const ask = { owner, waitId, attempt, leaseMs, note };
      return {
        command: { kind: "lock-heir", ...who, ...told },
        decide: (at, values, when) => tryLock(values, at, when, ask),
      };
    }
    case 3: {
      const grant = { token: named === null ? null : BigInt(named), note };
      const isPlain = named === null && note === null;
      const word = { owner, token: named, leaseMs, note };
      return {
        command: isPlain
          ? extendAny(resource, owner, leaseMs)
          : extendGrant(resource, owner, leaseMs, grant),
        decide: (at, values, when) => extend(values, at, when, word),
      };
    }
    case 4:
    case 5: {
      const command =
        named === null ? unlockAny(resource, owner) : unlockGrant(resource, owner, BigInt(named));
      const word = { owner, token: named };
      return { command, decide: (at, values, when) => unlock(values, at, when, word) };
    }
    case 6: {
      const who = { actor: "o", reason: "r", requestId: "q", nodeId: 1, waitersDropped: 0 };
      const meant = random.chance(2, 3) ? row.base.token : token;
      return {
        command: {
          kind: "force-unlock",
          resource,
          token: BigInt(meant),
          owner: null,
          ...who,
          retained: 3,
        },
        decide: (at, _values, when) => forceUnlock(at, when, meant),
      };
    }
    case 7: {
      const [list, kept] = [added(), random.below(row.heirs.length + 2)];
      const meant = random.chance(3, 4) ? row.base.token : token;
      const rest = { kept, added: addedBytes(list), horizonMs: HORIZON_MS };
      return {
        command: { kind: "set-heirs", resource, token: BigInt(meant), ...rest },
        decide: (at, values, when) => setHeirs(values, at, when, meant, kept, list, HORIZON_MS),
      };
    }
    default: {
      const list = added();
      const meant = random.chance(3, 4) ? (row.heirs.at(-1) ?? row.base).token : token;
      const rest = { added: addedBytes(list), horizonMs: HORIZON_MS };
      return {
        command: { kind: "append-heirs", resource, token: BigInt(meant), ...rest },
        decide: (at, values, when) => appendHeirs(values, at, when, meant, list, HORIZON_MS),
      };
    }
  }
}

/** The row as both sides know it, without what has no effect any more. */
function told(row: Row, nowMs: number): string {
  const { isHeld, base, endMs, heirs, listTerm, untilMs, top } = row;
  const list = heirs.length > 0 ? { heirs, listTerm } : null;
  const until = list !== null || untilMs > nowMs ? untilMs : 0;
  return JSON.stringify(isHeld ? [base, endMs, list, until, top] : [base.token, endMs, until, top]);
}

function storedOf(bench: Bench, resource: string): Row | null {
  const row = bench.machine.reads.succession(resource);
  if (row === null) return null;
  const text = (given: Uint8Array): string => Buffer.from(given).toString();
  const grant = <G extends (typeof row)["base"]>({
    token,
    owner,
    waitId,
    attempt,
    note,
    ...rest
  }: G) => ({
    ...{ token: Number(token), owner: text(owner), waitId: Number(waitId) },
    ...{ attempt: Number(attempt), note: note === null ? null : text(note), ...rest },
  });
  const { isHeld, base, endMs, heirs, listTerm, untilMs, top } = row;
  const list = heirs.map((heir) => ({ ...grant(heir), leaseMs: heir.leaseMs }));
  return { isHeld, base: grant(base), endMs, heirs: list, listTerm, untilMs, top: Number(top) };
}

function sorted(row: Row): Row {
  const grant = ({ token, owner, waitId, attempt, note }: Row["base"]) => ({
    token,
    owner,
    waitId,
    attempt,
    note,
  });
  return {
    ...row,
    base: grant(row.base),
    heirs: row.heirs.map((h) => ({ ...grant(h), leaseMs: h.leaseMs })),
  };
}

function saidType(outcome: Outcome): number | string {
  return outcome.kind === "heirs"
    ? outcome.status
    : outcome.kind === "lock" || outcome.kind === "forced"
      ? outcome.type
      : outcome.kind;
}

class History {
  readonly bench = new Bench();
  readonly plain = new Plain();

  constructor(
    private readonly random: Prng,
    private readonly seen: Map<string, number>,
  ) {}

  /** What is not alike; null: nothing. */
  run(): string | null {
    const { random, plain, bench } = this;
    for (let at = 0; at < STEPS; at++) {
      const { when } = plain;
      if (random.chance(1, 8)) bench.term = when.term += 1 + random.below(2);
      when.nowMs += random.chance(1, 12) ? random.below(40) : random.below(3);
      if (random.chance(1, 30)) {
        const retentionMs = random.below(8);
        plain.collect(retentionMs);
        bench.apply(when.nowMs, collect(10, retentionMs));
      }
      if (random.chance(1, 20)) bench.flush();
      const resource = RESOURCES[random.below(RESOURCES.length)] as string;
      const fault = this.step(resource) ?? this.compare(resource);
      if (fault !== null) return `step ${at}: ${fault}`;
    }
    return null;
  }

  private step(resource: string): string | null {
    const { plain, bench } = this;
    const { when } = plain;
    const row = plain.row(resource);
    const { command, decide } = stepOf(this.random, resource, row);
    const wasOrphaned = isOrphaned(row, when);
    const { isHeld, endMs, base } = row;
    const { lapsedLocks } = bench.machine;
    const decided = decide(row, plain.values, when);
    if (isHeld && !row.isHeld) row.endMs = Math.min(endMs, when.nowMs);
    const outcome = bench.one(when.nowMs, command);
    this.note(`${command.kind} ${decided}${wasOrphaned ? " orphaned" : ""}`);
    const expected = decided === "written" || decided === "stale" ? decided : NAMES[decided];
    if (saidType(outcome) !== expected) {
      return `${command.kind} is ${String(saidType(outcome))}, not ${decided}`;
    }
    const isOver = isHeld && endMs <= when.nowMs && (!row.isHeld || row.base.token !== base.token);
    if (bench.machine.lapsedLocks - lapsedLocks !== (isOver ? 1 : 0)) return "lapses are counted";
    return null;
  }

  private compare(resource: string): string | null {
    const { plain, bench } = this;
    const row = plain.row(resource);
    const stored = storedOf(bench, resource);
    if (stored === null) return row.top < 0 ? null : "there is no row";
    const { nowMs } = plain.when;
    const [is, ought] = [told(sorted(stored), nowMs), told(sorted(row), nowMs)];
    if (is !== ought) return `the row is ${is}, not ${ought}`;
    const bytesOf = bench.machine["groupRows"].get(RowKind.lock, textToByteKey(resource));
    const known = bytesOf === null ? null : decodeLockRow(bytesOf);
    if (bytesOf === null || known === null) return "the row is not whole";
    if (!isDeepStrictEqual(decodeLockRow(bytesOf.slice()), known))
      return "what is known of the row";
    const isOfWait = row.isHeld && row.base.waitId + row.base.attempt > 0;
    const isPlain = !isOfWait && row.heirs.length === 0 && row.top === row.base.token;
    if (stored.untilMs === 0 && isPlain && bytesOf[0] === 3) return "a row without heirs says so";
    this.note(`version ${bytesOf[0] as number}`);
    return null;
  }

  private note(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

t.test("Q14 Q15 Q16 P-029 apply decides what the rules say, with and without heirs", (t) => {
  const seen = new Map<string, number>();
  const random = new Prng(SEED);
  for (let at = 0; at < HISTORIES; at++) {
    const fault = new History(random.fork(`history ${at}`), seen).run();
    if (fault === null) continue;
    t.fail(`history ${at} of seed ${SEED}: ${fault}`);
    return t.end();
  }
  const kinds = ["try-lock", "lock-with-note", "lock-heir", "try-extend", "extend-grant"];
  const wanted = [
    ...kinds.slice(0, 3).flatMap((kind) => [`${kind} locked`, `${kind} busy`]),
    ...["try-lock", "lock-heir"].map((kind) => `${kind} must-retry orphaned`),
    ...["lock-heir locked orphaned", "lock-heir busy orphaned"],
    ...["extend-grant", "unlock-grant"].map((kind) => `${kind} invalid-owner orphaned`),
    ...["extend-grant extended orphaned", "unlock-grant unlocked orphaned"],
    ...["try-extend", "try-unlock"].map((kind) => `${kind} must-retry orphaned`),
    ...["force-unlock unlocked", "force-unlock unlocked orphaned", "force-unlock not-held"],
    ...["set-heirs", "append-heirs"].flatMap((kind) => [
      `${kind} written`,
      `${kind} stale orphaned`,
    ]),
    ...["version 1", "version 2", "version 3"],
  ];
  for (const what of wanted) t.ok((seen.get(what) ?? 0) >= 20, `${what}: ${seen.get(what) ?? 0}`);
  t.end();
});
