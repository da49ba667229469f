/**
 * The simulator itself: same seed, same trace; leaks are caught; the false ports keep the contracts
 * of the real ones; failures are made smaller.
 */
import { PROGRAM } from "../../src/base/levels.js";
import t from "tap";
import { openLog } from "../../src/disk/log/recovery.js";
import type { FatalPort, LogPort } from "../../src/ports.js";
import { type LogHarness, logConformance } from "../conformance/log.js";
import { CLUSTER, type PeerHarness, peerConformance } from "../conformance/peers.js";
import { type StoreHarness, storeConformance } from "../conformance/store.js";
import { SimDisk } from "./disk/disk.js";
import { SimFiles } from "./disk/files.js";
import { judge } from "./run/judge.js";
import { freshLogKernels } from "./world/kernelpool.js";
import { SimNetwork } from "./net/network.js";
import { planOf } from "./plan/plan.js";
import { Life } from "./world/process.js";
import { numbersOf, ranges, replayCommand } from "./run/report.js";
import { runPlan } from "./run/run.js";
import { kindOfFailure, shrink } from "./run/shrink.js";
import { SimRows } from "./disk/store.js";
import { TripwireError, guarded } from "./world/tripwire.js";
import { World } from "./world/world.js";

/** A machine of its own for one port, whose world is run until an answer is there. */
class Bed {
  readonly world = new World(7);
  private life: Life | null = null;
  private lives = 0;

  newLife(): Life {
    this.life?.end();
    this.life = new Life(this.world, 1, ++this.lives, { rate: 1, wallOffsetMs: 0 });
    return this.life;
  }

  call<T>(start: (done: (value: T) => void) => void): Promise<T> {
    const found: T[] = [];
    start((value) => found.push(value));
    const endMs = this.world.nowMs + 60_000;
    while (found.length === 0 && this.world.nowMs < endMs) this.world.run(this.world.nowMs + 5);
    if (found.length === 0) throw new Error("the port never answered");
    return Promise.resolve(found[0] as T);
  }
}

const TEMPER = {
  readMs: 0.2,
  writeMs: 1,
  slowPerMillion: 10_000,
  writeErrorPerMillion: 0,
  readErrorPerMillion: 0,
};

const throwing: FatalPort = {
  fatal: (reason) => {
    throw new Error(reason);
  },
};

function logHarness(): LogHarness {
  const bed = new Bed();
  const disk = new SimDisk(bed.world, 1, bed.world.prng("disk"), TEMPER);
  let isFirst = true;
  return {
    survives: true,
    async open(): Promise<LogPort> {
      const life = bed.newLife();
      const options = {
        directory: "/wal",
        identity: { storageId: "a", clusterId: "b", nodeId: 1 },
        segmentBytes: 1 << 20,
        spaceRetryMs: 50,
        mayCreate: isFirst,
      };
      isFirst = false;
      const ports = {
        files: new SimFiles(disk, life),
        timers: life,
        clock: life.clock,
        logger: { log: () => undefined },
        fatal: throwing,
        meter: { logSyncMs: () => undefined },
      };
      return bed.call<LogPort>((done) => {
        openLog(options, ports, freshLogKernels(99), (opened) => {
          if (!opened.ok) throw new Error(opened.message);
          done(opened.value);
        });
      });
    },
    call: (start) => bed.call(start),
    finish: () => Promise.resolve(),
  };
}

function storeHarness(): StoreHarness {
  const bed = new Bed();
  const rows = new SimRows(bed.world, 1, bed.world.prng("store"), { commitMs: 5 });
  return {
    survives: true,
    open: () => Promise.resolve(rows.port(bed.newLife(), throwing)),
    call: (start) => bed.call(start),
    finish: () => Promise.resolve(),
  };
}

function peerHarness(): PeerHarness {
  const bed = new Bed();
  const { world } = bed;
  const temper = { baseMs: 0.5, jitterMs: 1, slowPerMillion: 10_000, silenceMs: 700 };
  const network = new SimNetwork(world, temper);
  const lives = new Map<number, number>();
  const endpointOf = (nodeId: number): string => `node-${nodeId}:8084`;
  const step = (ms: number): void => world.run(world.nowMs + ms);
  return {
    open(nodeId, clusterId = CLUSTER) {
      const number = (lives.get(nodeId) ?? 0) + 1;
      lives.set(nodeId, number);
      const life = new Life(world, nodeId, number, { rate: 1, wallOffsetMs: 0 });
      return Promise.resolve(
        network.port(life, {
          clusterId,
          nodeId,
          storageId: `storage-${nodeId}`,
          endpoint: endpointOf(nodeId),
          clientEndpoint: `http://node-${nodeId}:8083`,
          program: PROGRAM,
          storage: "lmdb",
        }),
      );
    },
    endpointOf,
    until(what, condition) {
      const endMs = world.nowMs + 60_000;
      while (!condition() && world.nowMs < endMs) step(5);
      return condition() ? Promise.resolve() : Promise.reject(new Error(`never: ${what}`));
    },
    settle() {
      step(3000);
      return Promise.resolve();
    },
    close: (port) =>
      bed.call<undefined>((done) => port.close(() => done(undefined))) as Promise<void>,
    askToJoin: (seed, request, done) => network.askToJoin(seed, request, done),
    finish: () => Promise.resolve(),
  };
}

