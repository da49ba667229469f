/** The planner of key ranges: tables, and that it comes to an end whatever the map and the settings are. */
import t from "tap";
import { measuredMap, measuredOwnership } from "../../../perf/micro/range-map.js";
import { compareText } from "../../../src/base/bytes.js";
import { Prng } from "../../../src/base/prng.js";
import { attempt, moveId, rangeGeneration } from "../../../src/base/ids.js";
import {
  PARTITIONS_MAX,
  RANGE_ATTEMPT_MS,
  RANGE_MOVES_MAX,
  RANGE_SETTLES_MS,
} from "../../../src/base/limits.js";
import { planRanges } from "../../../src/control/range-plan.js";
import type { RangeDescriptor, RangeMove } from "../../../src/machine/commands/command.js";
import type { RangeRow } from "../../../src/machine/meta/meta-rows.js";
import { RangeBench } from "../../doubles/machine/meta-ranges.js";
import { placed } from "../../doubles/control/placement-view.js";

type View = Parameters<typeof planRanges>[0];
type Step = ReturnType<typeof planRanges>["steps"][number];

const NOW = 1_000_000;
const SETTINGS = { splitThreshold: 100, splitMinSize: 10, mergeMinSize: 10 };

/** Ranges of a key space, "m 3 40" for one that begins with /m on partition 3 and holds 40 keys. */
interface Told {
  readonly rows: readonly RangeRow[];
  readonly counts: ReadonlyMap<RangeDescriptor, number>;
}

function space(keySpace: string, told: string, changedLeaseMs = 0): Told {
  const parts = told.split(", ").map((one) => one.split(" "));
  const start = (at: number): string | null => {
    const name = parts[at]?.[0] ?? "-";
    return name === "-" ? null : `${keySpace}/${name}`;
  };
  const counts = new Map<RangeDescriptor, number>();
  const rows = parts.map(([, on, keys = "?"], at) => {
    const interval = { startKey: start(at), endKey: start(at + 1) };
    const descriptor = { ...interval, partitionId: Number(on), generation: rangeGeneration(1) };
    if (keys !== "?") counts.set(descriptor, Number(keys));
    return { keySpace, descriptor, changedLeaseMs };
  });
  return { rows, counts };
}

function view(told: readonly Told[], change: Partial<View> = {}): View {
  const counts = new Map(told.flatMap((one) => [...one.counts]));
  const partitions = Array.from({ length: 40 }, (_, at) => placed(at + 1, "1, 2, 3"));
  return {
    ...{ nowLeaseMs: NOW, dataPartitions: 2, partitions, moves: [], leavingKeySpaces: [] },
    ...{ ranges: told.flatMap(({ rows }) => rows), settings: SETTINGS, isHeld: false },
    liveKeys: (_, range) => counts.get(range) ?? null,
    leader: (partitionId) => partitionId,
    isTargetLost: () => false,
    splitAnswer: (keySpace) => ({ splitKey: `${keySpace}/x` }),
    ...change,
  };
}

function move(keySpace: string, change: Partial<RangeMove> = {}): RangeMove {
  return {
    ...{ moveId: moveId(3), kind: "split", keySpace, startKey: "x", endKey: null, source: 30 },
    ...{ target: 31, generation: rangeGeneration(1), attempt: attempt(1), phase: "copying" },
    ...{ reason: "none", sourceDone: false, targetDone: false, deadlineLeaseMs: NOW + 1 },
    ...change,
  };
}

function inShort(step: Step): string {
  if (step.kind === "ask-split-key") return `ask ${step.keySpace} ${step.range.partitionId}`;
  const { command } = step;
  switch (command.kind) {
    case "abort-move":
      return `abort ${command.keySpace} ${command.reason}`;
    case "unregister-range":
      return `unregister ${command.keySpace}`;
    case "begin-move":
      return `${command.move} ${command.keySpace} ${command.startKey} ${command.source}>${command.target}`;
  }
}

