/**
 * Balance: replicas from nodes with many to nodes with few, when nothing else is to be done about a
 * partition.
 *
 * Pure. Invariants: 1. A move goes from a node to one that has at least two fewer, and so lowers
 * the sum of the squares of the counts by two or more: it ends, and at a difference of one nothing
 * moves (P-106). 2. Nothing begins while a repair or a drain is under
 * way, nor in a pass that orders anything else. 3. Only partitions whose
 * voters are all live are moved, and nodes that are behind with their work neither give nor take.
 */
import type { PartitionRecord } from "../machine/commands/command.js";
import { byLoad, type NodeState, type PlacementLedger } from "./placement-ledger.js";
import type { PlacementReason } from "./placement-reasons.js";
import type { PlacementStep, PlacementView } from "./placement-view.js";

/** A node gives to one that has so many fewer. */
const DIFFERENCE = 2;

interface Move {
  readonly record: PartitionRecord;
  readonly from: NodeState;
  readonly to: NodeState;
}

/** Partitions that may be moved, by the nodes that have them. */
type Movable = ReadonlyMap<number, Set<PartitionRecord>>;

function movableOf(ledger: PlacementLedger, settled: readonly PartitionRecord[]): Movable {
  const movable = new Map<number, Set<PartitionRecord>>();
  for (const record of settled) {
    if (ledger.leader(record.partitionId) === 0) continue;
    for (const { nodeId } of record.replicas) {
      const known = movable.get(nodeId) ?? new Set();
      movable.set(nodeId, known.add(record));
    }
  }
  return movable;
}

/** The partition that costs least: not led by its giver first, then the smallest. */
function cheapest(
  { view, ledger }: { readonly view: PlacementView; readonly ledger: PlacementLedger },
  records: Iterable<PartitionRecord>,
  from: NodeState,
  to: NodeState,
): PartitionRecord | PlacementReason {
  let best: PartitionRecord | null = null;
  let bestCost: readonly number[] = [];
  let reason: PlacementReason = "groups-not-ready";
  for (const record of records) {
    const { partitionId, replicas } = record;
    if (replicas.some(({ nodeId }) => nodeId === to.view.nodeId)) continue;
    const leader = ledger.leader(partitionId);
    if (ledger.feeding(leader) !== null) reason = "leader-busy";
    else if (ledger.isResting(partitionId, to.view.nodeId)) reason = "resting";
    else {
      const sizeBytes = view.groups.get(partitionId)?.sizeBytes ?? 0;
      const cost = [Number(leader === from.view.nodeId), sizeBytes, partitionId];
      if (best !== null && !isLess(cost, bestCost)) continue;
      best = record;
      bestCost = cost;
    }
  }
  return best ?? reason;
}

function isLess(one: readonly number[], other: readonly number[]): boolean {
  const at = one.findIndex((value, position) => value !== other[position]);
  return at >= 0 && (one[at] as number) < (other[at] as number);
}

/** The next move, why there is none although there should be, or null when replicas are even. */
function nextMove(
  view: PlacementView,
  ledger: PlacementLedger,
  movable: () => Movable,
  isBusy: boolean,
): Move | PlacementReason | null {
  const nodes = [...ledger.nodes].filter((node) => ledger.mayHold(node));
  const takers = nodes.filter((node) => ledger.obstacle(node) === null).sort(byLoad);
  const givers = nodes.filter(({ standing }) => standing === "sound").sort((a, b) => byLoad(b, a));
  let reason: PlacementReason | null = null;
  for (const from of givers) {
    for (const to of takers) {
      if (from.replicas - to.replicas < DIFFERENCE) break;
      if (ledger.urgentMoves > 0 || isBusy) return "others-first";
      if (ledger.isBalancing || ledger.isFull) return "balance-busy";
      if (!ledger.isPrompt(from) || !ledger.isPrompt(to)) reason ??= "nodes-lagging";
      else if (!ledger.hasPlaceForBalance(to)) reason ??= "nodes-busy";
      else {
        const record = cheapest({ view, ledger }, movable().get(from.view.nodeId) ?? [], from, to);
        if (typeof record !== "string") return { record, from, to };
        reason ??= record;
      }
    }
  }
  return reason;
}

/**
 * `settled`: partitions with nothing else to do, all of whose voters are live; `isBusy`: something
 * else was ordered in this pass.
 */
export function planBalance(
  view: PlacementView,
  ledger: PlacementLedger,
  settled: readonly PartitionRecord[],
  isBusy: boolean,
): { readonly moves: readonly PlacementStep[]; readonly reason: PlacementReason | null } {
  const moves: PlacementStep[] = [];
  let known: Movable | null = null;
  const movable = (): Movable => (known ??= movableOf(ledger, settled));
  for (;;) {
    const move = nextMove(view, ledger, movable, isBusy);
    if (move === null || typeof move === "string") {
      return { moves, reason: moves.length > 0 ? null : move };
    }
    const { partitionId, generation, replicas } = move.record;
    const [comes, leaves] = [move.to.view.nodeId, move.from.view.nodeId];
    ledger.plannedAdd("balance", partitionId, comes, leaves);
    for (const { nodeId } of replicas) movable().get(nodeId)?.delete(move.record);
    const change = { kind: "add", nodeId: comes, replaces: leaves } as const;
    moves.push({ class: "balance", order: { partitionId, generation, change } });
  }
}
