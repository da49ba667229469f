/**
 * What counting costs a request: each counter that a data request moves on its way, and the bytes that all of them allocate.
 * Run: npm run perf -- micro/counters
 *
 * Processor time of this process, best of nine interleaved rounds, less that of the same loop without a counter: what others do on
 * the machine meanwhile is in no figure. Each counter has its own loop, so that its call is compiled as on its own path.
 */
import { RequestTally } from "../../src/operations/admission/tally.js";
import { Observed } from "../../src/server/metrics/observed.js";
import { TrafficTally } from "../../src/server/metrics/traffic-tally.js";

const ROUNDS = 9;
const REQUESTS = 1_000_000;
/** Durations as requests have them (ms). */
const DURATIONS_MS = [0.08, 0.2, 0.4, 0.7, 0.9, 1.4, 2.2, 4, 8, 30, 0.3, 0.6, 0.5, 1.1, 3, 0.2];
const ROUTES = ["/v1/kv/try-set", "/v1/sequences/next", "/v1/locks/try-lock", "/v1/kv/get"];

const requests = new RequestTally();
const traffic = new TrafficTally();
const observed = new Observed();
const sink = new Float64Array(1);

const LOOPS: Readonly<Record<string, () => void>> = {
  "the loop": () => {
    let sum = 0;
    for (let at = 0; at < REQUESTS; at++) sum += DURATIONS_MS[at & 15] as number;
    sink[0] = sum;
  },
  "how it ended, and how long it took": () => {
    for (let at = 0; at < REQUESTS; at++) {
      requests.finished(at & 3, at & 3, false, DURATIONS_MS[at & 15] as number);
    }
  },
  "its answer by route and status (an item of a batch stream has none)": () => {
    for (let at = 0; at < REQUESTS; at++) traffic.rest.answered(ROUTES[at & 3] as string, 200);
  },
  "the turn of apply of its write, shared with nobody": () => {
    for (let at = 0; at < REQUESTS; at++) observed.applied(DURATIONS_MS[at & 15] as number);
  },
  "or the round of its read": () => {
    for (let at = 0; at < REQUESTS; at++) observed.rounds.observe(1 + (at & 7));
  },
};

function nanosecondsEach(loop: () => void): number {
  const before = process.cpuUsage();
  loop();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / REQUESTS;
}

const best = new Map<string, number>();
for (let round = -2; round < ROUNDS; round++) {
  for (const [name, loop] of Object.entries(LOOPS)) {
    const spent = nanosecondsEach(loop);
    if (round >= 0) best.set(name, Math.min(best.get(name) ?? Infinity, spent));
  }
}
const before = process.memoryUsage().heapUsed;
for (const loop of Object.values(LOOPS)) loop();
const bytes = Math.max(0, process.memoryUsage().heapUsed - before) / REQUESTS;

const base = best.get("the loop") ?? 0;
for (const [name, spent] of best) {
  console.log(`${(name === "the loop" ? spent : spent - base).toFixed(1).padStart(6)} ns  ${name}`);
}
console.log(`${bytes.toFixed(2).padStart(6)} bytes allocated a request`);
