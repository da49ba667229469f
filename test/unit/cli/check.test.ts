/** The check of a cluster: every verdict of every thing that is looked at, from facts and scrapes alone. */
import t from "tap";
import type { Catalogue, NodeSample } from "../../../src/cli/check/check-gather.js";
import {
  checksOf,
  verdictOf,
  type Check,
  type CheckLimits,
} from "../../../src/cli/check/check-rules.js";
import { checkLines, paintCheck } from "../../../src/cli/check/check-view.js";
import { figuresOf, percentileOf } from "../../../src/cli/check/exposition.js";
import type { ClusterFacts, NodeFacts } from "../../../src/cli/status/status-facts.js";
import type { NodeDebug } from "../../../src/client/mod.js";

const NOW_MS = 1_800_000_000_000;
const DAY_S = 86_400;
const LIMITS: CheckLimits = {
  latencyMs: 100,
  logSyncMs: 100,
  clockMs: 500,
  freeMib: 1024,
  certificateDays: 14,
  backupHours: 26,
};
const NODE: NodeFacts = {
  endpoint: "a:8084",
  clientEndpoint: "http://a:8083",
  nodeId: 1,
  role: "Voter",
  state: "ready",
  reason: null,
  version: "0.2.0",
  uptimeMs: 1n,
  membershipVersion: 1n,
  hostedPartitions: 1,
  leaderships: 1,
};
const PARTITIONS = {
  total: 17,
  withoutLeader: [],
  disputed: [],
  underReplicated: [],
  moving: [],
  withoutMajority: [],
};
const FACTS: ClusterFacts = {
  isInitialized: true,
  membershipVersion: 1n,
  replicationFactor: 0,
  rebalancerEnabled: false,
  voters: 1,
  nodes: [NODE],
  partitions: PARTITIONS,
  unseen: [],
  problems: [],
  level: { level: 2, possible: 2, behind: [] },
  alarms: [],
};

/** A scrape in which `slow` of 100 durable writes took up to a second. */
function scrape(slow: number, more: Readonly<Record<string, number>> = {}): string {
  const figures = {
    'svc_wal_sync_duration_seconds_bucket{le="0.01"}': 100 - slow,
    'svc_wal_sync_duration_seconds_bucket{le="1"}': 100,
    'svc_wal_sync_duration_seconds_bucket{le="+Inf"}': 100,
    'svc_storage_free_bytes{volume="log"}': 5000 * 1024 * 1024,
    'svc_storage_short{volume="log"}': 0,
    svc_store_max_bytes: 1000,
    svc_store_used_bytes: 100,
    svc_store_full: 0,
    'svc_tls_certificate_expiry_timestamp_seconds{use="https"}': NOW_MS / 1000 + 90 * DAY_S,
    ...more,
  };
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");
}

/** A scrape of `count` durable writes, of which `slow` took more than a second. */
function syncs(count: number, slow: number): string {
  const name = "svc_wal_sync_duration_seconds_bucket";
  return `${name}{le="0.01"} ${count - slow}\n${name}{le="+Inf"} ${count}\n`;
}

function debugOf(text: string, wallMs: number | null = NOW_MS): NodeDebug {
  return { version: "0.2.0", metrics: ["", text], process: wallMs === null ? {} : { wallMs } };
}

function sample(more: Partial<NodeSample> = {}, debug: NodeDebug = debugOf(scrape(0))): NodeSample {
  return {
    url: "http://a:8083",
    reads: { done: 100, failed: 0, p50Ms: 1, p99Ms: 5 },
    debug: { debug, askedMs: NOW_MS - 10_040, hadMs: NOW_MS + 40 },
    problem: "",
    ...more,
  };
}

interface Given {
  readonly facts?: Partial<ClusterFacts>;
  readonly samples?: readonly NodeSample[];
  readonly catalogue?: Catalogue;
}

function checks({ facts = {}, samples = [sample()], catalogue = null }: Given): Check[] {
  return checksOf({ ...FACTS, ...facts }, samples, catalogue, LIMITS, NOW_MS);
}

function partitions(more: Partial<typeof PARTITIONS> | Record<string, readonly number[]>): Given {
  return { facts: { partitions: { ...PARTITIONS, ...more } } };
}

function node(more: Partial<NodeFacts>): Given {
  return { facts: { nodes: [{ ...NODE, ...more }] }, samples: [] };
}

function figures(more: Readonly<Record<string, number>>, slow = 0): Given {
  return { samples: [sample({}, debugOf(scrape(slow, more)))] };
}

function reads(p99Ms: number, failed = 0, done = 100): Given {
  return { samples: [sample({ reads: { done, failed, p50Ms: 1, p99Ms } })] };
}