function plan(told: readonly Told[], change: Partial<View> = {}): string {
  return planRanges(view(told, change)).steps.map(inShort).join(", ");
}

/** Home of both is 1 of 2; that of "a" is 2. */
const E = "e";
const F = "f";

t.test("P-100 a move is given up at its deadline, or when its target has no leader", (t) => {
  const gone = { isTargetLost: () => true };
  const late = { deadlineLeaseMs: NOW };
  t.equal(plan([], { moves: [move(E)] }), "");
  t.equal(plan([], { moves: [move(E, late)] }), "abort e deadline");
  t.equal(plan([], { moves: [move(E)], ...gone }), "abort e no-target");
  t.equal(plan([], { moves: [move(E, late)], ...gone }), "abort e deadline");
  t.equal(
    plan([], { moves: [move(E, late)], isHeld: true }),
    "abort e deadline",
    "also for backups",
  );
  for (const phase of ["cut", "aborting"] as const) {
    t.equal(plan([], { moves: [move(E, { ...late, phase })], ...gone }), "", `not when ${phase}`);
  }
  t.end();
});

t.test("6.3 a key space that leaves: home one range after the other, then unregister", (t) => {
  const leaving = { leavingKeySpaces: [E] };
  const away = space(E, "- 1 5, c 3 5, m 1 5, p 4 500", NOW);
  t.equal(plan([away], leaving), "home e e/c 3>1", "counts and ages do not matter");
  t.equal(plan([away], { ...leaving, moves: [move(E)] }), "", "one at a time");
  t.equal(plan([away], { ...leaving, isHeld: true }), "");
  t.equal(plan([space(E, "- 1 5, c 1 5")], leaving), "unregister e");
  t.equal(plan([space(E, "- 1 5")], { ...leaving, isHeld: true }), "unregister e", "nothing moves");
  t.equal(plan([], leaving), "unregister e");
  const partitions = [placed(1, "1"), placed(3, "1", { state: "Draining" }), placed(4, "1")];
  t.equal(plan([away], { ...leaving, partitions }), "home e e/p 4>1", "the next that can");
  const busy = [placed(1, "1", { state: "Splitting" }), placed(3, "1"), placed(4, "1")];
  t.equal(plan([away], { ...leaving, partitions: busy }), "", "home is busy");
  t.end();
});

t.test("6.3 splits: at the threshold, counted, settled, the largest first", (t) => {
  t.equal(plan([space(E, "- 1 99")]), "");
  t.equal(plan([space(E, "- 1 100")]), "split e e/x 1>0");
  t.equal(plan([space(E, "- 1 ?")]), "", "P-106 not counted");
  t.equal(plan([space(E, "- 1 100")], { isHeld: true }), "", "a backup is made");
  t.equal(plan([space(E, "- 1 100")], { moves: [move(E)] }), "", "another move");
  t.equal(plan([space(E, "- 1 100", NOW - RANGE_SETTLES_MS + 1)]), "", "P-106 too young");
  t.equal(plan([space(E, "- 1 100", NOW - RANGE_SETTLES_MS)]), "split e e/x 1>0");
  const off = { settings: { ...SETTINGS, splitThreshold: 0 } };
  t.equal(plan([space(E, "- 1 9999")], off), "");
  const least = { settings: { ...SETTINGS, splitMinSize: 300 } };
  t.equal(plan([space(E, "- 1 299")], least), "");
  t.equal(plan([space(E, "- 1 300")], least), "split e e/x 1>0");
  t.equal(plan([space(E, "- 1 200, c 3 300, m 4 250")]), "split e e/x 3>0");
  t.equal(plan([space(E, "- 1 200"), space(F, "- 2 300")]), "split f f/x 2>0, split e e/x 1>0");
  t.equal(plan([space(E, "- 1 200"), space(F, "- 1 300")]), "split f f/x 1>0", "one partition");
  t.equal(plan([space(E, "- 1 200")], { leader: () => 0 }), "", "nobody is known to lead it");
  t.equal(
    plan([space(E, "- 1 200, c 3 150")], { leader: (id) => (id === 1 ? 0 : 7) }),
    "split e e/x 3>0",
  );
  const comes = [placed(1, "1, 2, 3, 4 learner")];
  t.equal(plan([space(E, "- 1 200")], { partitions: comes }), "", "a replica is on its way");
  t.end();
});

