/**
 * The log and what is acknowledged when: failing writes, power loss at every step. Run by
 * log.test.ts.
 */
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import { openLog } from "../../../src/disk/log/recovery.js";
import type { WriteAheadLog } from "../../../src/disk/log/wal.js";
import {
  DIRECTORY,
  G,
  IDENTITY,
  entries,
  machine,
  open,
  portsOf,
  powerLoss,
  recoverFrom,
  restart,
  text,
  tryOpen,
  write,
} from "../../doubles/disk/fixture.js";

void t.test("P-111 a write that arrives during a disk write is not acknowledged by it", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  const acknowledged: number[] = [];
  const put = (index: number): void => {
    const done = (): void => void acknowledged.push(index);
    log.write({ group: G, hardState: null, entries: entries(index, index, 1), done });
  };
  put(1);
  while (on.disk.writes === 0) on.steps.run(1);
  put(2);
  put(3);
  t.same(acknowledged, []);
  on.steps.run(1);
  t.same(acknowledged, [1], "only what was in the first disk write");
  on.steps.run(1);
  t.equal(on.disk.writes, 2, "the others share the next, issued at the end of the turn");
  t.same(acknowledged, [1]);
  on.steps.run();
  t.same(acknowledged, [1, 2, 3]);
  t.end();
});

void t.test(
  "P-022 P-110 after a failed write nothing is acknowledged and the process ends",
  (t) => {
    for (let fail = 1; fail <= 8; fail++) {
      const on = machine();
      const log = open(on);
      on.steps.run();
      let count = 0;
      on.disk.writeFault = () => (++count === fail ? "failed" : null);
      let acknowledged = 0;
      let last = 0;
      for (let turn = 0; turn < 10; turn++) {
        const index = ++last;
        const done = (): void => {
          acknowledged = index;
        };
        log.write({ group: G, hardState: null, entries: entries(index, index, 1), done });
        on.steps.run();
      }
      t.equal(acknowledged, fail - 1, `write ${String(fail)} failed`);
      t.same(
        on.fatals.map(({ reason }) => reason),
        ["log write failed"],
      );
      t.equal(on.disk.writes, fail, "nothing was written after it");
      const after = restart(on);
      t.equal(recoverFrom(after), text(entries(1, fail - 1, 1)));
    }
    t.end();
  },
);

void t.test("P-112 power loss at every step of first start and rotation", (t) => {
  const prng = new Prng(7);
  let crashes = 0;
  for (let step = 0; step < 600; step++) {
    const on = machine(32_768);
    let log: WriteAheadLog | null = null;
    let durable = 0;
    const ports = portsOf(on);
    const options = {
      directory: DIRECTORY,
      identity: IDENTITY,
      segmentBytes: on.segmentBytes,
      spaceRetryMs: 10,
      mayCreate: true,
    };
    let next = 1;
    const put = (): void => {
      const index = next++;
      const list = entries(index, index, 1, 3000);
      const done = (): void => {
        durable = index;
        if (index < 60) put();
      };
      log?.write({ group: G, hardState: null, entries: list, done });
    };
    openLog(options, ports, on.kernels, (result) => {
      if (result.ok) {
        log = result.value;
        put();
      }
    });
    if (on.steps.run(step)) break;
    crashes++;
    const whole = text(entries(1, durable, 1, 3000));
    const found = recoverFrom(powerLoss(on, prng));
    if (!found.startsWith(whole)) t.equal(found, whole, `crash at step ${String(step)}`);
  }
  t.ok(crashes > 100, `${String(crashes)} crashes`);
  t.end();
});

