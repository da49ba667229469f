/** lock-run and bench, as processes against a real node. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { Terminal } from "./terminal.js";
import { type Ran, cliMain, ending, runCli, startCli } from "./programs.js";

const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path, "--initial-cluster-partitions=4"));
const node = `http://${(await server.ready()).grpc}`;
t.setTimeout(120_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** A child that says what it sees and lives until it is told to go: `behaviour` runs on each signal. */
function childProgram(behaviour: string): string {
  return `
    for (const name of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"])
      process.on(name, () => { process.stdout.write(name + "\\n"); ${behaviour} });
    process.stdout.write("up " + process.env.SVC_FENCING_TOKEN + " " +
      process.env.SVC_LOCK_RESOURCE + " " + process.env.SVC_LOCK_OWNER + "\\n");
    setInterval(() => {}, 1000);`;
}

/** The process that `parent` started. */
function childOf(parent: number): number {
  return Number(readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim());
}

function lockRun(resource: string, more: readonly string[], program: string) {
  const words = ["-c", node, "lock-run", resource, ...more, "--", process.execPath, "-e", program];
  const child = startCli(words);
  const ran = ending(child);
  let output = "";
  child.stdout?.on("data", (text: string) => (output += text));
  const says = async (text: string): Promise<void> => {
    const deadline = performance.now() + 20_000;
    while (!output.includes(text)) {
      if (performance.now() > deadline) throw new Error(`never "${text}": ${output}`);
      await sleep(10);
    }
  };
  return { child, ran, says };
}

t.test(
  "lock-run: environment, exit code of the child, the lock is held meanwhile and released after",
  async (t) => {
    const { child, ran, says } = lockRun(
      "run/a",
      ["--expires", "3000", "--owner", "me"],
      childProgram("process.exit(7)"),
    );
    await says("up 0 run/a me\n");
    // Longer than the lease: it was renewed.
    await sleep(3600);
    t.match(await runCli(["-c", node, "--get-lock", "run/a"]), { stdout: "f0 me\n" });
    const busy = await runCli(["-c", node, "lock-run", "run/a", "--expires", "500", "--", "true"]);
    t.match(busy, { exit: 1, stdout: "", stderr: /^f0 not acquired [0-9a-f]{32}\n$/ });
    child.kill("SIGUSR2");
    t.match(await ran, { exit: 7, stdout: /SIGUSR2\n$/ });
    t.match(await runCli(["-c", node, "--get-lock", "run/a"]), { exit: 1, stdout: "not found\n" });
    const exec = ["--lock", "run/a", "--expires", "5000", "--exec", "--", "sh", "-c", "exit 3"];
    t.match(await runCli(["-c", node, ...exec]), { exit: 3 });
    const input = ["-c", node, "lock-run", "run/a", "--expires", "5000", "--", "cat"];
    t.match(await runCli(input, {}, "stdin is the child's\n"), {
      exit: 0,
      stdout: "stdin is the child's\n",
    });
    const missing = [
      "-c",
      node,
      "lock-run",
      "run/a",
      "--expires",
      "5000",
      "--",
      "/no/such/program",
    ];
    t.match(await runCli(missing), { exit: 127, stderr: /no such|ENOENT/i });
    t.match(await runCli(["-c", node, "--get-lock", "run/a"]), { stdout: "not found\n" });
  },
);

t.test("lock-run: signals pass through; one that ends the child is 128 + its number", async (t) => {
  const passed = lockRun("run/s", ["--expires", "5000"], childProgram(""));
  await passed.says("up ");
  for (const name of ["SIGHUP", "SIGINT", "SIGTERM"] as const) {
    passed.child.kill(name);
    await passed.says(`${name}\n`);
  }
  const ended = lockRun(
    "run/k",
    ["--expires", "5000"],
    "setInterval(() => {}, 1000); console.log('up');",
  );
  await ended.says("up");
  ended.child.kill("SIGTERM");
  t.equal((await ended.ran).exit, 143);
  // SIGKILL cannot be passed on: the child of a killed lock-run lives on, and its lock ends with its lease.
  passed.child.stdin?.end();
  process.kill(childOf(passed.child.pid ?? 0), "SIGKILL");
  t.equal((await passed.ran).exit, 137);
});

