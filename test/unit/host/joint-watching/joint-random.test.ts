/**
 * Joint watches against what is simply true (W2, W4, W6, W9, W14): any order in which replicas apply, in
 * which questions arrive or are lost, nodes are gone, replicas go, and in half of the histories keys
 * move from partition to partition, of which nodes learn late.
 *
 * SVC_HISTORIES overrides the number of histories, SVC_SEED the first one.
 */
import t from "tap";
import { Prng } from "../../../../src/base/prng.js";
import { WatchEventType, WatchKind, WatchMessageType } from "../../../../src/base/result-types.js";
import { JointBench } from "../../../doubles/host/joint-bench.js";
import { MovingKeys } from "../../../doubles/host/moving-keys.js";
import { Bench, remove, set } from "../../../doubles/machine/bench.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

const HISTORIES = Number(process.env["SVC_HISTORIES"] ?? 60);
const SEED = Number(process.env["SVC_SEED"] ?? 1);
const NODES = 4;
const PARTITIONS = 5;
/** Key spaces, one of each of the first partitions; the other ones have what moves there. */
const SPACES = ["p/1", "p/2", "p/3"];
const STEPS = 400;

const text = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString();

/** The values of every key, in order: null is none. */
class Truth {
  readonly values = new Map<string, (string | null)[]>();

  of(name: string): (string | null)[] {
    return this.values.get(name) ?? [null];
  }

  last(name: string): string | null {
    return this.of(name).at(-1) ?? null;
  }

  note(name: string, value: string | null): void {
    this.values.set(name, [...this.of(name), value]);
  }

  /** How many values every key has had. */
  counts(): ReadonlyMap<string, number> {
    return new Map([...this.values].map(([name, { length }]) => [name, length]));
  }
}

/** What one caller was told, judged as it goes. */
class Told {
  /** Barriers that it came to; and how often all of a state was told. */
  synced = 0;
  states = 0;
  /** How many values keys had when the watch was asked for, and stood; and when each barrier was. */
  private begun: ReadonlyMap<string, number>;
  private stood: ReadonlyMap<string, number> | null = null;
  private syncs = new Map<number, ReadonlyMap<string, number>>();
  private isInState: boolean;
  readonly state = new Map<string, string | null>();
  private revisions = new Map<string, number>();
  /** As they were where it would go on. */
  private atCursor = new Map<string, number>();
  private read = 0;
  reset = 0;
  merged = 0;

  constructor(
    public caller: WatchCaller,
    readonly truth: Truth,
    readonly watched: Watched,
    private isWhole: boolean,
  ) {
    this.begun = truth.counts();
    this.isInState = isWhole;
  }

  sync(syncId: number): void {
    this.syncs.set(syncId, this.truth.counts());
    this.caller.stream.sync(syncId, 1);
  }

  /** Whether all is told that there was when keys had so many values. */
  private judgeState(counts: ReadonlyMap<string, number>, what: string): string | null {
    for (const [name, count] of counts) {
      const isWatched = name.startsWith(`${this.watched.name}/`) || this.watched.name === "p/";
      // What did not change since it stood may not be told to who did not ask for the state.
      const isNew = this.stood !== null && (this.stood.get(name) ?? 1) < count;
      const isAsked = this.isWhole || isNew || this.state.has(name);
      if (!isWatched || !isAsked) continue;
      const known = this.state.get(name) ?? null;
      const since = this.truth.of(name).slice(count - 1);
      if (!since.includes(known)) return `${what}: ${name} is ${since.join()}, told ${known}`;
    }
    return null;
  }

  /** Null: all is well. */
  judge(): string | null {
    for (; this.read < this.caller.messages.length; this.read++) {
      const message = this.caller.messages[this.read];
      if (message === undefined) break;
      if (message.reset) {
        this.reset++;
        this.isWhole = true;
        this.state.clear();
        this.revisions.clear();
      }
      if (message.merged) this.merged++;
      const isExact = !message.merged && !message.initial;
      for (const { name, revision, type, value } of message.events) {
        const last = this.revisions.get(name);
        if (last !== undefined && revision < last) return `${name}: ${revision} behind ${last}`;
        if (isExact && last !== undefined && revision !== last + 1) {
          const isEnd = type === WatchEventType.deleted && revision === last;
          if (!isEnd) return `${name}: ${revision} follows ${last}`;
        }
        this.revisions.set(name, revision);
        this.state.set(name, type === WatchEventType.set ? text(value) : null);
      }
      if (message.type === WatchMessageType.created) this.stood ??= this.truth.counts();
      const asked = this.syncs.get(message.syncId);
      if (asked !== undefined) {
        this.synced++;
        const wrong = this.judgeState(asked, `synced ${message.syncId}`);
        if (wrong !== null) return wrong;
      }
      if (this.isInState && message.cursor !== null) {
        this.isInState = false;
        this.states++;
        const wrong = this.judgeState(this.begun, "the state at the start");
        if (wrong !== null) return wrong;
      }
      if (message.cursor !== null) this.atCursor = new Map(this.revisions);
    }
    return null;
  }

