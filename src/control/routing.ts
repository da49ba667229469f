/**
 * From a name to its partition. The arithmetic is that of base/routing, which clients share.
 *
 * Pure. Invariants: 1. Pool size and offset come from the committed map, never from a flag.
 */
export {
  bucketIndex,
  GROUP_SEPARATOR,
  HASH_ALGORITHM,
  HASH_PARTITION_OFFSET,
  hashPartition,
  keyHashText,
  keySpaceHashText,
  keySpaceOf,
  lockHashText,
  placementGroupOf,
  PREFIX_SEPARATOR,
  SEQUENCE_KEY_PREFIX,
  sequenceHashText,
} from "../base/routing.js";
