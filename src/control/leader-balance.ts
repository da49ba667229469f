/**
 * Which leaderships a node gives away so that they are spread evenly over the nodes that can lead.
 *
 * Pure: facts in, next safe steps out. Every node plans for itself alone, from what it has applied
 * and sees. Invariants: 1. A node only gives, and only what it has above an even share; it gives to
 * the one that leads fewest. 2. Nothing moves while a difference of one is the best that can be
 * had: no back and forth (P-106). 3. An unknown leader counts for nobody.
 */

export interface LedGroup {
  readonly partition: number;
  /** 0 = unknown. */
  readonly leader: number;
  /** Nodes that may lead it and can be reached, this one included. */
  readonly candidates: readonly number[];
}

export interface LeaderMove {
  readonly partition: number;
  readonly to: number;
}

/** Moves of one pass, or a part of what is too much: leaderships are not shaken all at once. */
const MOVES_MAX = 4;
const SURPLUS_PART = 4;

/** What `self` gives away now. */
export function planLeaderMoves(self: number, groups: readonly LedGroup[]): LeaderMove[] {
  const led = new Map<number, number>();
  for (const { candidates } of groups) for (const node of candidates) led.set(node, 0);
  for (const { leader } of groups) {
    if (leader !== 0) led.set(leader, (led.get(leader) ?? 0) + 1);
  }
  const moves: LeaderMove[] = [];
  const movesMax = Math.max(MOVES_MAX, Math.ceil(surplus(led, self) / SURPLUS_PART));
  for (const { partition, leader, candidates } of groups) {
    if (leader !== self || moves.length >= movesMax) continue;
    const to = fewest(candidates, led, self);
    if (to === null || count(led, self) - count(led, to) < 2) continue;
    led.set(self, count(led, self) - 1);
    led.set(to, count(led, to) + 1);
    moves.push({ partition, to });
  }
  return moves;
}

/** What `self` leads above an even share: with many groups a few at a time would take hours. */
function surplus(led: ReadonlyMap<number, number>, self: number): number {
  let all = 0;
  for (const number of led.values()) all += number;
  return count(led, self) - all / Math.max(1, led.size);
}

function count(led: ReadonlyMap<number, number>, node: number): number {
  return led.get(node) ?? 0;
}

function fewest(
  candidates: readonly number[],
  led: ReadonlyMap<number, number>,
  self: number,
): number | null {
  let best: number | null = null;
  for (const node of candidates) {
    if (node === self) continue;
    if (best === null || count(led, node) < count(led, best)) best = node;
  }
  return best;
}
