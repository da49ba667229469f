/**
 * The parts of the host by themselves: placement, queue, rounds, waiters, clock, turns, effects.
 */
import fc from "fast-check";
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { Completions } from "../../../src/host/requests/completions.js";
import { Batcher, Budget, type Waiter } from "../../../src/host/requests/batcher.js";
import { AppendBudget } from "../../../src/host/replication/append-budget.js";
import { NodeClocks } from "../../../src/host/node-clocks.js";
import { EffectsExecutor, type EffectsTarget, LogOutbox } from "../../../src/host/group/effects.js";
import { LeaseClock } from "../../../src/host/group/leaseclock.js";
import { Proposals, type ProposedEntry } from "../../../src/host/requests/proposals.js";
import { Reads } from "../../../src/host/requests/reads.js";
import type { ProposalResult, ReadResult } from "../../../src/host/requests/results.js";
import { assertSettings } from "../../../src/host/settings.js";
import { TurnScheduler } from "../../../src/host/turn-scheduler.js";
import { defaultConfig } from "../../../src/raft/state/config.js";
import { emptyMembership } from "../../../src/raft/state/membership.js";
import { RaftCore } from "../../../src/raft/core.js";
import { proof } from "../../../perf/micro/bench.js";
import { comparisons } from "../../../perf/micro/host.js";
import { ManualLog, ManualTimer, setCommand } from "../../doubles/host/world.js";
import { DEFAULT_HOST_SETTINGS } from "../../doubles/default-settings.js";
import { freshState, membershipOf, message } from "../../doubles/raft/fresh.js";
import { SILENT_METER } from "../../doubles/silent-meter.js";

function waiter(sizeBytes: number, deadlineMs: number, results: ProposalResult[]): Waiter {
  const done = (result: ProposalResult): void => void results.push(result);
  return { command: setCommand("k"), sizeBytes, deadlineMs, done };
}

const LIMITS = {
  batchEntriesMax: 5,
  batchBytesMax: 100,
  lingerMs: 0,
  queuedCommandsMax: 20,
  queuedBytesMax: 500,
  inFlightEntriesMax: 2,
};

