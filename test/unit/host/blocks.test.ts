/**
 * The leader's sequence blocks over real state machines and a scripted log: two leaders, lost
 * answers, refusals, resets, updates and deletes in any order, checked against what clients may
 * see.
 */
import fc from "fast-check";
import t from "tap";
import { assert } from "../../../src/base/assert.js";
import { partitionId } from "../../../src/base/ids.js";
import type { Int64 } from "../../../src/base/int64.js";
import { type BlockGroup, SequenceBlocks } from "../../../src/host/sequences/blocks.js";
import type { ProposalDone, ProposalResult, ReadDone } from "../../../src/host/requests/results.js";
import { type Command, type Outcome, SequenceType } from "../../../src/machine/commands/command.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { ManualStore, ManualTimer } from "../../doubles/host/world.js";
import { NEW_SEQUENCE, UNCHANGED_SEQUENCE } from "../../doubles/machine/bench.js";

const kernels = createKernels({ mode: "twin" });
const BLOCK = 10;

interface Queued {
  readonly command: Command;
  readonly done: ProposalDone;
  readonly deadlineMs: number;
}
interface Entry {
  readonly term: number;
  readonly owner: Leader;
  readonly queued: readonly Queued[];
}

/** One leadership: a state machine of its own, proposals that wait, rounds that wait. */
class Leader implements BlockGroup {
  readonly machine: Machine;
  readonly blocks: SequenceBlocks;
  deposed = false;
  dropped = false;
  proposals: Queued[] = [];
  reads: { readonly done: ReadDone; readonly stale: boolean }[] = [];
  /** What the next proposals end with instead of being queued. */
  refusing: ProposalResult | null = null;
  applied = 0;
  handed = 0;

  constructor(
    readonly cluster: Cluster,
    readonly term: number,
    blocksMax?: number,
  ) {
    const memtable = new Memtable({ store: new ManualStore(cluster.timer), cacheBytes: 0 });
    this.machine = new Machine(memtable, partitionId(1));
    const settings = {
      defaultBlockSize: BLOCK,
      blockLeaseMs: 100,
      keysRetainedMax: 4,
      keysRetainedMs: 0,
    };
    const { timer } = cluster;
    const clock = { monotonicMs: () => timer.nowMs, wallMs: () => 0 };
    const sequenceValues = (count: number): void => void (this.handed += count);
    const meter = { sequenceValues, sequenceBlock: () => undefined };
    this.blocks = new SequenceBlocks(this, settings, { clock, timer, meter }, kernels, blocksMax);
  }

  propose(command: Command, _sizeBytes: number, deadlineMs: number, done: ProposalDone): boolean {
    const gone = { status: "refused", reason: "not-leader" } as const;
    const refusing = this.refusing ?? (this.dropped ? gone : null);
    if (refusing === null) this.proposals.push({ command, done, deadlineMs });
    else this.cluster.timer.soon(() => done(refusing));
    return refusing === null;
  }

  read(_deadlineMs: number, done: ReadDone): void {
    this.reads.push({ done, stale: this.deposed });
  }

  /**
   * Ends every round that waits. One that began after another leader was there is never confirmed.
   */
  endReads(): void {
    const { reads } = this;
    this.reads = [];
    for (const { done, stale } of reads) {
      const sound = !stale && !this.dropped;
      done(sound ? { status: "confirmed", leaseMs: this.machine.leaseMs } : { status: "retry" });
    }
  }

  /** Puts the first `count` proposals into the log as one entry. */
  commit(count: number): void {
    if (this.deposed || this.proposals.length === 0) return;
    const queued = this.proposals.splice(0, count);
    this.cluster.log.push({ term: this.term, owner: this, queued });
  }

  /** Applies up to `count` entries of the log; answers come after all of them. */
  apply(count: number): void {
    for (const end of this.applyOnly(count)) end();
  }

