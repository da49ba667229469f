/** The time of the client: the platform's own, the clock of leases on it, and the virtual one of the tests. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import t from "tap";
import { SystemClock } from "../../../src/client/time/clock.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { root } from "../../tidy/sources.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test(
  "platform: a delay beyond 2^31 - 1 ms does not end at once, what is cancelled never",
  async (t) => {
    let fired = 0;
    const count = (): void => void (fired += 1);
    const long = [2 ** 31, 2 ** 32, Infinity].map((ms) => systemPlatform.after(ms, count));
    systemPlatform.after(1, count).cancel();
    await new Promise<void>((resolve) => void systemPlatform.after(20, resolve));
    t.equal(fired, 0);
    for (const timer of long) timer.cancel();
    const order: string[] = [];
    systemPlatform.soon(() => order.push("soon"));
    order.push("now");
    await turn();
    t.same(order, ["now", "soon"]);
    const drawn = Array.from({ length: 100 }, () => systemPlatform.random());
    t.ok(drawn.every((number) => number >= 0 && number < 1) && new Set(drawn).size > 90);
  },
);

t.test("platform: only a timer that is held keeps a program alive", (t) => {
  const library = join(root, "dist/src/client/time/system-platform.js");
  const program = `
    const { systemPlatform } = await import(${JSON.stringify(library)});
    const [free, held] = [60_000, 50].map((ms) =>
      systemPlatform.after(ms, () => console.log("fired " + ms)));
    free.unref();
    held.unref();
    held.ref();`;
  const words = ["--input-type=module", "-e", program];
  const ran = spawnSync(process.execPath, words, { encoding: "utf8", timeout: 30_000 });
  t.equal(ran.stdout, "fired 50\n", ran.stderr);
  t.end();
});

t.test("clock of leases: a suspension counts, a coarse uptime does not", (t) => {
  const machine = { ...systemPlatform, runMs: 5000, awayMs: 0, grainMs: 10 };
  machine.nowMs = (): number => machine.runMs;
  machine.uptimeMs = (): number =>
    Math.floor((100_000 + machine.runMs + machine.awayMs) / machine.grainMs) * machine.grainMs;
  const clock = new SystemClock(machine);
  t.equal(clock.nowMs(), 5000);
  for (let step = 0; step < 100; step++) {
    machine.runMs += 3.3;
    t.equal(clock.nowMs(), machine.runMs, "the grain of the uptime is no suspension");
  }
  machine.awayMs = 60_000;
  machine.runMs += 5;
  const woken = clock.nowMs();
  t.ok(Math.abs(woken - machine.runMs - 60_000) <= machine.grainMs, `${woken}`);
  machine.awayMs = 0;
  machine.runMs += 5;
  t.equal(clock.nowMs(), woken + 5, "never backwards");
  t.end();
});

t.test(
  "virtual time: timers in order, passing only when nothing moves, late ones after a block",
  async (t) => {
    const time = new VirtualTime();
    t.teardown(() => time.stop());
    const order: string[] = [];
    const begin = time.nowMs();
    const realMs = performance.now();
    for (const [name, ms] of [
      ["c", 3_600_000],
      ["a", 5],
      ["b", 5],
      ["d", 3_600_001],
    ] as const) {
      time.after(ms, () => order.push(`${name} ${time.nowMs() - begin}`));
    }
    time.after(7, () => order.push("never")).cancel();
    // Many turns of the loop: none of them lets time pass while one follows the other.
    for (let turns = 0; turns < 10; turns++) await turn();
    t.equal(time.nowMs(), begin);
    await time.sleep(3_600_002);
    t.same(order, ["a 5", "b 5", "c 3600000", "d 3600001"]);
    t.ok(performance.now() - realMs < 60_000, "an hour");
    order.length = 0;
    time.after(10, () => order.push("due"));
    setImmediate(() => order.push("input"));
    time.block(100);
    t.same(order, [], "nothing runs within the turn that blocks");
    await turn();
    t.same(order, ["due", "input"]);
    t.equal(time.nowMs(), begin + 3_600_102);
  },
);

t.test("virtual time: none passes before a connection is taken at its other end", async (t) => {
  const time = new VirtualTime();
  t.teardown(() => time.stop());
  // A thread's server stands for one whose kernel is late: its end is not seen by this thread.
  const program = `
    const { parentPort } = require("node:worker_threads");
    const answer = (socket) => setTimeout(() => socket.end("taken"), 30);
    const server = require("node:net").createServer(answer);
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(program, { eval: true });
  t.teardown(() => worker.terminate());
  const [port] = (await once(worker, "message")) as [number];
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const order: string[] = [];
  time.after(90_000, () => order.push("late"));
  socket.once("data", () => order.push("answered"));
  await once(socket, "close");
  await time.sleep(90_000);
  t.same(order, ["answered", "late"]);
});
