/** Flags, variables, relations, help, tokens: the server's configuration as an operator meets it. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { raftSettings } from "../../../src/host/settings.js";
import { defaultConfig } from "../../../src/raft/state/config.js";
import { clusterIdOf } from "../../../src/server/flags/cluster-flags.js";
import { makeConfig, type ServerConfig } from "../../../src/server/flags/config.js";
import { FLAGS } from "../../../src/server/flags/flag-table.js";
import { readFlags } from "../../../src/server/flags/flags.js";
import { checkPlacement } from "../../../src/server/flags/placement-relations.js";
import { helpText } from "../../../src/server/flags/help.js";
import { permissionMistake } from "../../../src/server/security/secret-file.js";
import { Authenticator, TokenFile, tokenDigestText } from "../../../src/server/security/tokens.js";
import { readDurationMs, readSizeBytes } from "../../../src/server/flags/values.js";
import { DEFAULT_HOST_SETTINGS } from "../../doubles/default-settings.js";

type Environment = Readonly<Record<string, string | undefined>>;

function configure(flags: readonly string[], environment: Environment = {}): ServerConfig | string {
  const raw = readFlags(flags, environment);
  if (!raw.ok) return raw.message;
  const config = makeConfig(raw.value, environment);
  return config.ok ? config.value : config.message;
}

function refused(flags: readonly string[], environment: Environment = {}): string {
  const result = configure(flags, environment);
  return typeof result === "string" ? result : "";
}

t.test("defaults are those of the contract, and they agree with each other", (t) => {
  const config = configure([]) as ServerConfig;
  t.type(config, "object", "the defaults violate no relation");
  t.match(config, {
    host: "127.0.0.1",
    grpcPort: 8083,
    httpsPort: 8082,
    httpPort: null,
    requestTimeoutMs: 10_000,
    partitions: 16,
    storageMaxBytes: 64 * 1024 ** 3,
    lockMaxLeaseMs: 24 * 3_600_000,
    sequencerKeysRetainedMs: 600_000,
    kvMaxValueBytes: 1024 ** 2,
    maxBatchEntries: 256,
    advertisedPeerEndpoint: null,
    peerHost: "127.0.0.1",
    peerPort: 8084,
  });
  t.ok(Object.isFrozen(config));
  t.end();
});

t.test("the console: on loopback, and for callers who can be told apart", (t) => {
  const open = ["--host=10.0.0.1", "--peer-host=127.0.0.1", "--allow-insecure"];
  const tokens = [...open, "--auth-tokens-file=t"];
  t.match(configure([]), { console: true, consolePort: null, consoleHost: "127.0.0.1" });
  t.match(configure(["--console=false"]), { console: false, consoleGiven: true });
  t.match(configure(open), { console: false, consoleGiven: false }, "off loopback, for everybody");
  t.match(configure([...open, "--console"]), { console: true }, "an operator wants it so");
  t.match(configure(open, { SVC_CONSOLE: "true" }), { console: true });
  t.match(configure(tokens), { console: true });
  t.match(configure([...tokens, "--console=false"]), { console: false });
  t.match(configure([...open, "--tls-client-ca=c"]), { console: true });
  t.match(configure([...open, "--console-port=8086"]), {
    console: false,
    consolePort: 8086,
    consoleHost: "10.0.0.1",
  });
  const own = ["--console=false", "--console-port=0", "--console-host=::1"];
  t.match(configure(own), { console: false, consolePort: 0, consoleHost: "::1" });
  t.end();
});

t.test("flag, variable, default: in this order", (t) => {
  const environment = { SVC_GRPC_PORT: "9001", SVC_LOG_LEVEL: "debug" };
  t.match(configure(["--grpc-port", "9002"], environment), { grpcPort: 9002, logLevel: "debug" });
  t.match(configure(["--grpc-port=off"], environment), { grpcPort: null });
  t.match(configure([], { SVC_GRPC_PORT: "" }), { grpcPort: 8083 }, "an empty variable is not set");
  t.match(configure(["--disable-routing-hints"]), { disableRoutingHints: true });
  t.match(configure(["--disable-routing-hints=false"]), { disableRoutingHints: false });
  t.match(configure(["--disable-routing-hints", "false"]), { disableRoutingHints: false });
  t.match(configure([], { XDG_DATA_HOME: "/data" }), { storagePath: "/data/svc/data" });
  t.end();
});

t.test("P-165 mistakes stop the start and name the flag", (t) => {
  t.match(refused(["--grpc-prot", "1"]), /unknown flag --grpc-prot \(did you mean --grpc-port\?\)/);
  t.match(refused(["stray"]), /unknown flag stray/);
  t.match(refused(["--host"]), /--host needs a value/);
  t.match(refused(["--host", "a", "--host", "b"]), /given twice/);
  t.match(refused(["--grpc-port", "70000"]), /--grpc-port: "70000" is not a port/);
  t.match(
    refused([], { SVC_REQUEST_TIMEOUT: "10 s" }),
    /SVC_REQUEST_TIMEOUT: "10 s" is not a duration/,
  );
  t.match(refused(["--storage", "sqlite"]), /one of lmdb, memory/);
  t.match(refused(["--disable-routing-hints=yes"]), /true or false/);
  t.end();
});

t.test("P-165 each violated relation is reported with both values", (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--grpc-port=off", "--https-port=off"], /all off/],
    [["--tls-cert=c.pem"], /--tls-cert and --tls-key go together/],
    [["--raft-start-election-timeout=400ms"], /400ms.*5 times.*100ms/],
    [["--raft-end-election-timeout=900ms"], /900ms.*1000ms/],
    [["--request-timeout=3s"], /3000ms.*2000ms/],
    [["--raft-quiesce-after=50"], /50ms.*100ms/],
    [["--raft-peer-ping-interval=2s"], /2000ms.*1000ms/],
    [["--sequencer-block-lease=6s"], /6000ms.*10000ms/],
    [["--kv-max-value-bytes=2MiB"], /--max-request-bytes is 2097152/],
    [
      ["--kv-max-value-bytes=3MiB", "--grpc-max-receive-bytes=3MiB", "--max-request-bytes=5MiB"],
      /below --grpc/,
    ],
    [["--kv-scan-page-bytes=16MiB"], /below --max-response-bytes/],
    [["--range-merge-min-size=200000"], /below --range-split-threshold/],
    [["--raft-nodeid=0"], /1 to 65535/],
    [["--initial-cluster-partitions=1025"], /1 to 1024/],
    [["--lock-max-lease=600h"], /--lock-max-lease/],
    [["--shutdown-delay=60s"], /60000ms.*below 60000ms/],
    [["--auth-tokens-file=t"], /peer listener would open on 127\.0\.0\.1.*--peer-secret-file/],
    [["--tls-client-ca=c"], /peer listener.*--allow-insecure/],
    [["--peer-tls-require-node-id"], /--peer-tls-require-node-id needs --peer-tls-cert/],
    [
      ["--host=0.0.0.0"],
      /gRPC cleartext listener would open on 0\.0\.0\.0.*--auth-tokens-file or --allow-insecure/,
    ],
    [
      ["--host=0.0.0.0", "--allow-insecure"],
      /--peer-host is 0\.0\.0\.0.*--advertised-peer-endpoint/,
    ],
    [["--peer-host=::"], /--advertised-peer-endpoint/],
    [["--host=0.0.0.0", "--grpc-port=off"], /HTTPS listener.*--tls-client-ca/],
    [
      ["--console-port=0", "--console-host=0.0.0.0"],
      /console listener would open on 0\.0\.0\.0.*--auth-tokens-file, --tls-client-ca or --allow/,
    ],
    [["--initial-cluster=1=a"], /"1=a" is not of the form id=host:port/],
    [["--initial-cluster=1=a:8084,70000=b:1"], /70000 is not 1 to 65535/],
    [["--initial-cluster=1=a:8084,1=b:1"], /name one node twice/],
    [["--initial-cluster=1=a:8084,2=A:8084"], /1=a:8084 and 2=A:8084 name one node twice/],
    [
      [
        `--initial-cluster=${Array.from({ length: 10 }, (_, at) => `${at + 1}=a:${at + 1}`).join()}`,
      ],
      /lists 10 members.*9 voters/,
    ],
    [["--initial-cluster-state=existing"], /existing.*give --initial-cluster or --join/],
    [["--initial-cluster-state=old"], /one of new, existing/],
    [["--raft-nodeid=ordinal", "--raft-nodename=svc"], /svc does not end in a number/],
    [["--raft-nodeid=first"], /"first" is not a whole number, or ordinal/],
    [["--raft-nodeid=ordinal", "--raft-nodename=svc-65535"], /--raft-nodeid is 65536/],
    [["--initial-cluster=1=a:9001"], /at a:9001, but --peer-port is 8084/],
    [
      ["--initial-cluster=1=a:8084", "--advertised-peer-endpoint=b:8084"],
      /a:8084, but --advertised-peer-endpoint is b:8084/,
    ],
    [["--join=a"], /--join: "a" is not/],
    [["--peer-port=off", "--join=a:1"], /--peer-port is off.*--join/],
    [["--peer-port=off", "--initial-cluster=1=a:8084"], /--peer-port is off.*--initial-cluster/],
    [
      ["--peer-port=off", "--peer-tls-cert=c"],
      /--peer-tls-cert, --peer-tls-key and --peer-tls-ca go/,
    ],
    [["--peer-port=off", "--join=a:1"], /--peer-port is off.*--join/],
    [["--peer-port=off", "--initial-cluster=1=a:8084"], /--peer-port is off.*--initial-cluster/],
    [
      ["--peer-port=off", "--peer-tls-cert=c"],
      /--peer-tls-cert, --peer-tls-key and --peer-tls-ca go/,
    ],
    [["--peer-tls-cert=c"], /--peer-tls-cert, --peer-tls-key and --peer-tls-ca go together/],
    [["--allowed-origins=console.example"], /--allowed-origins names "console\.example"/],
    [["--allowed-origins=https://a,https://b/"], /--allowed-origins names "https:\/\/b\/"/],
    [["--allowed-hosts=a.example,b.example:80"], /--allowed-hosts names "b\.example:80"/],
    [["--peer-host=10.0.0.1"], /peer listener.*10\.0\.0\.1.*--peer-tls-cert.*--allow-insecure/],
    [["--advertised-peer-endpoint=a"], /--advertised-peer-endpoint "a"/],
    [["--storage-revision=../x"], /--storage-revision/],
    [["--advertised-client-endpoint=host:1"], /base URL/],
  ];
  for (const [flags, message] of cases) t.match(refused(flags), message, flags.join(" "));
  t.type(configure(["--initial-cluster=1=127.0.0.1:8084"]), "object");
  t.type(configure(["--auth-tokens-file=t", "--peer-secret-file=s"]), "object");
  t.type(configure(["--auth-tokens-file=t", "--allow-insecure"]), "object");
  const listed = "--advertised-peer-endpoint=node1:8084";
  t.type(configure(["--host=0.0.0.0", "--allow-insecure", listed]), "object");
  t.type(configure(["--host=0.0.0.0", "--allow-insecure", "--peer-host=::1"]), "object");
  t.type(configure(["--host=127.1.2.3"]), "object");
  const three = "--initial-cluster=1=a:8084,2=b:8084,3=c:8084";
  t.match(configure([three]), { advertisedPeerEndpoint: "a:8084", initialCluster: { length: 3 } });
  t.type(configure([three, "--peer-host=0.0.0.0", "--allow-insecure"]), "object");
  t.type(configure(["--initial-cluster=1=a:1", "--advertised-peer-endpoint=A:1"]), "object");
  t.match(configure(["--initial-cluster=1=a:8084", "--join=b:1"]), { join: ["b:1"] });
  t.type(configure(["--initial-cluster=2=a:1,3=b:1"]), "object", "who is not listed joins");
  t.match(configure(["--raft-nodeid=ordinal", "--raft-nodename=svc-0"]), { nodeId: 1 });
  t.match(configure(["--raft-nodeid=ordinal", "--raft-nodename=a1-12"]), { nodeId: 13 });
  t.match(configure(["--initial-cluster-state=existing", "--join=a:1"]), {
    initialClusterState: "existing",
  });
  t.match(configure(["--join=a:1, [::1]:2"]), { join: ["a:1", "[::1]:2"] });
  const founders = [
    { nodeId: 2, endpoint: "B:1" },
    { nodeId: 1, endpoint: "a:1" },
  ];
  const same = [
    { nodeId: 1, endpoint: "A:1" },
    { nodeId: 2, endpoint: "b:1" },
  ];
  t.not(clusterIdOf(founders, 16), clusterIdOf(founders, 17), "P-165 nor are other flags let in");
  t.equal(
    clusterIdOf(founders, 16),
    clusterIdOf(same, 16),
    "the id of a cluster does not depend on the order of its list",
  );
  t.end();
});

t.test("P-165 the flags of backups, and paths that must be apart", (t) => {
  t.match(configure([]), {
    ...{ backupDir: null, restoreRoot: null, backupMacKeyFile: null, backupClusterId: "" },
    ...{ pitrWindowMs: 3_600_000, backupMaxChains: 0, backupMaxAgeMs: 0, backupMaxBytes: 0 },
    backupGcIntervalMs: 3_600_000,
  });
  const storage = "--storage-path=/data/svc";
  const given = configure([
    ...[storage, "--pitr-backup-dir=/backups", "--pitr-restore-root=/data"],
    ...["--pitr-backup-mac-key-file=/key", "--pitr-backup-cluster-id=prod", "--pitr-window=6h"],
    ...["--backup-retention-max-chains=3", "--backup-retention-max-age=48h"],
    ...["--backup-retention-max-bytes=1GiB", "--backup-gc-interval=0"],
  ]);
  t.match(given, {
    ...{ backupDir: "/backups", restoreRoot: "/data", backupMacKeyFile: "/key" },
    ...{ backupClusterId: "prod", pitrWindowMs: 6 * 3_600_000, backupMaxChains: 3 },
    ...{ backupMaxAgeMs: 48 * 3_600_000, backupMaxBytes: 1024 ** 3, backupGcIntervalMs: 0 },
  });
  const dir = (path: string): string => `--pitr-backup-dir=${path}`;
  const root = (path: string): string => `--pitr-restore-root=${path}`;
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[dir("b")], /--pitr-backup-dir is b; it must be an absolute path/],
    [[root("./r")], /--pitr-restore-root is \.\/r; it must be an absolute path/],
    [[dir("/data/svc")], /must not be --storage-path \(\/data\/svc\) nor lie in it/],
    [[dir("/data/svc/b")], /nor lie in it/],
    [[dir("/data/x/../svc/b/")], /nor lie in it/],
    [[dir("/data")], /--storage-path \(\/data\/svc\) must not lie in it/],
    [[dir("/")], /must not lie in it/],
    [[dir("/wal/b"), "--wal-path=/wal"], /--wal-path \(\/wal\)/],
    [[root("/data/svc/r")], /--pitr-restore-root is .*nor lie in it/],
    [[dir("/b"), root("/b/r")], /must not be --pitr-backup-dir \(\/b\) nor lie in it/],
    [["--pitr-window=7h"], /--pitr-window \(ms\) is 25200000/],
    [["--backup-gc-interval=10ms"], /--backup-gc-interval \(ms\) is 10/],
    [[`--pitr-backup-cluster-id=${"x".repeat(257)}`], /--pitr-backup-cluster-id \(bytes\) is 257/],
  ];
  for (const [flags, message] of cases) {
    t.match(refused([storage, ...flags]), message, flags.join(" "));
  }
  for (const flags of [
    [dir("/data/svc-backups")],
    [dir("/b"), root("/")],
    ["--storage=memory", dir("/data/svc")],
    [dir(""), root("")],
  ]) {
    t.type(configure([storage, ...flags]), "object", flags.join(" "));
  }
  t.end();
});

t.test(
  "P-165 the flags of placement: what follows from the factor, and what goes together",
  (t) => {
    t.match(configure([]), {
      replicationFactor: 0,
      replicationFactorGiven: false,
      enableRebalancer: null,
      placementPassIntervalMs: 5000,
      deadMemberTimeoutMs: 300_000,
      drainTimeoutMs: 120_000,
    });
    t.match(configure(["--raft-replication-factor=0"]), { replicationFactorGiven: true });
    const placed = configure(["--raft-replication-factor=3", "--raft-dead-member-timeout=1m"]);
    t.match(placed, { replicationFactor: 3, enableRebalancer: null, deadMemberTimeoutMs: 60_000 });
    const byHand = ["--raft-replication-factor=3", "--raft-enable-placement-rebalancer=false"];
    t.match(configure(byHand), { replicationFactor: 3, enableRebalancer: false });
    const overrides = configure(["--raft-enable-placement-rebalancer"]);
    t.match(overrides, { replicationFactor: 0, enableRebalancer: true }, "factors of partitions");
    const off = "--raft-enable-placement-rebalancer=false";
    t.match(refused([off, "--raft-dead-member-timeout=1m"]), /rebalancer is off/);
    t.match(refused(["--raft-dead-member-timeout=1m"]), /rebalancer is off/);
    t.match(refused(["--raft-replication-factor=10"]), /it must be 0 to 9/);
    t.match(refused(["--raft-placement-pass-interval=10ms"]), /100 to 3600000/);
    const raw = readFlags([], {});
    if (!raw.ok) throw new Error(raw.message);
    const { values } = raw.value;
    const made = (changed: Partial<ServerConfig>, flags: Readonly<Record<string, number>> = {}) => {
      const given = new Set(Object.keys(flags));
      const all = { ...raw.value, given, values: new Map([...values, ...Object.entries(flags)]) };
      const config = configure([]);
      if (typeof config === "string") throw new Error(config);
      return checkPlacement({ ...config, ...changed }, all);
    };
    const flag = "--raft-dead-member-timeout";
    t.equal(made({}), null);
    t.match(made({ replicationFactor: 10 }), /--raft-replication-factor is 10; it must be 0 to 9/);
    t.match(made({ replicationFactor: -1 }), /0 to 9/);
    t.equal(made({ replicationFactor: 9, enableRebalancer: true }), null);
    t.equal(made({ replicationFactor: 3, enableRebalancer: false }), null, "moved by hand");
    t.match(
      made({ placementPassIntervalMs: 99 }),
      /--raft-placement-pass-interval .*100 to 3600000/,
    );
    t.match(made({ drainTimeoutMs: 10 }), /--raft-decommission-drain-timeout .*1000 to/);
    const asked = { deadMemberTimeoutMs: 60_000 };
    t.match(made(asked, { [flag]: 60_000 }), /rebalancer is off: give --raft-enable-placement-reb/);
    t.equal(made({ ...asked, enableRebalancer: true }, { [flag]: 60_000 }), null);
    t.equal(made({ deadMemberTimeoutMs: 0 }, { [flag]: 0 }), null, "never by itself");
    const short = { deadMemberTimeoutMs: 9000, enableRebalancer: true };
    t.match(
      made(short, { [flag]: 9000 }),
      /9000ms.*5 times --raft-end-election-timeout \(2000ms\)/,
    );
    t.match(refused(["--raft-decommission-drain-timeout=1"]), /1000 to/);
    t.end();
  },
);

t.test("contract 10.4 a node without a peer listener needs nothing for it", (t) => {
  t.match(configure(["--peer-port=off", "--auth-tokens-file=t"]), { peerPort: null });
  const open = ["--host=0.0.0.0", "--auth-tokens-file=t", "--peer-port=off"];
  t.match(configure(open), { peerPort: null, advertisedPeerEndpoint: null });
  t.end();
});

t.test("service links of an orchestrator are no ports (P-165)", (t) => {
  const environment = {
    SVC_HTTP_PORT: "tcp://10.0.0.1:80",
    SVC_PEER_PORT: "tcp://10.0.0.2:8084",
    SVC_GRPC_PORT: "9001",
  };
  t.match(configure([], environment), { httpPort: null, peerPort: 8084, peerPortGiven: false });
  t.match(configure([], environment), { grpcPort: 9001 });
  const raw = readFlags([], environment);
  t.match(raw, { ok: true, value: { warnings: { length: 2 } } });
  if (raw.ok) t.match(raw.value.warnings[0], /SVC_HTTP_PORT=tcp:\/\/10\.0\.0\.1:80.*ignored/);
  t.match(refused(["--http-port=tcp://10.0.0.1:80"]), /--http-port/, "nobody links a flag");
  t.match(refused([], { SVC_HTTP_PORT: "http://x" }), /SVC_HTTP_PORT/, "nor anything else");
  t.end();
});

t.test("P-201 origins and hosts are lists, in lower case", (t) => {
  const flags = [
    "--allowed-origins= https://A.example, http://localhost:3000",
    "--allowed-hosts=B,::1,",
  ];
  t.match(configure(flags), {
    allowedOrigins: ["https://a.example", "http://localhost:3000"],
    allowedHosts: ["b", "::1"],
  });
  t.match(configure([]), { allowedOrigins: [], allowedHosts: [] });
  t.end();
});

t.test("values with units", (t) => {
  t.same(
    ["250", "250ms", "10s", "5m", "24h"].map((text) => readDurationMs(text)),
    [250, 250, 10_000, 300_000, 86_400_000].map((value) => ({ ok: true, value })),
  );
  t.same(
    ["7", "64KiB", "2MiB", "1GiB"].map((text) => readSizeBytes(text)),
    [7, 65_536, 2_097_152, 1_073_741_824].map((value) => ({ ok: true, value })),
  );
  for (const text of ["", "-1", "1.5s", "1d", "9999999999999999s", " 1", "1KB"]) {
    t.notOk(readDurationMs(text).ok && readSizeBytes(text).ok, `"${text}"`);
  }
  t.end();
});

t.test("help teaches every flag with its variable and default", (t) => {
  const help = helpText("0.1.0");
  for (const flag of FLAGS) {
    t.ok(help.includes(`  ${flag.name}`), flag.name);
    t.ok(help.includes(flag.variable), flag.variable);
    t.ok(flag.meaning !== "", `${flag.name} says what it does`);
  }
  t.ok(help.split("\n").every((line) => line.length <= 110));
  t.end();
});

t.test("token files: roles, digests, reload, refusals", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-tokens-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "tokens");
  const reader = "reader-token-0123456789";
  const admin = "admin-token-0123456789ab";
  const write = (text: string): void => writeFileSync(path, text, { mode: 0o600 });
  write(
    `# comment\n\nreader rita ${tokenDigestText(reader)}\nadmin ada ${tokenDigestText(admin)}\n`,
  );
  const reports: (string | null)[] = [];
  const opened = TokenFile.open(path, (message) => reports.push(message));
  t.ok(opened.ok);
  if (!opened.ok) return t.end();
  const tokens = opened.value;
  t.teardown(() => tokens.close());
  const authenticator = new Authenticator(tokens, false);
  t.same(authenticator.authenticate(`Bearer ${admin}`, null), { role: "admin", name: "ada" });
  t.same(authenticator.authenticate(`bearer ${reader}`, null), { role: "reader", name: "rita" });
  for (const bad of [null, "", "Basic abc", `Bearer ${reader}x`, "Bearer short", `Bearer  `]) {
    t.equal(authenticator.authenticate(bad, null), null, String(bad));
  }
  write(`writer wil ${tokenDigestText("0123456789abcdefg")} rate=25\n`);
  const limited = TokenFile.open(path, () => undefined);
  t.match(limited.ok && limited.value.find("0123456789abcdefg"), { name: "wil", rate: 25 });
  if (limited.ok) limited.value.close();
  write(`writer wil ${tokenDigestText("0123456789abcdefg")} rate=fast\n`);
  t.match(
    TokenFile.open(path, () => undefined),
    { ok: false, message: /\[rate=<n>\]/ },
  );
  write("admin ada sha256:12\n");
  tokens.reload();
  t.match(reports[0], /line 1/, "a bad reload is reported");
  t.same(
    authenticator.authenticate(`Bearer ${admin}`, null)?.name,
    "ada",
    "and the old content stays",
  );
  write(`writer willi ${tokenDigestText(admin)}\n`);
  tokens.reload();
  t.same(authenticator.authenticate(`Bearer ${admin}`, null), { role: "writer", name: "willi" });
  chmodSync(path, 0o644);
  const lax = TokenFile.open(path, () => {});
  t.match(lax, { ok: false, message: /chmod 600/ });
  chmodSync(path, 0o440);
  const shared = TokenFile.open(path, () => {});
  t.ok(shared.ok, "a group of this process may read, as secrets are mounted");
  if (shared.ok) shared.value.close();
  t.end();
});

t.test("who may read a secret file (contract 10.2)", (t) => {
  const own = [0, 65_532];
  const cases: readonly (readonly [number, number, RegExp | null])[] = [
    [0o600, 7, null],
    [0o400, 7, null],
    [0o440, 65_532, null],
    [0o640, 0, null],
    [0o440, 7, /group 7.*none of this process/],
    [0o660, 65_532, /its group may write/],
    [0o620, 65_532, /its group may write/],
    [0o444, 65_532, /everybody/],
    [0o602, 0, /everybody/],
  ];
  for (const [mode, group, message] of cases) {
    const mistake = permissionMistake(0o100_000 | mode, group, own);
    const name = `${mode.toString(8)} of group ${group}`;
    if (message === null) t.equal(mistake, null, name);
    else t.match(mistake, message, name);
  }
  t.end();
});

t.test(
  "client certificates give roles by organisational unit; a presented token decides alone",
  (t) => {
    const authenticator = new Authenticator(null, true);
    const certificate = (...organizationalUnits: string[]) => ({
      commonName: "carl",
      organizationalUnits,
    });
    t.equal(authenticator.authenticate(null, certificate("svc-admin"))?.role, "admin");
    t.equal(authenticator.authenticate(null, certificate("svc-writer"))?.role, "writer");
    t.equal(authenticator.authenticate(null, certificate("other"))?.role, "reader");
    t.equal(authenticator.authenticate(null, null), null);
    t.equal(authenticator.authenticate("Bearer 0123456789abcdef", certificate("svc-admin")), null);
    t.equal(
      new Authenticator(null, false).authenticate(null, null)?.role,
      "admin",
      "no authentication",
    );
    t.end();
  },
);

t.test("P-007 a core left to itself runs at the pace that the flags make", (t) => {
  const { electionTicks, heartbeatTicks } = raftSettings(DEFAULT_HOST_SETTINGS, 1);
  t.same(raftSettings(DEFAULT_HOST_SETTINGS, 1).electionSpreadTicks, electionTicks);
  const own = defaultConfig(1, 1);
  t.same(
    { electionTicks, heartbeatTicks },
    {
      electionTicks: own.electionTicks,
      heartbeatTicks: own.heartbeatTicks,
    },
  );
  t.end();
});