  /** Applies and returns the answers instead of giving them. */
  applyOnly(count: number): readonly (() => void)[] {
    const ends: (() => void)[] = [];
    for (let done = 0; done < count && this.applied < this.cluster.log.length; done++) {
      const entry = this.cluster.log[this.applied] as Entry;
      // Nobody applies a successor's entries without having learnt of it.
      if (entry.term > this.term) this.drop();
      const index = this.machine.appliedIndex + 1;
      const outcomes: Outcome[] = [];
      const stamp = { n: 1, l: index, c: 0 };
      const commands = entry.queued.map(({ command }) => command);
      this.machine.apply({ index, term: entry.term, leaseMs: index, stamp }, commands, outcomes);
      this.applied++;
      if (entry.owner !== this || this.dropped) continue;
      entry.queued.forEach((queued, at) => {
        const outcome = outcomes[at] as Outcome;
        const result = {
          status: "applied",
          outcome,
          leaseMs: index,
          term: entry.term,
          index,
        } as const;
        ends.push(() => this.cluster.answer(queued, result));
      });
    }
    return ends;
  }

  /** Learns that its leadership ended. */
  drop(): void {
    if (this.dropped) return;
    this.dropped = true;
    this.blocks.reset();
    const open = this.proposals.concat(
      ...this.cluster.log
        .slice(this.applied)
        .map((entry) => (entry.owner === this ? entry.queued : [])),
    );
    this.proposals = [];
    for (const queued of open) this.cluster.answer(queued, { status: "unknown" });
    this.endReads();
  }
}

class Cluster {
  readonly timer = new ManualTimer();
  readonly log: Entry[] = [];
  readonly leaders: Leader[] = [];
  private readonly answered = new Set<Queued>();
  /** Every proposal's outcome is hidden from its leader while this is set. */
  hiding = false;

  constructor(private readonly blocksMax?: number) {
    this.elect();
  }

  get leader(): Leader {
    return this.leaders[this.leaders.length - 1] as Leader;
  }

  /** The leader before; the leader itself when there was none. */
  get former(): Leader {
    return this.leaders[this.leaders.length - 2] ?? this.leader;
  }

  elect(): void {
    if (this.leaders.length > 0) this.leader.deposed = true;
    for (const old of this.leaders.slice(0, -1)) old.drop();
    const leader = new Leader(this, this.leaders.length + 1, this.blocksMax);
    this.leaders.push(leader);
    leader.apply(Number.MAX_SAFE_INTEGER);
  }

  answer(queued: Queued, result: ProposalResult): void {
    if (this.answered.has(queued)) return;
    this.answered.add(queued);
    queued.done(this.hiding ? { status: "unknown" } : result);
  }

  settle(): void {
    while (this.timer.step());
  }

  /** Lets everything under way end well. */
  finish(leader = this.leader): void {
    for (let round = 0; round < 50; round++) {
      this.settle();
      leader.commit(1000);
      leader.apply(1000);
      this.settle();
      leader.endReads();
    }
    this.settle();
  }
}

/** A range that a client was given, with the steps at which it asked and was answered. */
interface Given {
  readonly start: bigint;
  readonly end: bigint;
  readonly sent: number;
  readonly answered: number;
}

/**
 * An update, create (with its span) or delete (null), and the steps at which it was sent and
 * answered.
 */
interface Change {
  readonly span: bigint | null;
  readonly sent: number;
  answered: number;
}

/** Values of one incarnation lie within one span: updates and creates start the next. */
const SPAN = 1_000_000n;
const spanOf = (value: bigint): bigint => value / SPAN;

/** Runs a script of small numbers against the blocks and checks what clients saw. */
class History {
  readonly cluster = new Cluster(3);
  private step = 0;
  private life = 0n;
  private readonly given = new Map<string, Given[]>();
  private readonly tries = new Map<string, number>();
  private readonly replays = new Map<string, Set<string>>();
  private readonly changes = new Map<string, Change[]>();
  private readonly seen = new Map<string, bigint>();
  open = 0;
  /** Allocations that clients were given. */
  served = 0;

  private name(pick: number): string {
    return `s${pick % 5 === 0 ? 1 : 0}`;
  }