t.test("lock-run: a lost lock ends the child before the lease can have ended", async (t) => {
  const log = join(directory.path, "ended");
  const program = childProgram(
    `require("node:fs").writeFileSync(${JSON.stringify(log)}, String(Date.now())); process.exit(0);`,
  );
  const lost = lockRun("run/l", ["--expires", "2000"], program);
  await lost.says("up ");
  await sleep(1000);
  server.signal("SIGSTOP");
  const stoppedMs = Date.now();
  try {
    const ran = await lost.ran;
    t.equal(ran.exit, 4, `a lost lock is no success: ${ran.stderr}`);
    t.match(ran.stderr, /ending the command \(SIGTERM/);
    // The last renewal was answered before the node stopped: its lease of 2000 ms is the latest moment.
    const endedMs = Number(readFileSync(log, "utf8"));
    t.ok(endedMs - stoppedMs < 2000, `ended ${endedMs - stoppedMs} ms after the node stopped`);
  } finally {
    server.signal("SIGCONT");
  }
});

t.test("lock-run: a child that ignores SIGTERM is killed after the grace time", async (t) => {
  const stubborn = lockRun("run/g", ["--expires", "1000", "--grace", "200"], childProgram(""));
  await stubborn.says("up ");
  server.signal("SIGSTOP");
  try {
    t.match(await stubborn.ran, { exit: 137, stdout: /SIGTERM\n$/ });
  } finally {
    server.signal("SIGCONT");
  }
});

/** The processes that `lock-run` of this resource started, directly or not. */
function processesOf(resource: string): number[] {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return ids.map(Number).filter((id) => {
    try {
      const variables = readFileSync(`/proc/${id}/environ`, "utf8").split("\0");
      return variables.includes(`SVC_LOCK_RESOURCE=${resource}`);
    } catch {
      return false;
    }
  });
}

function isThere(id: number): boolean {
  try {
    // A process that ended and was not waited for yet has no environment any more.
    return readFileSync(`/proc/${id}/environ`, "utf8") !== "";
  } catch {
    return false;
  }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never ${what}`);
    await sleep(10);
  }
}

/** A shell with a background job, a pipeline, and a job that ignores SIGTERM: six processes. */
const FAMILY = `sleep 300 & sleep 300 | sleep 300 & sh -c 'trap "" TERM; sleep 300; :' & wait`;

t.test("lock-run: a lost lock ends all that the command started", async (t) => {
  for (const terminal of [false, true]) {
    const resource = `run/family-${String(terminal)}`;
    const words = [
      ...["-c", node, "lock-run", resource, "--expires", "1500", "--grace", "300"],
      ...["--", "sh", "-c", FAMILY],
    ];
    const screen = terminal
      ? await Terminal.start([process.execPath, cliMain, ...words], {})
      : null;
    const ran = terminal ? null : runCli(words);
    await until("all started", () => processesOf(resource).length === 6);
    const family = processesOf(resource);
    server.signal("SIGSTOP");
    try {
      const exit = screen === null ? (await ran)?.exit : await screen.ended();
      t.ok(exit !== 0 && exit !== null, `a lost lock is no success: ${String(exit)}`);
      t.same(family.filter(isThere), [], `nothing is left, terminal: ${String(terminal)}`);
    } finally {
      server.signal("SIGCONT");
      screen?.close();
      for (const id of family.filter(isThere)) process.kill(id, "SIGKILL");
    }
  }
});

t.test("lock-run: a signal reaches the whole command; the keyboard's only once", async (t) => {
  const words = ["-c", node, "lock-run", "run/all", "--expires", "20000", "--"];
  const stopped = startCli([...words, "sh", "-c", "sleep 300 | sleep 300 & wait"]);
  const ran = ending(stopped);
  await until("all started", () => processesOf("run/all").length === 3);
  const family = processesOf("run/all");
  stopped.kill("SIGTERM");
  t.equal((await ran).exit, 143);
  await until("all gone", () => !family.some(isThere));
  const counter = `let n = 0; process.on("SIGINT", () => { n += 1; setTimeout(() => {
    console.log("interrupts " + n); process.exit(n); }, 300); });
    setInterval(() => {}, 1000); console.log("up");`;
  const command = [process.execPath, cliMain, ...words, process.execPath, "-e", counter];
  const screen = await Terminal.start(command, {});
  await screen.see("up");
  await screen.send("\x03");
  await screen.see("interrupts 1");
  t.equal(await screen.ended(), 1);
  screen.close();
});

t.test(
  "lock-run: stopped without a terminal, the command stops too and goes on with it",
  async (t) => {
    const stateOf = (id: number): string =>
      /\) (\S)/.exec(readFileSync(`/proc/${id}/stat`, "utf8"))?.[1] ?? "";
    const ticking = lockRun("run/stop", ["--expires", "30000"], childProgram("process.exit(0)"));
    await ticking.says("up ");
    const own = ticking.child.pid ?? 0;
    const inner = childOf(own);
    ticking.child.kill("SIGTSTP");
    await until("stopped", () => stateOf(own) === "T" && stateOf(inner) === "T");
    ticking.child.kill("SIGCONT");
    await until("running", () => stateOf(own) !== "T" && stateOf(inner) !== "T");
    ticking.child.kill("SIGTERM");
    t.equal((await ticking.ran).exit, 0);
  },
);

t.test("lock-run: waits for the lock; a signal while waiting starts nothing", async (t) => {
  const mark = join(directory.path, "started");
  t.match(await runCli(["-c", node, "--lock", "run/w", "--expires", "60000", "--owner", "o"]), {
    exit: 0,
  });
  const waiting = startCli([
    "-c",
    node,
    "lock-run",
    "run/w",
    "--expires",
    "5000",
    "--wait",
    "60000",
    "--",
    "touch",
    mark,
  ]);
  const ended = ending(waiting);
  await sleep(700);
  waiting.kill("SIGTERM");
  t.match(await ended, { exit: 143 });
  t.notOk(existsSync(mark));
  const second = runCli([
    "-c",
    node,
    "lock-run",
    "run/w",
    "--expires",
    "5000",
    "--wait",
    "20000",
    "--",
    "touch",
    mark,
  ]);
  await sleep(300);
  t.match(await runCli(["-c", node, "--unlock", "run/w", "--owner", "o"]), { exit: 0 });
  t.match(await second, { exit: 0 });
  t.ok(existsSync(mark));
});

t.test("bench: figures, histogram, JSON; what it made is gone afterwards", async (t) => {
  const short = ["--duration", "0.5", "--inflight", "8"];
  for (const subject of ["sequences", "locks", "kv"]) {
    const ran = await runCli([
      "-c",
      node,
      "bench",
      subject,
      ...short,
      "--connections",
      "2",
      "--format",
      "json",
    ]);
    t.equal(ran.exit, 0, ran.stderr);
    const report = JSON.parse(ran.stdout) as {
      readonly operations: number;
      readonly perSecond: number;
      readonly failures: object;
      readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
      readonly histogram: readonly { readonly count: number }[];
    };
    t.ok(report.operations > 10 && report.perSecond > 10, `${subject}: ${report.operations}`);
    t.same(report.failures, {});
    const { p50, p99, max } = report.latencyMs;
    t.ok(p50 > 0 && p50 <= p99 && p99 <= max * 1.001, JSON.stringify(report.latencyMs));
    const counted = report.histogram.reduce((sum, band) => sum + band.count, 0);
    t.equal(counted, report.operations, "the histogram holds every operation");
  }
  const console = await runCli(["-c", node, "bench", "sequences", ...short, "--rate", "200"]);
  t.match(console.stdout, /200\/s planned[\s\S]*from the planned start\): p50 [\s\S]* ms │█+ /);
  const count = Number(/(\d+) operations in/.exec(console.stdout)?.[1]);
  t.ok(count >= 80 && count <= 101, `${count} of 100 planned`);
  t.match(await runCli(["-c", node, "--scan-by-prefix", "svc-bench"]), { stdout: "" });
  t.match(await runCli(["-c", node, "bench", "kv", "--inflight", "0"]), { exit: 2 });
  t.match(await runCli(["-c", "http://127.0.0.1:1", "-t", "0.5", "bench", "kv"]), { exit: 3 });
});

t.test("bench: Ctrl+C shows what was measured, cleans up and ends with 130", async (t) => {
  for (const [subject, left] of [
    ["sequences", null],
    ["locks", null],
    ["kv", "--scan-by-prefix"],
  ] as const) {
    const words = ["bench", subject, "--duration", "60", "--inflight", "8", "--connections", "16"];
    const interrupted = async (afterMs: number): Promise<Ran> => {
      const child = startCli(["-c", node, ...words]);
      const ran = ending(child);
      await sleep(afterMs);
      child.kill("SIGINT");
      return ran;
    };
    let ran = await interrupted(1200);
    // On a busy machine it had not begun to measure.
    if (!ran.stdout.includes("operations in")) ran = await interrupted(12_000);
    const { exit, stdout, stderr } = ran;
    t.equal(exit, 130, stderr);
    t.equal(stderr, "");
    t.match(stdout, /operations in/);
    if (left !== null) t.match(await runCli(["-c", node, left, "svc-bench"]), { stdout: "" });
  }
});

t.test(
  "bench: a failure and a stopped node end in bounded time, what was made is deleted",
  async (t) => {
    const child = startCli([
      "-c",
      node,
      "-t",
      "2",
      "bench",
      "kv",
      "--duration",
      "60",
      "--inflight",
      "8",
    ]);
    const ran = ending(child);
    await sleep(1200);
    server.signal("SIGSTOP");
    const stoppedMs = performance.now();
    child.kill("SIGTERM");
    await sleep(2500);
    server.signal("SIGCONT");
    const { exit, stderr } = await ran;
    t.equal(exit, 143, stderr);
    t.ok(performance.now() - stoppedMs < 12_000);
    t.match(await runCli(["-c", node, "--scan-by-prefix", "svc-bench"]), { stdout: "" });
  },
);

interface Stalled {
  readonly stallMs: number;
  /** The whole stall was within the time in which operations were planned. */
  readonly isInside: boolean;
  readonly operations: number;
  /** Operations whose latency is at least half of the stall. */
  readonly slow: number;
}

const RATE = 100;
const PLANNED_MS = 4000;
const INFLIGHT = 4;
const STALL_MS = 600;

/** Runs `bench --rate` and stops the node for a while, once an operation was seen to be made. */
async function benchWithStall(client: SvcClient): Promise<Stalled> {
  const options = ["--duration", PLANNED_MS / 1000, "--rate", RATE, "--inflight", INFLIGHT];
  const words = ["-c", node, "bench", "kv", ...options.map(String), "--format", "json"];
  const ran = runCli(words);
  // The last time at which nothing was there yet: the plan did not begin earlier.
  let beganMs = performance.now();
  for (;;) {
    const askedMs = performance.now();
    const page = await client.kv.scanPage("svc-bench", { limit: 1 });
    if (page.items.length > 0) break;
    beganMs = askedMs;
    await sleep(5);
  }
  await sleep(300);
  server.signal("SIGSTOP");
  const stoppedMs = performance.now();
  await sleep(STALL_MS);
  const continuedMs = performance.now();
  server.signal("SIGCONT");
  const stallMs = continuedMs - stoppedMs;
  const report = JSON.parse((await ran).stdout) as {
    readonly operations: number;
    readonly histogram: readonly { readonly fromMs: number; readonly count: number }[];
  };
  const slowBands = report.histogram.filter((band) => band.fromMs >= stallMs / 2);
  return {
    stallMs,
    isInside: continuedMs < beganMs + PLANNED_MS,
    operations: report.operations,
    slow: slowBands.reduce((sum, band) => sum + band.count, 0),
  };
}

t.test(
  "bench --rate counts from the plan: a stall is seen by every operation that it delayed",
  async (t) => {
    const client = new SvcClient({ endpoints: node });
    t.teardown(() => client.close());
    let seen = await benchWithStall(client);
    // A machine that is busy enough can let the stall begin too late: then it shows nothing.
    for (let again = 0; again < 3 && !seen.isInside; again++) seen = await benchWithStall(client);
    t.ok(seen.isInside, "the stall was within the plan");
    // What was planned in the first half of the stall waited for at least its second half. Counted
    // from their sending, only the operations in flight would show it. A band of the histogram is a
    // factor of 1.41 wide: half of them can be in a band that begins below.
    const delayed = (seen.stallMs / 2) * (RATE / 1000);
    t.ok(seen.slow >= delayed / 4 && seen.slow > INFLIGHT, JSON.stringify(seen));
  },
);

t.test("bench draws its progress on a terminal only", async (t) => {
  const words = [process.execPath, cliMain, "-c", node, "bench", "sequences", "--duration", "1"];
  const terminal = await Terminal.start(words, { HOME: directory.path }, 80);
  await terminal.see("\\[#+-*\\] +\\d+ % \\d+ operations");
  await terminal.see("p50 ");
  t.equal(await terminal.ended(), 0);
  await terminal.settle();
  t.notMatch(terminal.screen, /\[#+/, "and wipes it");
  terminal.close();
});
