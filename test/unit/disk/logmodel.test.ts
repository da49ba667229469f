/**
 * The log against a naive model of it: random writes, overwrites, floors, installs, drops, power
 * losses.
 *
 * The model keeps, per group, every entry it ever accepted. A power loss may keep any prefix of
 * what was not acknowledged, record by record; what was acknowledged must be there.
 *
 * Invariants: 1. One seed, one run: a failure prints its seed.
 */
import fc from "fast-check";
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import type { WriteAheadLog } from "../../../src/disk/log/wal.js";
import type { RecoveredGroupLog, HardState, LogEntry } from "../../../src/ports.js";
import { describeEntry } from "../../conformance/log.js";
import {
  type GroupState,
  ModelGroup,
  type Step,
  applyStep,
  describeState,
  empty,
  lastOf,
  termAt,
} from "../../doubles/disk/groupmodel.js";
import {
  type Machine,
  close,
  entries,
  machine,
  powerLoss,
  read,
  restart,
  tryOpen,
} from "../../doubles/disk/fixture.js";

const GROUPS = 4;
const SEGMENT_BYTES = 32_768;

class Run {
  readonly prng: Prng;
  on: Machine;
  log: WriteAheadLog;
  readonly groups = new Map<number, ModelGroup>();
  nextGroup = 1;
  checks = 0;

  constructor(readonly seed: number) {
    this.prng = new Prng(seed);
    this.on = machine(SEGMENT_BYTES);
    this.log = this.opened();
    this.slowDown();
    while (this.groups.size < GROUPS) this.addGroup();
  }

  /** Log writes may take longer than everything else that goes on meanwhile. */
  private slowDown(): void {
    this.on.disk.writeSteps = () => this.prng.below(this.prng.chance(1, 4) ? 12 : 2);
  }

  private addGroup(): void {
    this.groups.set(this.nextGroup++, new ModelGroup());
  }

  private opened(): WriteAheadLog {
    const result = tryOpen(this.on);
    if (!result.ok) throw new Error(`seed ${String(this.seed)}: ${result.code} ${result.message}`);
    return result.value;
  }

  private pick(): [number, ModelGroup] {
    const list = [...this.groups];
    return list[this.prng.below(list.length)] as [number, ModelGroup];
  }

  step(): void {
    const [id, group] = this.pick();
    const choice = this.prng.below(100);
    if (choice < 60) this.write(id, group);
    else if (choice < 72) this.raiseFloor(id, group);
    else if (choice < 76) this.install(id, group);
    else if (choice < 78) this.drop(id, group);
    else if (choice < 84) this.checkRead(id, group);
    else if (choice < 95) this.on.steps.run(this.prng.below(12));
    else this.on.steps.run();
  }

  private write(id: number, group: ModelGroup): void {
    const { now } = group;
    const committed = Math.max(now.hardState.commit, group.floor.index, now.first - 1);
    const last = lastOf(now);
    const overwrites = this.prng.chance(1, 4) && last > committed;
    const first = overwrites ? committed + 1 + this.prng.below(last - committed) : last + 1;
    if (overwrites || this.prng.chance(1, 8)) group.term++;
    const count = this.prng.below(this.prng.chance(1, 10) ? 40 : 5);
    const list = entries(first, first + count - 1, group.term, this.prng.below(600));
    const end = count > 0 ? first + count - 1 : last;
    let hardState: HardState | null = null;
    if (overwrites || this.prng.chance(1, 3)) {
      const commit = committed + this.prng.below(end - committed + 1);
      hardState = { term: group.term, vote: this.prng.below(5), commit };
    }
    const steps: Step[] = [];
    const early = hardState !== null && count > 0 && hardState.commit >= first;
    if (hardState !== null) {
      const commit = early ? first - 1 : hardState.commit;
      steps.push({ kind: "state", hardState: { ...hardState, commit } });
    }
    for (const entry of list) steps.push({ kind: "entry", entry });
    if (early && hardState !== null) steps.push({ kind: "state", hardState });
    const done = group.push(steps);
    this.log.write({ group: partitionId(id), hardState, entries: list, done });
  }

  private raiseFloor(id: number, group: ModelGroup): void {
    const { durable } = group;
    // What is flushed is committed, and durable in this log.
    const limit = Math.min(durable.hardState.commit, lastOf(durable));
    if (limit <= group.floor.index || limit < durable.first) return;
    if (group.pending.some(({ kind }) => kind === "install" || kind === "drop")) return;
    const index = group.floor.index + 1 + this.prng.below(limit - group.floor.index);
    if (index < durable.first) return;
    group.floor = { index, term: termAt(durable, index) };
    this.log.raiseFloor(partitionId(id), group.floor);
  }

