/** Commands and questions about ranges that go from node to node, over a network that loses and garbles. */
import t from "tap";
import { Prng } from "../../../../src/base/prng.js";
import {
  type PartitionId,
  attempt,
  moveId,
  partitionId,
  rangeGeneration,
} from "../../../../src/base/ids.js";
import {
  RangeProposer,
  type RangeResult,
  isRangeProposalFrame,
} from "../../../../src/host/ranges/range-proposer.js";
import { Bench, set } from "../../../doubles/machine/bench.js";
import { RangeSizes, type RangeSize } from "../../../../src/host/ranges/range-sizes.js";
import type { ProposalResult } from "../../../../src/host/requests/results.js";
import type {
  Command,
  RangeCommand,
  RangeOutcome,
} from "../../../../src/machine/commands/command.js";

const P: PartitionId = partitionId(7);
const OF = { keySpace: "room", moveId: moveId(3), attempt: attempt(2) };
const INTERVAL = { startKey: "room/5", endKey: null, generation: rangeGeneration(1) };
const OPEN: RangeCommand = { kind: "range-open", ...OF, ...INTERVAL };

function outcome(changes: Partial<RangeOutcome> = {}): RangeOutcome {
  return { kind: "range", status: "done", nextImport: 1, keys: 0, dropped: 0, ...changes };
}

/** Two nodes, 1 and 2; node 2 leads the partition. */
class Pair {
  nowMs = 1000;
  leader = 2;
  isMember = true;
  /** Which of the next frames are lost. */
  losses: boolean[] = [];
  readonly taken: Command[] = [];
  readonly lanes: string[] = [];
  answer: (command: Command) => ProposalResult = () => {
    return { status: "applied", outcome: outcome(), leaseMs: 1, term: 1, index: 1 };
  };
  private readonly queue: (() => void)[] = [];
  private readonly nodes = new Map([1, 2].map((id) => [id, this.make(id)]));

  private make(id: number): RangeProposer {
    return new RangeProposer({
      nodeId: id,
      nowMs: () => this.nowMs,
      soon: (callback) => void this.queue.push(callback),
      leader: () => this.leader,
      isMember: () => this.isMember,
      propose: (_partition, command, _size, _deadline, done) => {
        this.taken.push(command);
        const end = this.answer(command);
        this.queue.push(() => done(end));
      },
      send: (to, lane, bytes) => {
        this.lanes.push(lane);
        if (this.losses.shift() === true) return true;
        this.queue.push(() => this.node(to).frame(id, bytes));
        return true;
      },
      tickSoon: () => undefined,
    });
  }

  node(id: number): RangeProposer {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error("no such node");
    return node;
  }

  settle(): void {
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) next();
  }

  pass(durationMs: number): void {
    for (const endMs = this.nowMs + durationMs; this.nowMs < endMs; this.nowMs += 10) {
      for (const node of this.nodes.values()) node.tick(this.nowMs);
      this.settle();
    }
  }

  ask(command: RangeCommand, boundMs = 5000): RangeResult[] {
    const ends: RangeResult[] = [];
    this.node(1).propose(P, command, this.nowMs + boundMs, (end) => void ends.push(end));
    t.same(ends, [], "no answer in the turn of the call");
    this.settle();
    return ends;
  }
}

void t.test(
  "a command goes to whoever leads the partition, and its outcome comes back whole",
  (t) => {
    const pair = new Pair();
    const told = outcome({ status: "unsettled", nextImport: 9, keys: 12, dropped: 3 });
    pair.answer = () => ({ status: "applied", outcome: told, leaseMs: 1, term: 1, index: 1 });
    t.same(pair.ask(OPEN), [{ status: "applied", outcome: told }]);
    t.same(pair.taken, [OPEN]);
    const items = [{ key: "room/6", row: new Uint8Array([1]), continues: false, history: [] }];
    const times = { sourceLeaseMs: 5, copyAgeMs: 6 };
    pair.ask({ kind: "range-import", ...OF, number: 1, ...times, items });
    t.same(pair.lanes, ["control", "control", "bulk", "control"], "keys take the lane of bulk");
    pair.leader = 1;
    t.same(
      pair.ask(OPEN),
      [{ status: "applied", outcome: told }],
      "without a frame where it leads",
    );
    t.equal(pair.lanes.length, 4);
    t.end();
  },
);

void t.test("what is lost is asked again, and an open end is never called a refusal", (t) => {
  const pair = new Pair();
  pair.losses = [true];
  const lost = pair.ask(OPEN);
  t.same(lost, []);
  pair.pass(1000);
  t.match(lost, [{ status: "applied" }]);
  t.equal(pair.taken.length, 1);
  pair.losses = [false, true];
  const unanswered = pair.ask(OPEN);
  pair.isMember = false;
  pair.pass(1000);
  t.same(unanswered, [{ status: "unknown" }], "the first copy may have been decided");
  pair.isMember = true;
  pair.losses = Array.from({ length: 100 }, () => true);
  const never = pair.ask(OPEN, 3000);
  pair.pass(2900);
  t.same(never, []);
  pair.pass(200);
  t.same(never, [{ status: "unknown" }], "by the deadline");
  pair.losses = [true];
  const cut = pair.ask(OPEN);
  pair.node(1).linkDown(2);
  pair.settle();
  t.same(cut, [{ status: "unknown" }]);
  t.notOk(pair.node(1).hasWork);
  t.end();
});