await peerConformance(t, () => Promise.resolve(peerHarness()));
logConformance(t, "P-170 simulated log", logHarness);
storeConformance(t, "P-170 simulated store", storeHarness);

t.test("P-171 the same seed gives the same trace, word for word", (t) => {
  for (const profile of ["one", "three"]) {
    const plan = planOf(5, profile, { ticks: 8000 });
    const first = runPlan(plan, { linesMax: Infinity });
    const second = runPlan(plan, { linesMax: Infinity });
    t.equal(second.traceHash, first.traceHash);
    t.equal(second.words.join("\n"), first.words.join("\n"));
    t.equal(second.events, first.events);
    t.not(runPlan(planOf(6, profile, { ticks: 8000 })).traceHash, first.traceHash);
    const silent = runPlan(plan);
    t.equal(silent.traceHash, first.traceHash, "with or without words");
  }
  t.end();
});

t.test("P-171 a planted leak of the platform is caught", (t) => {
  const leaks: Record<string, () => unknown> = {
    "Date.now": () => Date.now(),
    "new Date": () => new Date(),
    "Math.random": () => Math.random(),
    "performance.now": () => performance.now(),
    setTimeout: () => setTimeout(() => undefined, 1),
    setImmediate: () => setImmediate(() => undefined),
    queueMicrotask: () => queueMicrotask(() => undefined),
    crypto: () => globalThis.crypto.getRandomValues(new Uint8Array(1)),
  };
  for (const [name, leak] of Object.entries(leaks)) {
    t.throws(() => guarded(leak), TripwireError, name);
    const result = runPlan(planOf(1, "calm", { ticks: 2000 }), {
      prepare: (world) => void world.schedule(1000, leak),
    });
    t.match(result.violations[0], /was used during a simulated run/, name);
  }
  t.type(Date.now(), "number", "and everything is as before");
  t.ok(Math.random() < 1);
  t.end();
});

t.test("P-171 a leak into the schedule changes the trace", (t) => {
  let calls = 0;
  const leaky = (): string =>
    runPlan(planOf(2, "calm", { ticks: 2000 }), {
      prepare: (world, servers) => {
        const delayMs = 500 + calls++;
        world.schedule(delayMs, () => servers[0]?.end("kill", "a leak"));
        world.schedule(delayMs + 100, () => servers[0]?.start());
      },
    }).traceHash;
  t.not(leaky(), leaky());
  t.end();
});

t.test("a failure is shrunk and replayed", (t) => {
  const drawn = planOf(3, "one", { ticks: 20_000 });
  const failing = (plan: typeof drawn): ReturnType<typeof runPlan> =>
    runPlan(plan, {
      prepare: (world, servers) => {
        world.schedule(4000, () => {
          if (servers[0]?.running === null) return;
          throw new Error("planted bug 17");
        });
      },
    });
  const first = failing(drawn);
  t.match(first.violations[0], /planted bug 17/);
  const small = shrink(first, (plan) => {
    const result = failing(plan);
    return { result, violations: result.violations };
  });
  t.match(small.result.violations[0], /planted bug 17/);
  t.ok(small.plan.ticks < drawn.ticks && small.plan.clients === 1);
  t.equal(kindOfFailure("Error: node 3 at 17"), kindOfFailure("Error: node 4 at 18"));
  t.match(replayCommand(small.plan, drawn), /--seed 3 --profile one --ticks \d+/);
  t.same(numbersOf(ranges([3, 1, 2, 9])), [1, 2, 3, 9]);
  t.end();
});

t.test("P-172 all machines lose power at once: nothing acknowledged is missing", (t) => {
  let losses = 0;
  let ok = 0;
  let compared = 0;
  for (let seed = 700; seed < 706; seed++) {
    const faults = ["power-loss-all", "disk-slow"] as const;
    const judged = judge(planOf(seed, "three", { ticks: 15_000, faults }));
    t.same(judged.violations, [], `seed ${seed}`);
    losses += judged.result.faults["power-loss-all"] ?? 0;
    ok += judged.result.clients.ok;
    compared += judged.evidence["reads see completed writes: compared"] ?? 0;
  }
  t.ok(losses >= 6, `the power went off: ${losses}`);
  t.ok(ok > 200 && compared > 20, `it was worked in between: ${ok} answers, ${compared} reads`);
  t.end();
});
