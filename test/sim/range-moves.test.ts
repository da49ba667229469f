/**
 * Key ranges that move in a simulated world without faults: callers see a pause and never a refusal;
 * and what decides about such worlds.
 */
import t from "tap";
import { Prng } from "../../src/base/prng.js";
import { checkNoRefusals } from "../judge/checkers/clients/no-refusals.js";
import { MoveMoments } from "./faults/moves.js";
import type { RangeKind } from "./faults/kinds.js";
import { rangePlan } from "./members/rangeplan.js";
import { planOf } from "./plan/plan.js";
import { judge } from "./run/judge.js";

/** Worlds that are tried; more take minutes. */
const SEEDS = Number(process.env["SVC_CALM_WORLDS"] ?? 1);
t.setTimeout(240_000 * SEEDS);
/** By then the first leaders serve (ms). */
const OPEN_MS = 6000;
const OPERATIONS = {
  ...{ set: 6, "set-conditional": 3, "set-expiring": 2, "kv-extend": 2, "kv-delete": 3 },
  ...{ get: 6, "get-revision": 2, exists: 1, bucket: 3, range: 2, "scan-all": 1 },
  ...{ "get-many": 1, "exists-many": 1, "set-many": 2, "delete-many": 1 },
};
const KINDS: readonly RangeKind[] = [
  ...(["split-space", "split-space", "split-space", "merge-spaces"] as const),
];

function run(seed: number, ticks: number) {
  const drawn = planOf(seed, "ranges", { operations: OPERATIONS });
  if (drawn.ranges === null) throw new Error("the profile moves ranges");
  const thresholds = { ...drawn.ranges.thresholds, splitMinSize: 0, mergeMinSize: 1000 };
  const calm = { kinds: KINDS, everyMs: 400, spaces: 2, callMs: 10_000, aims: [], handEveryMs: 0 };
  const ranges = { ...drawn.ranges, ...calm, hasWitness: true, thresholds };
  const network = { baseMs: 1, jitterMs: 2, slowPerMillion: 0 };
  const disk = { readMs: 1, writeMs: 1 };
  // Whoever may not be forwarded, or has no time, is refused by rights.
  const work = { ...drawn.work, forwardedPercent: 0, vanishPerMille: 0, isPatient: true };
  const bounds = { responseMaxBytes: 16 << 20, pageBytes: 2 << 20, valueMaxBytes: 12_000 };
  const short = { heartbeatMs: 100, electionMs: 500, queuedCommandsMax: 2048 };
  const host = { ...drawn.host, initialPartitions: 2, ...short };
  const small = { ...drawn, nodes: 3, joiners: 0, clients: 6, thinkMs: 30, keys: 30, ticks };
  const patient = { ...small, requestTimeoutMs: 10_000, work: { ...work, ...bounds } };
  return judge({
    ...patient,
    ranges: { ...ranges, isAutomatic: false },
    host,
    network,
    disk,
    faults: [],
  });
}

t.test("C8 C12 moves of key ranges refuse nobody and lose nothing", (t) => {
  let moves = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations, evidence, result } = run(seed, 30_000);
    t.same(violations, [], `seed ${seed}`);
    const moved = evidence["what ranges went through: moves"] ?? 0;
    moves += moved;
    const refused = checkNoRefusals(result.history, OPEN_MS, moved);
    t.same(refused.violations, [], `seed ${seed}: refusals`);
  }
  t.ok(moves >= 5, `${moves} moves`);
  t.end();
});

t.test("faults that wait for a phase of a move strike once, and none after the end", (t) => {
  const moments = new MoveMoments();
  const pair = (source: number, target: number) => {
    return { keySpace: "s", moveId: 1, source, target };
  };
  const struck: string[] = [];
  moments.once("frozen", ({ source }) => void struck.push(`frozen ${source}`));
  moments.once("frozen", ({ target }) => void struck.push(`again ${target}`));
  moments.once("cut", () => void struck.push("cut"));
  moments.came("closed", pair(1, 4));
  moments.came("frozen", pair(1, 4));
  t.same(struck, ["frozen 1"]);
  moments.came("frozen", pair(2, 5));
  moments.came("frozen", pair(3, 6));
  t.same(struck, ["frozen 1", "again 5"]);
  moments.clear();
  moments.came("cut", pair(1, 4));
  t.equal(struck.length, 2);
  t.end();
});

t.test("ranges that split by themselves are no candidates for a merge", (t) => {
  let automatic = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const { isAutomatic, thresholds, kinds } = rangePlan(new Prng(seed));
    t.ok(kinds.includes("split-space") && kinds.includes("unregister-space"));
    if (!isAutomatic) continue;
    automatic++;
    t.ok(thresholds.mergeMinSize * 4 <= thresholds.splitThreshold, `seed ${seed}`);
  }
  t.ok(automatic > 40 && automatic < 160, `${automatic}`);
  t.end();
});
