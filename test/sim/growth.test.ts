/**
 * Larger worlds: cost per group does not grow with the number of groups, the largest profile in
 * small, and the command line of both.
 */
import t from "tap";
import { type Growth, measureGrowth } from "./run/growth.js";
import { growthHead, growthLine, short } from "./run/growthtable.js";
import { judge } from "./run/judge.js";
import { parseOptions, sizeText, sizesOf } from "./plan/options.js";
import { planOf } from "./plan/plan.js";
import { replayCommand } from "./run/report.js";

function measured(groups: number): Growth {
  return measureGrowth({ seed: 1, nodes: 3, groups, factor: 0, idleMs: 10_000, loadMs: 800 });
}

t.test("cost per group does not grow with the groups", (t) => {
  const small = measured(20);
  const large = measured(100);
  t.equal(large.replicas, 3 * 101);
  t.equal(large.quiesced, 101, "idle groups sleep, all of them");
  const perReplica = (growth: Growth): number => growth.start.bytes / growth.replicas;
  t.ok(perReplica(large) < 1.5 * perReplica(small), "bytes of the start per replica");
  t.ok(large.start.simulatedMs < 2 * small.start.simulatedMs, "time to lead all groups");
  // Sleeping groups ask after their leaders in common frames.
  t.ok(large.idle.frames <= 4 * small.idle.frames + 40, "frames of idle groups");
  t.ok(large.idle.turns <= 2 * small.idle.turns, "turns of idle nodes");
  const perOperation = ({ load }: Growth): number => load.frames / load.operations;
  t.ok(small.load.operations > 50 && large.load.operations > 50, "operations were answered");
  t.ok(perOperation(large) < 2 * perOperation(small), "frames of an operation");
  t.ok(large.memory.heap + large.memory.arrayBuffers < 64 << 10, "memory of a replica");
  const again = measured(20);
  t.equal(again.traceHash, small.traceHash, "what is counted follows from the seed");
  t.equal(again.load.bytes, small.load.bytes);
  t.end();
});

t.test("with a factor a node holds its share, and joiners get theirs", (t) => {
  const growth = measureGrowth({
    ...{ seed: 1, nodes: 11, groups: 22, factor: 3 },
    ...{ idleMs: 1000, loadMs: 1000 },
  });
  t.equal(growth.most, 6, "66 replicas on eleven nodes, of which two joined");
  t.equal(growth.replicas, 66 + 11, "and meta on each");
  t.ok(growth.load.operations > 50, "operations were answered");
  t.end();
});

t.test("P-013 a broken link wakes only groups that one of its ends leads", (t) => {
  const { broken, replicas } = measureGrowth({
    seed: 1,
    nodes: 7,
    groups: 30,
    factor: 0,
    idleMs: 100,
    loadMs: 100,
  });
  // It was three times as much when both ends woke all their groups. Heartbeats carry lease clock and digest.
  t.ok(broken.bytes < 1300 * replicas, `${Math.round(broken.bytes / replicas)} bytes per replica`);
  t.ok(broken.frames > 0);
  t.end();
});

t.test("the profile wide in small passes every checker", (t) => {
  const plan = planOf(2, "wide", { nodes: 5, groups: 40, ticks: 3000 });
  const judged = judge(plan);
  t.strictSame(judged.violations, []);
  t.ok(judged.result.clients.ok > 50, "operations were answered");
  t.equal(replayCommand(plan, planOf(2, "wide")).includes("--groups 40"), true);
  t.end();
});

t.test("the command line and the table", (t) => {
  t.strictSame(sizesOf("3x5,9x2000"), [
    { nodes: 3, groups: 5, factor: 0 },
    { nodes: 9, groups: 2000, factor: 0 },
  ]);
  t.strictSame(sizesOf("25x2000x3").map(sizeText), ["25x2000x3"]);
  t.strictSame(sizesOf("3x5").map(sizeText), ["3x5"]);
  for (const wrong of ["3", "3x", "x", "3x4x5x6", "3x4x0", "axb"])
    t.throws(() => sizesOf(wrong), wrong);
  t.equal(parseOptions([]).growth, null);
  t.strictSame(parseOptions(["--grow", "--sizes", "1x2"]).growth, [
    { nodes: 1, groups: 2, factor: 0 },
  ]);
  t.equal(parseOptions(["--groups", "7"]).overrides.groups, 7);
  t.strictSame([0.12345, 1.23456, 12.3456, 1234.5, 7, Infinity].map(short), [
    "0.123",
    "1.23",
    "12.3",
    "1235",
    "7",
    "-",
  ]);
  const stretch = {
    simulatedMs: 1000,
    events: 1,
    turns: 1,
    frames: 1,
    bytes: 1,
    operations: 0,
    usedMs: 1,
  };
  const memory = { heap: 1, arrayBuffers: 1, log: 1, store: 1 };
  const line = growthLine({
    nodes: 1,
    groups: 1,
    factor: 0,
    replicas: 1,
    most: 1,
    start: stretch,
    spread: stretch,
    idle: stretch,
    broken: stretch,
    load: stretch,
    quiesced: 1,
    memory,
    traceHash: "",
  });
  const columns = (text: string | undefined): number => text?.match(/\|/g)?.length ?? 0;
  const [head, rule] = growthHead();
  t.equal(columns(line), columns(head));
  t.equal(columns(rule), columns(head));
  t.end();
});
