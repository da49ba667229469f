/**
 * Copies and digests of a core, for an explorer that goes from one state to many.
 *
 * Both walk the object graph: an instance of a class and an array are state and are copied; a plain
 * object is a message, a membership or a setting, is never changed once made (types.ts), and is
 * shared. So a new field of the core is copied and digested without anybody thinking of it here.
 *
 * Invariants: 1. A copy and its original share nothing that either will change. 2. Two states with
 * the same digest behave alike, up to draws of the election timeout; digests have 52 bits.
 */

/** Fields that are settings, caches, draws or pure counters: equal digests do not need them. */
const undigested = new Set(["config", "prng", "sharedSpan", "ticksPassed", "leaseStartedTick"]);

type Fields = Record<string, unknown>;

interface Shape {
  readonly copy: (value: Fields, deep: typeof copyValue) => Fields;
  readonly feed: (value: Fields, deep: typeof feedValue) => void;
}

const shapes = new Map<object, Shape>();

/**
 * Copying and digesting functions for one class, from the fields of its first instance. They are
 * compiled from text, because reading fields by computed names makes the explorer half as fast.
 */
function shapeOf(value: Fields, prototype: object): Shape {
  const known = shapes.get(prototype);
  if (known !== undefined) return known;
  const all = Object.keys(value);
  const data = all.filter((key) => typeof value[key] !== "function");
  // An instance with functions of its own, bound to itself, must come from its constructor.
  const made =
    data.length < all.length ? "new from.constructor(from.config)" : "Object.create(prototype)";
  const digested = data.filter((key) => !undigested.has(key));
  const copies = data.map((key) => `to.${key} = deep(from.${key});`).join("");
  const feeds = digested.map((key) => `deep(from.${key});`).join("");
  const shape: Shape = {
    copy: new Function(
      "prototype",
      `return (from, deep) => { const to = ${made}; ${copies} return to; };`,
    )(prototype) as Shape["copy"],
    feed: new Function("from", "deep", feeds) as Shape["feed"],
  };
  shapes.set(prototype, shape);
  return shape;
}

function copyValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.length === 0 ? [] : value.map(copyValue);
  if (value instanceof Map) return new Map(value);
  if (value instanceof Float64Array) return value.slice();
  const prototype = Object.getPrototypeOf(value) as object;
  if (prototype === Object.prototype) return value;
  return shapeOf(value as Fields, prototype).copy(value as Fields, copyValue);
}

/** A core that goes on from the same state by itself. Its outbox must be empty. */
export function copyOf<Value extends object>(value: Value): Value {
  return copyValue(value) as Value;
}

let low = 0;
let high = 0;

function feed(value: number): void {
  low = Math.imul(low ^ value, 0x85ebca6b);
  low ^= low >>> 15;
  high = Math.imul(high + value + 0x7f4a7c15, 0xc2b2ae35);
  high ^= (high >>> 13) ^ low;
}

const texts = new Map<string, number>();

function feedText(text: string): void {
  let value = texts.get(text);
  if (value === undefined) {
    value = texts.size * 0x3779b9 + 77;
    texts.set(text, value);
  }
  feed(value);
}

const plainDigests = new WeakMap<object, number>();

function feedPlain(value: Fields): void {
  let digest = plainDigests.get(value);
  if (digest === undefined) {
    const before = [low, high] as const;
    low = 17;
    high = 29;
    for (const key in value) feedValue(value[key]);
    digest = low ^ Math.imul(high, 31);
    plainDigests.set(value, digest);
    [low, high] = before;
  }
  feed(digest);
}

function feedValue(value: unknown): void {
  if (typeof value === "number") feed(value);
  else if (typeof value === "string") feedText(value);
  else if (typeof value !== "object" || value === null) feed(value === true ? 3 : 5);
  else if (Array.isArray(value)) {
    feed(value.length + 101);
    for (const item of value) feedValue(item);
  } else if (value instanceof Map) {
    feed(value.size + 211);
    for (const [key, item] of value) {
      feedValue(key);
      feedValue(item);
    }
  } else if (!(value instanceof Float64Array)) {
    // A typed array holds sizes, which follow from the entries, and has leftovers behind its end.
    const prototype = Object.getPrototypeOf(value) as object;
    if (prototype === Object.prototype) {
      feedPlain(value as Fields);
      return;
    }
    const fields = value as Fields;
    shapeOf(fields, prototype).feed(fields, feedValue);
  }
}

/** A digest of several values, in order. */
export function digestOf(...values: readonly unknown[]): number {
  low = 0x2545f491;
  high = 0x4f6cdd1d;
  for (const value of values) feedValue(value);
  return (high & 0xfffff) * 0x1_0000_0000 + (low >>> 0);
}