  /** It goes on with another stream. */
  goOn(caller: WatchCaller, isAnew: boolean): void {
    this.caller = caller;
    this.syncs = new Map();
    if (isAnew) this.begun = this.truth.counts();
    this.isWhole ||= isAnew;
    this.isInState = isAnew;
    this.read = 0;
    this.revisions = new Map(this.atCursor);
  }
}

interface Watched {
  readonly kind: number;
  readonly name: string;
}

/** What each of the callers watches. */
const WATCHED: readonly Watched[] = [
  { kind: WatchKind.prefix, name: "p/" },
  { kind: WatchKind.prefix, name: "p/" },
  { kind: WatchKind.bucket, name: "p/1" },
  { kind: WatchKind.bucket, name: "p/2" },
];

class History {
  readonly bench: JointBench;
  private readonly random: Prng;
  private readonly truth = new Truth();
  readonly keys: MovingKeys;
  private readonly mayMove: boolean;
  readonly told: Told[] = [];
  private changes = 0;
  ends = 0;

  constructor(seed: number) {
    this.random = new Prng(seed);
    const { random } = this;
    const replicas = Array.from({ length: PARTITIONS }, () => {
      const nodes = [1, 2, 3, 4];
      while (nodes.length > 2) nodes.splice(random.below(nodes.length), 1);
      return nodes;
    });
    const historyBytes = random.chance(1, 3) ? 5000 : 1 << 20;
    this.bench = new JointBench(NODES, replicas, { historyBytes }, (_node, id) => {
      return new Bench(undefined, id, id <= SPACES.length);
    });
    this.keys = new MovingKeys(this.bench, random, SPACES);
    this.mayMove = random.chance(1, 2);
    this.bench.delayMs = () => random.below(4);
    this.bench.fate = () => {
      if (random.chance(9, 10)) return "arrives";
      return random.chance(1, 2) ? "question lost" : "answer lost";
    };
    for (const { bench } of this.bench.nodes) {
      for (const group of bench.groups.values()) group.rounds = "held";
    }
    for (const [at, watched] of WATCHED.entries()) {
      const initial = at % 2 === 0;
      const caller = this.begin(watched, initial, null);
      this.told.push(new Told(caller, this.truth, watched, initial));
    }
  }

  private begin({ kind, name }: Watched, initial: boolean, cursor: string | null): WatchCaller {
    const caller = new WatchCaller(this.bench.watches(1 + this.random.below(NODES)));
    caller.stream.create(1, watchRequest(kind, name, { initial, cursor }));
    return caller;
  }

  private change(): void {
    const { random, truth } = this;
    const space = SPACES[random.below(SPACES.length)] as string;
    const name = `${space}/${random.below(4)}`;
    const value = String(++this.changes);
    const isRemoved = truth.last(name) !== null && random.chance(1, 5);
    const isTaken = this.keys.write(space, name, isRemoved ? remove(name) : set(name, value));
    if (isTaken) truth.note(name, isRemoved ? null : value);
  }

  private applySome(): void {
    const { random, bench } = this;
    bench.applyNext(1 + random.below(NODES), 1 + random.below(PARTITIONS));
    this.release();
  }

  /** Rounds end where the replica has all of the log. */
  private release(): void {
    for (const { id, bench } of this.bench.nodes) {
      for (const [partition, group] of bench.groups) {
        if (!this.bench.isBehind(id, partition)) group.release();
      }
    }
  }

