/**
 * What is due at some time, the earliest first: a heap whose items know their place in it, so that
 * what was given up leaves at once and not when it would have been due.
 *
 * Owns the order. Invariants: 1. An item stands in it once at most. 2. Adding, moving and taking
 * out cost the logarithm of what is in it. 3. Times are whole milliseconds, late by less than one:
 * a fraction would be an object of its own for each of very many items.
 */

/** Whatever has a time. `heapAt` belongs to the heap: -1 while the item is not in it. */
export interface DueItem {
  dueMs: number;
  heapAt: number;
}

export class DueHeap<Item extends DueItem> {
  private readonly items: Item[] = [];

  get size(): number {
    return this.items.length;
  }

  /** When the first is due; infinity when there is none. */
  get nextMs(): number {
    return this.items[0]?.dueMs ?? Infinity;
  }

  /** Puts `item` in, or in its new place, to be due at `atMs`. */
  set(item: Item, atMs: number): void {
    const dueMs = Math.ceil(atMs);
    if (item.heapAt < 0) {
      item.dueMs = dueMs;
      item.heapAt = this.items.length;
      this.items.push(item);
      this.rise(item);
      return;
    }
    const before = item.dueMs;
    item.dueMs = dueMs;
    if (dueMs < before) this.rise(item);
    else this.sink(item);
  }

  /** Takes `item` out, if it is in. */
  remove(item: Item): void {
    const at = item.heapAt;
    if (at < 0) return;
    item.heapAt = -1;
    const last = this.items.pop() as Item;
    if (last === item) return;
    this.place(last, at);
    this.rise(last);
    this.sink(last);
  }

  /** Takes the first out if it is due at `nowMs`; null: none is. */
  take(nowMs: number): Item | null {
    const first = this.items[0];
    if (first === undefined || first.dueMs > nowMs) return null;
    this.remove(first);
    return first;
  }

  private place(item: Item, at: number): void {
    this.items[at] = item;
    item.heapAt = at;
  }

  private rise(item: Item): void {
    let at = item.heapAt;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = this.items[above] as Item;
      if (parent.dueMs <= item.dueMs) break;
      this.place(parent, at);
      at = above;
    }
    this.place(item, at);
  }

  private sink(item: Item): void {
    let at = item.heapAt;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= this.items.length) break;
      const right = this.items[below + 1];
      if (right !== undefined && right.dueMs < (this.items[below] as Item).dueMs) below++;
      const child = this.items[below] as Item;
      if (child.dueMs >= item.dueMs) break;
      this.place(child, at);
      at = below;
    }
    this.place(item, at);
  }
}
