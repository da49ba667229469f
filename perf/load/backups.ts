/**
 * Backups of three nodes: a Full, the pause of a coordinated cut, an incremental after one key in a hundred has changed, a
 * verified chain, a restore, and what writers beside a Full feel; then the pause with many partitions.
 * Run: npm run perf -- load/backups
 *
 * SVC_PERF_KEYS (1,000,000), SVC_PERF_ROUNDS (5) and SVC_PERF_PARTITIONS (1000, of the second cluster; 0: none).
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { endAll, sleep, temporaryDirectory } from "../../test/process/cluster/server-process.js";
import { drive } from "./drive.js";
import { LocalNodes } from "./local-nodes.js";
import { largestResidentMiB } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const KEYS = Number(process.env["SVC_PERF_KEYS"] ?? 1_000_000);
const ROUNDS = Number(process.env["SVC_PERF_ROUNDS"] ?? 5);
const MANY = Number(process.env["SVC_PERF_PARTITIONS"] ?? 1000);
const PARTITIONS = 16;
const VALUE_BYTES = 100;
const KEYS_PER_CALL = 1000;
const CALLS_IN_FLIGHT = 4;
const MIB = 1024 ** 2;
/** Times that a change of leaders may be in the way of a cut. */
const PATIENCE = 10;
/** Cuts whose pause is measured, on each cluster. */
const CUTS = 4 * ROUNDS;

type Answer = Readonly<Record<string, unknown>>;

const directory = temporaryDirectory();
const backups = join(directory.path, "backups");
const restores = join(directory.path, "restores");
for (const path of [backups, restores]) mkdirSync(path, { mode: 0o700 });
const FLAGS = [
  `--pitr-backup-dir=${backups}`,
  `--pitr-restore-root=${restores}`,
  "--pitr-backup-cluster-id=perf",
  "--backup-retention-max-chains=2",
];

async function post(nodes: LocalNodes, id: number, path: string, body: object): Promise<Answer> {
  const answer = await request(`http://127.0.0.1:${nodes.portsOf(id).http}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    // A restore may take longer than this client waits by itself.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const told = (await answer.body.json()) as Answer;
  if (answer.statusCode !== 200) throw new Error(`${path}: ${JSON.stringify(told)}`);
  return told;
}

/** Sets these keys, `step` apart. */
async function fill(nodes: LocalNodes, step: number, letter: string): Promise<void> {
  const value = Buffer.alloc(VALUE_BYTES, letter).toString("base64");
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < KEYS) {
      const items: object[] = [];
      for (; items.length < KEYS_PER_CALL && next < KEYS; next += step) {
        items.push({ key: `space-${next % 1000}/key-${next}`, value });
      }
      for (;;) {
        const answer = await post(nodes, 1, "/v1/kv/try-set-many", { items }).catch(() => null);
        const told = (answer?.["items"] ?? []) as readonly { readonly type: number }[];
        if (told.length === items.length && told.every(({ type }) => type === 0)) break;
        await sleep(50);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLS_IN_FLIGHT }, worker));
}

function sizeBytes(path: string): number {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeBytes(join(path, name)), 0);
}

function artifactBytes(backup: Answer): number {
  return sizeBytes(join(backups, String(backup["backupId"]).replaceAll("-", "")));
}

interface Timed {
  readonly answer: Answer;
  readonly ms: number;
  /** Largest resident memory of these processes meanwhile (MiB). */
  readonly residentMiB: number;
}

async function timed(pids: () => readonly number[], run: () => Promise<Answer>): Promise<Timed> {
  let residentMiB = 0;
  const look = setInterval(() => {
    const living = pids();
    if (living.length > 0) residentMiB = Math.max(residentMiB, largestResidentMiB(living));
  }, 50);
  const beganMs = performance.now();
  try {
    const answer = await run();
    return { answer, ms: performance.now() - beganMs, residentMiB };
  } finally {
    clearInterval(look);
  }
}

/** Processes that restore. */
function restoring(parent: number): readonly number[] {
  const found = spawnSync("pgrep", ["-P", String(parent)], { encoding: "utf8" });
  const ids = found.stdout.split("\n").filter((line) => line !== "");
  return ids.map(Number).filter((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--restore-child");
    } catch {
      return false;
    }
  });
}

/** The node that leads meta, which takes coordinated backups. */
async function coordinator(nodes: LocalNodes): Promise<number> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${nodes.portsOf(1).http}/v1/cluster/overview`);
    const { metaLeaderNodeId } = (await answer.json()) as { metaLeaderNodeId: number };
    if (metaLeaderNodeId !== 0) return metaLeaderNodeId;
    await sleep(100);
  }
}