function backups(...ages: readonly number[]): Given {
  const catalogue = ages.map((hours) => ({
    createdAtUtc: new Date(NOW_MS - hours * 3_600_000).toISOString(),
    isInvalid: false,
    isIncomplete: false,
  }));
  return { catalogue: catalogue as unknown as Catalogue };
}

function ends(days: number): Given {
  const name = 'svc_tls_certificate_expiry_timestamp_seconds{use="https"}';
  return figures({ [name]: NOW_MS / 1000 + days * DAY_S + 60 });
}

/** Three nodes whose clocks are so far from this machine's (ms). */
function clocks(...apart: readonly number[]): Given {
  const samples = apart.map((ms) => sample({}, debugOf(scrape(0), NOW_MS + ms)));
  return { samples };
}

const NOT_SEEN = sample({ debug: null, problem: "the role admin is needed" });
const VAGUE: NodeSample = {
  ...sample(),
  debug: { debug: debugOf(scrape(0)), askedMs: NOW_MS - 30_000, hadMs: NOW_MS },
};
const free = (mib: number, isShort = 0): Given =>
  figures({
    'svc_storage_free_bytes{volume="log"}': mib * 1024 * 1024,
    'svc_storage_short{volume="log"}': isShort,
  });

/** What is given, the check that it is about, its verdict, and what is said of it. */
const CASES: readonly (readonly [Given, string, string, RegExp])[] = [
  [{}, "leaders", "ok", /^17 of 17 partitions$/],
  [partitions({ withoutLeader: [3] }), "leaders", "failed", /partition 3 without a leader/],
  [partitions({ disputed: [3, 4] }), "leaders", "failed", /partitions 3, 4 led twice/],
  [partitions({ withoutMajority: [3] }), "leaders", "failed", /without a majority/],
  [{ facts: { isInitialized: false } }, "leaders", "failed", /not initialized/],
  [{}, "replicas", "ok", /^enough of each partition$/],
  [partitions({ moving: [1, 2] }), "replicas", "ok", /replicas of 2 move/],
  [partitions({ underReplicated: [7] }), "replicas", "warning", /partition 7 with too few/],
  [{}, "version", "ok", /^0\.2\.0$/],
  [node({ version: null }), "version", "unknown", /no node/],
  [
    { facts: { nodes: [{ ...NODE, version: "0.1.0" }] } },
    "version",
    "warning",
    /^0\.1\.0, 0\.2\.0$/,
  ],
  [{}, "level", "ok", /^2$/],
  [{ facts: { level: { level: 1, possible: 2, behind: [] } } }, "level", "warning", /finalize/],
  [{ facts: { level: { level: 1, possible: 1, behind: [3] } } }, "level", "warning", /nodes 3/],
  [{ facts: { level: { level: 0, possible: 0, behind: [] } } }, "level", "unknown", /no node/],
  [{}, "reachable", "ok", /answers/],
  [node({ state: "unreachable", reason: "refused" }), "reachable", "failed", /^refused$/],
  [node({ state: "failed", reason: "no role" }), "reachable", "failed", /^no role$/],
  [node({ state: "not-asked" }), "reachable", "failed", /name it with -c/],
  [node({ state: "not-asked", role: "Learner" }), "reachable", "unknown", /name it/],
  [{}, "ready", "ok", /^ready$/],
  [node({ state: "not-ready", reason: "catching-up" }), "ready", "failed", /^catching-up$/],
  [reads(100), "reads", "ok", /p50 1\.0 ms, p99 100 ms of 100/],
  [reads(101), "reads", "warning", /p99 101 ms/],
  [reads(1001), "reads", "failed", /p99 1001 ms/],
  [reads(1, 1), "reads", "failed", /1 of 101 reads failed/],
  [reads(0, 0, 0), "reads", "failed", /0 of 0/],
  [{}, "log-sync", "ok", /p99 up to 10 ms/],
  [figures({}, 2), "log-sync", "warning", /p99 up to 1000 ms/],
  [
    figures({ 'svc_wal_sync_duration_seconds_bucket{le="+Inf"}': 200 }),
    "log-sync",
    "failed",
    /above the largest/,
  ],
  [{ samples: [sample({}, debugOf(""))] }, "log-sync", "unknown", /too few/],
  [{ samples: [sample({}, debugOf(syncs(4, 4)))] }, "log-sync", "unknown", /too few/],
  [{ samples: [sample({}, debugOf(syncs(8, 3)))] }, "log-sync", "unknown", /too few/],
  [{ samples: [sample({}, debugOf(syncs(8, 8)))] }, "log-sync", "failed", /^p50 of a few above/],
  [free(1024), "disk of log", "ok", /^1024 MiB free$/],
  [free(1023), "disk of log", "warning", /^1023 MiB free$/],
  [free(9000, 1), "disk of log", "failed", /no writes are taken/],
  [{}, "store", "ok", /^10 %/],
  [figures({ svc_store_used_bytes: 851 }), "store", "warning", /^85 %/],
  [figures({ svc_store_full: 1 }), "store", "failed", /^10 %/],
  [ends(14), "certificate of https", "ok", /14 days left/],
  [ends(13), "certificate of https", "warning", /13 days left/],
  [ends(2), "certificate of https", "failed", /2 days left/],
  [ends(-2), "certificate of https", "failed", /has ended/],
  [backups(25, 400), "backup", "ok", /25\.0 h old/],
  [backups(27), "backup", "warning", /27\.0 h old/],
  [backups(), "backup", "warning", /^none$/],
  [clocks(300), "clock", "ok", /^300 ms from this machine, ±40$/],
  [clocks(541), "clock", "warning", /^541 ms from this machine/],
  [clocks(-5041), "clock", "failed", /^-5041 ms/],
  [{ samples: [VAGUE] }, "clock", "unknown", /±10000/],
  [{ samples: [NOT_SEEN] }, "debug", "unknown", /^the role admin is needed$/],
];

