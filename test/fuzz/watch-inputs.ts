/**
 * What the fuzz targets of watches ask for, and the account of what they are told.
 *
 * Invariants: 1. Cursors are such as were told, whole and damaged, such as a hub writes, and made-up
 * ones with right seals. 2. An account fails at once where a watch begins twice, or is told something
 * before it began or after it ended.
 */
import fc from "fast-check";
import { ByteWriter } from "../../src/base/codec.js";
import { WATCH_CURSOR_MAX_BYTES } from "../../src/base/limits.js";
import { WatchEnd, WatchMessageType } from "../../src/base/result-types.js";
import { queryOf } from "../../src/host/watching/filters.js";
import { type Position, clusterMark, encodePositions } from "../../src/host/watching/positions.js";
import type { Command } from "../../src/machine/commands/command.js";
import { sealCursor } from "../../src/machine/kv/cursor.js";
import type { WatchMessage } from "../../src/operations/api/requests.js";
import { collect, create, lock, remove, reserve, set, unlock } from "../doubles/machine/bench.js";

/** Of the cluster of `WatchBench`. */
export const CLUSTER = "cluster";

/** Mostly what may be, now and then what may not. */
function mostly<T>(usual: readonly T[], odd: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 15, arbitrary: fc.constantFrom(...usual) }, fc.constantFrom(...odd));
}

const name = mostly(
  ["a", "a/b", "a/b/c", "b", "r"],
  ["", "\u0000", "ä\u{1f600}", "x".repeat(2000)],
);
const long = fc.constantFrom(0, 1, 1000, 2 ** 40, Number.MAX_SAFE_INTEGER);
const position: fc.Arbitrary<Position> = fc.record({
  l: long,
  c: fc.constantFrom(0, 1, 0xffff_ffff),
  leaseMs: long,
});
/** Of few partitions and of many, close together and far apart. */
export const positions = fc
  .tuple(
    fc.array(fc.tuple(fc.nat(2 ** 31), position), { maxLength: 20 }),
    fc.constantFrom(0, 1, 200, 201, 900),
    fc.constantFrom(1, 2, 4099),
  )
  .map(([some, count, step]) => {
    const map = new Map(some);
    const at = some[0]?.[1] ?? { l: 1, c: 0, leaseMs: 1 };
    for (let id = 1; id <= count; id++) map.set(id * step, at);
    return map;
  });
export const madePayload = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(fc.nat(2 ** 32 - 1), fc.nat(2 ** 32 - 1), position), { maxLength: 210 }),
    mostly<number | null>([null], [0, 3, 300]),
    mostly([new Uint8Array()], [Uint8Array.of(1), new Uint8Array(9)]),
  )
  .map(([isOurs, parts, count, rest]) => {
    const mark = clusterMark(isOurs ? CLUSTER : "another");
    const writer = new ByteWriter(64).uint32(mark.low).uint32(mark.high);
    writer.length(count ?? parts.length);
    for (const [first, span, { l, c, leaseMs }] of parts) {
      writer.uint32(first).length(span).uint53(l).uint32(c).uint53(leaseMs);
    }
    return writer.raw(rest).finish();
  });

type CursorChoice =
  | { readonly from: "nothing" }
  | { readonly from: "told"; readonly at: number }
  | { readonly from: "cut" | "turned"; readonly at: number; readonly place: number }
  | { readonly from: "made"; readonly payload: Uint8Array }
  | { readonly from: "written"; readonly positions: ReadonlyMap<number, Position> }
  | { readonly from: "text"; readonly text: string };
const cursorChoice: fc.Arbitrary<CursorChoice> = fc.oneof(
  { weight: 20, arbitrary: fc.constant({ from: "nothing" as const }) },
  { weight: 10, arbitrary: fc.record({ from: fc.constant("told" as const), at: fc.nat(30) }) },
  fc.record({
    from: fc.constantFrom("cut" as const, "turned" as const),
    at: fc.nat(30),
    place: fc.nat(200),
  }),
  fc.record({ from: fc.constant("made" as const), payload: madePayload }),
  fc.record({ from: fc.constant("written" as const), positions }),
  fc.record({
    from: fc.constant("text" as const),
    text: fc.oneof(
      fc.string(),
      fc.constantFrom("", "AAAA", "x".repeat(WATCH_CURSOR_MAX_BYTES + 1), "é".repeat(5000)),
    ),
  }),
);