  /** A change of incarnation that is being sent; whoever sends it notes when it was answered. */
  private change(name: string, span: bigint | null): Change {
    const change = { span, sent: this.step, answered: Number.POSITIVE_INFINITY };
    this.changes.set(name, [...(this.changes.get(name) ?? []), change]);
    return change;
  }

  /**
   * S13, S16: what was sent after an answered change gets nothing of an incarnation that surely
   * ended before it.
   */
  private checkIncarnation(name: string, sent: number, value: bigint): void {
    const changes = this.changes.get(name) ?? [];
    const own = changes.find((change) => change.span === spanOf(value));
    assert(own !== undefined, "a value is of an incarnation that somebody asked for");
    for (const change of changes) {
      const after = change.sent > own.answered && change.answered < sent;
      assert(!after, `S13, S16: ${value} is of a former incarnation`);
    }
  }

  private take(name: string, sent: number, start: bigint, end: bigint): void {
    const list = this.given.get(name) ?? [];
    this.given.set(name, list);
    for (const other of list) {
      if (spanOf(other.start) !== spanOf(start)) continue;
      assert(end < other.start || start > other.end, `S6: ${start}-${end} was given before`);
      if (other.answered < sent) {
        assert(start > other.end, `S7: ${start} came after ${other.end} was answered`);
      }
    }
    this.checkIncarnation(name, sent, start);
    list.push({ start, end, sent, answered: this.step });
    this.served++;
  }

  private keyless(leader: Leader, name: string, count: number, withinMs: number): void {
    const sent = this.step;
    this.open++;
    const done = (type: number, start: Int64, end: Int64): void => {
      this.open--;
      if (type !== SequenceType.success) return;
      const [from, to] = [start.toBigInt(), end.toBigInt()];
      assert(to - from === BigInt(count - 1), "P-082: contiguous");
      this.take(name, sent, from, to);
    };
    leader.blocks.allocate(name, count, this.cluster.timer.nowMs + withinMs, done);
  }

  private keyed(leader: Leader, name: string, count: number, key: string): void {
    // What looks new may be the replay of a call whose answer was lost: it counts from the first
    // try.
    const sent = this.tries.get(`${name} ${key}`) ?? this.step;
    this.tries.set(`${name} ${key}`, sent);
    this.open++;
    leader.blocks.allocateKeyed(name, count, key, this.cluster.timer.nowMs + 1e6, (result) => {
      this.open--;
      if (result === "busy" || result.status !== "applied") return;
      const { outcome } = result;
      assert(outcome.kind === "allocation", "an allocation");
      if (outcome.type !== SequenceType.success) return;
      const start = outcome.before + outcome.increment;
      const end = outcome.before + outcome.increment * BigInt(outcome.count);
      const place = `${name} ${spanOf(start)} ${key}`;
      const text = `${start} ${end} ${outcome.revision}`;
      const known = this.replays.get(place) ?? new Set();
      this.replays.set(place, known);
      if (known.has(text)) return;
      known.add(text);
      this.take(name, sent, start, end);
    });
  }

  private propose(leader: Leader, command: Command, then: (outcome: Outcome) => void): void {
    this.open++;
    leader.propose(command, 1, this.cluster.timer.nowMs + 1e6, (result) => {
      this.open--;
      if (result.status === "applied") then(result.outcome);
    });
  }

  /** A new span for whatever comes after the present answers. */
  private nextSpan(): bigint {
    this.life++;
    return this.life * SPAN;
  }

  private create(leader: Leader, name: string): void {
    const initialValue = this.nextSpan();
    const command = {
      kind: "create-sequence" as const,
      name,
      initialValue,
      increment: 1n,
      maxValue: null,
      blockSize: this.life % 3n === 0n ? 1 : null,
    };
    const change = this.change(name, spanOf(initialValue));
    this.propose(leader, command, (outcome) => {
      if (outcome.kind === "sequence" && outcome.type === SequenceType.success) {
        change.answered = this.step;
      }
    });
  }

