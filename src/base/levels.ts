/**
 * What this program supports: the levels of stored formats and operations that it knows, the
 * protocols that it speaks with other nodes, and since which of them each thing is permitted.
 *
 * A level is raised for a whole cluster at once (contract 5.5); nothing that a table here puts
 * above the level of a group is written to that group. A protocol is agreed on by each two nodes.
 * Invariants: 1. A release adds one level at most, and supports that of the release before. 2. What
 * was released never changes its line. 3. Every version number of the code has its line here
 * (`test/unit/base/levels.test.ts`).
 */
import { assert } from "./assert.js";
import { VERSION } from "./generated/version.js";
import { type Level, level } from "./ids.js";

/** Lowest and highest number of a range, both included. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/** What a program can do, as it tells others and as rows of members keep it. */
export interface Program {
  readonly levels: NumberRange;
  readonly protocols: NumberRange;
  /** For people. */
  readonly version: string;
}

const LEVEL_MIN = 1;
const LEVEL_MAX = 2;
const PROTOCOL_MIN = 4;
const PROTOCOL_MAX = 5;
/** Highest level or protocol that can be told. */
export const RANGE_END = 65_535;

/** This build. */
export const PROGRAM: Program = {
  levels: { min: LEVEL_MIN, max: LEVEL_MAX },
  protocols: { min: PROTOCOL_MIN, max: PROTOCOL_MAX },
  version: VERSION,
};

/** Since which level, or protocol, each version of a format is written. */
type SinceByVersion = Readonly<Record<number, number>>;

/** Commands in the log: since which level each version is proposed. */
const COMMANDS = {
  "try-lock": { 1: 1 },
  "try-extend": { 1: 1 },
  "try-unlock": { 1: 1 },
  "lock-with-note": { 1: 2 },
  "extend-grant": { 1: 2 },
  "unlock-grant": { 1: 2 },
  "force-unlock": { 1: 2 },
  "lock-heir": { 1: 2 },
  "set-heirs": { 1: 2 },
  "append-heirs": { 1: 2 },
  "create-sequence": { 1: 1 },
  "update-sequence": { 1: 1 },
  "delete-sequence": { 1: 1 },
  allocate: { 1: 1 },
  "reserve-block": { 1: 1 },
  "return-block": { 1: 1 },
  "kv-set": { 1: 1 },
  "kv-extend": { 1: 1 },
  "kv-delete": { 1: 1 },
  "range-open": { 1: 2 },
  "range-import": { 1: 2 },
  "range-close": { 1: 2 },
  "range-adopt": { 1: 2 },
  "range-drop": { 1: 2 },
  "range-freeze": { 1: 2 },
  "range-unfreeze": { 1: 2 },
  "range-release": { 1: 2 },
  "range-purge": { 1: 2 },
  "advance-clock": { 1: 1 },
  collect: { 1: 1 },
  "set-level": { 1: 1 },
  mark: { 1: 2 },
  "found-cluster": { 3: 1 },
  "update-member": { 3: 1 },
  "set-replication-factor": { 1: 1 },
  "register-range": { 1: 1 },
  "unregister-range": { 1: 1 },
  "add-member": { 2: 1 },
  "set-member-role": { 1: 1 },
  "remove-member": { 1: 1 },
  "raise-level": { 1: 1 },
  "change-replicas": { 1: 2 },
  "report-replicas": { 1: 2 },
  "place-partition": { 1: 2 },
  "evict-member": { 1: 2 },
  "begin-move": { 1: 2 },
  "retry-move": { 1: 2 },
  "cut-range": { 1: 2 },
  "abort-move": { 1: 2 },
  "finish-move": { 1: 2 },
  "hold-planner": { 1: 2 },
  "refound-cluster": { 1: 2 },
} as const satisfies Readonly<Record<string, SinceByVersion>>;

/** What lies on disks and in snapshots: since which level each version is written. */
const STORED_FORMATS = {
  entry: { 1: 1 },
  "configuration entry": { 2: 1 },
  "configuration of a group": { 1: 1 },
  "group record": { 3: 1, 5: 2 },
  "cluster row": { 2: 1 },
  "member row": { 3: 1 },
  "former member row": { 1: 1 },
  "partition row": { 3: 1, 4: 2 },
  "range row": { 2: 1 },
  "leaving key space row": { 1: 2 },
  "range move row": { 1: 2 },
  "planner hold row": { 1: 2 },
  "lock row": { 1: 1, 2: 2, 3: 2 },
  "lock audit row": { 1: 2 },
  "lock audit head row": { 1: 2 },
  "sequence row": { 1: 1 },
  "allocation row": { 1: 1 },
  "value row": { 1: 1 },
  "ownership row": { 1: 2 },
  "snapshot chunk": { 1: 1 },
  "log segment": { 1: 1 },
  "data directory": { 2: 1 },
  "level file": { 1: 1 },
  "replica of a node": { 1: 1 },
  "identity of a node": { 3: 1 },
  "known peers": { 2: 1 },
} as const satisfies Readonly<Record<string, SinceByVersion>>;

/** What travels between nodes: since which protocol each version is spoken. */
const SPOKEN_FORMATS = {
  handshake: { 3: 4 },
  "raft frame": { 4: 4 },
  "snapshot frame": { 2: 4 },
  "call frame": { 1: 4 },
  "node report": { 1: 4, 2: 5 },
  "backup frame": { 1: 5 },
} as const satisfies Readonly<Record<string, SinceByVersion>>;

