/** The text of a scrape: its form, its families beside docs/metrics.md, its bounds. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { partitionId } from "../../../src/base/ids.js";
import type { GroupFacts } from "../../../src/host/requests/results.js";
import { type RunningServer, startServer } from "../../../src/server/assemble.js";
import { makeConfig } from "../../../src/server/flags/config.js";
import { readFlags } from "../../../src/server/flags/flags.js";
import { Distribution } from "../../../src/host/requests/distribution.js";
import { groupLines } from "../../../src/server/metrics/group-lines.js";
import { JointAges } from "../../../src/server/metrics/observed.js";
import { inSlices } from "../../../src/server/metrics/slices.js";
import { readExposition } from "../../doubles/server/exposition.js";
import { readText } from "../../tidy/sources.js";

/** A node by itself. */
async function started(t: Test): Promise<RunningServer> {
  const path = mkdtempSync(join(tmpdir(), "svc-metrics-"));
  const ports = ["grpc-port", "http-port", "health-port"].map((name) => `--${name}=0`);
  const raw = readFlags([...ports, "--https-port=off", `--storage-path=${path}`], {});
  const config = raw.ok ? makeConfig(raw.value, {}) : raw;
  if (!config.ok) throw new Error(config.message);
  const server = await startServer(config.value, { log: () => undefined });
  if (!server.ok) throw new Error(server.message);
  t.teardown(async () => {
    await new Promise<void>((resolve) => server.value.stop(resolve));
    rmSync(path, { recursive: true, force: true });
  });
  return server.value;
}

/** What it shows after clients did something to it. */
async function scraped(t: Test): Promise<string> {
  const server = await started(t);
  await used(server);
  const texts = [metricsOf(server), metricsOf(server)];
  const [one = "", two] = await Promise.all(texts);
  t.equal(readExposition(one).families.size, readExposition(two ?? "").families.size);
  return one;
}

async function metricsOf({ addresses }: RunningServer): Promise<string> {
  return (await fetch(`http://${addresses.http}/metrics`)).text();
}

async function used({ addresses }: RunningServer): Promise<void> {
  const base = `http://${addresses.http}`;
  while (!(await fetch(`${base}/readyz`)).ok) await new Promise((done) => setTimeout(done, 20));
  const post = (path: string, body: object): Promise<Response> =>
    fetch(base + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const lock = { resource: "a", owner: "b", expiresMs: 60_000, durability: 1 };
  await (await post("/v1/locks/try-lock", lock)).text();
  await (await fetch(`${base}/nothing`)).text();
  await (await fetch(`${base}/v1/cluster/membership`)).text();
}

t.test("every family has HELP and TYPE, is described, and promtool finds no fault", async (t) => {
  const text = await scraped(t);
  const { families, faults } = readExposition(text);
  t.same(faults, []);
  const described = [
    ...readText("docs/metrics.md").matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$/gm),
  ];
  const shown = described.map(([, name, type, , help]) => [name, type, help]);
  const real = [...families.values()].map(({ name, type, help }) => [name, type, help]);
  t.same(
    shown,
    real.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
    "docs/metrics.md",
  );
  for (const [, name = "", , labels = ""] of described) {
    const known = labels.split(", ");
    for (const label of families.get(name)?.labels ?? []) {
      t.ok(known.includes(label), `docs/metrics.md: ${name} has the label ${label}`);
    }
  }
  const promtool = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  if (promtool.error !== undefined) t.pass("skipped: promtool is not installed");
  else t.equal(promtool.stderr + promtool.stdout, "", "promtool check metrics");
});

t.test("what happened is counted where it happened", async (t) => {
  const { families } = readExposition(await scraped(t));
  const value = (series: string): number => {
    const name = series.split("{")[0] ?? "";
    return families.get(name)?.samples.get(series) ?? -1;
  };
  t.equal(value('svc_http_responses_total{route="other",status="404"}'), 1);
  t.ok(value('svc_http_responses_total{route="/readyz",status="200"}') >= 1);
  t.ok(value('svc_client_bytes_total{direction="received"}') > 100);
  t.ok(value('svc_client_bytes_total{direction="sent"}') > 100);
  t.equal(value("svc_ready"), 1);
  t.equal(value('svc_members{role="voter"}'), 1);
  t.equal(value("svc_membership_version"), 1);
  t.equal(value('svc_partitions{state="serving"}'), 17);
  t.equal(value('svc_elections_total{result="won"}'), 17);
  t.ok(value('svc_proposals_total{result="applied"}') >= 1);
  t.ok(value('svc_storage_free_bytes{volume="log"}') > 0);
  t.ok(value("svc_store_max_bytes") === 64 * 1024 ** 3);
  t.ok(value("process_open_fds") > 5);
  const seconds = Date.now() / 1000;
  t.ok(Math.abs(value("process_start_time_seconds") - seconds) < 600, "in this run");
  const kinds = [...(families.get("svc_request_duration_seconds")?.samples.keys() ?? [])];
  t.equal(kinds.filter((key) => key.includes("_count")).length, 2, "of kinds that were used");
  const calls = 'svc_requests_total{api="cluster",operation="membership",outcome="Success"}';
  t.equal(value(calls), 1, "administrative calls too");
  t.equal(value("svc_lock_expiries_total"), 0);
  t.equal(value('svc_snapshots_total{direction="received",result="failed"}'), 0);
});

