/**
 * Branded numbers: ids, versions and generations that must not be mixed up. They cost nothing at
 * run time; comparing two kinds is an error of types.
 *
 * Invariants: 1. Partition 0 is the meta partition; data partitions are ≥ 1; an id is never used
 * twice. 2. Every version and generation only grows, within what it counts for.
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

/** Of the member list: grows by one with each change of it. 0: there is none yet. */
export type MembershipVersion = Branded<number, "MembershipVersion">;

export function membershipVersion(value: number): MembershipVersion {
  return value as MembershipVersion;
}

/** Of a partition that is there from the founding on: it was made by no member list. */
export const NOT_BORN = 0 as MembershipVersion;

/** Of the partition map as a whole: partitions, their replicas, key ranges. */
export type MapVersion = Branded<number, "MapVersion">;

export function mapVersion(value: number): MapVersion {
  return value as MapVersion;
}

/** Of the record of one partition: grows by one with each change of that record. */
export type PlacementGeneration = Branded<number, "PlacementGeneration">;

export function placementGeneration(value: number): PlacementGeneration {
  return value as PlacementGeneration;
}

/** Before any record: what a partition in full mode has of it. */
export const NO_PLACEMENT = 0 as PlacementGeneration;

/** Of one key range descriptor. */
export type RangeGeneration = Branded<number, "RangeGeneration">;

export function rangeGeneration(value: number): RangeGeneration {
  return value as RangeGeneration;
}

/** One move of a key range: the map version at which it began. */
export type MoveId = Branded<number, "MoveId">;

export function moveId(value: number): MoveId {
  return value as MoveId;
}

/** Of a move: 1, 2, … each time it begins anew, by decision of the meta partition alone. */
export type Attempt = Branded<number, "Attempt">;

export const FIRST_ATTEMPT = 1 as Attempt;

export function attempt(value: number): Attempt {
  return value as Attempt;
}

/**
 * One life of a replica on a node: the generation of the record at which it was added; 0 = it was
 * there from the founding on, or came while the partition was on every node.
 */
export type Incarnation = Branded<number, "Incarnation">;

export const FOUNDING_INCARNATION = 0 as Incarnation;

export function incarnation(value: number): Incarnation {
  return value as Incarnation;
}

/** Index of an applied configuration entry in the log of its group. */
export type ConfigIndex = Branded<number, "ConfigIndex">;

/** Before any: the group is what it began with. */
export const NO_CONFIG = 0 as ConfigIndex;

export function configIndex(value: number): ConfigIndex {
  return value as ConfigIndex;
}

/** Of the set of partitions and of who holds which keys; replicas do not count. */
export type TopologyVersion = Branded<number, "TopologyVersion">;

export function topologyVersion(value: number): TopologyVersion {
  return value as TopologyVersion;
}

/** Feature level: what may be written to a group. */
export type Level = Branded<number, "Level">;

/** What records and groups are at whose bytes do not say it. */
export const FIRST_LEVEL = 1 as Level;

export function level(value: number): Level {
  return value as Level;
}

/** The version or generation after `value`. */
export function next<Version extends number>(value: Version): Version {
  return (value + 1) as Version;
}
