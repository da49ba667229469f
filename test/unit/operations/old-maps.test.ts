/**
 * Routing by the version of the map that a node has applied: what is kept of it, when it goes, and that
 * whoever asks by an old one is told nothing wrong.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { encodeText } from "../../../src/base/bytes.js";
import { type PartitionId, partitionId } from "../../../src/base/ids.js";
import { hashPartition, keySpaceHashText, keySpaceOf } from "../../../src/base/routing.js";
import { KvType } from "../../../src/machine/commands/command.js";
import { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import type { GroupAccess, NodeAccess } from "../../../src/operations/api/host-view.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import { Placement } from "../../../src/operations/serving/placement.js";
import type { Origins } from "../../../src/operations/serving/origins.js";
import { RangeBench } from "../../doubles/machine/meta-ranges.js";
import { get, set } from "../../doubles/operations/fixture.js";
import { CUT, MovingTrio } from "../../doubles/operations/moving-trio.js";

const KEYS = ["a", "g", "m", "p", "t", "z"].map((name) => `e/${name}`);
const POOL = 2;

type Hook = (group: GroupAccess) => void;

/** One node by what it has applied of meta; it hosts whatever is asked for. */
class Routing {
  readonly bench = new RangeBench(3, 0, POOL);
  readonly placement: Placement;
  /** Times that the map was read. */
  reads = 0;
  closing = false;
  private readonly came: Hook[] = [];
  private readonly left: Hook[] = [];
  private groups = new Map<number, GroupAccess>();

  constructor() {
    const { machine } = this.bench;
    const { meta } = machine;
    const keySpaces = meta.keySpaces.bind(meta);
    meta.keySpaces = () => {
      this.reads++;
      return keySpaces();
    };
    const partitionOf = (text: string): PartitionId => partitionId(hashPartition(text, POOL));
    const isClosing = (): boolean => this.closing;
    const node = {
      get closing() {
        return isClosing();
      },
      metaGroup: () => ({ machine }),
      groups: () => [],
      partitionOf,
      route: (text: string) => this.group(partitionOf(text)),
      group: (id: number) => this.group(id),
      onGroup: (hook: Hook) => void this.came.push(hook),
      onGroupLeft: (hook: Hook) => void this.left.push(hook),
    };
    const origins = {
      executed: (group: GroupAccess, generation = 0) => {
        const route = { partitionId: group.partition, endpoint: "here", generation };
        return { servedFrom: "here", route: { ...route, provenance: 1 } };
      },
    };
    this.placement = new Placement(node as unknown as NodeAccess, origins as unknown as Origins);
  }

  group(id: number): GroupAccess {
    const known = this.groups.get(id);
    if (known !== undefined) return known;
    const group = { partition: partitionId(id) } as unknown as GroupAccess;
    this.groups.set(id, group);
    return group;
  }

  /** Another replica takes the place of the one that is here. */
  comeAgain(id: number): void {
    for (const hook of this.left) hook(this.group(id));
    this.groups.delete(id);
    for (const hook of this.came) hook(this.group(id));
  }

  /** Where `key` lies by a map that is read anew, range after range. */
  naive(key: string): { readonly partition: number; readonly generation: number } {
    const keySpace = keySpaceOf(key);
    const ranges = new MetaReads(this.bench.machine.meta["rows"]).ranges(keySpace);
    const range = ranges.find(({ startKey, endKey }) => {
      return (startKey === null || startKey <= key) && (endKey === null || key < endKey);
    });
    if (range !== undefined) return { partition: range.partitionId, generation: range.generation };
    return { partition: hashPartition(keySpaceHashText(keySpace), POOL), generation: 0 };
  }
}

t.test("P-109 each version of the map is read once, and what was found by the last goes", (t) => {
  const routing = new Routing();
  const { bench, placement } = routing;
  const look = (what: string, reads: number): void => {
    const before = routing.reads;
    for (let round = 0; round < 2; round++) {
      for (const key of KEYS) {
        t.strictSame(placement.keyRoute(key), routing.naive(key), `${what}: route of ${key}`);
        const place = placement.keyPlace(key);
        t.equal(place?.group.partition, routing.naive(key).partition, `${what}: place of ${key}`);
        t.equal(place?.origin.route?.generation, routing.naive(key).generation);
      }
    }
    t.equal(routing.reads - before, reads, `${what}: read so many times`);
    t.equal(placement.mapVersion, bench.cluster.mapVersion);
  };
  look("founded", 1);
  bench.register("e");
  look("registered", 1);
  bench.one(1, { kind: "advance-clock" });
  bench.setMember(2, { endpoint: "elsewhere:1" });
  look("what is no change of the map", 0);
  bench.moved("e", "split", "e/m");
  look("split, in four versions", 1);
  bench.moved("e", "split", "e/t");
  look("split again", 1);
  const [, , last] = bench.machine.meta.ranges("e");
  bench.moved("e", "merge", "e/t", bench.machine.meta.ranges("e")[1]?.partitionId);
  t.ok(last !== undefined && last.partitionId > POOL);
  look("merged", 1);
  bench.moved("e", "home", "e/m", bench.home("e"));
  look("at home", 1);
  t.equal(bench.unregister("e"), "done 0");
  look("by hash again", 1);
  t.end();
});