t.test("3.8 rows and held locks of a node are counted while somebody scrapes", async (t) => {
  const server = await started(t);
  await used(server);
  const isCounted = (text: string): boolean =>
    /^svc_locks_held 1$/m.test(text) && /^svc_rows\{kind="lock"\} 1$/m.test(text);
  while (!isCounted(await metricsOf(server))) await new Promise((done) => setTimeout(done, 50));
});

function facts(partition: number, change: Partial<GroupFacts> = {}): GroupFacts {
  return {
    partition: partitionId(partition),
    leading: true,
    serving: true,
    leaderNode: 1,
    caughtUp: true,
    inherits: false,
    term: 1,
    commitIndex: 10,
    appliedIndex: 10,
    lastIndex: 10,
    flushedIndex: 10,
    queuedCommands: 0,
    queuedBytes: 0,
    pendingProposals: 0,
    inFlightEntries: 0,
    waitingReads: 0,
    quiesced: false,
    joint: false,
    leasesUntilMs: 0,
    peers: [],
    ...change,
  };
}

function linesOf(groups: readonly GroupFacts[], changes = new Map<never, number>()): string[] {
  const lines: string[] = [];
  // All steps are run; there is nothing to see in one.
  Array.from(groupLines(lines, groups, changes));
  return lines;
}

t.test("3.8 above 256 partitions only those out of order have series, 64 at most", (t) => {
  const shown = (groups: readonly GroupFacts[]): string[] =>
    linesOf(groups).filter((line) => line.startsWith("svc_raft_term{"));
  const many = (count: number, odd: number): GroupFacts[] =>
    Array.from({ length: count }, (_, at) =>
      facts(at + 1, at < odd ? { leading: false, serving: false, leaderNode: 0 } : {}),
    );
  t.equal(shown(many(256, 0)).length, 256);
  t.same(shown(many(257, 0)), []);
  t.same(shown(many(257, 2)), ['svc_raft_term{partition="1"} 1', 'svc_raft_term{partition="2"} 1']);
  t.equal(shown(many(300, 100)).length, 64);
  const sums = linesOf(many(300, 100));
  for (const line of [
    'svc_partitions{state="leaderless"} 100',
    'svc_partitions{state="serving"} 200',
    "svc_partitions_leading 200",
    "svc_partitions_without_leader 100",
  ]) {
    t.ok(sums.includes(line), line);
  }
  const lagging = {
    peers: [{ node: 2, state: "replicate", learner: false, lagEntries: 5000, inFlight: 1 }],
  } as const;
  const behind = [
    facts(301, { appliedIndex: 5, commitIndex: 2000 }),
    facts(302, { serving: false }),
    facts(303, { leading: false, caughtUp: false }),
    facts(304, lagging),
  ];
  const all = [...many(300, 0), ...behind];
  t.equal(shown(all).length, 4, "lag, a leader that does not serve, a follower that is behind");
  t.ok(linesOf(all).includes("svc_apply_lag_entries_max 1995"));
  t.end();
});

t.test(
  "a scrape gives way: no piece is longer than its time, and nothing is left out",
  async (t) => {
    let nowMs = 0;
    let piece = 0;
    const pieces: number[] = [];
    function* steps(): Generator<void> {
      for (let at = 0; at < 50; at++) {
        nowMs += 0.5;
        piece++;
        yield;
      }
    }
    const watch = setInterval(() => undefined, 1);
    let isOver = false;
    const look = (): void => {
      pieces.push(piece);
      piece = 0;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await inSlices(steps(), () => nowMs);
    isOver = true;
    clearInterval(watch);
    t.ok(Math.max(...pieces) <= 8, `at most four steps of 0.5 ms a piece: ${pieces.join(" ")}`);
    t.equal(nowMs, 25);
    function* failing(): Generator<void> {
      yield;
      throw new Error("no");
    }
    await t.rejects(inSlices(failing()), /no/);
  },
);

t.test("a histogram of numbers: a bound belongs to its bucket", (t) => {
  const distribution = new Distribution([1, 2]);
  for (const value of [0, 1, 1.5, 2, 7]) distribution.observe(value);
  t.same([...distribution.counts], [2, 2, 1]);
  t.equal(distribution.sum, 11.5);
  t.end();
});

t.test("P-085 the age of a joint configuration is that of the oldest, and ends with it", (t) => {
  let nowMs = 0;
  const ages = new JointAges(() => nowMs);
  const see = (...joint: number[]): number => {
    const all = [1, 2, 3].map((at) => facts(at, { joint: joint.includes(at) }));
    t.equal([...ages.seen(all)].length, 3, "all go on");
    return ages.ageMs();
  };
  t.equal(see(), 0);
  t.equal(see(2), 0);
  nowMs = 5000;
  t.equal(see(2, 3), 5000);
  nowMs = 8000;
  t.equal(see(3), 3000);
  t.equal(see(), 0);
  t.end();
});