/** How long each of so many coordinated cuts paused the partitions (ms). */
async function pauses(nodes: LocalNodes): Promise<readonly number[]> {
  const found: number[] = [];
  let patience = PATIENCE;
  while (found.length < CUTS) {
    const id = await coordinator(nodes);
    const before = (await nodes.metrics(id)).get("svc_backup_pause_seconds_sum") ?? 0;
    try {
      await post(nodes, id, "/v1/backups/coordinated", {});
    } catch (error) {
      // Leaderships of a young cluster are still shared out: whoever leads then is asked.
      if (--patience < 0 || !/RetryableLeadershipLoss|NotBackupCoord/.test(String(error)))
        throw error;
      await sleep(1000);
      continue;
    }
    const after = (await nodes.metrics(id)).get("svc_backup_pause_seconds_sum") ?? 0;
    found.push(1000 * (after - before));
  }
  return found.sort((one, other) => one - other);
}

function pauseRow(name: string, found: readonly number[], goal: string): string[] {
  const ms = (value: number | undefined): string => `${(value ?? Number.NaN).toFixed(0)} ms`;
  return [name, `${ms(median(found))} (${ms(found[0])} to ${ms(found.at(-1))})`, goal];
}

function range(values: readonly number[], of = (value: number) => value.toFixed(1)): string {
  const sorted = [...values].sort((one, other) => one - other);
  return `${of(median(values))} (${of(sorted[0] ?? 0)} to ${of(sorted.at(-1) ?? 0)})`;
}