  private update(leader: Leader, name: string): void {
    const currentValue = this.nextSpan();
    const command = {
      kind: "update-sequence" as const,
      name,
      ...UNCHANGED_SEQUENCE,
      currentValue,
      cursor: null,
    };
    const change = this.change(name, spanOf(currentValue));
    this.open++;
    leader.blocks.update(command, this.cluster.timer.nowMs + 1e6, (result) => {
      this.open--;
      if (result === "busy" || result.status !== "applied") return;
      const { outcome } = result;
      if (outcome.kind === "sequence" && outcome.type === SequenceType.success) {
        change.answered = this.step;
      }
    });
  }

  private remove(leader: Leader, name: string): void {
    this.open++;
    const change = this.change(name, null);
    leader.blocks.remove(name, this.cluster.timer.nowMs + 1e6, (result) => {
      this.open--;
      if (result.status === "applied") change.answered = this.step;
    });
  }

  private look(leader: Leader, name: string): void {
    const least = this.seen.get(name) ?? 0n;
    const given = [...(this.given.get(name) ?? [])];
    leader.read(0, (result) => {
      const record = leader.machine.reads.getSequence(name);
      if (result.status !== "confirmed" || record === null) return;
      const value = leader.blocks.currentValue(record);
      if (value === "unsettled") return;
      for (const { end } of given) {
        if (spanOf(end) === spanOf(value)) assert(value >= end, `S9: ${value} below ${end}`);
      }
      if (spanOf(least) === spanOf(value)) assert(value >= least, `S9: ${value} after ${least}`);
      if (value > (this.seen.get(name) ?? 0n)) this.seen.set(name, value);
    });
  }

  act(op: number, pick: number): void {
    this.step++;
    const { cluster } = this;
    const leader = pick % 7 === 6 ? cluster.former : cluster.leader;
    const name = this.name(pick);
    const sizes = [1, 2, 3, 7, 12, 25];
    if (op < 14) this.keyless(leader, name, 1, pick % 11 === 0 ? 30 : 1e6);
    else if (op < 18) this.keyless(leader, name, sizes[pick % 6] as number, 1e6);
    else if (op < 22) this.keyed(leader, name, sizes[pick % 6] as number, `k${op % 3}-${pick % 6}`);
    else if (op < 24) this.create(leader, name);
    else if (op < 25) this.update(leader, name);
    else if (op < 26) this.remove(leader, name);
    else if (op < 28) this.look(leader, name);
    else if (op < 34) leader.commit(1 + (pick % 3));
    else if (op < 40) leader.apply(1 + (pick % 3));
    else if (op < 46) leader.endReads();
    else if (op < 47) cluster.elect();
    else if (op < 48 && cluster.former !== cluster.leader) cluster.former.drop();
    else if (op < 49) cluster.timer.nowMs += 20 + pick;
    else if (op < 50) this.trouble(leader, pick);
    else if (op < 51) leader.blocks.handBack((c, s, d) => leader.propose(c, s, 1e9, d));
    cluster.settle();
  }

  private trouble(leader: Leader, pick: number): void {
    const kinds: (ProposalResult | null)[] = [
      { status: "refused", reason: "overloaded" },
      { status: "aborted" },
      null,
      null,
    ];
    leader.refusing = kinds[pick % 4] as ProposalResult | null;
    this.cluster.hiding = pick % 8 === 3;
  }

  end(): void {
    const { cluster } = this;
    cluster.hiding = false;
    for (const leader of cluster.leaders.slice(0, -1)) leader.drop();
    cluster.leader.refusing = null;
    this.step++;
    for (let round = 0; round < 3; round++) {
      for (const leader of cluster.leaders) leader.endReads();
      cluster.finish();
    }
    assert(this.open === 0, `everything ends: ${this.open} open`);
  }
}

t.test(
  "P-074, P-075, P-076, P-077, P-082: whatever happens, values are given once and in order",
  async (t) => {
    let given = 0;
    const action = fc.tuple(fc.nat({ max: 50 }), fc.nat({ max: 100 }));
    fc.assert(
      fc.property(fc.array(action, { minLength: 20, maxLength: 250, size: "max" }), (actions) => {
        const history = new History();
        for (const pick of [0, 1]) history.act(22, pick);
        history.cluster.finish();
        for (const [op, pick] of actions) history.act(op, pick);
        history.end();
        given += history.served;
      }),
      { numRuns: 400 },
    );
    t.ok(given > 1000, `not vacuous: ${given} allocations`);
  },
);

