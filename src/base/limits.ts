/**
 * Every fixed bound of the service in one place, with the relations between them asserted at load.
 *
 * Invariants: 1. A number that bounds input, memory or work is here or a flag of the server, nowhere else.
 * 2. Limits of names count UTF-8 bytes.
 */
import { assert } from "./assert.js";

const KIB = 1024;
const MIB = 1024 * KIB;

/** Keys, buckets, prefixes, key spaces, split keys, resources, owners, sequence names, idempotency keys (bytes). */
export const NAME_MAX_BYTES = 1024;
export const RESERVED_PREFIX = "__svc:";
export const MANY_ITEMS_MAX = 1024;
export const PAGE_LIMIT_MAX = 10_000;
export const RANGE_PAGE_LIMIT_DEFAULT = 1000;
export const BLOCK_SIZE_MAX = 2_147_483_647;
export const LEASE_MAX_MS = 2_147_483_647;
export const JSON_NESTING_MAX = 16;
export const HEADERS_MAX_BYTES = 16 * KIB;
export const FRAME_ITEMS_MAX = 256;
export const FRAME_MAX_BYTES = MIB;
export const STREAMS_PER_CONNECTION_MAX = 256;
export const CONNECTIONS_MAX = 10_000;
export const PARTITIONS_MAX = 1024;
export const REPLICATION_FACTOR_MAX = 9;
export const NODE_ID_MAX = 65_535;
export const REQUEST_ID_MAX_CHARACTERS = 128;

/** Largest payload of one log entry (bytes): one value at its largest configurable size with its key and envelope. */
export const ENTRY_PAYLOAD_MAX_BYTES = 4 * MIB;
/** Largest value that may be configured (bytes). */
export const VALUE_CONFIGURABLE_MAX_BYTES = 3 * MIB;
export const SEGMENT_BYTES = 64 * MIB;
/** A restore lifts every token floor by this much above all that the old cluster could have given. */
export const RESTORE_TOKEN_MARGIN = 1n << 44n;

assert(
  VALUE_CONFIGURABLE_MAX_BYTES + 16 * NAME_MAX_BYTES < ENTRY_PAYLOAD_MAX_BYTES,
  "the largest command fits one log entry",
);
assert(
  ENTRY_PAYLOAD_MAX_BYTES * 2 < SEGMENT_BYTES,
  "a segment holds at least two of the largest entries",
);
assert(FRAME_ITEMS_MAX <= MANY_ITEMS_MAX, "a frame is not larger than a many-call");