  private install(id: number, group: ModelGroup): void {
    const index = Math.max(lastOf(group.now), group.floor.index) + 1 + this.prng.below(50);
    group.term++;
    const floor = { index, term: group.term };
    const hardState = { term: group.term, vote: 0, commit: index };
    const done = group.push([{ kind: "install", floor, hardState }]);
    this.log.resetGroup(partitionId(id), floor, hardState, done);
  }

  private drop(id: number, group: ModelGroup): void {
    const done = group.push([{ kind: "drop" }]);
    this.log.forgetGroup(partitionId(id), done);
    this.on.steps.run();
    this.groups.delete(id);
    this.addGroup();
  }

  private checkRead(id: number, group: ModelGroup): void {
    this.on.steps.run();
    const first = Math.max(group.floor.index + 1, group.durable.first);
    const last = lastOf(group.durable);
    if (first > last) return;
    const from = first + this.prng.below(last - first + 1);
    const found = read(this.on, this.log, id, from, last, 1 + this.prng.below(5000));
    const whole = group.durable.entries.slice(from - group.durable.first).map(describeEntry);
    const got = found === "compacted" ? [found] : found.map(describeEntry);
    this.same(got, whole.slice(0, got.length), "read");
    if (got.length === 0) throw new Error(`seed ${String(this.seed)}: empty read`);
  }

  private same(a: readonly string[], b: readonly string[], what: string): void {
    this.checks++;
    if (a.join() === b.join()) return;
    throw new Error(`seed ${String(this.seed)}: ${what}\n${a.join(" ")}\n${b.join(" ")}`);
  }

  /** The process ends somehow; what the next start finds must be a state that was possible. */
  end(): void {
    const how = this.prng.below(4);
    if (how === 0) {
      this.on.steps.run();
      close(this.on, this.log);
      this.on = restart(this.on);
    } else this.on = powerLoss(this.on, this.prng);
    this.log = this.opened();
    this.slowDown();
    const snapshots = this.log.recovered();
    for (const id of snapshots.keys()) {
      if (!this.groups.has(id))
        throw new Error(`seed ${String(this.seed)}: group ${String(id)} is back`);
    }
    for (const [id, group] of this.groups) this.adopt(id, group, snapshots.get(partitionId(id)));
  }

  private adopt(id: number, group: ModelGroup, snapshot: RecoveredGroupLog | undefined): void {
    const found = this.snapshotState(id, snapshot);
    const candidate: GroupState = { ...group.durable, entries: [...group.durable.entries] };
    const tried: string[] = [];
    for (let kept = 0; ; kept++) {
      const floor = Math.max(found.floor, candidate.first - 1);
      const mine = describeState(candidate, floor);
      tried.push(mine);
      if (
        mine === describeState(found.state, floor) &&
        found.floor <= Math.max(group.floor.index, candidate.first - 1)
      )
        break;
      const step = group.pending[kept];
      if (step === undefined) {
        const got = describeState(found.state, found.floor);
        throw new Error(
          `seed ${String(this.seed)}, group ${String(id)}:\n${got}\n${tried.join("\n")}`,
        );
      }
      applyStep(candidate, step);
    }
    this.checks++;
    group.durable = candidate;
    group.now = { ...candidate, entries: [...candidate.entries] };
    group.pending = [];
    group.floor = snapshot?.floor ?? { index: 0, term: 0 };
    group.term = Math.max(group.term, candidate.hardState.term);
  }

  private snapshotState(
    id: number,
    snapshot: RecoveredGroupLog | undefined,
  ): { state: GroupState; floor: number } {
    if (snapshot === undefined) return { state: empty(), floor: 0 };
    const { floor, lastIndex, hardState } = snapshot;
    const first = floor.index + 1;
    const list: LogEntry[] = [];
    while (first + list.length <= lastIndex) {
      const found = read(this.on, this.log, id, first + list.length, lastIndex, 100_000);
      if (found === "compacted" || found.length === 0) throw new Error("an entry is missing");
      list.push(...found);
    }
    return { state: { hardState, first, entries: list }, floor: floor.index };
  }
}

void t.test("P-115 P-117 P-113 the log is its model, through power losses", (t) => {
  let checks = 0;
  let rotations = 0;
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const run = new Run(seed);
      for (let life = 0; life < 6; life++) {
        const steps = 20 + run.prng.below(120);
        for (let at = 0; at < steps; at++) run.step();
        run.end();
      }
      checks += run.checks;
      rotations = Math.max(rotations, run.log.segments.active.sequence);
      return true;
    }),
    { numRuns: Number(process.env.SVC_TEST_RUNS ?? 120) },
  );
  t.ok(checks > 1000, `${String(checks)} states compared`);
  t.ok(rotations > 5, `up to segment ${String(rotations)}`);
  t.end();
});