function answersOf(cluster: Cluster, name: string, counts: readonly number[]): string[] {
  const answers: string[] = [];
  for (const count of counts) {
    cluster.leader.blocks.allocate(name, count, 1e9, (type, start, end, revision, refusal) => {
      const told = refusal ?? (type === 0 ? `${start}-${end} r${revision}` : `type ${type}`);
      answers.push(told);
    });
  }
  return answers;
}

function started(blockSize: number | null = null, maxValue: bigint | null = null): Cluster {
  const cluster = new Cluster();
  const command = { initialValue: 0n, increment: 1n, maxValue, blockSize } as const;
  cluster.leader.propose(
    { kind: "create-sequence", name: "s", ...command },
    1,
    1e9,
    () => undefined,
  );
  cluster.finish();
  return cluster;
}

t.test("requests that find no room gather while one reservation is in flight", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  const first = answersOf(cluster, "s", [1, 1]);
  cluster.settle();
  leader.endReads();
  t.equal(leader.proposals.length, 1);
  const second = answersOf(cluster, "s", [20, 1, 1]);
  cluster.settle();
  leader.endReads();
  t.equal(leader.proposals.length, 1, "one reservation in flight");
  leader.commit(1);
  leader.apply(1);
  t.same(first, ["1-1 r1", "2-2 r1"]);
  t.equal(leader.proposals.length, 1, "one for all that gathered");
  t.match(leader.proposals[0]?.command, { kind: "reserve-block", count: 22 });
  leader.commit(1);
  leader.apply(1);
  t.same(second, ["3-22 r2", "23-23 r2", "24-24 r2"], "S8: in order, nothing skipped");
  t.equal(leader.handed, 24);
});

t.test("P-074: a block serves nobody without a round that began after the request", async (t) => {
  const cluster = started();
  cluster.finish();
  const warm = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(warm, ["1-1 r1"]);
  const { leader } = cluster;
  const waiting = answersOf(cluster, "s", [1, 1]);
  cluster.settle();
  t.same(waiting, [], "nothing before the round");
  cluster.elect();
  leader.drop();
  t.same(waiting, ["moved", "moved"], "to be asked of the next leader when it fails");
  const other = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(other, ["11-11 r2"], "above everything the former leader reserved");
  t.equal(leader.blocks.size, 0, "P-042: no block survives a demotion");
});

t.test("ends of a reservation: refused, aborted, unknown, deadline", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  leader.refusing = { status: "refused", reason: "overloaded" };
  const overloaded = answersOf(cluster, "s", [1, 5]);
  cluster.finish();
  t.same(overloaded, ["overloaded", "overloaded"]);
  leader.refusing = { status: "refused", reason: "not-leader" };
  const moved = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(moved, ["moved"]);
  leader.refusing = { status: "aborted" };
  const aborted = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(aborted, ["type 6"]);
  leader.refusing = null;
  t.same(answersOf(cluster, "s", [1]), []);
  cluster.finish();
  cluster.hiding = true;
  const unknown = answersOf(cluster, "s", [20]);
  cluster.finish();
  t.same(unknown, ["type 5"], "nobody else is to be asked while it leads");
  cluster.hiding = false;
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(after, ["22-22 r3"], "the lost reservation is skipped, not handed out");
  const late: string[] = [];
  const deadlineMs = cluster.timer.nowMs + 50;
  leader.blocks.allocate("s", 30, deadlineMs, (type) => void late.push(`type ${type}`));
  cluster.settle();
  leader.endReads();
  t.equal(leader.proposals.length, 1);
  cluster.timer.nowMs += 49;
  cluster.settle();
  t.same(late, []);
  cluster.timer.nowMs += 1;
  cluster.settle();
  t.same(late, ["type 5"], "C9");
  const rest = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(rest, ["23-23 r4"], "what the late one did not take serves the next");
});

