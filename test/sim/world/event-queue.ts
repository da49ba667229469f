/**
 * The future of a simulated world: what happens next, ordered by time and, at equal times, by the
 * order in which it was asked for.
 *
 * A binary heap over typed arrays; slots are used again, so that a run allocates next to nothing
 * for its events. Invariants: 1. Order is a function of the calls alone. 2. A handle names its event
 * only until that ran or was cancelled; later it does nothing. 3. Cancelled events leave at once
 * what they held on to, and their place when their time comes.
 */

/** Names one scheduled event; 0 names none. */
export type EventHandle = number;

const SLOT_BITS = 22;
const SLOT_MASK = (1 << SLOT_BITS) - 1;

export class EventHeap<Event> {
  private times = new Float64Array(1024);
  private orders = new Float64Array(1024);
  private slots = new Int32Array(1024);
  private count = 0;
  private order = 0;
  private readonly events: (Event | null)[] = [];
  private lives = new Uint32Array(1024);
  private readonly free: number[] = [];
  private cancelled = 0;
  /** Time of the event that `pop` gave last (ms). */
  lastMs = 0;

  /** Events that are still to come, without the cancelled ones. */
  get size(): number {
    return this.count - this.cancelled;
  }

  add(atMs: number, event: Event): EventHandle {
    const slot = this.free.pop() ?? this.events.length;
    if (slot > SLOT_MASK) throw new Error("too many events wait at once");
    if (slot >= this.lives.length) this.lives = grown(this.lives, Uint32Array);
    this.events[slot] = event;
    if (this.count === this.times.length) this.growHeap();
    this.rise(this.count++, atMs, this.order++, slot);
    return (this.lives[slot] as number) * (SLOT_MASK + 1) + slot + 1;
  }

  /** False when the event ran already or was cancelled. */
  cancel(handle: EventHandle): boolean {
    if (handle === 0) return false;
    const slot = (handle - 1) % (SLOT_MASK + 1);
    const life = Math.floor((handle - 1) / (SLOT_MASK + 1));
    if (this.lives[slot] !== life || this.events[slot] === null) return false;
    this.events[slot] = null;
    this.cancelled++;
    return true;
  }

  /** The next event; null when nothing is to come. Its time is then in `lastMs`. */
  pop(): Event | null {
    if (this.nextMs() === Infinity) return null;
    const slot = this.slots[0] as number;
    this.lastMs = this.times[0] as number;
    this.removeTop();
    const event = this.events[slot] as Event;
    this.release(slot);
    return event;
  }

  /** Time of the next event (ms); Infinity when nothing is to come. */
  nextMs(): number {
    while (this.count > 0) {
      const slot = this.slots[0] as number;
      if (this.events[slot] !== null) return this.times[0] as number;
      this.removeTop();
      this.release(slot);
      this.cancelled--;
    }
    return Infinity;
  }

  private release(slot: number): void {
    this.events[slot] = null;
    this.lives[slot] = ((this.lives[slot] as number) + 1) & 0x3fffffff;
    this.free.push(slot);
  }

  private removeTop(): void {
    const last = --this.count;
    if (last === 0) return;
    const time = this.times[last] as number;
    this.sink(time, this.orders[last] as number, this.slots[last] as number);
  }

  private rise(start: number, time: number, order: number, slot: number): void {
    const { times, orders, slots } = this;
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      const above = times[parent] as number;
      // What is added is the youngest, so that equal times need no look at the order.
      if (above <= time) break;
      times[at] = above;
      orders[at] = orders[parent] as number;
      slots[at] = slots[parent] as number;
      at = parent;
    }
    times[at] = time;
    orders[at] = order;
    slots[at] = slot;
  }

  private sink(time: number, order: number, slot: number): void {
    const { times, orders, slots, count } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= count) break;
      const right = child + 1;
      if (right < count && this.before(right, times[child] as number, orders[child] as number)) {
        child = right;
      }
      if (!this.before(child, time, order)) break;
      times[at] = times[child] as number;
      orders[at] = orders[child] as number;
      slots[at] = slots[child] as number;
      at = child;
    }
    times[at] = time;
    orders[at] = order;
    slots[at] = slot;
  }

  private before(at: number, time: number, order: number): boolean {
    const own = this.times[at] as number;
    return own < time || (own === time && (this.orders[at] as number) < order);
  }

  private growHeap(): void {
    this.times = grown(this.times, Float64Array);
    this.orders = grown(this.orders, Float64Array);
    this.slots = grown(this.slots, Int32Array);
  }
}

interface Numbers<A> {
  readonly length: number;
  set(source: A): void;
}

function grown<A extends Numbers<A>>(old: A, type: new (length: number) => A): A {
  const larger = new type(old.length * 2);
  larger.set(old);
  return larger;
}
