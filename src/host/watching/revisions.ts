/**
 * The retained revisions of one key above a given one, told one by one (W8).
 *
 * Owns how far it is. Invariants: 1. It tells what was the newest revision when it began as the
 * last; what comes behind that is for the history. 2. What is gone is left out, and the first
 * message says so.
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
  private isFirst = true;

  constructor(
    private readonly name: string,
    from: number,
    state: WatchedState | null,
  ) {
    this.key = textToByteKey(name);
    this.at = from;
    this.last = state?.rows.key(this.key)?.revision ?? -1;
  }

  get isDone(): boolean {
    return this.at >= this.last;
  }

  /** As many as fit a message. */
  next({ rows, leaseMs }: WatchedState): { events: WatchEvent[]; merged: boolean } {
    const row = rows.key(this.key);
    const events: WatchEvent[] = [];
    let sizeBytes = 0;
    let isWhole = true;
    while (!this.isDone && sizeBytes < WATCH_MESSAGE_BYTES) {
      const next = row === null ? null : nextKept(row, this.at);
      if (row === null || next === null || next > this.last) {
        isWhole = false;
        this.at = this.last;
        break;
      }
      if (next !== this.at + 1) isWhole = false;
      this.at = next;
      const event =
        next === row.revision ? keyEvent(this.name, row, leaseMs) : this.kept(rows, next);
      if (event === null) {
        isWhole = false;
        continue;
      }
      events.push(event);
      sizeBytes += eventBytes(event);
    }
    const merged = this.isFirst && !isWhole;
    if (events.length > 0) this.isFirst = false;
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
