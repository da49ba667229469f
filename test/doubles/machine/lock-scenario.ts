/**
 * The language of the scenarios of heirs: each command is one entry of the lock "r", and prints
 * what it came to, what watchers are told, and the row behind it.
 *
 * Options: `term` and `at` (lease time), which stay as they were without; `by` an owner; `wait` and
 * `try`; `lease`; `note`; `token`; `kept`; `retention`. Heirs are `added=(owner/wait/try/lease,…)`,
 * each with `/note` behind it if it has one.
 */
import { LockType, WatchEventType } from "../../../src/base/result-types.js";
import type { Command, NewHeir, Outcome } from "../../../src/machine/commands/command.js";
import { type AppliedCommand, type WatchEvent, eventsOf } from "../../../src/machine/events.js";
import { isOrphaned } from "../../../src/machine/locks/succession.js";
import {
  Bench,
  bytes,
  collect,
  extendGrant,
  lock,
  lockNoted,
  unlock,
  unlockGrant,
} from "./bench.js";
import type { Argument, Command as Line } from "../../golden/scenario.js";

const RESOURCE = "r";
/** As leaders give it (ms). */
const HORIZON_MS = 2000;

const nameOf = (names: Readonly<Record<string, number>>, number: number): string =>
  Object.entries(names).find(([, value]) => value === number)?.[0] ?? String(number);
const text = (given: Uint8Array): string => Buffer.from(given).toString();
const noted = (note: Uint8Array | null): string => (note === null ? "" : ` (${text(note)})`);

class Options {
  private readonly used = new Set<string>();

  constructor(private readonly args: readonly Argument[]) {}

  list(name: string): readonly string[] | null {
    this.used.add(name);
    return this.args.find((arg) => arg.name === name)?.values ?? null;
  }

  text(name: string): string | null {
    return this.list(name)?.[0] ?? null;
  }

  number(name: string, otherwise: number): number {
    return Number(this.text(name) ?? otherwise);
  }

  token(name: string): bigint | null {
    const value = this.text(name);
    return value === null ? null : BigInt(value);
  }

  /** Throws when there is one that nobody asked for. */
  end(): void {
    const unknown = this.args.find(({ name }) => !this.used.has(name));
    if (unknown !== undefined) throw new Error(`unknown option ${unknown.name}`);
  }
}

function heirOf(value: string): NewHeir {
  const [owner = "", waitId = "", attempt = "", leaseMs = "", note] = value.split("/");
  const wait = { waitId: BigInt(waitId), attempt: BigInt(attempt) };
  const its = note === undefined ? null : bytes(note);
  return { owner: bytes(owner), ...wait, leaseMs: Number(leaseMs), note: its };
}

const COMMANDS: Readonly<Record<string, (options: Options) => Command>> = {
  lock(options) {
    const owner = options.text("by") ?? "";
    const expiresMs = options.number("lease", 100);
    const waitId = options.token("wait");
    const note = options.text("note");
    if (waitId === null) {
      return note === null
        ? lock(RESOURCE, owner, expiresMs)
        : lockNoted(RESOURCE, owner, expiresMs, note);
    }
    const attempt = options.token("try") ?? 1n;
    const who = { resource: RESOURCE, owner: bytes(owner), expiresMs };
    const its = note === null ? null : bytes(note);
    return { kind: "lock-heir", ...who, note: its, waitId, attempt };
  },
  extend(options) {
    const [token, note] = [options.token("token"), options.text("note")];
    const leaseMs = options.number("lease", 100);
    return extendGrant(RESOURCE, options.text("by") ?? "", leaseMs, { token, note });
  },
  unlock(options) {
    const owner = options.text("by") ?? "";
    const token = options.token("token");
    return token === null ? unlock(RESOURCE, owner) : unlockGrant(RESOURCE, owner, token);
  },
  force(options) {
    const who = { actor: "ops", reason: "why", requestId: "q", nodeId: 1 };
    const rest = { owner: null, ...who, waitersDropped: 0, retained: 9 };
    return {
      kind: "force-unlock",
      resource: RESOURCE,
      token: options.token("token") ?? 0n,
      ...rest,
    };
  },
  set(options) {
    const [token, kept] = [options.token("token") ?? 0n, options.number("kept", 0)];
    const added = (options.list("added") ?? []).map(heirOf);
    return { kind: "set-heirs", resource: RESOURCE, token, kept, added, horizonMs: HORIZON_MS };
  },
  append(options) {
    const token = options.token("token") ?? 0n;
    const added = (options.list("added") ?? []).map(heirOf);
    return { kind: "append-heirs", resource: RESOURCE, token, added, horizonMs: HORIZON_MS };
  },
  collect: (options) => collect(10, options.number("retention", 10)),
  clock: () => ({ kind: "advance-clock" }),
};