/** Operations of clients and administrators: since which level they are carried out. */
const OPERATIONS = {
  "try-lock": 1,
  "try-extend": 1,
  "try-unlock": 1,
  "get-lock": 1,
  "list-locks": 2,
  "force-unlock": 2,
  "list-lock-audit": 2,
  "create-sequence": 1,
  "update-sequence": 1,
  "get-sequence": 1,
  "delete-sequence": 1,
  "next-sequence": 1,
  "reserve-sequence": 1,
  "kv-set": 1,
  "kv-extend": 1,
  "kv-delete": 1,
  "kv-get": 1,
  "kv-exists": 1,
  "kv-set-many": 1,
  "kv-delete-many": 1,
  "kv-get-many": 1,
  "kv-exists-many": 1,
  "kv-bucket": 1,
  "kv-scan-all": 1,
  "kv-scan-local": 1,
  "kv-range": 1,
  "cluster.membership": 1,
  "cluster.leave": 1,
  "cluster.placement": 1,
  "cluster.overview": 1,
  "cluster.setReplicationFactor": 1,
  "cluster.finalize": 1,
  "cluster.routing": 1,
  "ranges.list": 1,
  "ranges.register": 1,
  "ranges.unregister": 1,
  "ranges.split": 1,
  "ranges.merge": 1,
  "backups.full": 1,
  "backups.coordinated": 1,
  "backups.incremental": 1,
  "backups.list": 1,
  "backups.running": 1,
  "backups.chain": 1,
  "backups.validateChain": 1,
  "backups.collectGarbage": 1,
  "backups.restore": 1,
} as const satisfies Readonly<Record<string, number>>;

/** The release that brought each level, level 1 first. */
const LEVEL_RELEASES: readonly string[] = ["0.1", "0.2"];

/** What a data directory says of the level that its data may be of. */
export interface StoredLevel {
  readonly level: number;
  /** Version of the program that wrote it. */
  readonly version: string;
}

/**
 * Why a program cannot use data of that level, and which version can be used instead; null when it
 * can (contract 5.5 U4).
 */
export function levelFault(
  stored: StoredLevel,
  { levels }: Program,
  releases: readonly string[] = LEVEL_RELEASES,
): string | null {
  const { level, version } = stored;
  const found = `data is of level ${level}, this program supports ${rangeText(levels)}`;
  if (level > levels.max) return `${found}: use version ${version} or later`;
  if (level >= levels.min) return null;
  // The release that brought the next level supports both.
  const next = releases[level] ?? `that brought level ${level + 1}`;
  return `${found}: upgrade through version ${next} first`;
}

/** The tables by what they are about. */
export const SINCE = {
  commands: COMMANDS,
  stored: STORED_FORMATS,
  spoken: SPOKEN_FORMATS,
  operations: OPERATIONS,
} as const;

/** Since which level commands are proposed and operations carried out, by their kinds. */
export interface Permits {
  readonly commands: Readonly<Record<string, number>>;
  readonly operations: Readonly<Record<string, number>>;
  /** At this level all commands are permitted, or all operations. */
  readonly commandsFrom: number;
  readonly operationsFrom: number;
  /** Since which level try-lock waits, and locks are spoken of in full between nodes. */
  readonly waitsFrom: number;
}

const WAITS_FROM = 2;

export function permitsOf(
  commands: Readonly<Record<string, number>>,
  operations: Readonly<Record<string, number>>,
): Permits {
  const commandsFrom = Math.max(...Object.values(commands));
  return {
    commands,
    operations,
    commandsFrom,
    operationsFrom: Math.max(...Object.values(operations)),
    waitsFrom: WAITS_FROM,
  };
}

function firstSince(table: Readonly<Record<string, SinceByVersion>>): Record<string, number> {
  const entries = Object.entries(table);
  return Object.fromEntries(
    entries.map(([kind, versions]) => [kind, Math.min(...Object.values(versions))]),
  );
}

/** What this build permits. */
export const PERMITS: Permits = permitsOf(firstSince(COMMANDS), OPERATIONS);

/** What of a program the member list keeps. */
export function listedProgram({ levels, version }: Program): {
  readonly levelMin: Level;
  readonly levelMax: Level;
  readonly version: string;
} {
  return { levelMin: level(levels.min), levelMax: level(levels.max), version };
}

/** A range as people read it. */
export function rangeText({ min, max }: NumberRange): string {
  return min === max ? String(min) : `${min} to ${max}`;
}

export function includes({ min, max }: NumberRange, value: number): boolean {
  return value >= min && value <= max;
}

/** The highest number that both support; null when there is none. */
export function highestCommon(one: NumberRange, other: NumberRange): number | null {
  const max = Math.min(one.max, other.max);
  return max >= one.min && max >= other.min ? max : null;
}

/** Why two programs cannot belong to one cluster: no number of a kind is supported by both. */
export type Mismatch = "protocol" | "level";

export function programMismatch(one: Program, other: Program): Mismatch | null {
  if (highestCommon(one.protocols, other.protocols) === null) return "protocol";
  return highestCommon(one.levels, other.levels) === null ? "level" : null;
}

/** Throws AssertionError unless it is a range of numbers that can be told. */
export function assertRange({ min, max }: NumberRange): void {
  const areWhole = Number.isInteger(min) && Number.isInteger(max);
  assert(areWhole && min >= 1 && min <= max && max <= RANGE_END, "a range is 1 to 65535, in order");
}