void t.test("P-117 power loss at every step of floors, removal and forward rewriting", (t) => {
  const prng = new Prng(3);
  let removals = 0;
  for (let step = 0; ; step++) {
    const on = machine(32_768);
    const log = open(on);
    write(on, log, 2, entries(1, 3, 1, 200), { term: 1, vote: 1, commit: 3 });
    // A removal is quick and a log write slow: one that does not wait for the other is found out.
    on.disk.writeSteps = () => 9;
    let durable = 0;
    const put = (index: number): void => {
      const list = entries(index, index, 1, 3500);
      const done = (): void => {
        durable = index;
        if (index % 6 === 0) log.raiseFloor(G, { index: index - 2, term: 1 });
        if (index < 40) put(index + 1);
      };
      const hardState = { term: 1, vote: 1, commit: index };
      log.write({ group: G, hardState, entries: list, done });
    };
    put(1);
    const isOver = on.steps.run(step);
    removals += on.disk.operations.some((operation) => operation.startsWith("remove")) ? 1 : 0;
    const opened = tryOpen(powerLoss(on, prng));
    if (!opened.ok) {
      t.fail(`step ${String(step)}: ${opened.message}`);
      break;
    }
    const snapshots = opened.value.recovered();
    if ((snapshots.get(G)?.lastIndex ?? 0) < durable) t.fail("the busy group lost entries");
    const idle = snapshots.get(partitionId(2));
    if (idle?.lastIndex !== 3 || idle.floor.index !== 0) t.fail("the idle group lost entries");
    if (isOver) break;
  }
  t.ok(removals > 100, `${String(removals)} crashes with removed segments`);
  t.end();
});

void t.test("P-097 power loss at every step while a group is forgotten and comes again", (t) => {
  const prng = new Prng(5);
  const seen = new Set<string>();
  for (let step = 0; step < 500; step++) {
    const on = machine(32_768);
    const log = open(on);
    write(on, log, 1, entries(1, 9, 1, 500), { term: 7, vote: 2, commit: 3 });
    let forgotten = false;
    let again = false;
    log.forgetGroup(G, () => {
      forgotten = true;
      const hardState = { term: 8, vote: 0, commit: 1 };
      const done = (): void => void (again = true);
      log.write({ group: G, hardState, entries: entries(1, 3, 8, 500), done });
    });
    const isOver = on.steps.run(step);
    const opened = tryOpen(powerLoss(on, prng));
    if (!opened.ok) {
      t.fail(`step ${String(step)}: ${opened.message}`);
      break;
    }
    const found = opened.value.recovered().get(G);
    const runs = found?.termRuns.map(({ term }) => term).join() ?? "nothing";
    const state = `${runs} to ${found?.lastIndex ?? 0}, term ${found?.hardState.term ?? 0}`;
    seen.add(`${forgotten ? "forgotten" : "asked"}: ${state}`);
    const isFormer = runs === "1" && found?.lastIndex === 9 && found.hardState.term === 7;
    const isNext = !isFormer && (found?.lastIndex ?? 0) <= 3 && !runs.startsWith("1");
    if (forgotten ? !isNext : !(isFormer || isNext)) t.fail(`step ${String(step)}: ${state}`);
    if (again && found?.lastIndex !== 3) t.fail(`step ${String(step)}: it lost the new life`);
    if (isOver) break;
  }
  t.ok(seen.size >= 3, [...seen].join("; "));
  t.end();
});

void t.test("P-024 no torn write leaves a commit index beyond the log", (t) => {
  const prng = new Prng(11);
  for (let trial = 0; trial < 300; trial++) {
    const on = machine(65_536);
    const log = open(on);
    on.steps.run();
    write(on, log, 1, entries(1, 3, 1), { term: 1, vote: 1, commit: 2 });
    const hardState = { term: 2, vote: 1, commit: 9 };
    log.write({ group: G, hardState, entries: entries(4, 9, 2, 700), done: () => undefined });
    while (on.disk.writes < 2) on.steps.run(1);
    const after = powerLoss(on, prng);
    const opened = tryOpen(after);
    t.ok(opened.ok, opened.ok ? "" : opened.message);
    if (!opened.ok) continue;
    const snapshot = opened.value.recovered().get(G);
    if (snapshot === undefined) throw new Error("the group is there");
    t.ok(snapshot.hardState.commit <= snapshot.lastIndex);
    const newest = snapshot.termRuns[snapshot.termRuns.length - 1]?.term ?? 0;
    t.ok(newest <= snapshot.hardState.term, "no entry is newer than the hard state");
  }
  t.end();
});