t.test("P-106 where to split is asked; what is indivisible stays", (t) => {
  const told = [space(E, "- 1 200, c 3 150")];
  t.equal(plan(told, { splitAnswer: () => null }), "ask e 1", "of the largest, and nothing else");
  t.equal(plan(told, { splitAnswer: () => null, leader: () => 0 }), "");
  t.equal(plan(told, { splitAnswer: () => "indivisible" }), "");
  const first: Partial<View> = {
    splitAnswer: (_, range) => (range.partitionId === 1 ? "indivisible" : { splitKey: "e/p" }),
  };
  t.equal(plan(told, first), "split e e/p 3>0");
  t.end();
});

t.test("11 no room for another partition: no split, and that is counted", (t) => {
  const many = (removed: number): View["partitions"] => {
    return Array.from({ length: PARTITIONS_MAX }, (_, at) => {
      return placed(at + 1, "1", at > 9 && at <= 9 + removed ? { state: "Removed" } : {});
    });
  };
  const told = [space(E, "- 1 200"), space(F, "- 2 300")];
  const full = planRanges(view(told, { partitions: many(0) }));
  t.strictSame(full, { steps: [], refusedSplits: 2 });
  const one = planRanges(view(told, { partitions: many(1) }));
  t.strictSame(one.steps.map(inShort), ["split f f/x 2>0"]);
  t.equal(one.refusedSplits, 1);
  t.end();
});

t.test("P-105 P-106 merges: neighbours, counted, small together, settled; who survives", (t) => {
  t.equal(plan([space(E, "- 3 5, m 4 4")]), "merge e e/m 4>3");
  t.equal(plan([space(E, "- 3 5, m 4 5")]), "", "not below");
  t.equal(plan([space(E, "- 3 5, m 4 ?")]), "");
  t.equal(plan([space(E, "- 3 ?, m 4 0")]), "");
  t.equal(plan([space(E, "- 3 0, m 4 0")], { isHeld: true }), "");
  t.equal(plan([space(E, "- 3 0, m 4 0", NOW - 1)]), "");
  t.equal(plan([space(E, "- 3 0, m 4 0")], { settings: { ...SETTINGS, mergeMinSize: 0 } }), "");
  t.equal(plan([space(E, "- 3 5, m 1 4")]), "merge e null 3>1", "the right one is at home");
  t.equal(plan([space(E, "- 1 5, m 3 4")]), "merge e e/m 3>1");
  t.equal(plan([space(E, "- 3 5, c 4 5, m 5 4, p 6 0")]), "merge e e/m 5>4", "one step in all");
  const near = { settings: { ...SETTINGS, mergeMinSize: 99 } };
  t.equal(plan([space(E, "- 3 12, m 4 12")], near), "merge e e/m 4>3");
  t.equal(plan([space(E, "- 3 13, m 4 12")], near), "", "a quarter of what is split");
  const never = { settings: { ...SETTINGS, splitThreshold: 0, mergeMinSize: 99 } };
  t.equal(plan([space(E, "- 3 49, m 4 49")], never), "merge e e/m 4>3", "nothing is split");
  const partitions = [
    placed(3, "1"),
    placed(4, "1", { state: "Splitting" }),
    placed(5, "1"),
    placed(6, "1"),
  ];
  t.equal(plan([space(E, "- 3 1, c 4 1, m 5 1, p 6 1")], { partitions }), "merge e e/p 6>5");
  t.equal(plan([space(E, "- 3 1, m 4 1")], { leader: (id) => (id === 3 ? 0 : 1) }), "");
  t.equal(plan([space(E, "- 3 150, c 4 1, m 5 1")]), "split e e/x 3>0", "a split goes first");
  t.end();
});

