/**
 * Deliberately naive second versions of locks, sequences and key/value, written from the contract:
 * Maps, BigInt, whole lists, nothing clever. They share no code with the state machine but the
 * vocabulary.
 */
import type {
  BlockCursor,
  Command,
  LockCommand,
  Outcome,
} from "../../../src/machine/commands/command.js";

const INT64_MAX = 2n ** 63n - 1n;

function text(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

function sizeOf(name: string): number {
  return new TextEncoder().encode(name).length;
}

interface ModelLock {
  owner: string;
  note: string | null;
  token: bigint;
  endMs: number;
  released: boolean;
}

interface ModelSequence {
  end: bigint;
  blockStart: bigint;
  initial: bigint;
  increment: bigint;
  max: bigint | null;
  blockSize: number | null;
  incarnation: number;
  revision: number;
  keys: { key: string; count: number; before: bigint; revision: number; endMs: number }[];
}

interface ModelRevision {
  revision: number;
  value: string | null;
  endMs: number;
  deleted: boolean;
  passing: boolean;
  stampMs: number;
}

interface ModelKey {
  latest: ModelRevision;
  older: ModelRevision[];
}

/** What an outcome says, without representation. */
export type Said = string;

export class Model {
  readonly locks = new Map<string, ModelLock>();
  readonly sequences = new Map<string, ModelSequence>();
  readonly keys = new Map<string, ModelKey>();
  now = 0;
  floor = 0n;

  apply(leaseMs: number, stampMs: number, command: Command): Said {
    this.now = Math.max(this.now, leaseMs);
    switch (command.kind) {
      case "try-lock":
      case "try-extend":
      case "try-unlock":
      case "lock-with-note":
      case "extend-grant":
      case "unlock-grant":
        return this.lock(command);
      case "kv-set":
      case "kv-extend":
      case "kv-delete":
        return this.kv(command, stampMs);
      case "advance-clock":
        return "done";
      case "collect":
        return this.collect(command.lockRetentionMs, command.tombstoneRetentionMs);
      default:
        return this.sequence(command);
    }
  }

  private lock(command: LockCommand): Said {
    const { resource } = command;
    const owner = text(command.owner);
    const nameFits = sizeOf(resource) >= 1 && sizeOf(resource) <= 1024;
    if (!nameFits || owner.length < 1 || owner.length > 1024) return "lock 100 0";
    if ("expiresMs" in command && (command.expiresMs < 1 || command.expiresMs > 2147483647)) {
      return "lock 100 0";
    }
    const note = "note" in command && command.note !== null ? text(command.note) : null;
    if (note !== null && note.length > 1024) return "lock 100 0";
    const row = this.locks.get(resource);
    const held = row !== undefined && !row.released && row.endMs > this.now;
    if (command.kind === "try-lock" || command.kind === "lock-with-note") {
      if (held) return row.owner === owner ? `lock 0 ${row.token}` : "lock 1 0";
      let token = this.floor;
      if (row !== undefined && row.token + 1n > token) token = row.token + 1n;
      const endMs = this.now + command.expiresMs;
      this.locks.set(resource, { owner, note, token, endMs, released: false });
      return `lock 0 ${token}`;
    }
    const meant = "token" in command ? command.token : null;
    const isOther =
      row !== undefined && (row.owner !== owner || (meant ?? row.token) !== row.token);
    if (command.kind === "try-extend" || command.kind === "extend-grant") {
      if (!held) return "lock 102 0";
      if (isOther) return "lock 103 0";
      row.endMs = this.now + command.expiresMs;
      if (note !== null) row.note = note;
      return `lock 2 ${row.token}`;
    }
    if (row === undefined || row.released) return "lock 102 0";
    if (isOther) return "lock 103 0";
    row.released = true;
    row.endMs = Math.min(row.endMs, this.now);
    return `lock 3 ${row.token}`;
  }

  lockInfo(resource: string): Said {
    const row = this.locks.get(resource);
    if (row === undefined || row.released || row.endMs <= this.now) return "none";
    return `${row.owner} ${row.token} ${row.endMs} ${row.note ?? "-"}`;
  }

  private isCurrent(row: ModelSequence, cursor: BlockCursor | null): cursor is BlockCursor {
    if (cursor === null) return false;
    if (cursor.incarnation !== row.incarnation || cursor.revision !== row.revision) return false;
    for (let value = row.blockStart; value <= row.end; value += row.increment) {
      if (value === cursor.lastHandedOut) return true;
    }
    return false;
  }

  private sequence(command: Command): Said {
    if (!("name" in command)) throw new Error("not a command of sequences");
    const row = this.sequences.get(command.name);
    const failure = (type: number): Said => `type ${type}`;
    switch (command.kind) {
      case "create-sequence": {
        const { initialValue, increment, maxValue, blockSize } = command;
        if (increment < 1n || (maxValue !== null && maxValue < initialValue)) return failure(3);
        if (blockSize !== null && blockSize < 1) return failure(3);
        if (row !== undefined) return failure(2);
        this.sequences.set(command.name, {
          end: initialValue,
          blockStart: initialValue,
          initial: initialValue,
          increment,
          max: maxValue,
          blockSize,
          incarnation: 0,
          revision: 0,
          keys: [],
        });
        return `type 0 ${this.describe(command.name)}`;
      }
      case "delete-sequence":
        return this.sequences.delete(command.name) ? "type 0 none" : failure(1);
      case "update-sequence": {
        const given = [
          command.currentValue,
          command.increment,
          command.initialValue,
          command.maxValue,
          command.blockSize,
        ];
        const flags = command.removeMaxValue || command.removeBlockSize;
        if (given.every((value) => value === null) && !flags) return failure(3);
        if (command.maxValue !== null && command.removeMaxValue) return failure(3);
        if (command.blockSize !== null && command.removeBlockSize) return failure(3);
        if (command.increment !== null && command.increment < 1n) return failure(3);
        if (command.blockSize !== null && command.blockSize < 1) return failure(3);
        if (row === undefined) return failure(1);
        const shown = this.isCurrent(row, command.cursor) ? command.cursor.lastHandedOut : row.end;
        const current = command.currentValue ?? shown;
        const max = command.removeMaxValue ? null : (command.maxValue ?? row.max);
        if (max !== null && max < current) return failure(3);
        this.sequences.set(command.name, {
          end: current,
          blockStart: current,
          initial: command.initialValue ?? row.initial,
          increment: command.increment ?? row.increment,
          max,
          blockSize: command.removeBlockSize ? null : (command.blockSize ?? row.blockSize),
          incarnation: row.incarnation + 1,
          revision: row.revision + 1,
          keys: [],
        });
        return `type 0 ${this.describe(command.name)}`;
      }
      case "allocate": {
        if (command.count < 1) return failure(3);
        if (row === undefined) return failure(1);
        row.keys = row.keys.filter((entry) => entry.endMs === 0 || entry.endMs > this.now);
        const known = row.keys.find((entry) => entry.key === command.key);
        if (known !== undefined && command.key !== null) {
          if (known.count !== command.count) return failure(3);
          return `type 0 ${known.before} ${row.increment} ${known.count} ${known.revision}`;
        }
        const before = this.isCurrent(row, command.cursor) ? command.cursor.lastHandedOut : row.end;
        const end = before + BigInt(command.count) * row.increment;
        if (end > (row.max ?? INT64_MAX)) return failure(4);
        row.end = end;
        row.blockStart = end;
        row.revision++;
        if (command.key !== null) {
          const endMs = command.keysRetainedMs === 0 ? 0 : this.now + command.keysRetainedMs;
          row.keys.push({
            key: command.key,
            count: command.count,
            before,
            revision: row.revision,
            endMs,
          });
          if (command.keysRetainedMax > 0) row.keys = row.keys.slice(-command.keysRetainedMax);
        }
        return `type 0 ${before} ${row.increment} ${command.count} ${row.revision}`;
      }
      case "reserve-block": {
        if (command.count < 1) return failure(3);
        if (row === undefined) return failure(1);
        const before = this.isCurrent(row, command.cursor) ? command.cursor.lastHandedOut : row.end;
        const wanted = Math.max(row.blockSize ?? command.defaultBlockSize, command.count);
        const limit = row.max ?? INT64_MAX;
        let count = 0;
        let end = before;
        while (count < wanted && end + row.increment <= limit) {
          end += row.increment;
          count++;
        }
        if (count < command.count) return failure(4);
        row.end = end;
        row.blockStart = before;
        row.revision++;
        return `type 0 ${before} ${row.increment} ${count} ${row.revision}`;
      }
      case "return-block": {
        if (row === undefined || !this.isCurrent(row, command.cursor)) return failure(1);
        row.end = command.cursor.lastHandedOut;
        row.blockStart = row.end;
        return "type 0 none";
      }
      default:
        throw new Error("not a command of sequences");
    }
  }

  describe(name: string): Said {
    const row = this.sequences.get(name);
    if (row === undefined) return "none";
    const { end, initial, increment, max, blockSize, incarnation, revision } = row;
    return [end, initial, increment, max, blockSize, incarnation, revision].join(" ");
  }

  private isLive(row: ModelRevision | undefined): row is ModelRevision & { deleted: false } {
    return row !== undefined && !row.deleted && (row.endMs === 0 || row.endMs > this.now);
  }

  private kv(command: Command & { kind: `kv-${string}` }, stampMs: number): Said {
    const { key } = command;
    if (sizeOf(key) < 1 || sizeOf(key) > 1024 || key.startsWith("__svc:")) return "kv 100 0 0";
    const entry = this.keys.get(key);
    const latest = entry?.latest;
    const live = this.isLive(latest);
    if (command.kind === "kv-extend") {
      if (command.expiresMs < 1) return "kv 100 0 0";
      if (!live) return "kv 103 0 0";
      latest.endMs = this.now + command.expiresMs;
      latest.stampMs = stampMs;
      return `kv 2 ${latest.revision} ${stampMs}`;
    }
    if (command.kind === "kv-delete") {
      if (latest?.deleted === true) return `kv 103 ${latest.revision} ${latest.stampMs}`;
      if (!live || entry === undefined) return "kv 103 0 0";
      const tombstone = { value: null, endMs: this.now, deleted: true, passing: true, stampMs };
      this.replace(
        entry,
        { ...tombstone, revision: latest.revision + 1 },
        command.revisionsRetained,
      );
      return `kv 4 ${entry.latest.revision} ${stampMs}`;
    }
    const { flags } = command;
    if (flags >= 64 || flags < 0 || (flags & 12) === 12 || command.expiresMs < 0)
      return "kv 100 0 0";
    let holds = true;
    if ((flags & 4) !== 0 && !live) holds = false;
    if ((flags & 8) !== 0 && live) holds = false;
    if ((flags & 32) !== 0 && command.compareRevision !== BigInt(latest?.revision ?? -1))
      holds = false;
    if ((flags & 16) !== 0) {
      const stored = live ? (latest.value ?? "") : "";
      if (stored !== text(command.compareValue ?? new Uint8Array())) holds = false;
    }
    if (!holds) return `kv 1 ${latest?.revision ?? -1} ${latest?.stampMs ?? 0}`;
    const next: ModelRevision = {
      revision: (latest?.revision ?? -1) + 1,
      value: command.value === null ? null : text(command.value),
      endMs: command.expiresMs === 0 ? 0 : this.now + command.expiresMs,
      deleted: false,
      passing: (flags & 2) !== 0,
      stampMs,
    };
    if (entry === undefined) this.keys.set(key, { latest: next, older: [] });
    else this.replace(entry, next, command.revisionsRetained);
    return `kv 0 ${next.revision} ${stampMs}`;
  }

  private replace(entry: ModelKey, next: ModelRevision, retained: number): void {
    if (this.isLive(entry.latest) && !entry.latest.passing) entry.older.push(entry.latest);
    entry.older = retained === 1 ? [] : entry.older.slice(-(retained - 1));
    entry.latest = next;
  }

  kvGet(key: string, revision: number): Said {
    const entry = this.keys.get(key);
    if (entry === undefined) return "none 0";
    const all = [...entry.older, entry.latest];
    const found = revision < 0 ? entry.latest : all.find((row) => row.revision === revision);
    if (!this.isLive(found)) return `none ${entry.latest.deleted ? 2 : 0}`;
    return `${found.revision} ${found.value === null ? "null" : `=${found.value}`} ${found.endMs}`;
  }

  private collect(lockRetentionMs: number, tombstoneRetentionMs: number): Said {
    for (const [resource, row] of this.locks) {
      const free = row.released || row.endMs <= this.now;
      if (!free || row.endMs + lockRetentionMs > this.now) continue;
      if (row.token >= this.floor) this.floor = row.token + 1n;
      this.locks.delete(resource);
    }
    for (const [key, entry] of this.keys) {
      const { latest } = entry;
      if (this.isLive(latest) || tombstoneRetentionMs === 0) continue;
      if (latest.endMs + tombstoneRetentionMs <= this.now) this.keys.delete(key);
    }
    return "collected";
  }
}

/** What the state machine's outcome says, in the words of the model. */
export function say(outcome: Outcome): Said {
  switch (outcome.kind) {
    case "lock":
      return `lock ${outcome.type} ${outcome.token}`;
    case "kv":
      return `kv ${outcome.type} ${outcome.revision} ${outcome.lastModified.l}`;
    case "allocation":
      if (outcome.type !== 0) return `type ${outcome.type}`;
      return `type 0 ${outcome.before} ${outcome.increment} ${outcome.count} ${outcome.revision}`;
    case "sequence": {
      const { record } = outcome;
      if (outcome.type !== 0) return `type ${outcome.type}`;
      if (record === null) return "type 0 none";
      const { currentValue, initialValue, increment, maxValue, blockSize } = record;
      const { incarnation, revision } = record;
      const parts = [currentValue, initialValue, increment, maxValue, blockSize];
      return `type 0 ${[...parts, incarnation, revision].join(" ")}`;
    }
    case "collected":
      return "collected";
    default:
      return outcome.kind;
  }
}
