/** Holds the tables of flags, limits and codes in docs/ against the code. */
import t from "tap";
import { MERGED, REGISTERED, SPLIT, UNREGISTERED } from "../../../src/api/ranges.js";
import * as limits from "../../../src/base/limits.js";
import { DEFAULT_SNAPSHOT_SETTINGS as snapshots } from "../../../src/host/snapshots/snapshot-limits.js";
import { KvType, LockType, SequenceType } from "../../../src/machine/commands/command.js";
import { PROBLEM_TITLES } from "../../../src/rest/http/problems.js";
import { DESCRIPTORS_KEPT } from "../../../src/server/listeners/descriptors.js";
import { flagTableMarkdown } from "../../../src/server/flags/help.js";
import { EXIT_FATAL } from "../../../src/sys.js";
import { EXIT_USAGE } from "../../../src/server/flags/exit-codes.js";
import { outcomeName } from "../../../src/server/metrics/outcome-names.js";
import { MERGE_ENDS, SPLIT_ENDS } from "../../doubles/front/range-ends.js";
import { readText } from "../../tidy/sources.js";
import { defaultConfig } from "../../doubles/default-settings.js";

/** Rows of the table of `path` whose header row begins with `| first |`, as trimmed cells. */
function tableRows(path: string, first: string): string[][] {
  const lines = readText(path).split("\n");
  // A header row is one with a rule below it; rows of other tables may begin with the same word.
  const start = lines.findIndex(
    (line, at) => line.startsWith(`| ${first} |`) && (lines[at + 1] ?? "").startsWith("|--"),
  );
  const rows: string[][] = [];
  for (let at = start + 2; start >= 0 && (lines[at] ?? "").startsWith("|"); at++) {
    rows.push(
      (lines[at] as string)
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  }
  return rows;
}

t.test("the flag table is the program's", (t) => {
  const shown = /<!-- table: flags -->\n([\s\S]*?)\n<!-- \/table -->/.exec(
    readText("docs/flags.md"),
  )?.[1];
  t.equal(shown, flagTableMarkdown());
  t.end();
});

t.test("the limits are the program's", (t) => {
  const config = defaultConfig();
  const mib = (bytes: number): string => `${bytes / 1024 ** 2} MiB`;
  const expected: Readonly<Record<string, string>> = {
    "key, bucket, prefix, key space, resource, owner, sequence name, idempotency key": `${limits.NAME_MAX_BYTES} bytes`,
    value: mib(config.kvMaxValueBytes),
    "lock lease": `${config.lockMaxLeaseMs / 3_600_000} h`,
    "reserve count, block size, key/value lease": `${limits.BLOCK_SIZE_MAX}`,
    "items per many-call": `${limits.MANY_ITEMS_MAX}`,
    "page limit": `${limits.PAGE_LIMIT_MAX} items`,
    "page of a scan or range read": mib(config.kvScanPageBytes),
    "answer that is not paged": mib(config.maxResponseBytes),
    "REST body": mib(config.maxRequestBytes),
    "gRPC message": mib(config.grpcMaxReceiveBytes),
    "batch frame": `${limits.FRAME_ITEMS_MAX} items, ${mib(limits.FRAME_MAX_BYTES)}`,
    "wait for a lock": `${config.lockMaxWaitMs / 3_600_000} h; of one call of REST ${limits.LOCK_REST_WAIT_MAX_MS / 1000} s`,
    "waiters of one lock; of a node": `${config.lockMaxWaitersPerLock}; ${config.lockMaxWaiters}`,
    "requests of one owner in one place; time that an empty place is kept": `${limits.LOCK_PLACE_REQUESTS_MAX}; ${limits.LOCK_PLACE_KEPT_MS / 1000} s`,
    "waiting try-locks per batch stream, not counted as items in flight": `${limits.LOCK_STREAM_WAITS_MAX}`,
    "note of a grant; reason of a forced release": `${limits.LOCK_NOTE_MAX_BYTES} bytes`,
    "heirs of a lock; lease of an heir": `${limits.HEIRS_MAX}, ${limits.HEIRS_MAX_BYTES / 1024} KiB in its row; ${limits.HEIR_LEASE_MAX_MS / 1000} s`,
    "forced releases kept per partition": `${config.lockAuditRetained}`,
    "images and logs that a node ships for backups": `${mib(limits.BACKUP_BYTES_PER_SECOND)}/s; a fifth of the event loop's time while it serves`,
    "watches of a node; of one stream": `${config.watchMaxWatchers}; ${limits.WATCHES_PER_STREAM_MAX}`,
    "Syncs of a watch stream that wait, each with its watches; beyond, what one more is about ends as OVERLOADED": `${limits.WATCH_SYNCED_MAX}`,
    "parts of watches of other nodes that a node tells; bytes that it holds for them, and of those that it is told; a part that nobody asks for goes after": `${limits.WATCH_PARTS_MAX}; ${mib(limits.WATCH_PARTS_MAX_BYTES)} each; ${limits.WATCH_PART_IDLE_MS / 1000} s`,
    "reads of many names at a time for watches of a node, the others wait": `${limits.WATCH_SCANS_MAX}`,
    "unsent bytes of a watch stream, then it is set back to its cursor": mib(
      config.watchStreamBufferBytes,
    ),
    "changes kept for watches that are slow or come back": `${mib(config.watchHistoryBytes)}, ${limits.WATCH_HISTORY_MS / 1000} s`,
    "names with a lease that are watched on a node": `${limits.WATCHED_LEASES_MAX}`,
    "time between marks of a watch; cursor of a watch; wait of one poll": `${limits.WATCH_PROGRESS_MIN_MS} ms to ${limits.WATCH_PROGRESS_MAX_MS / 60_000} min; ${limits.WATCH_CURSOR_MAX_BYTES / 1024} KiB; ${limits.WATCH_POLL_WAIT_MAX_MS / 1000} s`,
    "items in flight per batch stream": `${config.maxInflightPerStream}`,
    "JSON nesting": `${limits.JSON_NESTING_MAX} levels`,
    "request line and headers": `${limits.HEADERS_MAX_BYTES / 1024} KiB`,
    "HTTP/2 streams per connection": `${limits.STREAMS_PER_CONNECTION_MAX}`,
    "HTTP/2 streams that a client may reset, per connection": `${limits.RESETS_BURST_MAX} at once, then ${limits.RESETS_PER_SECOND} per second`,
    "HTTP/2 frames that are neither a request nor data, per connection of the gRPC port": `${limits.IDLE_FRAMES_BURST_MAX} at once, then ${limits.IDLE_FRAMES_PER_SECOND} per second and ${limits.IDLE_FRAMES_PER_WORK} per request`,
    "HTTP/2 header block as it travels, on the gRPC port": `${limits.HEADER_BLOCK_MAX_BYTES / 1024} KiB`,
    "client connections": `${limits.CONNECTIONS_MAX}, or fewer: open-file limit less ${DESCRIPTORS_KEPT}`,
    "connections of the health listener": `${limits.HEALTH_CONNECTIONS_MAX}, ${limits.HEALTH_REQUEST_MS / 1000} s each`,
    "watchers of the gRPC health service": `${limits.HEALTH_WATCHERS_MAX}, ${limits.HEALTH_WATCHERS_PER_CONNECTION_MAX} per connection`,
    "unsent bytes of answers": `${mib(limits.UNSENT_ANSWERS_MAX_BYTES)} per node`,
    "requests in progress": `${config.maxInflightRequests}`,
    "data requests per second and caller": config.callerRateLimit === 0 ? "none" : "",
    "node debug": `${mib(limits.NODE_DEBUG_MAX_BYTES)}, one at a time, a profile of ${limits.PROFILE_MAX_SECONDS} s`,
    "lines about slow requests": `${limits.SLOW_LINES_PER_SECOND} per second`,
    "spans that wait for the trace collector": `${limits.TRACE_SPANS_MAX}, sent ${limits.TRACE_BATCH_MAX} at once, every ${limits.TRACE_EVERY_MS / 1000} s`,
    "free space of a volume of log or state": `${mib(limits.VOLUME_RESERVE_MIN_BYTES)}, or ${limits.VOLUME_RESERVE_PART * 100} % of it up to ${mib(limits.VOLUME_RESERVE_PART_MAX_BYTES)}; below, writes are refused until twice that is free`,
    "queued proposals per partition": `${config.maxQueuedProposals}, ${mib(config.maxQueuedBytes)}`,
    "wait of queued proposals for the callers of the entry before them": `as long as that entry took, ${limits.GATHERING_MAX_MS} ms`,
    "request time": `${config.requestTimeoutMs / 1000} s`,
    "partitions at the first start": `${limits.INITIAL_PARTITIONS_MAX}`,
    "living partitions of a cluster": `${limits.PARTITIONS_MAX}`,
    "records of removed partitions": `the newest ${limits.REMOVED_PARTITIONS_KEPT}`,
    "moves of key ranges": `${limits.RANGE_MOVES_MAX} in a cluster, one for each key space, ${limits.RANGE_MOVES_PER_NODE} from or to groups that one node leads`,
    "attempts of a move": `${limits.RANGE_ATTEMPTS_MAX}, ${limits.RANGE_ATTEMPT_MS / 60_000} min each`,
    "voters of a cluster": `${limits.VOTERS_MAX}`,
    "members of a cluster": `${limits.MEMBERS_MAX}`,
    "partitions with a replica on its way": `${limits.MOVES_MAX}, of these ${limits.BALANCE_MOVES_MAX} for balance`,
    "replicas on their way to one node": `${limits.ARRIVING_MAX}, for balance ${limits.BALANCE_ARRIVING_MAX}`,
    "new replicas that one node feeds with a snapshot": `${limits.FEEDING_MAX}`,
    [`places for snapshots of ${mib(limits.SNAPSHOT_PLACE_BYTES)} and more, smaller ones take a part of one`]: `${limits.ARRIVING_PLACES} to one node, for balance ${limits.BALANCE_ARRIVING_PLACES}; ${limits.FEEDING_PLACES} from one node; for balance ${limits.BALANCE_PLACES} in a cluster`,
    "snapshots under way at one node": `${snapshots.sendersMax} sent, ${snapshots.receiversMax} taken`,
    "snapshots that a node sends": `${mib(snapshots.bytesPerSecond)}/s, for balance ${mib(snapshots.balanceBytesPerSecond)}/s of it; while it is behind ${mib(snapshots.drainLeastBytesPerSecond)}/s for a drain, ${mib(snapshots.balanceLeastBytesPerSecond)}/s for balance`,
    "partitions whose rows a node deletes beside each other": `${limits.ERASING_MAX}, ${limits.ERASED_ROWS_MAX} rows at a time`,
    "report of a node to each of the others": `${limits.NODE_REPORT_MAX_BYTES / 1024} KiB, every ${limits.NODE_REPORT_EVERY_MS / 1000} s`,
    "alarms of an overview": `${limits.ALARMS_MAX}`,
    "request id": `${limits.REQUEST_ID_MAX_CHARACTERS} characters`,
    "wait for another backup, restore or collection on a node": `${limits.BACKUP_TURN_WAIT_MS / 1000} s`,
    "backup call without a deadline": `${limits.BACKUP_CALL_MAX_MS / 3_600_000} h`,
    "lease in the directory of backups": `touched every ${limits.LEASE_TOUCH_MS / 1000} s, stale after ${limits.LEASE_STALE_MS / 1000} s`,
    "leftovers in the directory of backups": `kept for ${limits.ORPHAN_AGE_MS / 3_600_000} h`,
    "--pitr-backup-cluster-id": `${limits.BACKUP_CLUSTER_ID_MAX_BYTES} bytes`,
  };
  t.same(
    Object.fromEntries(tableRows("docs/limits.md", "Limit").map((row) => [row[0], row[1]])),
    expected,
  );
  t.end();
});

t.test("6.3 the statuses of calls that change key ranges are the program's", (t) => {
  const split = (cell: string): readonly string[] => cell.split(", ");
  const ends = new Map(
    tableRows("docs/codes.md", "Call").map(([call = "", ...cells]) => [call, cells.map(split)]),
  );
  const shown = (call: string): readonly string[] => (ends.get(call) ?? []).flat();
  t.same(shown("split"), SPLIT.members.status.choice?.texts);
  t.same(shown("merge"), MERGED.members.status.choice?.texts);
  const registered = new Set([...shown("register"), ...shown("unregister")]);
  for (const { status } of [REGISTERED.members, UNREGISTERED.members]) {
    t.same([...registered].sort(), [...(status.choice?.texts ?? [])].sort());
  }
  const contract = { split: SPLIT_ENDS, merge: MERGE_ENDS };
  for (const [call, expected] of Object.entries(contract)) {
    const columns = ["done", "refused", "open"].map((end) =>
      expected.filter(([, is]) => is === end).map(([status]) => status),
    );
    t.same(ends.get(call), columns, `${call}: which are open`);
  }
  t.end();
});

t.test("the codes are the program's", (t) => {
  const rows = tableRows("docs/codes.md", "Locks");
  const apis = [
    ["locks", LockType],
    ["sequences", SequenceType],
    ["kv", KvType],
  ] as const;
  for (const [column, [api, table]] of apis.entries()) {
    const shown = rows.map((row) => row[column] ?? "").filter((cell) => cell !== "");
    const real = Object.values(table).map((number) => `${number} ${outcomeName(api, number)}`);
    t.same(shown, real, `column ${column}`);
  }
  const codes = tableRows("docs/codes.md", "HTTP").flatMap((row) => (row[1] ?? "").split(", "));
  t.same([...codes].sort(), Object.keys(PROBLEM_TITLES).sort(), "problem codes");
  t.same(
    tableRows("docs/flags.md", "Server exit code").map((row) => Number(row[0])),
    [0, EXIT_FATAL, EXIT_USAGE],
  );
  t.end();
});
