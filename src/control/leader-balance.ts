/**
 * Which leaderships a node gives away so that they are spread evenly over the nodes that can lead.
 *
 * Pure: facts in, next safe steps out. Every node plans for itself alone, from what it has applied
 * and what nodes report. Invariants: 1. A node only gives, and only what it has above an even
 * share; it gives to the one that leads fewest. Who leaves gives everything, at once. 2. Nothing
 * moves while a difference of one is the best that can be had: no back and forth (P-106). 3. A node
 * counts with all that it leads, also of groups that have no replica here. 4. A group that has just
 * moved, or whose members change, is left alone.
 */

/** A group that this node leads. */
export interface LedGroup {
  readonly partition: number;
  /** Voters that could lead it as well as this node: live, caught up. */
  readonly candidates: readonly number[];
  /** How long this node has led it (ms). */
  readonly ledForMs: number;
  /** A change of its members is under way or due. */
  readonly isChanging: boolean;
}

/** A node that may lead: live, not leaving, with a disk that works. */
export interface LeadingNode {
  readonly nodeId: number;
  /** How many groups it leads: of this node exact, of others as they told lately. */
  readonly leads: number;
}

export interface LeaderBalanceFacts {
  readonly self: number;
  /** This node leaves the cluster. */
  readonly isLeaving: boolean;
  /** Without those of whom nothing is known; this node is among them unless it leaves. */
  readonly nodes: readonly LeadingNode[];
  readonly groups: readonly LedGroup[];
}

export interface LeaderMove {
  readonly partition: number;
  readonly to: number;
}

/** Moves of one pass, or a part of what is too much: leaderships are not shaken all at once. */
const MOVES_MAX = 4;
const SURPLUS_PART = 4;
/** A group that came here is not given on within (ms). */
const LED_FOR_MS = 30_000;

/** What this node gives away now. */
export function planLeaderMoves(facts: LeaderBalanceFacts): LeaderMove[] {
  const { self, isLeaving, nodes, groups } = facts;
  const led = new Map(nodes.map(({ nodeId, leads }) => [nodeId, leads]));
  const moves: LeaderMove[] = [];
  const movesMax = isLeaving
    ? groups.length
    : Math.max(MOVES_MAX, Math.ceil(surplus(led, self) / SURPLUS_PART));
  for (const { partition, candidates, ledForMs, isChanging } of groups) {
    if (moves.length >= movesMax) break;
    if (!isLeaving && (isChanging || ledForMs < LED_FOR_MS)) continue;
    const to = fewest(candidates, led, self);
    if (to === null) continue;
    if (!isLeaving && count(led, self) - count(led, to) < 2) continue;
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
    if (node === self || !led.has(node)) continue;
    if (best === null || count(led, node) < count(led, best)) best = node;
  }
  return best;
}
