/**
 * Every flag of the server in one table: name, kind, default, meaning. Parsing, `--help`, the
 * environment variables and the table of docs/flags.md all come from here.
 *
 * Invariants: 1. The variable of a flag is SVC_ and its name in upper case with underscores. 2. The
 * order of areas and flags is the order of `--help`. 3. "-" stands for no default; a `default:`
 * line then says in words what is used.
 */
import { assert } from "../../base/assert.js";

const TABLE = `
Listeners and addresses
  --host text 127.0.0.1
    address of the client listeners
  --grpc-port port-or-off 8083
    cleartext gRPC (h2c); off disables, 0 = any free port
  --https-port port-or-off 8082
    REST and gRPC over TLS; off disables, 0 = any free port
  --http-port port-or-off off
    cleartext REST (HTTP/1.1); 0 = any free port
  --health-port port-or-off off
    health listener: GET of /livez, /readyz, /v1/cluster/health and /metrics
    over cleartext HTTP/1.1, open before the storage is; off disables, 0 = any free port
  --health-host text -
    address of the health listener
    default: value of --host
  --console boolean -
    serve the web console at /console/ on the HTTPS and the HTTP listener
    default: true on loopback or with authentication, else false
  --console-port port-or-off off
    a listener of its own for the web console and the REST API that it uses, over TLS
    with the certificate of the HTTPS listener; off disables, 0 = any free port
  --console-host text -
    address of the console's own listener
    default: value of --host
  --peer-host text -
    address of the peer listener
    default: value of --host
  --peer-port port-or-off 8084
    peer listener; off: a single node that accepts no peers
  --advertised-peer-endpoint text -
    host:port under which the roster lists this node; empty with --peer-port off
    default: peer-host:peer-port
  --advertised-client-endpoint text -
    base URL in route hints
    default: from --host and the gRPC port, else HTTPS port
  --disable-routing-hints boolean false
    send no route hints
Requests and shutdown
  --request-timeout duration 10s
    longest handling time of a data request
  --shutdown-timeout duration 10s
    SIGTERM: time to hand over leaderships and finish requests
  --shutdown-delay duration 0s
    SIGTERM: time for which the node, not ready any more, goes on serving
  --graceful-leave-on-shutdown boolean false
    leave the roster on SIGTERM
  --max-request-bytes size 2MiB
    REST body size
  --grpc-max-receive-bytes size 4MiB
    gRPC message size
  --max-response-bytes size 16MiB
    largest answer that is not paged
  --max-inflight-requests integer 4096
    data requests in progress per node, then overload
  --max-inflight-per-stream integer 1024
    items in flight per batch stream
  --caller-rate-limit integer 0
    data requests per second and caller, then overload; 0 = no limit; @<file>: what the file says,
    reloaded
Security
  --tls-cert text -
    PEM certificate chain of the HTTPS listener
    default: self-signed
  --tls-key text -
    PEM private key
  --tls-client-ca text -
    PEM CA: the HTTPS listener verifies client certificates; without --auth-tokens-file
    the TLS handshake demands one, and probes use the health listener
  --peer-tls-cert text -
    PEM certificate for the peer listener and peer calls
  --peer-tls-key text -
    PEM key
  --peer-tls-ca text -
    PEM CA that peer certificates must chain to (mTLS)
  --peer-tls-require-node-id boolean false
    refuse peers whose certificate does not name their node id (URI svc:node:<id>)
  --peer-secret-file text -
    file with the peers' shared secret, at least 32 characters; same on all nodes
  --auth-tokens-file text -
    bearer token file
  --allowed-origins text -
    comma-separated origins that browsers may call from
  --allowed-hosts text -
    comma-separated further names that Host may have
  --allow-insecure boolean false
    permit unprotected listeners on non-loopback addresses,
    and an unprotected peer listener beside authentication
Storage
  --storage choice(lmdb,memory) lmdb
    adapter: lmdb, or memory (nothing survives the process)
  --storage-path text -
    data directory, one per node, locked while in use
    default: $XDG_DATA_HOME/svc/data, else ~/.local/share/svc/data
  --storage-revision text v1
    storage format directory below the path
  --storage-max-bytes size 64GiB
    upper bound of the state file; at it writes are refused as overload
  --wal-path text -
    directory of the log
    default: {storage-path}/wal
Cluster
  --raft-nodeid node-id 1
    node id, 1 to 65535, unique in the cluster;
    ordinal: the number at the end of --raft-nodename + 1
  --raft-nodename text -
    name in logs and metrics
    default: host name
  --initial-cluster text -
    id=host:peer-port,… of all founders; same text on every node, never changed
  --initial-cluster-state choice(new,existing) new
    existing: an empty data directory never founds, it only joins
  --join text -
    host:peer-port,… of existing members to join through; may stand beside --initial-cluster
  --initial-cluster-partitions integer 16
    data partitions at bootstrap = hash pool size, 1 to 1024
  --raft-replication-factor integer 0
    replicas per partition, 0 = every voter, max 9; committed when the cluster is founded
  --raft-enable-placement-rebalancer boolean -
    move replicas toward the factor; drain on leave
    default: true if the factor > 0
  --raft-placement-pass-interval duration 5s
    pause between rebalancer passes
  --raft-dead-member-timeout duration 5m
    silence after which a member's replicas are replaced, 0 = never by itself
  --raft-decommission-drain-timeout duration 120000ms
    longest drain on leave, else DrainTimedOut
  --raft-enable-leader-balancer boolean true
    spread leaderships over the nodes
  --raft-leader-balancer-interval duration 30s
    pause between balancer passes
Raft
  --raft-start-election-timeout duration 1000ms
    shortest election timeout, redrawn at random each time
  --raft-end-election-timeout duration 2000ms
    longest election timeout
  --raft-heartbeat-interval duration 100ms
    leader heartbeat
  --raft-enable-quiescence boolean true
    idle partitions stop heartbeats
  --raft-quiesce-after duration 1500ms
    idle time before that
  --raft-peer-ping-interval duration 200ms
    liveness probe between nodes; wakes quiesced partitions of a lost leader
  --raft-compact-every-entries integer 10000
    snapshot and compact a partition's log after so many entries
  --raft-compact-every-bytes size 64MiB
    or after so many bytes
  --raft-compact-keep-entries integer 1000
    entries kept behind the snapshot for slow followers
  --raft-max-batch-entries integer 256
    requests per log proposal
  --raft-max-batch-bytes size 1MiB
    bytes per log proposal; one larger request travels alone
  --raft-batch-linger duration 0ms
    extra wait to fill a batch
  --raft-max-queued-proposals integer 2048
    queued requests per partition, then overload
  --raft-max-queued-bytes size 32MiB
    queued bytes per partition, then overload
Locks, sequences, key/value
  --lock-max-lease duration 24h
    longest lock lease, 1ms to 2147483647ms
  --lock-record-retention duration 1h
    how long idle lock records are kept at least
  --lock-max-wait duration 1h
    longest time that a request may wait for a lock, up to 24h
  --lock-max-waiters-per-lock integer 8192
    waiters of one lock, then overload; at most --lock-max-waiters
  --lock-max-waiters integer 16384
    waiters per node, then overload
  --lock-succession boolean false
    locks that change hands often have a list of their next holders
  --lock-audit-retained integer 1024
    rows about forced releases kept per partition, up to 100000
  --watch-max-watchers integer 20000
    watches per node, then overload
  --watch-stream-buffer-bytes size 1MiB
    unsent bytes of one watch stream, then it is set back to its cursor
  --watch-history-bytes size 32MiB
    changes kept per node for watches that are slow or come back
  --watch-progress duration 10s
    longest time between marks of a watch, 100ms to 10m
  --sequencer-block-size integer 1000
    default block size
  --sequencer-block-lease duration 5s
    longest time a reserved block is used without checking the record
  --sequencer-idempotency-retention-max integer 256
    idempotency entries per sequence, 0 = no bound by number
  --sequencer-idempotency-retention-ttl duration 600s
    lifetime of an entry, 0 = no bound by time
  --kv-revisions-retained integer 16
    readable revisions per key, ≥ 1
  --kv-tombstone-retention duration 24h
    how long tombstones are kept, 0 = for ever
  --kv-max-value-bytes size 1MiB
    largest value (base64 grows it by a third over REST)
  --kv-scan-page-bytes size 2MiB
    page size of scans and range reads
Upgrades
  --upgrade-auto-finalize duration-or-off off
    raise the level by itself when all members have supported the next one for so long;
    same on all nodes
Key ranges
  --range-split-threshold integer 100000
    keys that make a range split, 0 = off
  --range-split-min-range-size integer 10
    smallest range that may be split by hand or automatically
  --range-merge-min-size integer 10
    joint keys below which neighbours merge, 0 = off
  --range-collection-interval duration 60s
    pause between range checks
Backups
  --pitr-backup-dir text -
    backup directory; empty = NotConfigured
  --pitr-backup-cluster-id text -
    cluster id written to manifests
  --pitr-restore-root text -
    directory below which remote restore may write
  --pitr-backup-mac-key-file text -
    key file for manifest signatures
  --pitr-window duration 1h
    log kept for incremental backups, up to 6h
  --backup-retention-max-chains integer 0
    whole backup chains kept; 0 = unbounded
  --backup-retention-max-age duration 0
    age at which a chain goes; 0 = unbounded
  --backup-retention-max-bytes size 0
    bytes of all backups kept; 0 = unbounded
  --backup-gc-interval duration 1h
    0 = no periodic pass
Logging
  --log-level choice(debug,info,warn,error) info
    debug, info, warn, error; @<file>: what the file says, reloaded
  --log-format choice(text,json) text
    text or json, on stderr
  --slow-request-threshold duration 1s
    a data request that takes longer leaves a log line, 0 = off; @<file>: what the file says,
    reloaded
  --audit-log text off
    off (in the ordinary log), stderr, or a file to append to, reopened on SIGHUP
  --trace-endpoint text -
    URL of a collector (OTLP over HTTP, JSON) that gets the spans of requests whose traceparent
    says that they are sampled; without a path: /v1/traces
    default: nothing is recorded
Diagnosis
  --kernels choice(wasm,twin) wasm
    hot loops in WebAssembly, or in their TypeScript twins
  --benchmark-routes boolean false
    serve no-op routes to measure the front ends against
`;