t.test("8 moves in a cluster, 2 from or to what one node leads", (t) => {
  const names = Array.from({ length: 12 }, (_, at) => `n${String.fromCharCode(97 + at)}`);
  const told = names.map((name, at) => space(name, `- ${10 + 2 * at} 0, m ${11 + 2 * at} 0`));
  const count = (change: Partial<View>): number => planRanges(view(told, change)).steps.length;
  t.equal(count({}), RANGE_MOVES_MAX);
  const three = [0, 1, 2].map((at) => move(`x${at}`, { source: 35 + at, target: 38 + at }));
  t.equal(count({ moves: three }), RANGE_MOVES_MAX - 3);
  t.equal(count({ leader: () => 1 }), 2, "one node leads all");
  t.equal(count({ leader: (id) => 1 + (id % 2) }), 2, "each counts at both ends");
  t.equal(count({ leader: (id) => 1 + ((id >> 1) % 3) }), 6);
  t.equal(count({ leader: () => 1, moves: three.slice(0, 1) }), 1);
  t.equal(count({ leader: () => 1, moves: three.slice(0, 2) }), 0);
  t.end();
});

/** Live keys of key spaces, which nobody changes, and the mover of a world without faults. */
class Calm {
  readonly bench: RangeBench;
  readonly keys = new Map<string, readonly string[]>();
  nowMs = 20_000;
  splits = 0;
  merges = 0;
  homes = 0;
  readonly made = new Set<string>();

  constructor(
    private readonly prng: Prng,
    private readonly settings: View["settings"],
  ) {
    this.bench = new RangeBench(3, prng.below(3), 1 + prng.below(3));
    for (const name of ["e", "k", "s", "a"]) {
      const keys = Array.from({ length: prng.below(60) }, () => `${name}/${prng.below(500)}`);
      this.keys.set(name, [...new Set(keys)].sort(compareText));
      this.bench.register(name);
      for (let at = prng.below(12); at > 0; at--) this.fold(name);
    }
  }

  /** A map of any form. */
  private fold(name: string): void {
    const at = `${name}/${this.prng.below(500)}`;
    if (!this.bench.split(name, at).startsWith("done")) return;
    this.bench.cut(name);
    this.bench.finish(name, "source");
    this.bench.finish(name, "target");
  }

  held(keySpace: string, { startKey, endKey }: RangeDescriptor): readonly string[] {
    return (this.keys.get(keySpace) ?? []).filter((key) => {
      const isFrom = startKey === null || compareText(startKey, key) <= 0;
      return isFrom && (endKey === null || compareText(key, endKey) < 0);
    });
  }

  view(): View {
    const { meta } = this.bench.machine;
    return {
      nowLeaseMs: this.nowMs,
      dataPartitions: this.bench.cluster.dataPartitions,
      partitions: meta.partitions(),
      ranges: meta.allRanges(),
      leavingKeySpaces: meta.leavingKeySpaces(),
      moves: meta.moves(),
      settings: this.settings,
      isHeld: false,
      liveKeys: (keySpace, range) => this.held(keySpace, range).length,
      leader: (partitionId) => 1 + (partitionId % 3),
      isTargetLost: () => this.prng.chance(1, 20),
      splitAnswer: (keySpace, range) => {
        const keys = this.held(keySpace, range);
        const splitKey = keys[keys.length >> 1];
        return splitKey === undefined || keys.length < 2 ? "indivisible" : { splitKey };
      },
    };
  }

