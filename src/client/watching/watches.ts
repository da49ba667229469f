/**
 * Watches of keys, locks and sequences.
 *
 * Invariants: 1. Nothing is asked before a watch is read, or its start is awaited.
 */
import { WatchKind } from "../../base/result-types.js";
import { optionsOf, textOf } from "../values/arguments.js";
import { Watch, type WatchFacts } from "./watch.js";
import { askedOf, type KeyWatchOptions, type WatchOptions } from "./watch-shapes.js";

/**
 * What changes, as it does.
 *
 * @example
 * for await (const { events, cursor } of client.watch.prefix("config/", { initial: true })) {
 *   for (const { type, name, text } of events) console.log(type, name, text);
 *   if (cursor !== null) await remember(cursor);
 * }
 */
export class Watches {
  private readonly facts: WatchFacts;

  /** @internal */
  constructor(facts: WatchFacts) {
    this.facts = facts;
  }

  /**
   * One key.
   *
   * @example
   * for await (const { events } of client.watch.key("config/color")) show(events.at(-1)?.text);
   */
  key(name: string, options?: KeyWatchOptions): Watch {
    return this.watch(WatchKind.key, name, options);
  }

  /** All keys that begin so. */
  prefix(prefix: string, options?: WatchOptions): Watch {
    return this.watch(WatchKind.prefix, prefix, options);
  }

  /** All keys of a bucket (the key up to its last /). */
  bucket(bucket: string, options?: WatchOptions): Watch {
    return this.watch(WatchKind.bucket, bucket, options);
  }

  /** One lock: who was granted it, and that it was released or ended. */
  lock(resource: string, options?: WatchOptions): Watch {
    return this.watch(WatchKind.lock, resource, options);
  }

  /** All locks whose resources begin so. */
  lockPrefix(prefix: string, options?: WatchOptions): Watch {
    return this.watch(WatchKind.lockPrefix, prefix, options);
  }

  /** One sequence. */
  sequence(name: string, options?: WatchOptions): Watch {
    return this.watch(WatchKind.sequence, name, options);
  }

  private watch(kind: number, name: string, given: KeyWatchOptions = {}): Watch {
    const options = optionsOf(given);
    return new Watch(this.facts, askedOf(kind, textOf("name", name), options), options.signal);
  }
}