t.test("P-109 the map never goes back, and a node that closes its rows reads none", (t) => {
  const routing = new Routing();
  const { bench, placement } = routing;
  bench.register("e");
  bench.moved("e", "split", "e/m");
  const known = placement.keyRoute("e/z");
  const { meta } = bench.machine;
  const cluster = meta.cluster.bind(meta);
  const version = placement.mapVersion;
  // As after the install of an older snapshot: apply does not allow it.
  meta.cluster = () => {
    const record = cluster();
    return record === null ? null : { ...record, mapVersion: 1 as typeof record.mapVersion };
  };
  meta.keySpaces = () => [];
  bench.one(2, { kind: "advance-clock" });
  t.strictSame(placement.keyRoute("e/z"), known);
  t.equal(placement.mapVersion, version);
  meta.cluster = () => {
    throw new Error("the rows are closed");
  };
  routing.closing = true;
  bench.one(3, { kind: "advance-clock" });
  t.strictSame(placement.keyRoute("e/z"), known);
  t.end();
});

t.test("a place goes with the replica that it names", (t) => {
  const routing = new Routing();
  const { bench, placement } = routing;
  bench.register("e");
  bench.moved("e", "split", "e/m");
  for (const key of ["e/a", "e/z"]) {
    const before = placement.keyPlace(key);
    t.equal(placement.keyPlace(key), before, "it is kept");
    routing.comeAgain(before?.group.partition ?? 0);
    const after = placement.keyPlace(key);
    t.not(after?.group, before?.group, "another replica of the same partition");
    t.equal(after?.group, routing.group(routing.naive(key).partition));
  }
  t.end();
});

/** What one key holds by all that was answered. */
type Values = Map<string, string>;

function wrong(answer: DataAnswer, key: string, values: Values): string | null {
  if (!("type" in answer)) return "an answer of another kind";
  const { type, value } = answer as { readonly type: number; readonly value: Uint8Array | null };
  const expected = values.get(key);
  if (expected === undefined) return type === KvType.doesNotExist ? null : `${key} is there`;
  if (type !== KvType.got) return `${key} is missed`;
  const isSame = value !== null && value.join() === encodeText(expected).join();
  return isSame ? null : `${key} has another value`;
}

t.test("C1 C12 P-109 at a node with any older map nobody is told anything wrong", async (t) => {
  const seen = { asked: 0, byOld: 0, late: 0, moves: 0 };
  for (let seed = 1; seed <= 12; seed++) {
    const prng = new Prng(seed);
    const moving = new MovingTrio();
    const { trio } = moving;
    const values: Values = new Map();
    const keys = ["m/b", "m/f", "m/p", "m/w"];
    let isAway = false;
    let blind: { readonly at: number; readonly see: () => void } | null = null;
    const ask = (at: number): void => {
      const key = keys[prng.below(keys.length)] as string;
      const isSet = prng.chance(1, 2);
      const value = `${seed}-${seen.asked++}`;
      const answers = trio.post(at, isSet ? set(key, value) : get(key));
      trio.world.pass(60, 5);
      if (at === blind?.at) seen.byOld++;
      if (answers.length === 0) {
        seen.late++;
        const owner = isAway && key >= CUT ? moving.target : moving.source;
        const isOld = [at, trio.leaderOf(owner)].includes(blind?.at ?? 0);
        t.ok(isOld, "who asks by an old map waits, or who asks a leader that has one");
        blind?.see();
        blind = null;
        trio.world.pass(100, 5);
      }
      const [answer] = answers;
      if (answer === undefined || answers.length > 1) {
        return void t.fail(`${answers.length} answers`);
      }
      if (isSet) {
        t.match(answer, { type: KvType.set });
        values.set(key, value);
      } else t.equal(wrong(answer, key, values), null);
    };
    for (let step = 0; step < 40; step++) {
      if (blind === null && prng.chance(1, 3)) {
        const at = 1 + prng.below(3);
        blind = { at, see: moving.blind(at) };
      }
      if (prng.chance(1, 3)) {
        seen.moves++;
        if (isAway) moving.back();
        else moving.move();
        isAway = !isAway;
        const to = isAway ? moving.target : moving.source;
        for (const [key, value] of values) if (key >= CUT) moving.write(to, key, value);
      }
      ask(1 + prng.below(3));
    }
    t.equal(trio.open, 0);
  }
  t.comment(JSON.stringify(seen));
  t.ok(seen.byOld > 100 && seen.late > 8 && seen.moves > 100, "and many asked by an old one");
});
