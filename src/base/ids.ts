/**
 * The branded number of a partition, which must not be mixed up with others. It costs nothing at
 * run time.
 *
 * Invariant: partition 0 is the meta partition; data partitions are ≥ 1; an id is never used twice.
 */

declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

/** One replicated log and its state. */
export type PartitionId = Branded<number, "PartitionId">;

export const META_PARTITION = 0 as PartitionId;
export const FIRST_DATA_PARTITION = 1 as PartitionId;

export function partitionId(value: number): PartitionId {
  return value as PartitionId;
}