t.test("P-079: what cannot fit is refused alone, and the exact rest still served", async (t) => {
  const cluster = started(null, 25n);
  const answers = answersOf(cluster, "s", [10, 20, 10, 6, 5, 1]);
  cluster.finish();
  t.same(answers.sort(), ["1-10 r1", "11-20 r1", "21-25 r1", "type 4", "type 4", "type 4"]);
});

t.test("blocks are bounded: the oldest idle one is handed back", async (t) => {
  const cluster = new Cluster(2);
  for (const name of ["a", "b", "c", "d"]) {
    cluster.leader.propose(
      { kind: "create-sequence", name, ...NEW_SEQUENCE },
      1,
      1e9,
      () => undefined,
    );
    cluster.finish();
    t.same(answersOf(cluster, name, [1]), []);
    cluster.finish();
  }
  t.ok(cluster.leader.blocks.size <= 2, `${cluster.leader.blocks.size} blocks`);
  const current = cluster.leader.machine.reads.getSequence("a")?.currentValue;
  t.equal(current, 1n, "nothing skipped");
  const again = answersOf(cluster, "a", [1]);
  cluster.finish();
  t.same(again, ["2-2 r2"]);
});

t.test("a record that changed behind the block is noticed within the block lease", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  t.same(answersOf(cluster, "s", [1]), []);
  cluster.finish();
  const numbers = {
    currentValue: 500n,
    increment: null,
    initialValue: null,
    maxValue: null,
  } as const;
  leader.propose(
    {
      kind: "update-sequence",
      name: "s",
      ...numbers,
      removeMaxValue: false,
      blockSize: null,
      removeBlockSize: false,
      cursor: null,
    },
    1,
    1e9,
    () => undefined,
  );
  cluster.finish();
  cluster.timer.nowMs += 101;
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(after, ["501-501 r3"]);
});

const bareUpdate = {
  kind: "update-sequence",
  name: "s",
  ...UNCHANGED_SEQUENCE,
  cursor: null,
} as const;

t.test("P-076: a sequence created anew is not served from the old one's block", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  t.same(answersOf(cluster, "s", [5]), []);
  cluster.finish();
  const keyed: string[] = [];
  const allocate = (key: string): void => {
    leader.blocks.allocateKeyed("s", 1, key, 1e9, (result) => {
      assert(result !== "busy" && result.status === "applied", "applied");
      assert(result.outcome.kind === "allocation", "an allocation");
      keyed.push(`${result.outcome.before + 1n} r${result.outcome.revision}`);
    });
  };
  leader.blocks.remove("s", 1e9, () => undefined);
  leader.propose({ kind: "create-sequence", name: "s", ...NEW_SEQUENCE }, 1, 1e9, () => undefined);
  allocate("a");
  leader.commit(10);
  leader.apply(1);
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(keyed, ["1 r1"]);
  t.same(after, ["2-2 r2"], "the same incarnation and revision, another life");
  leader.blocks.remove("s", 1e9, () => undefined);
  leader.propose({ kind: "create-sequence", name: "s", ...NEW_SEQUENCE }, 1, 1e9, () => undefined);
  allocate("a");
  allocate("b");
  allocate("c");
  t.same(
    leader.proposals.map(({ command }) => ("cursor" in command ? command.cursor : undefined)),
    [undefined, undefined, null, null, null],
    "no cursor of the old life travels behind a delete",
  );
  cluster.finish();
  t.same(keyed, ["1 r1", "1 r1", "2 r2", "3 r3"]);
});

t.test("P-075 S8: a keyed allocation goes on where the open block stands", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  const answers = answersOf(cluster, "s", [1, 2]);
  cluster.finish();
  leader.blocks.allocateKeyed("s", 2, "key", 1e9, (result) => {
    assert(result !== "busy" && result.status === "applied", "applied");
    assert(result.outcome.kind === "allocation", "an allocation");
    const { before, count, revision } = result.outcome;
    answers.push(`${before + 1n}-${before + BigInt(count)} r${revision}`);
  });
  cluster.finish();
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same([...answers, ...after], ["1-1 r1", "2-3 r1", "4-5 r2", "6-6 r3"], "nothing is skipped");
});

