/**
 * Every fixed bound of the service in one place, with the relations between them asserted at load.
 *
 * Invariants: 1. A number that bounds input, memory or work is here or a flag of the server,
 * nowhere else. 2. Limits of names count UTF-8 bytes.
 */
import { assert } from "./assert.js";

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Keys, buckets, prefixes, key spaces, split keys, resources, owners, sequence names, idempotency
 * keys (bytes).
 */
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
/**
 * Streams that the client of a connection may reset at once, and for long. The HTTP/2 library stops
 * to read a connection at 1000 and 33, without a word to anybody; ours come first.
 */
export const RESETS_BURST_MAX = 800;
export const RESETS_PER_SECOND = 30;
/**
 * Frames of HTTP/2 that are neither a request nor data of one: so many at once on a connection, and
 * for long; each request gives some back.
 */
export const IDLE_FRAMES_BURST_MAX = 2000;
export const IDLE_FRAMES_PER_SECOND = 200;
export const IDLE_FRAMES_PER_WORK = 4;
/** A header block as it travels, all its frames together. */
export const HEADER_BLOCK_MAX_BYTES = 64 * KIB;
export const CONNECTIONS_MAX = 10_000;
/** Connections of the health listener, which are not counted among those of clients. */
export const HEALTH_CONNECTIONS_MAX = 64;
/** A connection of the health listener, with its one request, lives no longer (ms). */
export const HEALTH_REQUEST_MS = 2000;
/** Data partitions that a cluster is founded with, by its flag. */
export const INITIAL_PARTITIONS_MAX = 1024;
/**
 * Living data partitions of a cluster: more than it may be founded with, since ranges can be split.
 */
export const PARTITIONS_MAX = 4096;
/** Ids go up to here, and none is used twice. */
export const PARTITION_ID_MAX = 2_147_483_647;
/** Records of removed partitions that are kept: those of the highest ids. */
export const REMOVED_PARTITIONS_KEPT = 256;
/** Moves of key ranges in a cluster at a time, and from or to groups that one node leads. */
export const RANGE_MOVES_MAX = 8;
export const RANGE_MOVES_PER_NODE = 2;
/** So long at most a partition holds entries back for who reads several at one instant (ms). */
export const ENTRY_PAUSE_MAX_MS = 500;
/** After such a pause it refuses another one for so many times its length. */
export const ENTRY_REST_FACTOR = 2;
/** So long at most queued commands wait for the callers of the entry before them (ms). */
export const GATHERING_MAX_MS = 5;
/** A group stands still for a coordinated cut for so long at most (ms). */
export const CUT_PAUSE_MAX_MS = 2000;
/** A range that has changed is not changed again by itself for so long (lease time, ms). */
export const RANGE_SETTLES_MS = 10_000;
/** How often a move begins anew before it is given up, and how long each attempt may take (ms). */
export const RANGE_ATTEMPTS_MAX = 5;
export const RANGE_ATTEMPT_MS = 600_000;
/** A range stays frozen for so long at most before its attempt is given up (ms). */
export const RANGE_FREEZE_MS = 2000;
/** A move is given up when its target has had no leader for so long (ms). */
export const RANGE_TARGET_LOST_MS = 10_000;
/** What ranges are copied with, over all moves from one node. */
export const RANGE_COPY_BYTES_PER_SECOND = 16 * MIB;
export const REPLICATION_FACTOR_MAX = 9;
export const NODE_ID_MAX = 65_535;
/** Voters of the cluster, and so of any group; further nodes stay learners (contract 11). */
export const VOTERS_MAX = 9;
export const MEMBERS_MAX = 1024;
/** Data directories remembered of one node id that was removed. */
export const FORMER_STORAGE_IDS_MAX = 16;
/** Length of the version of a program as the member list keeps it (bytes, visible ASCII). */
export const PROGRAM_VERSION_MAX_BYTES = 64;
/** Feature levels are numbers from 1 to this. */
export const LEVEL_NUMBER_MAX = 65_535;
/** Largest report of a node to each of the others (bytes), and pause between two of them (ms). */
export const NODE_REPORT_MAX_BYTES = 64 * KIB;
export const NODE_REPORT_EVERY_MS = 5000;
/** A report counts for so long (ms): three are missing then. */
export const NODE_REPORT_VALID_MS = 3 * NODE_REPORT_EVERY_MS;
/** Sentences of an overview. */
export const ALARMS_MAX = 64;
/** Longest hold of the planners without a renewal (ms), and holders at the same time. */
export const PLANNER_HOLD_MAX_MS = 300_000;
export const PLANNER_HOLDS_MAX = 64;
/**
 * A lease in the directory of backups is touched so often (ms), counts for so long since (ms), and
 * is no larger (bytes).
 */
