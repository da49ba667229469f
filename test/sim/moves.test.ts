/** Leaderships that move as planned, by orders, by the balancer and by stops, in a simulated world without faults. */
import t from "tap";
import { checkNoRefusals, checkNothingLost } from "../judge/checkers/clients/no-refusals.js";
import type { OperatorKind } from "./faults/kinds.js";
import { historyOptions, judge } from "./run/judge.js";
import { planOf } from "./plan/plan.js";

t.setTimeout(240_000);

/** By then the first leaders serve (ms). */
const OPEN_MS = 6000;
const OPERATIONS = {
  set: 4,
  get: 4,
  lock: 4,
  unlock: 3,
  "get-lock": 2,
  extend: 2,
  next: 4,
  create: 1,
};

function run(seed: number, kinds: readonly OperatorKind[], everyMs: number, ticks: number) {
  const drawn = planOf(seed, "members");
  if (drawn.members === null) throw new Error("the profile has operators");
  const members = { ...drawn.members, kinds, everyMs, least: 3, most: 3 };
  const host = { ...drawn.host, initialPartitions: 4, leaderBalanceEveryMs: 1000 };
  const network = { baseMs: 1, jitterMs: 2, slowPerMillion: 0 };
  const none = Object.fromEntries(Object.keys(drawn.operations).map((kind) => [kind, 0]));
  const operations = { ...none, ...OPERATIONS } as typeof drawn.operations;
  const small = { ...drawn, nodes: 3, joiners: 0, clients: 8, thinkMs: 30, ticks };
  const disk = { readMs: 1, writeMs: 1 };
  // Whoever may not be forwarded, or has no time, is refused by rights.
  const work = { ...drawn.work, forwardedPercent: 0, vanishPerMille: 0, isPatient: true };
  const plan = { ...small, work, members, host, network, disk, operations, faults: [] };
  return { plan, judged: judge(plan) };
}

t.test("P-197 C12 C13 planned moves refuse nobody and lose nothing", (t) => {
  let moves = 0;
  for (const seed of [1, 2]) {
    const { plan, judged } = run(seed, ["transfer"], 60, 14_000);
    t.same(judged.violations, [], `seed ${seed}`);
    const { history, effects } = judged.result;
    const moved = effects["members transfersDone"] ?? 0;
    moves += moved;
    const refused = checkNoRefusals(history, OPEN_MS, moved);
    t.same(refused.violations, [], `seed ${seed}: refusals`);
    for (const verdict of checkNothingLost(history, historyOptions(plan).linearizability)) {
      t.same(verdict.violations, [], `seed ${seed}: ${verdict.property}`);
    }
  }
  t.ok(moves >= 500, `${moves} moves`);
  t.end();
});
