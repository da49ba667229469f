/**
 * What the Raft core costs by itself, without disk, network or payloads: replication steps over
 * three cores and over one, ticking idle groups, and building a core from a long log. Prints a
 * table; asserts nothing.
 *
 * Run: `node --expose-gc dist/perf/micro/raft.js`. Allocation is the growth of the heap per step,
 * collections excluded by a large young generation (`--max-semi-space-size=256`); without
 * --expose-gc that column is missing.
 */
import { fileURLToPath } from "node:url";
import { defaultConfig } from "../../src/raft/state/config.js";
import { RaftCore } from "../../src/raft/core.js";
import type { Effects, Membership, Message, RestoredState } from "../../src/raft/state/types.js";

/**
 * CPU time of this process so far, collector included: it does not depend on who else is running.
 */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function freshState(voters: readonly number[]): RestoredState {
  const membership: Membership = {
    voters,
    votersOutgoing: [],
    learners: [],
    learnersNext: [],
    autoLeave: false,
  };
  return {
    hardState: { term: 0, vote: 0, commit: 0 },
    floorIndex: 0,
    floorTerm: 0,
    termRuns: [],
    lastIndex: 0,
    configChanges: [],
    sizeRuns: [],
    appliedIndex: 0,
    awaitsSnapshot: false,
    membership,
  };
}

function makeGroup(size: number): RaftCore[] {
  const voters = Array.from({ length: size }, (_, at) => at + 1);
  return voters.map((id) => new RaftCore(defaultConfig(id, id), freshState(voters)));
}

/** Carries out one record as a host with an infinitely fast disk would. */
function carryOut(core: RaftCore, effects: Effects, network: Message[]): void {
  for (const message of effects.messages) network.push(message);
  for (const message of effects.messagesAfterWrite) {
    if (message.to === core.id) core.step(message);
    else network.push(message);
  }
  if (effects.receipt !== null) core.written(effects.receipt);
  if (effects.committed !== null) core.applied(effects.committed.last);
}

/** Runs all cores until nothing is left to do. Returns the number of messages. */
function settle(cores: readonly RaftCore[], network: Message[]): number {
  let delivered = 0;
  for (let busy = true; busy;) {
    busy = false;
    for (const core of cores) {
      while (core.hasEffects()) {
        busy = true;
        carryOut(core, core.takeEffects(), network);
      }
    }
    const arrived = network.splice(0);
    for (const message of arrived) cores[message.to - 1]?.step(message);
    delivered += arrived.length;
    if (arrived.length > 0) busy = true;
  }
  return delivered;
}

const compactEvery = 4096;

interface Figure {
  readonly name: string;
  readonly perSecond: number;
  readonly bytesPerStep: number | null;
}

function measureReplication(size: number, batch: number, steps: number): Figure {
  const cores = makeGroup(size);
  const network: Message[] = [];
  const leader = cores[0] as RaftCore;
  leader.campaign();
  settle(cores, network);
  const sizes = new Array<number>(batch).fill(100);
  const step = (count: number): void => {
    for (let done = 0; done < count; done++) {
      leader.propose(sizes);
      settle(cores, network);
      if (done % compactEvery === compactEvery - 1) {
        for (const core of cores) core.compacted(core.appliedIndex);
      }
    }
  };
  step(Math.ceil(steps / 10));
  const started = cpuMs();
  step(steps);
  const perSecond = (steps * 1000) / (cpuMs() - started);
  let bytesPerStep: number | null = null;
  if (globalThis.gc !== undefined) {
    globalThis.gc();
    const before = process.memoryUsage().heapUsed;
    step(1000);
    bytesPerStep = Math.round((process.memoryUsage().heapUsed - before) / 1000);
  }
  return { name: `${size} cores, batch of ${batch}`, perSecond, bytesPerStep };
}

/**
 * Nanoseconds per idle group and tick: ticked one by one, and by a host that asks when the next
 * tick matters.
 */
function measureTicks(): { readonly every: number; readonly skipped: number } {
  const count = 10_000;
  const config = { ...defaultConfig(1, 1), electionTicks: 1_000_000, heartbeatTicks: 1_000 };
  const cores = Array.from({ length: count }, () => new RaftCore(config, freshState([1, 2, 3])));
  const rounds = 200;
  let started = cpuMs();
  for (let round = 0; round < rounds; round++) {
    for (const core of cores) core.tick(1);
  }
  const every = ((cpuMs() - started) * 1e6) / (rounds * count);
  const due = new Int32Array(count);
  cores.forEach((core, at) => {
    due[at] = core.ticksUntilDue();
  });
  const passed = new Int32Array(count);
  started = cpuMs();
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < count; at++) {
      const now = (passed[at] as number) + 1;
      passed[at] = now;
      if (now < (due[at] as number)) continue;
      const core = cores[at] as RaftCore;
      core.tick(now);
      passed[at] = 0;
      due[at] = core.ticksUntilDue();
    }
  }
  const skipped = ((cpuMs() - started) * 1e6) / (rounds * count);
  return { every, skipped };
}

/** Microseconds to build a core from a log of a million entries in 50 terms and 20 segments. */
function measureRecovery(): number {
  const last = 1_000_000;
  const restored: RestoredState = {
    ...freshState([1, 2, 3]),
    hardState: { term: 50, vote: 1, commit: last },
    termRuns: Array.from({ length: 50 }, (_, at) => ({ first: at * 20_000 + 1, term: at + 1 })),
    lastIndex: last,
    configChanges: [{ index: 77, kind: "configChangeV2" }],
    sizeRuns: Array.from({ length: 20 }, (_, at) => {
      return { first: at * 50_000 + 1, sizeBytes: 5_000_000 };
    }),
    appliedIndex: last,
  };
  const count = 2000;
  const started = cpuMs();
  for (let made = 0; made < count; made++) new RaftCore(defaultConfig(1, made), restored);
  return ((cpuMs() - started) * 1000) / count;
}

function main(): void {
  const figures = [
    measureReplication(1, 1, 300_000),
    measureReplication(1, 64, 100_000),
    measureReplication(3, 1, 100_000),
    measureReplication(3, 64, 50_000),
  ];
  for (const { name, perSecond, bytesPerStep } of figures) {
    const rate = Math.round(perSecond).toLocaleString("en-US").padStart(10);
    const bytes = bytesPerStep === null ? "" : `   ${bytesPerStep} bytes/step`;
    process.stdout.write(`replication, ${name.padEnd(22)} ${rate} steps/s${bytes}\n`);
  }
  const { every, skipped } = measureTicks();
  process.stdout.write(`idle tick of one of 10,000 groups     ${every.toFixed(1)} ns\n`);
  process.stdout.write(`the same, skipped until due           ${skipped.toFixed(1)} ns\n`);
  process.stdout.write(
    `core from a million entries           ${measureRecovery().toFixed(1)} us\n`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
