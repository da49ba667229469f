/**
 * Prints what each kind of operation costs, counted, as JSON: `costs.test.ts` starts it with flags
 * that make what is allocated the same in each run.
 */
import { memoryUsage } from "node:process";
import { create, get, lock, next, set, unlock } from "../../doubles/operations/fixture.js";
import { CountedCluster, type Work } from "./counted-cluster.js";

const VALUE = "v".repeat(100);
const NAMES = 10;
const CALLERS = 64;
const OPERATIONS = 640;
const OPERATIONS_OF_ONE = 64;

/** Not refused, and of one of these types. */
function of(...types: readonly number[]): Work["isGood"] {
  return (answer) => answer.refusal === null && "type" in answer && types.includes(answer.type);
}

const DONE = 0;
const VALUE_FOUND = 3;
const UNLOCKED = 3;

const WORKS: Readonly<Record<string, Work>> = {
  set: { request: (caller) => set(`bucket-${caller}/key`, VALUE), isGood: of(DONE) },
  get: { request: (caller) => get(`bucket-${caller % NAMES}/key`), isGood: of(VALUE_FOUND) },
  "lock or unlock": {
    request: (caller, own) => (own % 2 === 0 ? lock : unlock)(`lock/${caller}`, "owner"),
    isGood: of(DONE, UNLOCKED),
  },
  next: { request: () => next("hot"), isGood: of(DONE) },
};

const cluster = new CountedCluster();
cluster.run({ request: () => create("hot"), isGood: of(DONE) }, 1, 1);

const collect = globalThis.gc;
const costs: Record<string, Record<string, number>> = {};
for (const [name, work] of Object.entries(WORKS)) {
  for (const callers of [CALLERS, 1]) {
    const count = callers === 1 ? OPERATIONS_OF_ONE : OPERATIONS;
    // The first time fills tables and makes code.
    cluster.run(work, callers, count);
    collect?.();
    const beforeBytes = memoryUsage().heapUsed;
    const counts = cluster.run(work, callers, count);
    counts.set("allocated bytes", memoryUsage().heapUsed - beforeBytes);
    const perOperation = [...counts].map(([what, sum]) => [what, sum / count] as const);
    costs[`${name}, ${callers}`] = Object.fromEntries(perOperation);
  }
}
console.log(JSON.stringify(costs));