function said(outcome: Outcome): string {
  switch (outcome.kind) {
    case "lock":
    case "forced": {
      const isGrant = outcome.type <= LockType.got && outcome.type !== LockType.busy;
      return nameOf(LockType, outcome.type) + (isGrant ? ` f${outcome.token}` : "");
    }
    case "heirs":
      return outcome.status;
    case "collected":
      return `dropped ${outcome.dropped}`;
    default:
      return outcome.kind;
  }
}

function told({ type, token, owner, note, forced }: WatchEvent): string {
  const by = owner === null ? "" : ` ${text(owner)}`;
  return `${nameOf(WatchEventType, type)} f${token}${by}${noted(note)}${forced ? " forced" : ""}`;
}

/** A lock, and the entries that are made of scenario commands. */
export class LockScenario {
  readonly bench = new Bench();
  private readonly events: WatchEvent[] = [];
  private atMs = 0;

  constructor() {
    const ignored = () => undefined;
    const changed = (applied: AppliedCommand): void => {
      this.events.push(...eventsOf(applied, null));
    };
    const rest = { begin: ignored, deciding: ignored, replaced: ignored, appended: ignored };
    this.bench.machine.tap = { changed, ...rest };
  }

  run({ name, args }: Line): string {
    const options = new Options(args);
    this.bench.term = options.number("term", this.bench.term);
    this.atMs = options.number("at", this.atMs);
    const command = COMMANDS[name]?.(options);
    if (command === undefined) throw new Error(`unknown command ${name}`);
    options.end();
    this.events.length = 0;
    const { lapsedLocks } = this.bench.machine;
    const lines = [said(this.bench.one(this.atMs, command))];
    if (this.bench.machine.lapsedLocks !== lapsedLocks) lines.push("a lease had ended");
    lines.push(...this.events.map((event) => `  ${told(event)}`), this.row());
    return `${lines.join("\n")}\n`;
  }

  /** The row as it is. */
  row(): string {
    const { machine, term } = this.bench;
    const row = machine.reads.succession(RESOURCE);
    if (row === null) return `no row, floor ${machine.tokenFloor}`;
    const { isHeld, base, endMs, heirs, listTerm, untilMs, top } = row;
    const { token, owner, waitId, attempt, note } = base;
    if (!isHeld) return `free since ${endMs}, last f${token}, top f${top}, U ${untilMs}`;
    const held = `held by ${text(owner)} f${token} wait ${waitId}/${attempt}${noted(note)}`;
    const lines = [`${held} to ${endMs}, top f${top}, U ${untilMs}`];
    const isOld = isOrphaned(row, { term, nowMs: machine.leaseMs });
    if (heirs.length > 0) lines.push(`  list of term ${listTerm}${isOld ? ", orphaned" : ""}`);
    for (const heir of heirs) {
      const wait = `wait ${heir.waitId}/${heir.attempt}${noted(heir.note)}`;
      lines.push(`  then ${text(heir.owner)} f${heir.token} ${wait} for ${heir.leaseMs}`);
    }
    return lines.join("\n");
  }
}