  /** What is wrong with a step. */
  carryOut(step: Step): string | null {
    if (step.kind !== "propose") return "asked what it was told";
    const { command } = step;
    const said = this.bench.ask(command, this.nowMs);
    if (!said.startsWith("done")) return `${inShort(step)}: ${said}`;
    if (command.kind !== "begin-move") return null;
    if (command.move === "split") {
      this.splits++;
      this.made.add(command.startKey ?? "");
    }
    if (command.move === "home") this.homes++;
    if (command.move !== "merge") return null;
    this.merges++;
    const { startKey, endKey } = command;
    const isMade = [startKey, endKey].filter((key) => key !== null && this.made.has(key));
    const ranges = this.bench.machine.meta.ranges(command.keySpace);
    const target = ranges.find(({ partitionId }) => partitionId === command.target);
    const border = target?.endKey === startKey ? startKey : endKey;
    return isMade.includes(border) ? `${inShort(step)}: it was split there` : null;
  }

  /** Every move that stands gets on. */
  move(): void {
    for (const { keySpace, phase } of this.bench.machine.meta.moves()) {
      if (phase === "copying" && this.prng.chance(1, 2)) {
        this.bench.cut(keySpace, this.bench.moveOf(keySpace), 1, this.nowMs);
      } else if (phase !== "copying") {
        for (const side of ["source", "target"] as const) {
          if (this.prng.chance(1, 2)) this.bench.finish(keySpace, side);
        }
      }
    }
  }
}

const SEEDS = Number(process.env["SVC_PLACEMENT_SEEDS"] ?? 80);

t.test(
  "P-106 with the counts as they are the planner comes to an end, and splits nothing that it merges",
  (t) => {
    const seen = { splits: 0, merges: 0, homes: 0, removed: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const prng = new Prng(seed);
      const splitThreshold = prng.below(30);
      const mergeMinSize = prng.below(2) * prng.below(Math.max(2, splitThreshold));
      const calm = new Calm(prng, { splitThreshold, splitMinSize: prng.below(12), mergeMinSize });
      const leaves = prng.chance(1, 3) ? "k" : "";
      if (leaves !== "") calm.bench.unregister(leaves);
      let quiet = 0;
      for (let pass = 0; quiet < 3; pass++) {
        calm.nowMs += 4000;
        const { steps } = planRanges(calm.view());
        for (const step of steps) {
          const fault = calm.carryOut(step);
          if (fault !== null) {
            t.fail(`seed ${seed}, pass ${pass}: ${fault}`);
            return t.end();
          }
        }
        const isBusy = steps.length > 0 || calm.bench.machine.meta.moves().length > 0;
        const isYoung = calm.bench.machine.meta
          .allRanges()
          .some(({ changedLeaseMs }) => calm.nowMs - changedLeaseMs < RANGE_SETTLES_MS);
        quiet = isBusy || isYoung ? 0 : quiet + 1;
        calm.move();
        if (pass > 1500) {
          t.fail(`seed ${seed}: ${steps.map(inShort).join(", ")} in pass ${pass}`);
          return t.end();
        }
      }
      if (leaves !== "" && calm.bench.ranges(leaves) !== "")
        t.fail(`seed ${seed}: it has not left`);
      const { machine } = calm.bench;
      const states = new Set(machine.meta.partitions().map(({ state }) => state));
      if (states.has("Splitting") || states.has("Draining")) t.fail(`seed ${seed}: not at rest`);
      seen.splits += calm.splits;
      seen.merges += calm.merges;
      seen.homes += calm.homes;
      if (states.has("Removed")) seen.removed++;
    }
    t.comment(JSON.stringify(seen));
    for (const [what, count] of Object.entries(seen)) t.ok(count >= SEEDS / 4, `${what}: ${count}`);
    t.ok(RANGE_ATTEMPT_MS > RANGE_SETTLES_MS);
    t.end();
  },
);

t.test("the measured map is split, and what is measured is done", (t) => {
  const { ranges, rangesAfter } = measuredMap(20, 3, 50);
  t.strictSame([ranges, rangesAfter], [20, 23]);
  t.strictSame(
    measuredOwnership([0, 30], 1, 50).map(({ rows }) => rows),
    [0, 30],
  );
  t.end();
});