  private fault(): void {
    const { random, bench } = this;
    const node = 1 + random.below(NODES);
    switch (random.below(4)) {
      case 0:
        bench.setDown(node, bench.down.size === 0);
        for (const each of [...bench.down]) if (each !== node) bench.setDown(each, false);
        return;
      case 1: {
        const at = bench.node(node).bench;
        const [partition] = at.groups.keys();
        if (partition === undefined || bench.hosts(partition).length < 2) return;
        return at.leave(partition);
      }
      case 2: {
        const told = this.told[random.below(this.told.length)] as Told;
        if (told.caller.full) told.caller.drain();
        else told.caller.full = true;
        return;
      }
      default: {
        const told = this.told[random.below(this.told.length)] as Told;
        const { cursor } = told.caller;
        if (cursor === null) return;
        told.judge();
        told.caller.stream.close();
        told.goOn(this.begin(told.watched, false, cursor), false);
      }
    }
  }

  /** Whose watch ended begins another one. */
  private again(): string | null {
    for (const told of this.told) {
      const wrong = told.judge();
      if (wrong !== null) return wrong;
      if (told.caller.messages.at(-1)?.type !== 4) continue;
      this.ends++;
      const { cursor } = told.caller;
      told.caller.stream.close();
      if (cursor === null) told.state.clear();
      told.goOn(this.begin(told.watched, cursor === null, cursor), cursor === null);
    }
    return null;
  }

  /** Null: all is well. */
  run(): string | null {
    const { random, bench } = this;
    for (let step = 0; step < STEPS; step++) {
      if (random.chance(1, 2)) this.change();
      if (this.mayMove && random.chance(1, 3)) this.keys.moveOn();
      for (let count = random.below(12); count > 0; count--) this.applySome();
      if (random.chance(1, 4)) this.keys.learn(1 + random.below(NODES));
      if (random.chance(1, 15)) this.fault();
      if (random.chance(1, 5)) this.told[random.below(this.told.length)]?.sync(step + 1);
      bench.pass(random.below(20));
      const wrong = this.again();
      if (wrong !== null) return `step ${step}: ${wrong}`;
    }
    for (const each of [...bench.down]) bench.setDown(each, false);
    bench.fate = () => "arrives";
    for (const { caller } of this.told) caller.drain();
    this.keys.settle();
    const wrong = this.pass(40, 500);
    if (wrong !== null) return `in peace: ${wrong}`;
    const before = this.told.map(({ synced }) => synced);
    for (const told of this.told) told.sync(STEPS + 1);
    const atEnd = this.pass(10, 50);
    if (atEnd !== null) return `at the end: ${atEnd}`;
    const isPassed = this.told.every(({ synced }, at) => synced > (before[at] ?? 0));
    return isPassed ? null : "at the end a barrier is not passed";
  }

  /** Time passes in which all is applied and known. Null: all is well. */
  private pass(rounds: number, ms: number): string | null {
    const { bench } = this;
    for (let round = 0; round < rounds; round++) {
      for (let partition = 1; partition <= PARTITIONS; partition++) bench.level(partition);
      this.release();
      for (const { id } of bench.nodes) this.keys.learn(id);
      bench.pass(ms);
      const wrong = this.again();
      if (wrong !== null) return wrong;
    }
    return null;
  }
}

t.test("W2 W4 W6 W9 W14 P-186 what is told is what happened, in any interleaving", (t) => {
  const counts = { merged: 0, reset: 0, joint: 0, ends: 0, moved: 0, synced: 0, states: 0 };
  for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
    const history = new History(seed);
    const wrong = history.run();
    if (wrong !== null) {
      t.fail(`seed ${seed}: ${wrong}`);
      break;
    }
    counts.ends += history.ends;
    counts.moved += history.keys.moved;
    counts.joint += history.bench.nodes.reduce((sum, { joints }) => sum + joints.count, 0);
    for (const { merged, reset, synced, states } of history.told) {
      counts.synced += synced;
      counts.states += states;
      counts.merged += merged;
      counts.reset += reset;
    }
  }
  t.comment(JSON.stringify(counts));
  t.ok(counts.merged > 0 && counts.joint > 0, "states were compared, watches were joint");
  t.ok(counts.synced > 20 * HISTORIES, `${counts.synced} times a barrier was passed`);
  t.ok(counts.states > HISTORIES, `${counts.states} states were told whole`);
  t.ok(counts.moved > HISTORIES, `${counts.moved} times keys moved`);
  t.end();
});