export const LEASE_TOUCH_MS = 10_000;
export const LEASE_STALE_MS = 60_000;
export const LEASE_BYTES_MAX = 64 * KIB;
/** What was begun in the directory of backups and never ended is collected at this age (ms). */
export const ORPHAN_AGE_MS = 3_600_000;
/** Whoever wants to back up, restore or collect waits so long for another one on the node (ms). */
export const BACKUP_TURN_WAIT_MS = 30_000;
/** Name that an operator gives to a cluster in its manifests (bytes). */
export const BACKUP_CLUSTER_ID_MAX_BYTES = 256;
/** Longest time of a backup call without a deadline of its caller's (ms). */
export const BACKUP_CALL_MAX_MS = 24 * 3_600_000;
/** A backup keeps the log for so long without a renewal, and at most (ms), and so much of it. */
export const HOLD_LAPSES_MS = 30_000;
export const HOLD_MAX_MS = 30 * 60_000;
export const HOLD_MAX_BYTES = 1024 * MIB;
/**
 * What a node keeps of all logs for incremental backups: so much at most, and of the free disk this
 * share.
 */
export const PITR_LOG_MAX_BYTES = 4096 * MIB;
export const PITR_DISK_SHARE = 0.1;
/** What is read at a time of a log that goes into a backup (bytes). */
export const LOG_SLICE_BYTES = MIB;
/** Partitions that one question about a backup names. */
export const PARTITIONS_PER_BACKUP_ASK = 256;
/** Partitions whose images or logs a keeper takes at a time. */
export const BACKUP_PARTITIONS_AT_ONCE = 4;
/** How large a piece of an image in a backup is, about (bytes), and how many are on their way. */
export const BACKUP_PIECE_BYTES = 64 * KIB;
export const BACKUP_WINDOW_PIECES = 8;
/** What a node ships for backups, images and logs together (bytes in a second). */
export const BACKUP_BYTES_PER_SECOND = 64 * MIB;
/** Rows that an image keeps as they were (bytes); beyond that it begins anew, so often at most. */
export const BACKUP_IMAGE_HELD_MAX_BYTES = 32 * MIB;
export const BACKUP_IMAGE_OVERRUNS_MAX = 5;
/** A partition begins anew with another replica so often at most. */
export const BACKUP_SHIPPERS_MAX = 3;
/** Sessions in which a node ships. */
export const BACKUP_SESSIONS_MAX = 2 * (PARTITIONS_MAX + 1);
/** How long a backup waits for moving ranges, for meta, and for the marks (ms). */
export const BACKUP_BARRIER_MS = 30_000;
/** One question of a coordinated cut is waited for so long (ms). */
export const CUT_ANSWER_MS = 1000;
/** Rounds of a cut that may fail, and those that may find their stamp passed. */
export const CUT_FAILED_ROUNDS_MAX = 3;
export const CUT_PASSED_ROUNDS_MAX = 5;
/** The stamp of a cut is so far ahead of all stamps and clocks at least (ms). */
export const CUT_AHEAD_LEAST_MS = 50;
/** A stamp of a cut so far ahead of the wall clock is told, and one beyond is refused (ms). */
export const CUT_SKEW_TOLD_MS = 60_000;
export const CUT_SKEW_MAX_MS = 24 * 3_600_000;
/** Tokens that one leadership may grant per ephemeral lock. */
export const EPHEMERAL_TOKENS_PER_TERM = 1n << 36n;
/** Marks of backups that a group remembers. */
export const MARKS_KEPT = 16;
/** Partitions that one placement command is about. */
export const PLACEMENT_ITEMS_MAX = 64;
/** Partitions of a cluster with a replica on its way in or out, and replicas that balance moves. */
export const MOVES_MAX = 64;
export const BALANCE_MOVES_MAX = 8;
/** Replicas on their way to one node, and for balance alone; new ones that one node feeds. */
export const ARRIVING_MAX = 16;
export const BALANCE_ARRIVING_MAX = 6;
export const FEEDING_MAX = 16;
/**
 * Snapshots of so many bytes take a place, smaller ones a part of one; and places there are for
 * balance in the cluster, to one node, to one node for balance, and from one node.
 */
