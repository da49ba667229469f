/**
 * A key space whose ranges move under the operations: descriptors and ownership are set as the
 * commands of a move leave them, one step at a time.
 */
import { assert } from "../../../src/base/assert.js";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { attempt, level, mapVersion, moveId, rangeGeneration } from "../../../src/base/ids.js";
import type { Node } from "../../../src/host/node.js";
import type { RangeDescriptor } from "../../../src/machine/commands/command.js";
import type { Machine } from "../../../src/machine/machine.js";
import type { OwnershipState } from "../../../src/machine/ownership/ownership-row.js";
import type { Rows } from "../../../src/machine/store/rows.js";

/** Bounds and partition of a range, in order; its generation is that of the whole list. */
export type Tile = readonly [startKey: string | null, endKey: string | null, partition: number];

/** The committed map as every node of a test sees it, with ranges that no command made. */
export class FalseMap {
  private readonly spaces = new Map<string, readonly RangeDescriptor[]>();
  private raised = 0;

  constructor(
    meta: Machine,
    /** Lets meta apply something: only then is it looked at again. */
    private readonly touch: () => void,
  ) {
    const { cluster } = meta.meta;
    const known = cluster.bind(meta.meta);
    meta.meta.cluster = () => {
      const record = known();
      assert(record !== null, "the cluster is founded");
      const version = mapVersion(record.mapVersion + this.raised);
      return { ...record, level: level(2), mapVersion: version };
    };
    meta.meta.keySpaces = () =>
      [...this.spaces].sort().map(([keySpace, descriptors]) => ({ keySpace, descriptors }));
    meta.meta.ranges = (keySpace) => this.spaces.get(keySpace) ?? [];
  }

  /** A newer map, in which the key space has these ranges. */
  set(keySpace: string, tiles: readonly Tile[]): void {
    this.raised++;
    const generation = rangeGeneration(this.raised);
    const changedLeaseMs = 0;
    const descriptors = tiles.map(([startKey, endKey, partitionId]) => {
      return { keySpace, startKey, endKey, partitionId, generation, changedLeaseMs };
    });
    this.spaces.set(keySpace, descriptors as unknown as readonly RangeDescriptor[]);
    this.touch();
  }
}

/** Puts the interval of a group into `state`, as a committed command would. */
export function own(
  machine: Machine,
  keySpace: string,
  startKey: string | null,
  endKey: string | null,
  state: OwnershipState | "default",
): void {
  const { groupRows: rows } = machine as unknown as { readonly groupRows: Rows };
  const interval = { keySpace, startKey, endKey };
  for (const row of machine.ownership.overlapping(interval)) {
    if (row.startKey === startKey && row.endKey === endKey) {
      machine.ownership.replace(rows, { ...row, state: "here", isPurged: false });
    }
  }
  machine.ownership.carve(rows, interval);
  if (state === "default") return;
  machine.ownership.assign(rows, {
    ...interval,
    state,
    generation: rangeGeneration(1),
    moveId: moveId(1),
    attempt: attempt(1),
    nextImport: 1,
    ...{ keys: 0, digestLow: 0, digestHigh: 0, stamp: NO_STAMP },
    purgedTo: null,
    isPurged: state === "left",
  });
}

/** The host of `node` moves no range by itself, nor does it tidy up after a move. */
export function holdMoves(node: Node): void {
  const { parts } = node as unknown as { readonly parts: { readonly ranges: object } };
  const nothing = { value: () => undefined };
  Object.defineProperties(parts.ranges, {
    ...{ tick: nothing, turn: nothing },
    ...{ wakeAtMs: { value: Infinity }, hasWork: { value: false } },
  });
}

/** The group owns nothing but what its rows give it, as one that a split made. */
export function aboveThePool(machine: Machine): void {
  Object.assign(machine.ownership, { ownsByDefault: false, isWhole: false });
}