export type FlagKind =
  | "text"
  | "boolean"
  | "integer"
  | "node-id"
  | "duration"
  | "size"
  | "port"
  | "duration-or-off"
  | "port-or-off"
  | "choice";

export interface Flag {
  /** With its two dashes. */
  readonly name: string;
  readonly variable: string;
  readonly area: string;
  readonly kind: FlagKind;
  readonly choices: readonly string[];
  /** Text as a user would write it; null = none, or derived as `defaultInWords` says. */
  readonly defaultText: string | null;
  readonly defaultInWords: string | null;
  readonly meaning: string;
}

/** The environment variable of a flag. */
function variableOf(name: string): string {
  return `SVC_${name.slice(2).toUpperCase().replaceAll("-", "_")}`;
}

function parseFlagLine(line: string, area: string): Flag {
  const match = /^ {2}(--[a-z-]+) ([a-z-]+)(?:\(([a-z,]+)\))? (\S+)$/.exec(line);
  assert(match !== null, `the flag table has no malformed line: ${line}`);
  const [, name, kind, choices, defaultText] = match;
  return {
    name: name as string,
    variable: variableOf(name as string),
    area,
    kind: kind as FlagKind,
    choices: choices === undefined ? [] : choices.split(","),
    defaultText: defaultText === "-" ? null : (defaultText as string),
    defaultInWords: null,
    meaning: "",
  };
}

function parseTable(table: string): Flag[] {
  const flags: Flag[] = [];
  let area = "";
  for (const line of table.split("\n")) {
    if (line === "") continue;
    if (line.startsWith("    ")) {
      const flag = flags.pop();
      assert(flag !== undefined, "a meaning follows its flag");
      const text = line.trim();
      if (text.startsWith("default: ")) flags.push({ ...flag, defaultInWords: text.slice(9) });
      else flags.push({ ...flag, meaning: flag.meaning === "" ? text : `${flag.meaning} ${text}` });
    } else if (line.startsWith("  ")) {
      flags.push(parseFlagLine(line, area));
    } else {
      area = line;
    }
  }
  return flags;
}

export const FLAGS: readonly Flag[] = parseTable(TABLE);