t.test("P-034 P-071 the queue keeps its order, its bounds and its books", async (t) => {
  const action = fc.oneof(
    fc.record({
      kind: fc.constant("put" as const),
      size: fc.integer({ min: 1, max: 150 }),
      lifeMs: fc.integer({ min: 1, max: 40 }),
    }),
    fc.record({ kind: fc.constantFrom("cut" as const, "expire" as const) }),
    fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ kind: fc.constant("end" as const) }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
      const completions = new Completions(() => undefined);
      const budget = new Budget(450);
      const batcher = new Batcher(LIMITS, budget, completions);
      const results: ProposalResult[] = [];
      let queue: Waiter[] = [];
      let cutBytes = 0;
      let ended = 0;
      let nowMs = 0;
      for (const step of actions) {
        if (step.kind === "pass") nowMs += step.ms;
        if (step.kind === "put") {
          const next = waiter(step.size, nowMs + step.lifeMs, results);
          const bytes = queue.reduce((sum, each) => sum + each.sizeBytes, 0);
          const fits =
            queue.length < LIMITS.queuedCommandsMax &&
            (queue.length === 0 || bytes + step.size <= LIMITS.queuedBytesMax) &&
            (bytes + cutBytes === 0 || bytes + cutBytes + step.size <= 450);
          if (batcher.enqueue(next, nowMs) !== fits) return false;
          if (fits) queue.push(next);
        }
        if (step.kind === "expire" || step.kind === "end") {
          const late = queue.filter((each) => step.kind === "end" || each.deadlineMs <= nowMs);
          queue = queue.filter((each) => !late.includes(each));
          ended += late.length;
          if (step.kind === "end") batcher.endAll({ status: "aborted" });
          else batcher.expire(nowMs);
          if (late.length > 0 && batcher.heldCommands !== queue.length) return false;
        }
        if (step.kind === "cut") {
          const batch = batcher.cut(nowMs);
          const rest = queue.filter((each) => !batch.includes(each));
          const aborted = rest.filter((each) => each.done === null);
          ended += aborted.length;
          const order = queue.filter((each) => batch.includes(each));
          if (order.some((each, at) => each !== batch[at])) return false;
          const size = batch.reduce((sum, each) => sum + each.sizeBytes, 0);
          if (batch.length > 5 || (batch.length > 1 && size > 100)) return false;
          queue = rest.filter((each) => each.done !== null);
          cutBytes += size;
        }
        if (batcher.queuedCommands !== queue.length) return false;
        const queued = queue.reduce((sum, each) => sum + each.sizeBytes, 0);
        if (batcher.queuedBytes !== queued || budget.usedBytes !== queued + cutBytes) return false;
        completions.run();
        if (results.length !== ended) return false;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass("500 runs");
});

t.test("P-033 waiters belong to (term, index)", async (t) => {
  const completions = new Completions(() => undefined);
  const budget = new Budget(1000);
  const proposals = new Proposals(budget, completions);
  const results: ProposalResult[] = [];
  const add = (index: number, term: number): ProposedEntry => {
    budget.take(10);
    const waiters = [waiter(10, 1e9, results)];
    const entry = {
      index,
      term,
      kind: 0,
      payload: new Uint8Array(1),
      stamp: null,
      commands: [],
      waiters,
      sizeBytes: 10,
      proposedAtMs: 5,
    };
    proposals.add(entry);
    return entry;
  };
  const first = add(5, 1);
  add(6, 1);
  add(7, 1);
  t.equal(proposals.oldestAgeMs(20), 15);
  t.equal(proposals.take(5, 1), first);
  for (const each of first.waiters) proposals.answer(each, { status: "aborted" });
  for (const each of first.waiters) proposals.answer(each, { status: "aborted" });
  completions.run();
  t.equal(results.length, 1, "ends once");
  t.equal(proposals.take(6, 2), null, "another term took the place");
  completions.run();
  t.same(results[1], { status: "unknown" });
  add(7, 3);
  completions.run();
  t.equal(results.length, 3, "whoever is overwritten is told");
  proposals.endAll();
  completions.run();
  t.equal(results.length, 4);
  t.equal(proposals.at(7, 3)?.index, 7, "the entry may commit yet");
  t.equal(proposals.take(7, 3)?.index, 7);
  t.same([proposals.waitingCount, proposals.entryCount, budget.usedBytes], [0, 0, 0]);
  // A new leader's log is shorter: what it cut off is given back now, not when it is that long.
  for (const index of [8, 9, 10, 11]) add(index, 4);
  proposals.endAll();
  proposals.rewritten(9, 10, (index) => (index === 9 ? 4 : 5));
  t.equal(proposals.at(8, 4)?.index, 8, "in front of it");
  t.equal(proposals.at(9, 4)?.index, 9, "it came again");
  t.same([proposals.at(10, 4), proposals.at(11, 4)], [null, null]);
  t.equal(budget.usedBytes, 20);
});

t.test("P-048 P-049 rounds confirm who was there when they began", async (t) => {
  const completions = new Completions(() => undefined);
  const reads = new Reads(completions, 4, SILENT_METER);
  const results: string[] = [];
  const add = (name: string, deadlineMs = 1000): boolean =>
    reads.add(deadlineMs, (result: ReadResult) => void results.push(`${name} ${result.status}`));
  const contexts: number[] = [];
  const core = {
    requestRead: (context: number) => {
      contexts.push(context);
      return "accepted" as const;
    },
  };
  add("a");
  reads.begin(core);
  add("b");
  t.equal(reads.wantsRound, false, "one round at a time");
  reads.captured(99, 1);
  reads.settle(100, 0);
  completions.run();
  t.same(results, [], "another round's answer does not count");
  reads.captured(1, 10);
  reads.settle(9, 0);
  completions.run();
  t.same(results, [], "the state has not come that far");
  reads.settle(10, 0);
  completions.run();
  t.same(results, ["a confirmed"]);
  reads.begin(core);
  reads.drop(1);
  reads.drop(2);
  completions.run();
  t.same(results, ["a confirmed", "b retry"]);
  add("c", 5);
  reads.begin(core);
  add("d", 50);
  reads.expire(10);
  completions.run();
  t.equal(results[2], "c retry");
  t.equal(reads.wantsRound, true, "a round without anybody is given up");
  reads.captured(3, 1);
  reads.settle(100, 0);
  completions.run();
  t.equal(results.length, 3);
  reads.begin({ requestRead: () => "too-many" });
  completions.run();
  t.equal(results[3], "d retry");
  for (const name of ["e", "f", "g", "h"]) t.ok(add(name));
  t.notOk(add("i"), "bounded");
  reads.endAll({ status: "retry" });
  completions.run();
  t.equal(results.length, 8);
  t.equal(reads.waitingCount, 0);
  t.same(contexts, [1, 2, 3]);
});

t.test("P-062 lease time goes on from the logged value at the monotonic pace", async (t) => {
  const lease = new LeaseClock();
  t.throws(() => lease.nowMs(0), /serving leader/);
  lease.start(1000, 50.7);
  t.equal(lease.nowMs(50.7), 1000);
  t.equal(lease.next(150.9), 1100);
  t.equal(lease.next(120), 1100, "never back");
  lease.stop();
  lease.start(1500, 10_000);
  t.equal(lease.next(10_001), 1501);
});

t.test("P-156 turns: one at a time, never at once, re-checked, no timer after close", async (t) => {
  const timer = new ManualTimer();
  const clock = { monotonicMs: () => timer.nowMs, wallMs: () => 0 };
  const log: string[] = [];
  const scheduler: TurnScheduler = new TurnScheduler(clock, timer, (nowMs) => {
    log.push(`turn ${nowMs}`);
    if (log.length === 1) scheduler.request();
  });
  scheduler.request();
  scheduler.request();
  t.same(log, []);
  while (timer.step());
  t.same(log, ["turn 1000", "turn 1000"]);
  scheduler.wakeAt(1500.5);
  scheduler.wakeAt(1300);
  scheduler.wakeAt(1400);
  timer.nowMs = 1299;
  while (timer.step());
  t.equal(log.length, 2);
  timer.nowMs = 1301;
  while (timer.step());
  t.equal(log[2], "turn 1301");
  const armed: (() => void)[] = [];
  const early = {
    soon: () => undefined,
    after: (_: number, callback: () => void) => {
      armed.push(callback);
      return { cancel: () => undefined };
    },
  };
  const rechecked: number[] = [];
  const hasty = new TurnScheduler(clock, early, (nowMs) => void rechecked.push(nowMs));
  hasty.wakeAt(1400);
  armed[0]?.();
  t.same([rechecked.length, armed.length], [0, 2], "a timer that fires early is armed again");
  timer.nowMs = 1400;
  armed[1]?.();
  t.same(rechecked, [1400]);
  scheduler.requestLater();
  scheduler.wakeAt(2000);
  scheduler.close();
  scheduler.requestLater();
  scheduler.wakeAt(3000);
  timer.nowMs = 5000;
  while (timer.step());
  t.equal(log.length, 4, "what was asked for before runs, but nothing by time");
  scheduler.request();
  while (timer.step());
  t.equal(log.length, 5, "a late caller gets its turn");
});

/** An executor of `core` with a log whose writes end when the test says so. */
function executorOf(core: RaftCore, target: Partial<EffectsTarget>) {
  const log = new ManualLog(new ManualTimer());
  log.automatic = false;
  const outbox = new LogOutbox(new AppendBudget(1 << 20));
  const nothing: EffectsTarget = {
    roleChanged: () => undefined,
    payloadFor: () => new Uint8Array(0),
    committed: () => undefined,
    readCaptured: () => undefined,
    readDropped: () => undefined,
    rewritten: () => undefined,
    appended: () => undefined,
    send: () => undefined,
    install: () => undefined,
  };
  const whole = { ...nothing, ...target };
  const hardState = { term: 0, vote: 0, commit: 0 };
  const ports = [outbox, () => undefined, hardState] as const;
  const executor = new EffectsExecutor(partitionId(1), 1, core, whole, ...ports);
  const turn = (): void => {
    executor.run();
    outbox.submit(log);
  };
  return { log, executor, turn };
}

t.test("effects: hard state first, receipts in order, nothing before the disk", async (t) => {
  const events: string[] = [];
  const core = new RaftCore(defaultConfig(1, 1), freshState(membershipOf([1])));
  const payloads = new Map<number, Uint8Array>();
  const { log, executor, turn } = executorOf(core, {
    roleChanged: (soft) => void events.push(soft.role),
    payloadFor: (index) => payloads.get(index) ?? new Uint8Array(0),
    committed: ({ first, last }) => void events.push(`apply ${first}-${last}`),
  });
  core.campaign();
  turn();
  t.same([log.pending.length, core.role], [1, "candidate"]);
  t.equal(log.pending[0]?.hardState?.vote, 1);
  log.sync();
  turn();
  t.equal(core.role, "leader");
  t.equal(core.commitIndex, 0, "a leader counts itself after its own write only");
  log.sync();
  turn();
  t.equal(core.commitIndex, 1);
  core.applied(1);
  for (const index of [2, 3]) {
    payloads.set(index, new Uint8Array(index));
    core.propose([index]);
    turn();
  }
  t.equal(log.pending.length, 2, "a commit index alone writes nothing");
  t.equal(log.pending[0]?.hardState, null, "nor has it a record: it is told late");
  t.equal(executor.openCount, 2);
  log.sync(1);
  turn();
  t.equal(core.commitIndex, 2);
  log.sync(1);
  turn();
  t.equal(core.commitIndex, 3);
  t.same(events, ["preCandidate", "candidate", "leader", "apply 1-1", "apply 2-2", "apply 3-3"]);
  const told: number[] = [];
  for (let index = 4; index < 40; index++) {
    payloads.set(index, new Uint8Array(index));
    core.propose([index]);
    turn();
    const { hardState } = log.pending[0] ?? {};
    if (hardState) told.push(hardState.commit);
    log.sync(1);
    turn();
  }
  t.same(told, [16, 32], "by one write in sixteen");
  payloads.set(40, new Uint8Array(9));
  core.propose([40]);
  t.throws(() => executor.run(), /payloads are those/, "P-043 the wrong bytes are noticed");
});

t.test(
  "a vote for itself may be durable when it is no member any more (seed 9310146)",
  async (t) => {
    const core = new RaftCore(defaultConfig(1, 1), {
      ...freshState(membershipOf([1, 2])),
      ...{
        termRuns: [{ first: 1, term: 1 }],
        lastIndex: 1,
        sizeRuns: [{ first: 1, sizeBytes: 0 }],
      },
      configChanges: [{ index: 1, kind: "configChangeV2" }],
    });
    const gone = {
      version: 2,
      transition: "auto",
      operations: [{ kind: "remove", node: 1 }],
    } as const;
    const { log, turn } = executorOf(core, {
      committed: () => void core.applyConfigChange(1, gone),
    });
    core.campaign();
    turn();
    core.step(message("preVoteAnswer", { term: core.term + 1 }));
    turn();
    t.same([core.role, log.pending.length], ["candidate", 1], "its vote is on its way to the disk");
    core.step(message("heartbeat", { term: core.term + 1, commit: 1 }));
    turn();
    t.same(core.membership.voters, [2]);
    log.sync();
    t.doesNotThrow(turn);
  },
);

t.test("settings that do not fit together are refused", async (t) => {
  t.doesNotThrow(() => assertSettings(DEFAULT_HOST_SETTINGS));
  const wrong = [
    { nodeId: 0 },
    { initialPartitions: 0 },
    { electionMs: 100 },
    { batchEntriesMax: 0 },
    { batchBytesMax: 1 << 30 },
    { batchEntriesMax: 5000 },
    { flushBytes: 2 ** 40 },
    { lingerMs: 0.5 },
    { applySliceMs: 0 },
  ];
  for (const change of wrong) {
    const name = JSON.stringify(change);
    t.throws(
      () => assertSettings({ ...DEFAULT_HOST_SETTINGS, ...change }),
      { name: "AssertionError" },
      name,
    );
  }
});

t.test("a node tells its clock to linked members of sleeping groups with leases alone", (t) => {
  const groupOf = (isQuiesced: boolean, hasLeases: boolean, voters: number[], learners = [0]) => {
    const membership = { ...emptyMembership, voters, learners: learners.filter((id) => id > 0) };
    return { replica: { peers: { isQuiesced }, hasLeases, members: { membership } } };
  };
  const cases: [string, ReturnType<typeof groupOf>[], number[]][] = [
    ["nobody without groups", [], []],
    ["awake", [groupOf(false, true, [1, 2, 3])], []],
    ["without leases, or led elsewhere", [groupOf(true, false, [1, 2, 3])], []],
    ["its members", [groupOf(true, true, [1, 2, 3])], [2, 3]],
    ["learners too", [groupOf(true, true, [1, 2], [4])], [2, 4]],
    ["not who is not linked", [groupOf(true, true, [1, 2, 9])], [2]],
    ["of all groups", [groupOf(true, true, [1, 9, 8]), groupOf(true, true, [1, 4, 5])], [4, 5]],
    [
      "every linked node once",
      [groupOf(true, true, [1, 2, 3, 4, 5]), groupOf(true, true, [2])],
      [2, 3, 4, 5],
    ],
  ];
  for (const [name, hosted, expected] of cases) {
    const told: number[] = [];
    const clocks = new NodeClocks({
      linked: () => [2, 3, 4, 5],
      hosted: () => hosted,
      send: (to) => void told.push(to),
    });
    clocks.check(1000);
    t.same(told.sort(), expected, name);
    t.equal(clocks.wakeAtMs, expected.length > 0 ? 1250 : Infinity, name);
  }
  t.end();
});

t.test("the benchmark of the host still does its work", async (t) => {
  const done = comparisons(true).map(({ rivals }) => rivals[0]?.run());
  t.same(done, [1000, 1000, 1000, 1000, 1000]);
  t.match(proof(comparisons(true)), /^[0-9a-f]{16}$/);
});
