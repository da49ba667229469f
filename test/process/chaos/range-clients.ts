/**
 * Work in key spaces that are split, merged and moved meanwhile: conditional writes, leases, deletes and reads of single
 * keys, buckets, scans and pages of ranges.
 *
 * Invariants: 1. Every value is unique. 2. A key space is used for one era and lies in nobody else's: what a read of many
 * keys says concerns few keys. 3. Pages of one scan are asked one after the other, through any node.
 */
import type { Prng } from "../../../src/base/prng.js";
import { FLAG } from "../../judge/models/kv.js";
import type {
  KvManyReadOperation,
  KvManyReadResult,
  KvResult,
  Operation,
  Outcome,
} from "../../judge/history.js";

/** Long enough for a key space to be registered, split, merged and brought home. */
const ERA_MS = 30_000;
const SPACES = 2;
const KEYS = 24;
/** A scan ends by itself after this many pages: no space holds more. */
const PAGES_MAX = 64;
const LIMITS = [0, 1, 3, 7, 100];

export type Attempting = (operation: Operation, cursor?: string | null) => Promise<Outcome>;

/** Which key spaces are used now. `eraMs`: others after that time. */
export class RangeSpaces {
  private readonly beganMs = performance.now();

  constructor(
    private readonly eraMs = ERA_MS,
    private readonly count = SPACES,
    /** Other keys, many and large, lie behind those of the clients: reads of many keys leave them out. */
    readonly isCrowded = false,
  ) {}

  get era(): number {
    return Math.floor((performance.now() - this.beganMs) / this.eraMs);
  }

  /** Those of an era. */
  of(era = this.era): readonly string[] {
    return Array.from({ length: this.count }, (_, at) => `ranged-${era}-${at}`);
  }

  draw(prng: Prng): string {
    return this.of()[prng.below(this.count)] as string;
  }

  key(space: string, at: number): string {
    return `${space}/k${String(at).padStart(2, "0")}`;
  }

  drawKey(space: string, prng: Prng): string {
    return this.key(space, prng.below(KEYS));
  }
}

export class RangeClients {
  private serial = 0;

  constructor(readonly spaces: RangeSpaces) {}

  /** One thing that a client does. */
  async use(prng: Prng, attempt: Attempting): Promise<void> {
    const space = this.spaces.draw(prng);
    const choice = prng.below(24);
    if (choice < 2 && !this.spaces.isCrowded) {
      await attempt({ kind: "kv-bucket", prefix: space, ephemeral: false });
    } else if (choice === 2) await this.scan(space, prng, attempt);
    else if (choice < 4) await this.range(space, prng, attempt);
    else await this.useKey(this.spaces.drawKey(space, prng), choice, prng, attempt);
  }

  private async useKey(
    key: string,
    choice: number,
    prng: Prng,
    attempt: Attempting,
  ): Promise<void> {
    const plain = { key, ephemeral: false };
    const other = { ...plain, expiresMs: 0, revision: -1n };
    const write = (flags: number, compareRevision: bigint, expiresMs = 0): Operation => ({
      kind: "kv-set",
      ...plain,
      value: `r${this.serial++}`,
      compareValue: null,
      compareRevision,
      expiresMs,
      flags,
    });
    if (choice < 8) await attempt({ kind: "kv-get", ...other });
    else if (choice < 14) await attempt(write(0, 0n));
    else if (choice === 14) await attempt(write(0, 0n, prng.chance(1, 2) ? 400 : 20_000));
    else if (choice === 15) await attempt({ kind: "kv-extend", ...other, expiresMs: 20_000 });
    else if (choice === 16) await attempt({ kind: "kv-delete", ...other });
    else if (choice === 17) await attempt(write(FLAG.ifExists, 0n));
    else {
      const seen = await attempt({ kind: "kv-get", ...other });
      if (seen.kind !== "ok") return;
      const { type, revision } = seen.result as KvResult;
      if (type === "Got") await attempt(write(FLAG.ifEqualToRevision, revision));
      else await attempt(write(FLAG.ifNotExists, 0n));
    }
  }

  private async scan(space: string, prng: Prng, attempt: Attempting): Promise<void> {
    // Now and then over all spaces of the era.
    const wide = prng.chance(1, 3) ? space.slice(0, -1) : space;
    const prefix = this.spaces.isCrowded ? `${space}/k` : wide;
    const open = { startKey: null, startInclusive: true, endKey: null, endInclusive: false };
    await this.pages({ kind: "kv-scan", prefix, ephemeral: false }, open, prng, attempt);
  }

  private async range(space: string, prng: Prng, attempt: Attempting): Promise<void> {
    const edge = (): string | null => (prng.chance(1, 2) ? null : this.spaces.drawKey(space, prng));
    const startKey = edge();
    const startInclusive = startKey === null || prng.chance(1, 2);
    const endKey = edge() ?? (this.spaces.isCrowded ? `${space}/l` : null);
    const bounds = { startKey, startInclusive, endKey, endInclusive: prng.chance(1, 2) };
    await this.pages({ kind: "kv-range", prefix: space, ephemeral: false }, bounds, prng, attempt);
  }

  private async pages(
    read: KvManyReadOperation,
    bounds: Omit<NonNullable<KvManyReadOperation["page"]>, "scan" | "number" | "limit">,
    prng: Prng,
    attempt: Attempting,
  ): Promise<void> {
    const scan = this.serial++;
    const limit = LIMITS[prng.below(LIMITS.length)] as number;
    let cursor: string | null = null;
    for (let number = 0; number < PAGES_MAX; number++) {
      const page = { scan, number, limit, ...bounds };
      const outcome: Outcome = await attempt({ ...read, page }, cursor);
      if (outcome.kind !== "ok") return;
      cursor = (outcome.result as KvManyReadResult).nextCursor ?? null;
      if (cursor === null) return;
    }
  }
}