void t.test("P-128 strangers, and commands that are no move's, are not taken", (t) => {
  const pair = new Pair();
  pair.isMember = false;
  t.same(pair.ask(OPEN), [{ status: "refused" }]);
  pair.isMember = true;
  pair.leader = 0;
  t.same(pair.ask(OPEN), [{ status: "refused" }], "nobody leads");
  t.same(pair.taken, []);
  const prng = new Prng(7);
  const frames: Uint8Array[] = [];
  const spy = new Pair();
  spy.node(2).frame = (_from, bytes) => void frames.push(bytes);
  spy.ask(OPEN);
  const [whole = new Uint8Array()] = frames;
  t.ok(isRangeProposalFrame(whole));
  for (let round = 0; round < 2000; round++) {
    const bytes = whole.slice(0, prng.nextUint32() % (whole.length + 1));
    if (bytes.length > 1) bytes[1 + (prng.nextUint32() % (bytes.length - 1))] = prng.nextUint32();
    pair.node(2).frame(1, bytes);
    pair.settle();
  }
  t.ok(pair.node(2).badFrames > 500, `${pair.node(2).badFrames} could not be read`);
  t.end();
});

void t.test("sizes are asked of the leader, and what is not known stays unknown", (t) => {
  let nowMs = 0;
  const queue: (() => void)[] = [];
  const frames: Uint8Array[] = [];
  const sizes = new RangeSizes({
    nodeId: 1,
    nowMs: () => nowMs,
    soon: (callback) => void queue.push(callback),
    find: () => null,
    leader: () => 2,
    send: (_to, bytes) => {
      frames.push(bytes);
      return true;
    },
    tickSoon: () => undefined,
    wakeAt: () => undefined,
  });
  const range = { partitionId: 7, keySpace: "room", startKey: null, endKey: "room/5" };
  const ends: RangeSize[] = [];
  sizes.ask(range, (size) => void ends.push(size));
  t.equal(frames.length, 1);
  nowMs += 60_000;
  sizes.tick(nowMs);
  t.same(ends, [{ keys: null, middle: null }], "no answer came");
  const [question = new Uint8Array()] = frames;
  frames.length = 0;
  sizes.frame(2, question);
  for (const next of queue.splice(0)) next();
  t.equal(frames.length, 1, "a node that does not lead answers too");
  for (let at = 0; at < question.length; at++) sizes.frame(2, question.slice(0, at));
  t.ok(sizes.badFrames > question.length / 2);
  t.notOk(sizes.hasWork);
  t.end();
});

void t.test(
  "P-106 keys whose lease ended are not told as live, those on their way are not forgotten",
  (t) => {
    const bench = new Bench();
    for (const key of ["room/1", "room/2"]) bench.one(1, set(key, "v", { expiresMs: 1000 }));
    bench.one(1, set("room/3", "v"));
    let nowMs = 10;
    let counts = 0;
    let onTheirWay = 0;
    const queue: (() => void)[] = [];
    const { reads } = bench.machine;
    const countLive = reads.countLive.bind(reads);
    reads.countLive = (...of) => {
      counts++;
      countLive(...of);
    };
    const group = {
      isServing: () => true,
      term: () => 1,
      acceptedChanges: () => 3 + onTheirWay,
      appliedChanges: () => 3,
      leaseNowMs: () => nowMs,
      machine: bench.machine,
    };
    const sizes = new RangeSizes({
      nodeId: 1,
      nowMs: () => nowMs,
      soon: (callback) => void queue.push(callback),
      find: () => group,
      leader: () => 1,
      send: () => false,
      tickSoon: () => undefined,
      wakeAt: () => undefined,
    });
    const keysNow = (): number | null => {
      const ends: RangeSize[] = [];
      const range = { partitionId: 1, keySpace: "room", startKey: null, endKey: null };
      sizes.ask(range, (size) => void ends.push(size));
      for (let turn = 0; turn < 9; turn++) {
        nowMs += 10;
        sizes.turn(nowMs);
        for (const next of queue.splice(0)) next();
      }
      return ends[0]?.keys ?? null;
    };
    t.equal(keysNow(), 3);
    t.equal(keysNow(), 3);
    t.equal(counts, 1, "counted once");
    nowMs = 2000;
    t.equal(keysNow(), 1);
    t.equal(keysNow(), 1);
    t.equal(counts, 2);
    // Written, accepted before the count, and applied behind it.
    onTheirWay = 2;
    nowMs = 5000;
    bench.one(nowMs, set("room/3", "w"));
    counts = 0;
    t.equal(keysNow(), 1);
    for (const key of ["room/4", "room/5"]) bench.one(nowMs, set(key, "v"));
    t.equal(keysNow(), 3, "what was on its way when keys were counted is not forgotten");
    t.end();
  },
);