async function large(): Promise<void> {
  const nodes = await LocalNodes.start([...FLAGS, `--initial-cluster-partitions=${PARTITIONS}`]);
  try {
    const filledMs = performance.now();
    await fill(nodes, 1, "x");
    console.log(
      `${thousands(KEYS)} keys in ${((performance.now() - filledMs) / 1000).toFixed(0)} s`,
    );
    await sleep(5000);
    const pids = (): readonly number[] => nodes.pids;
    const restBefore = largestResidentMiB(nodes.pids);
    const seconds = { full: [] as number[], next: [] as number[], validate: [] as number[] };
    const restored: number[] = [];
    const mostMiB: number[] = [];
    const childMiB: number[] = [];
    let [fullBytes, nextBytes] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      const full = await timed(pids, () => post(nodes, 2, "/v1/backups/full", {}));
      seconds.full.push(full.ms / 1000);
      mostMiB.push(full.residentMiB);
      fullBytes = artifactBytes(full.answer);
      await fill(nodes, 100, String.fromCharCode(97 + round));
      const parentBackupId = full.answer["backupId"];
      const next = await timed(pids, () =>
        post(nodes, 2, "/v1/backups/incremental", { parentBackupId }),
      );
      if (next.answer["actualKind"] !== "Incremental") throw new Error("a Full was substituted");
      seconds.next.push(next.ms / 1000);
      nextBytes = artifactBytes(next.answer);
      const leafBackupId = next.answer["backupId"];
      const validated = await timed(pids, () =>
        post(nodes, 2, "/v1/backups/validate-chain", { leafBackupId }),
      );
      seconds.validate.push(validated.ms / 1000);
      const targetDir = join(restores, `round-${round}`);
      const server = nodes.pids[1] ?? 0;
      const back = await timed(
        () => restoring(server),
        () => post(nodes, 2, "/v1/restore", { leafBackupId, targetDir }),
      );
      restored.push(back.ms / 1000);
      childMiB.push(back.residentMiB);
      rmSync(targetDir, { recursive: true });
    }
    const bytes = fullBytes + nextBytes;
    const perSecond = (values: readonly number[], what: number): string =>
      thousands(what / median(values));
    const paused = await pauses(nodes);
    printTable(
      ["what", "median (least to most)", "goal"],
      [
        ["Full, idle, s", range(seconds.full), "8"],
        ["  keys/s", perSecond(seconds.full, KEYS), "125,000"],
        ["  MiB on the disk", (fullBytes / MIB).toFixed(1), ""],
        ["largest node before, MiB", restBefore.toFixed(0), ""],
        ["largest node meanwhile, MiB", range(mostMiB, (value) => value.toFixed(0)), "+100"],
        ["incremental, 1 % changed, s", range(seconds.next), "1.5"],
        ["  KiB on the disk", (nextBytes / 1024).toFixed(0), ""],
        ["validate-chain, s", range(seconds.validate), ""],
        ["  MB/s", perSecond(seconds.validate, bytes / 1e6), "250"],
        ["restore of both, s", range(restored), ""],
        ["  keys/s", perSecond(restored, KEYS), "80,000"],
        ["process that restores, MiB", range(childMiB, (value) => value.toFixed(0)), ""],
        pauseRow(`pause, ${PARTITIONS} partitions`, paused, "40 ms, p99 200"),
      ],
    );
    await beside(nodes);
  } finally {
    await nodes.end();
  }
}

/** Writers at half their load, with and without a Full beside them. */
async function beside(nodes: LocalNodes): Promise<void> {
  const address = nodes.ids.map((id) => `127.0.0.1:${nodes.portsOf(id).grpc}`).join(",");
  const seconds = phaseSeconds(10);
  const flags = ["--kind", "set", "--inflight", "16", "--connections", "3"];
  const rows: string[][] = [];
  for (let round = 0; round < Math.min(3, ROUNDS); round++) {
    const alone = await drive(address, seconds, flags);
    let isOver = false;
    let fulls = 0;
    const took: number[] = [];
    const taking = (async () => {
      while (!isOver) {
        const full = await timed(
          () => [],
          () => post(nodes, 2, "/v1/backups/full", {}),
        );
        took.push(full.ms / 1000);
        fulls++;
      }
    })();
    const busy = await drive(address, seconds, flags);
    isOver = true;
    await taking;
    rows.push([
      `round ${round + 1}: ${fulls} Fulls, ${range(took)} s each`,
      `${thousands(alone.operationsPerSecond)} / ${thousands(busy.operationsPerSecond)}`,
      `${((100 * busy.operationsPerSecond) / alone.operationsPerSecond).toFixed(0)} %`,
      `${alone.latencyMs.p99.toFixed(1)} / ${busy.latencyMs.p99.toFixed(1)}`,
    ]);
  }
  printTable(["sets, 16 in flight", "per second, alone / beside", "ratio", "p99 ms"], rows);
}

async function many(): Promise<void> {
  if (MANY === 0) return;
  const nodes = await LocalNodes.start([...FLAGS, `--initial-cluster-partitions=${MANY}`]);
  try {
    await sleep(10_000);
    const found = await pauses(nodes);
    const row = pauseRow(`pause, ${thousands(MANY)} partitions`, found, "400 ms, p99 1,000");
    printTable(["what", "median (least to most)", "goal"], [row]);
  } finally {
    await nodes.end();
  }
}

try {
  printMachine();
  await large();
  await many();
} finally {
  await endAll();
  directory.remove();
}