export const SNAPSHOT_PLACE_BYTES = MIB;
export const BALANCE_PLACES = 4;
export const ARRIVING_PLACES = 4;
export const BALANCE_ARRIVING_PLACES = 3;
export const FEEDING_PLACES = 2;
/** Dropped replicas whose rows a node deletes beside each other. */
export const ERASING_MAX = 4;
/** Rows of one of them that are deleted in one go. */
export const ERASED_ROWS_MAX = 500;
/** Requests of one owner that share a place in the queue of a lock. */
export const LOCK_PLACE_REQUESTS_MAX = 4;
/** A place whose request went without a word is kept for so long (ms). */
export const LOCK_PLACE_KEPT_MS = 2000;
/** A request that waits for a lock ends so long before the deadline of its client (ms). */
export const LOCK_WAIT_MARGIN_MS = 50;
/** Longest wait for a lock that one call of REST may ask for: silence bounds of proxies (ms). */
export const LOCK_REST_WAIT_MAX_MS = 120_000;
/** Longest that `--lock-max-wait` may be (ms). */
export const LOCK_WAIT_CONFIGURABLE_MAX_MS = 86_400_000;
/** Waiting try-locks of one batch stream. */
export const LOCK_STREAM_WAITS_MAX = 8192;
/** Note of a grant, and reason of a forced release (bytes). */
export const LOCK_NOTE_MAX_BYTES = 1024;
/** Heirs of a lock: so many, of so many bytes in its row, and each for so long at most (ms). */
export const HEIRS_MAX = 64;
export const HEIRS_MAX_BYTES = 16 * KIB;
export const HEIR_LEASE_MAX_MS = 60_000;
/** Rows about forced releases that one partition may keep. */
export const LOCK_AUDIT_ROWS_MAX = 100_000;
/** Watches of one stream. */
export const WATCHES_PER_STREAM_MAX = 4096;
/** Syncs of one stream that are not answered yet, each with the watches that it is about. */
export const WATCH_SYNCED_MAX = 32_768;
/** Reads at a time, on one node, of the present state of many names for watches. */
export const WATCH_SCANS_MAX = 4;
/** Names with a lease whose ends a node looks after for its watches. */
export const WATCHED_LEASES_MAX = 200_000;
/** Time between marks of a watch that its caller may ask for (ms). */
export const WATCH_PROGRESS_MIN_MS = 100;
export const WATCH_PROGRESS_MAX_MS = 600_000;
/** Text by which a watch goes on (bytes). */
export const WATCH_CURSOR_MAX_BYTES = 8192;
/** Longest wait of one poll of a watch (ms). */
export const WATCH_POLL_WAIT_MAX_MS = 60_000;
/** Events of one message to a watcher (bytes, about). */
export const WATCH_MESSAGE_BYTES = 256 * KIB;
/** What happened is kept for so long for a watch that comes back (ms). */
export const WATCH_HISTORY_MS = 60_000;
/** Parts of watches of other nodes that one node tells of (W14). */
export const WATCH_PARTS_MAX = 4096;
/** What a node holds for such parts, and what it holds of parts that others tell (bytes, each). */
export const WATCH_PARTS_MAX_BYTES = 64 * MIB;
/** A part that nobody asks for is dropped (ms). */
export const WATCH_PART_IDLE_MS = 30_000;
/** A node that may not have been level with the leaders for so long ends its watches (ms). */
export const WATCH_STALE_MAX_MS = 30_000;
export const REQUEST_ID_MAX_CHARACTERS = 128;

/** Time of a client for the request line and headers (ms). */
export const HTTP_HEADERS_TIMEOUT_MS = 10_000;
/** Time of a client for a whole request, body included (ms). */
export const HTTP_REQUEST_TIMEOUT_MS = 30_000;
export const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;
/** A kept-alive HTTP/1 connection without a request is closed after this (ms). */
export const HTTP_KEEP_ALIVE_MS = 65_000;
/**
 * A connection on which nothing moves, and no answer is owed, is closed after this (ms).
 */
