/**
 * The retained revisions of one key above a given one, told one by one (W8).
 *
 * Owns how far it is. Invariants: 1. It tells what was the newest revision when it began as the
 * last; what comes behind that is for the history. 2. What is gone is left out, and it says so at
 * once: with the first revisions that it tells, or with nothing where all are gone.
 */
import { WatchEventType } from "../../base/result-types.js";
import { type WatchEvent, eventBytes, watchEvent } from "../../machine/events.js";
import type { KvRow } from "../../machine/kv/kv-row.js";
import { textToByteKey, type ByteKey } from "../../machine/store/keys.js";
import { keyEvent } from "../../machine/watched-rows.js";
import { WATCH_MESSAGE_BYTES } from "../../base/limits.js";
import type { WatchedState } from "./watching.js";

export class Revisions {
  private readonly key: ByteKey;
  /** The last revision that was looked at, and the one to end with. */
  private at: number;
  private readonly last: number;
  /** Some are gone, and that was not said yet. */
  private isCut: boolean;

  constructor(
    private readonly name: string,
    from: number,
    state: WatchedState | null,
  ) {
    this.key = textToByteKey(name);
    this.at = from;
    const row = state?.rows.key(this.key) ?? null;
    this.last = row?.revision ?? -1;
    this.isCut = row === null ? from >= 0 : !keepsAll(row, from);
  }

  get isDone(): boolean {
    return this.at >= this.last;
  }

  /** As many as fit a message. `merged`: some before or among them are gone. */
  next({ rows, leaseMs }: WatchedState): { events: WatchEvent[]; merged: boolean } {
    const row = rows.key(this.key);
    const events: WatchEvent[] = [];
    let sizeBytes = 0;
    while (!this.isDone && sizeBytes < WATCH_MESSAGE_BYTES) {
      const next = row === null ? null : nextKept(row, this.at);
      if (row === null || next === null || next > this.last) {
        this.isCut = true;
        this.at = this.last;
        break;
      }
      if (next !== this.at + 1) this.isCut = true;
      this.at = next;
      const event =
        next === row.revision ? keyEvent(this.name, row, leaseMs) : this.kept(rows, next);
      if (event === null) {
        this.isCut = true;
        continue;
      }
      events.push(event);
      sizeBytes += eventBytes(event);
    }
    const merged = this.isCut;
    this.isCut = false;
    return { events, merged };
  }

  private kept(rows: WatchedState["rows"], number: number): WatchEvent | null {
    const row = rows.revision(this.key, number);
    if (row === null) return null;
    const { stamp, revision } = row;
    const value = row.value?.slice() ?? null;
    return watchEvent(WatchEventType.set, this.name, stamp, { revision, value });
  }
}

/** The first revision above `at` that is retained, the newest one included. */
function nextKept({ kept, revision }: KvRow, at: number): number | null {
  for (const { first, count } of kept) {
    if (first + count - 1 <= at) continue;
    return Math.max(first, at + 1);
  }
  return revision > at ? revision : null;
}

/** Every revision above `at` is retained; where its revisions began anew since, none of them is. */
function keepsAll(row: KvRow, at: number): boolean {
  let next = at;
  while (next < row.revision) {
    const kept = nextKept(row, next);
    if (kept !== next + 1) return false;
    next = kept;
  }
  return next === row.revision;
}