export const asked = fc.record({
  id: mostly([1, 2, 3, 2 ** 31 - 1], [0, -1]),
  kind: mostly<number>([1, 2, 3, 4, 5, 6], [0, 7, -1]),
  name,
  cursor: cursorChoice,
  fromRevision: mostly<bigint | null>([null], [-2n, -1n, 0n, 1n, 7n, 2n ** 63n - 1n]),
  initial: fc.boolean(),
  noValues: fc.boolean(),
  only: mostly([0, 0, 0, 2, 1024, 2047], [2048, -1]),
  progressMs: mostly([0, 0, 100, 600_000], [99, -5]),
});
export type Asked = typeof asked extends fc.Arbitrary<infer Made> ? Made : never;

/** The text of a choice, of what was `told` before. */
export function cursorOf({ cursor, kind, name }: Asked, told: readonly string[]): string | null {
  const one = (at: number): string => told[at % Math.max(1, told.length)] ?? "AAAA";
  switch (cursor.from) {
    case "nothing":
      return null;
    case "told":
      return one(cursor.at);
    case "cut":
      return one(cursor.at).slice(0, cursor.place);
    case "turned": {
      const text = one(cursor.at);
      const at = cursor.place % text.length;
      return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
    }
    case "made":
      return sealCursor(queryOf(kind, name), cursor.payload);
    case "written":
      return encodePositions(queryOf(kind, name), clusterMark(CLUSTER), cursor.positions);
    case "text":
      return cursor.text;
  }
}

export const COMMANDS: readonly (() => Command)[] = [
  () => set("a", "1"),
  () => set("a/b", "x".repeat(300), { expiresMs: 40 }),
  () => set("a/b/c", "2"),
  () => remove("a/b"),
  () => remove("a"),
  () => lock("r", "me", 30),
  () => lock("a/b", "me", 5000),
  () => unlock("r", "me"),
  () => create("a"),
  () => reserve("a", 5),
  () => collect(100, 20),
  () => ({ kind: "advance-clock" }),
];

/** What of a message is looked at. */
export type Told = Pick<WatchMessage, "type" | "watchIds" | "cursor" | "end" | "syncId">;

/** Holds what one caller is told against what it asked for. */
export class Account {
  private readonly asked = new Map<number, number>();
  private readonly created = new Map<number, number>();
  private readonly ended = new Map<number, number>();
  private readonly living = new Set<number>();
  readonly cursors: string[] = [];
  private readonly syncs: number[] = [];
  private serial = 0;
  count = 0;

  /** All that were asked for. */
  get ids(): readonly number[] {
    return [...this.asked.keys()];
  }

  ask(id: number): void {
    this.asked.set(id, (this.asked.get(id) ?? 0) + 1);
  }

  /** Number of the Sync that is asked for. */
  sync(): number {
    this.syncs.push(++this.serial);
    return this.serial;
  }

  told({ type, watchIds, cursor, end, syncId }: Told): void {
    this.count++;
    if (cursor !== null) {
      if (cursor.length > WATCH_CURSOR_MAX_BYTES) throw new Error("a cursor that is too long");
      this.cursors.push(cursor);
    }
    if (type === WatchMessageType.synced) {
      if (this.syncs[0] !== syncId) throw new Error(`SYNCED ${syncId} out of turn`);
      this.syncs.shift();
      return;
    }
    for (const id of watchIds) {
      switch (type) {
        case WatchMessageType.created:
          if (this.living.has(id)) throw new Error(`CREATED of ${id}, which lives`);
          this.living.add(id);
          this.created.set(id, (this.created.get(id) ?? 0) + 1);
          break;
        case WatchMessageType.ended:
          this.ended.set(id, (this.ended.get(id) ?? 0) + 1);
          // A living one ends for other reasons: this was a second one with its id.
          if (end !== WatchEnd.invalidInput) this.living.delete(id);
          break;
        default:
          if (!this.living.has(id)) throw new Error(`${type} of ${id}, which does not live`);
      }
    }
  }

  /** Nothing is open any more. */
  close(): void {
    for (const [id, count] of this.asked) {
      const ended = this.ended.get(id) ?? 0;
      if (ended !== count) throw new Error(`${id}: ${count} were asked for, ${ended} ended`);
      const created = this.created.get(id) ?? 0;
      if (created > count) throw new Error(`${id}: began ${created} times of ${count}`);
    }
    for (const id of this.ended.keys()) {
      if (!this.asked.has(id)) throw new Error(`an end of ${id}, which nobody asked for`);
    }
  }

  get openSyncs(): number {
    return this.syncs.length;
  }
}