export const HTTP_SILENCE_MS = 240_000;
/** An HTTP/2 peer that was silent so long is closed, or pinged while it has open streams (ms). */
export const HTTP_SESSION_IDLE_MS = 60_000;
/** Time for the answer to such a ping (ms). */
export const HTTP_PING_TIMEOUT_MS = 20_000;
/** How long a client may go on sending after it was told that its body is too large (ms). */
export const HTTP_LINGER_MS = 2000;
/** Credit for all streams of an HTTP/2 session together (MiB). */
export const HTTP_SESSION_MEMORY_MIB = 64;
/** From this size on an answer counts as large (characters). */
export const LARGE_ANSWER_CHARACTERS = 64 * KIB;
/** Watchers of the gRPC health service. */
export const HEALTH_WATCHERS_MAX = 1000;
export const HEALTH_WATCHERS_PER_CONNECTION_MAX = 8;
/** Answers that may wait for their clients together, in one process. */
export const UNSENT_ANSWERS_MAX_BYTES = 256 * MIB;

/**
 * Largest payload of one log entry (bytes): one value at its largest configurable size with its key
 * and envelope.
 */
export const ENTRY_PAYLOAD_MAX_BYTES = 4 * MIB;
/** Largest value that may be configured (bytes). */
export const VALUE_CONFIGURABLE_MAX_BYTES = 3 * MIB;
export const SEGMENT_BYTES = 64 * MIB;
/** Largest node debug (contract 5.7). */
export const NODE_DEBUG_MAX_BYTES = 32 * MIB;
/** Longest profile of a processor in it (s). */
export const PROFILE_MAX_SECONDS = 60;
/** Lines of the log about slow requests; what is more is counted only. */
export const SLOW_LINES_PER_SECOND = 20;
/** Spans that wait for the collector, and how many go to it at once. */
export const TRACE_SPANS_MAX = 4096;
export const TRACE_BATCH_MAX = 512;
/** How often they go, and how long the collector may take (ms). */
export const TRACE_EVERY_MS = 5000;
/** Commands of one request that are followed through the log. */
export const TRACE_PROPOSALS_MAX = 16;
/**
 * What is kept free on a volume of log or state: two segments, or this much of it, but no more than
 * so many bytes. Below it no writes are taken until twice that is free.
 */
export const VOLUME_RESERVE_PART = 0.05;
export const VOLUME_RESERVE_PART_MAX_BYTES = 256 * MIB;
export const VOLUME_RESERVE_MIN_BYTES = 2 * SEGMENT_BYTES;
/** What stands around the entries in a frame to another node (bytes). */
export const PEER_FRAMING_MAX_BYTES = 64 * KIB;
/** Largest frame between two nodes (bytes). */
export const PEER_FRAME_MAX_BYTES = 6 * MIB;
/** Starts of a data directory before the present one whose nonces it keeps and tells. */
export const BOOTS_TOLD_MAX = 64;
/**
 * Entries whose sizes a log hands to the core as one sum have at most so many bytes together; a
 * larger one stands alone. It bounds the error of any estimate of the core to twice this (bytes).
 */
export const SIZE_RUN_MAX_BYTES = 64 * KIB;
/** What a handshake may say beyond what this program reads of it (bytes). */
export const HANDSHAKE_EXTENSIONS_MAX_BYTES = KIB;
/** Largest gRPC message that a node takes from another (bytes). */
export const PEER_RECEIVE_MAX_BYTES = 8 * MIB;

assert(
  VALUE_CONFIGURABLE_MAX_BYTES + 16 * NAME_MAX_BYTES < ENTRY_PAYLOAD_MAX_BYTES,
  "the largest command fits one log entry",
);
assert(
  ENTRY_PAYLOAD_MAX_BYTES * 2 < SEGMENT_BYTES,
  "a segment holds at least two of the largest entries",
);
assert(
  ENTRY_PAYLOAD_MAX_BYTES + PEER_FRAMING_MAX_BYTES < PEER_FRAME_MAX_BYTES,
  "the largest entry fits one frame between nodes",
);
assert(PEER_FRAME_MAX_BYTES + KIB < PEER_RECEIVE_MAX_BYTES, "the largest frame is received");
assert(FRAME_ITEMS_MAX <= MANY_ITEMS_MAX, "a frame is not larger than a many-call");
