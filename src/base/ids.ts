/**
 * Branded names for the numbers that must not be mixed up. They cost nothing at run time.
 *
 * Invariants: 1. Partition 0 is the meta partition; data partitions are ≥ 1; an id is never used
 * twice. 2. Node ids are 1 to 65535.
 */

declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

/** One replicated log and its state. */
export type PartitionId = Branded<number, "PartitionId">;
/** One server process. */
export type NodeId = Branded<number, "NodeId">;

export const META_PARTITION = 0 as PartitionId;
export const FIRST_DATA_PARTITION = 1 as PartitionId;

export function partitionId(value: number): PartitionId {
  return value as PartitionId;
}

export function nodeId(value: number): NodeId {
  return value as NodeId;
}