t.test("P-076: a delete without known outcome leaves no block of the old life", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  const first = answersOf(cluster, "s", [5]);
  cluster.settle();
  leader.endReads();
  const ends: string[] = [];
  leader.blocks.remove("s", 1e9, (result) => ends.push(result.status));
  const [reservation, removal] = leader.proposals;
  assert(reservation?.command.kind === "reserve-block", "the reservation came first");
  assert(removal?.command.kind === "delete-sequence", "the delete follows it");
  cluster.answer(removal, { status: "unknown" });
  t.same(ends, ["unknown"], "its deadline passed before it was in the log");
  leader.commit(1);
  leader.apply(1);
  t.same(first, ["1-5 r1"]);
  leader.propose({ kind: "create-sequence", name: "s", ...NEW_SEQUENCE }, 1, 1e9, () => undefined);
  leader.commit(10);
  leader.apply(10);
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(after, ["1-1 r1"], "the delete took effect after all: a new life, a new numbering");
});

t.test("S5: what only others leave no room for is judged once they have theirs", async (t) => {
  const cluster = started(null, 8n);
  const { leader } = cluster;
  const answers = answersOf(cluster, "s", [6, 6, 9]);
  cluster.settle();
  leader.endReads();
  t.same(answers, ["type 4"], "nine can never fit; the second six may");
  const refused = { status: "refused", reason: "overloaded" } as const;
  const [reservation] = leader.proposals;
  assert(reservation !== undefined, "the first six are being reserved");
  leader.proposals = [];
  cluster.answer(reservation, refused);
  cluster.finish();
  t.notOk(answers.slice(1).includes("type 4"), "nothing was consumed, so nothing is exceeded");
});

t.test("S9: an update keeps what was handed out, also by a reservation in flight", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  t.same(answersOf(cluster, "s", [3]), []);
  cluster.finish();
  const gathered = answersOf(cluster, "s", [8]);
  cluster.settle();
  leader.endReads();
  const kept: (bigint | null)[] = [];
  leader.blocks.update({ ...bareUpdate, increment: 5n }, 1e9, (result) => {
    assert(result !== "busy" && result.status === "applied", "applied");
    assert(result.outcome.kind === "sequence", "a sequence");
    kept.push(result.outcome.record?.currentValue ?? null);
  });
  t.equal(leader.proposals.length, 1, "the update waits for the reservation");
  const during = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(gathered, ["4-11 r2"]);
  t.same(kept, [11n]);
  t.same(during, ["type 5"], "S13");
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(after, ["16-16 r4"]);
});

t.test("P-042: what was begun before a reset neither serves nor leaves a block", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  const before = answersOf(cluster, "s", [1, 1]);
  cluster.settle();
  leader.endReads();
  leader.blocks.reset();
  leader.commit(1);
  leader.apply(1);
  t.same(before, ["moved", "moved"]);
  const after = answersOf(cluster, "s", [1]);
  cluster.finish();
  t.same(after, ["11-11 r2"]);
});

t.test("S9: a reservation that was applied but not answered does not show its end", async (t) => {
  const cluster = started();
  const { leader } = cluster;
  t.same(answersOf(cluster, "s", [2]), []);
  const record = () => {
    const found = leader.machine.reads.getSequence("s");
    assert(found !== null, "the sequence exists");
    return found;
  };
  cluster.settle();
  leader.endReads();
  t.equal(leader.blocks.currentValue(record()), 0n, "not applied yet");
  leader.commit(1);
  const ends = leader.applyOnly(1);
  t.equal(leader.blocks.currentValue(record()), "unsettled");
  let resumed = 0;
  leader.blocks.settle("s", 1e9, () => void resumed++);
  for (const end of ends) end();
  t.equal(resumed, 1);
  t.equal(leader.blocks.currentValue(record()), 2n);
});