t.test("each thing that is looked at, in each of its verdicts", (t) => {
  for (const [given, name, verdict, found] of CASES) {
    const all = checks(given);
    const said = all.filter(({ check }) => check === name);
    t.equal(said.length, 1, `${name} stands there once`);
    t.equal(said[0]?.verdict, verdict, `${name}: ${said[0]?.found}`);
    t.match(said[0]?.found, found);
  }
  t.end();
});

t.test("clocks are held against the middle one: one that is wrong is the only one", (t) => {
  const of = (given: Given): string[] =>
    checks(given)
      .filter(({ check }) => check === "clock")
      .map(({ verdict }) => verdict);
  t.same(of(clocks(-3000, -3010, -2990)), ["ok", "ok", "ok"], "this machine's is wrong");
  t.same(of(clocks(0, 20, 2000)), ["ok", "ok", "warning"]);
  t.same(of(clocks(0, 20, -60_000)), ["ok", "ok", "failed"]);
  t.same(of(clocks(0, 2000)), ["ok", "warning"]);
  t.end();
});

t.test("nothing of backups where none are configured; the worst verdict is that of all", (t) => {
  const good = checks({});
  t.notOk(good.some(({ check }) => check === "backup"));
  t.equal(verdictOf(good), "ok");
  t.equal(verdictOf(checks({ samples: [NOT_SEEN] })), "unknown");
  t.equal(verdictOf(checks({ samples: [NOT_SEEN], ...backups(99) })), "warning");
  t.equal(verdictOf(checks({ ...reads(1, 3), ...backups(99) })), "failed");
  const lines = checkLines(checks({ ...reads(1, 3), ...backups(99) }), null);
  t.match(lines[0], /^FAILED: \d+ checks, 1 failed, 1 beyond their limits$/);
  t.equal(checkLines(good, null)[0], `ok: ${good.length} checks`);
  const table = /^Verdict +Check +Node +Endpoint +Found +Wanted$/;
  t.match(lines[2], table);
  t.ok(lines.some((one) => /^ok +ready +1 +http:\/\/a:8083 +ready$/.test(one)));
  t.equal(paintCheck("FAILED   reads"), "\x1b[31mFAILED\x1b[0m   reads");
  t.equal(paintCheck("Verdict:  ok"), "\x1b[32mVerdict:  ok\x1b[0m");
  t.equal(paintCheck("okay"), "okay");
  t.end();
});

t.test("a scrape: labels, escapes, what is none; percentiles of what came in between", (t) => {
  const text = 'a_total 3\na{x="1",y="q\\"}"} 4.5e1\n# a 9\nab 7\na\na{x="2"} nope\na 1 2 3\n';
  t.same(figuresOf(text, "a"), [{ name: "a", labels: { x: "1", y: 'q\\"}' }, value: 45 }]);
  const of = (low: number, high: number): string =>
    `h_bucket{le="0.1"} ${low}\nh_bucket{le="+Inf"} ${high}\n`;
  t.equal(percentileOf(of(0, 100), of(100, 200), "h", 0.99, 20), 0.1, "only the time in between");
  t.equal(percentileOf(of(0, 100), of(10, 110), "h", 0.99, 20), Infinity, "too few: all of it");
  t.equal(percentileOf("", of(5, 5), "h", 0.99, 20), null);
  t.equal(percentileOf("", "", "h", 0.99, 20), null);
  t.end();
});
