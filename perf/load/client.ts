/**
 * The client library under load from one process against one node: values per second, durable operations per second,
 * values of a prefetched supply, and the client's processor time per call.
 * Run: npm run perf -- load/client
 */
import { SvcClient } from "../../src/client/mod.js";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const ROUNDS = 3;
const IN_FLIGHT = 256;
const SEQUENCES = 16;
const PREFETCH = 50_000;

interface Figure {
  readonly perSecond: number;
  readonly processorMicroseconds: number;
}

/** Keeps `inFlight` loops of `step` going for `seconds`; a step makes one call. */
async function drive(
  inFlight: number,
  seconds: number,
  step: (loop: number, at: number) => Promise<unknown>,
): Promise<Figure> {
  let calls = 0;
  let running = true;
  const loop = async (number: number): Promise<void> => {
    for (let at = 0; running; at++) {
      await step(number, at);
      calls += 1;
    }
  };
  const loops = Array.from({ length: inFlight }, (_, number) => loop(number));
  await new Promise((resolve) => setTimeout(resolve, (seconds * 1000) / 4));
  const first = calls;
  const begin = performance.now();
  const usage = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const used = process.cpuUsage(usage);
  const elapsedMs = performance.now() - begin;
  const done = calls - first;
  running = false;
  await Promise.all(loops);
  return {
    perSecond: (done * 1000) / elapsedMs,
    processorMicroseconds: (used.user + used.system) / done,
  };
}

/** A supply is driven in one loop: it has no round trips to overlap. */
async function drivePrefetch(client: SvcClient, seconds: number): Promise<Figure> {
  const supply = client.sequence("load/0").prefetch(PREFETCH);
  for (let at = 0; at < PREFETCH; at++) await supply.next();
  const begin = performance.now();
  const usage = process.cpuUsage();
  let done = 0;
  while (performance.now() - begin < seconds * 1000) {
    for (let at = 0; at < 1000; at++) await supply.next();
    done += 1000;
  }
  const used = process.cpuUsage(usage);
  const elapsedMs = performance.now() - begin;
  supply.close();
  return {
    perSecond: (done * 1000) / elapsedMs,
    processorMicroseconds: (used.user + used.system) / done,
  };
}

const directory = temporaryDirectory();
try {
  printMachine();
  const server = new ServerProcess(nodeFlags(directory.path));
  const { grpc, http } = await server.ready();
  const client = new SvcClient({ endpoints: grpc });
  const rest = new SvcClient({ endpoints: http, transport: "rest" });
  for (let at = 0; at < SEQUENCES; at++) {
    await client.sequences.ensure(`load/${at}`, { blockSize: 100_000 });
  }
  const seconds = phaseSeconds(3);
  const locks = Array.from({ length: IN_FLIGHT }, (_, loop) => ({
    owner: `owner-${loop}`,
    leaseMs: 60_000,
  }));
  const value = Buffer.alloc(100, 7);
  const shapes: readonly (readonly [string, () => Promise<Figure>])[] = [
    [
      `next, ${IN_FLIGHT} in flight`,
      () => drive(IN_FLIGHT, seconds, (loop) => client.sequences.next(`load/${loop % SEQUENCES}`)),
    ],
    [
      `tryLock + unlock, durable, ${IN_FLIGHT} in flight`,
      () =>
        drive(IN_FLIGHT, seconds, (loop, at) => {
          const step = locks[loop] as (typeof locks)[number];
          const resource = `load/lock-${loop}`;
          return at % 2 === 0
            ? client.locks.tryLock(resource, step)
            : client.locks.unlock(resource, step);
        }),
    ],
    [
      `set 100 B, durable, ${IN_FLIGHT} in flight`,
      () => drive(IN_FLIGHT, seconds, (loop) => client.kv.set(`load/${loop}`, value)),
    ],
    [
      `get 100 B, ${IN_FLIGHT} in flight`,
      () => drive(IN_FLIGHT, seconds, (loop) => client.kv.get(`load/${loop}`)),
    ],
    ["next, one at a time", () => drive(1, seconds, () => client.sequences.next("load/0"))],
    [`prefetch(${thousands(PREFETCH)}), one loop`, () => drivePrefetch(client, seconds)],
    [
      "next over REST, 64 in flight",
      () => drive(64, seconds, (loop) => rest.sequences.next(`load/${loop % SEQUENCES}`)),
    ],
  ];
  const rows: string[][] = [];
  for (const [title, run] of shapes) {
    const figures: Figure[] = [];
    for (let round = 0; round < ROUNDS; round++) figures.push(await run());
    rows.push([
      title,
      thousands(median(figures.map((figure) => figure.perSecond))),
      median(figures.map((figure) => figure.processorMicroseconds)).toFixed(2),
    ]);
  }
  printTable(["client, one process", "calls/s", "processor µs per call"], rows);
  await client.close();
  await rest.close();
  await server.stop();
} finally {
  await endAll();
  directory.remove();
}
