/**
 * Placement as apply decides it: every edge and refusal of a record as a table, and what holds of any
 * sequence of orders and reports, however old they are.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { placementGeneration } from "../../../src/base/ids.js";
import {
  MEMBERS_MAX,
  NODE_ID_MAX,
  PLACEMENT_ITEMS_MAX,
  VOTERS_MAX,
} from "../../../src/base/limits.js";
import type {
  Command,
  PartitionRecord,
  ReplicaChange,
} from "../../../src/machine/commands/command.js";
import { encodePartition } from "../../../src/machine/meta/meta-rows.js";
import { MetaBench, inShort, orders, place, report } from "../../doubles/machine/placement.js";

t.setTimeout(240_000);

const add = (nodeId: number, replaces = 0): ReplicaChange => ({ kind: "add", nodeId, replaces });
const remove = (nodeId: number): ReplicaChange => ({ kind: "remove", nodeId });
const cancel = (nodeId: number): ReplicaChange => ({ kind: "cancel", nodeId });
const keep = (nodeId: number): ReplicaChange => ({ kind: "keep", nodeId });

t.test(
  "founding with a factor: founders take turns, nobody has two more than another (5.4)",
  (t) => {
    for (let nodes = 1; nodes <= 9; nodes++) {
      for (let factor = 0; factor <= 9; factor++) {
        const bench = new MetaBench(nodes, factor, 32);
        const counts = new Map<number, number>();
        const width = Math.min(factor, nodes);
        for (let id = 1; id <= 32; id++) {
          const record = bench.record(id);
          const listed = record.replicas.map(({ nodeId }) => nodeId);
          const wished = Array.from({ length: width }, (_, k) => ((id - 1 + k) % nodes) + 1);
          if (String(listed) !== String(wished.sort((a, b) => a - b))) t.fail(`${id}: ${listed}`);
          if (String(record.founders) !== String(listed)) t.fail("its founders begin it");
          if (record.replicas.some((r) => inShort(r) !== `${r.nodeId} voter`)) t.fail("voters");
          for (const node of listed) counts.set(node, (counts.get(node) ?? 0) + 1);
        }
        const spread = Math.max(0, ...counts.values()) - Math.min(Infinity, ...counts.values());
        if (factor > 0 && (counts.size < nodes || spread > Math.ceil(width))) t.fail("uneven");
        const { mode, generation, configIndex } = bench.record(7);
        t.strictSame([mode, generation, configIndex], [factor === 0 ? "full" : "placed", 1, 0]);
      }
    }
    const bench = new MetaBench(3, 0);
    t.strictSame(bench.record().replicas, [], "P-042 without a factor nothing is listed");
    t.match(bench.machine.meta.cluster(), { nextPartitionId: 2, topologyVersion: 1, level: 1 });
    t.end();
  },
);

t.test("P-092 P-094 the orders: every edge and every refusal", (t) => {
  const start = "1 at 0: 1 voter, 2 voter, 3 voter";
  const begun = "2 at 0: 1 voter, 2 voter, 3 voter, 4 learner@2 for 3";
  const going = "2 at 0: 1 voter, 2 removing, 3 voter";
  const table: readonly [string, readonly Command[], Command, string, string][] = [
    [
      "a learner comes",
      [],
      orders(1, add(4)),
      "done 2",
      "2 at 0: 1 voter, 2 voter, 3 voter, 4 learner@2",
    ],
    ["in place of a voter", [], orders(1, add(4, 3)), "done 2", begun],
    ["a voter goes", [], orders(1, remove(2)), "done 2", going],
    [
      "a learner goes again",
      [orders(1, add(4, 3))],
      orders(2, cancel(4)),
      "done 3",
      "3 at 0: 1 voter, 2 voter, 3 voter, 4 removing@2",
    ],
    ["a repeat", [orders(1, add(4, 3))], orders(1, add(4, 3)), "stale 2", begun],
    ["a generation to come", [], orders(2, add(4)), "stale 1", start],
    ["an old cancel", [orders(1, add(4, 3))], orders(1, cancel(4)), "stale 2", begun],
    ["a second learner", [orders(1, add(4, 3))], orders(2, add(5)), "busy 2", begun],
    ["a removal beside a learner", [orders(1, add(4, 3))], orders(2, remove(1)), "busy 2", begun],
    ["a learner beside a removal", [orders(1, remove(2))], orders(2, add(4)), "busy 2", going],
    ["a second removal", [orders(1, remove(2))], orders(2, remove(1)), "busy 2", going],
    ["one that is listed", [], orders(1, add(2)), "invalid 1", start],
    ["one that replaces itself", [], orders(1, add(4, 4)), "invalid 1", start],
    ["one that replaces nobody who votes", [], orders(1, add(4, 5)), "invalid 1", start],
    ["no member", [], orders(1, add(6)), "invalid 1", start],
    ["no node", [], orders(1, add(0)), "invalid 1", start],
    ["no node id", [], orders(1, add(NODE_ID_MAX + 1)), "invalid 1", start],
    ["a removal of nobody", [], orders(1, remove(4)), "invalid 1", start],
    ["a cancel of a voter", [], orders(1, cancel(2)), "invalid 1", start],
    ["a cancel of nobody", [], orders(1, cancel(4)), "invalid 1", start],
    ["a cancel of one that goes", [orders(1, remove(2))], orders(2, cancel(2)), "invalid 2", going],
    [
      "one that was to go stays",
      [orders(1, remove(2))],
      orders(2, keep(2)),
      "done 3",
      "3 at 0: 1 voter, 2 voter, 3 voter",
    ],
    [
      "so does a learner that was cancelled: it votes, or will",
      [orders(1, add(4, 3)), orders(2, cancel(4))],
      orders(3, keep(4)),
      "done 4",
      "4 at 0: 1 voter, 2 voter, 3 voter, 4 voter@2",
    ],
    ["an old keep", [orders(1, remove(2))], orders(1, keep(2)), "stale 2", going],
    ["a keep of a voter", [], orders(1, keep(2)), "invalid 1", start],
    ["a keep of a learner", [orders(1, add(4, 3))], orders(2, keep(4)), "invalid 2", begun],
    ["a keep of nobody", [], orders(1, keep(4)), "invalid 1", start],
    ["an unknown partition", [], orders(1, add(4), 2), "unknown-partition 0", start],
    ["no partition", [], orders(1, add(4), 0), "unknown-partition 0", start],
    ["a negative one", [], orders(1, add(4), -1), "unknown-partition 0", start],
  ];
  for (const [name, before, command, expected, after] of table) {
    const bench = new MetaBench(5, 3);
    for (const earlier of before) bench.meta(earlier);
    const { mapVersion = 0 } = bench.machine.meta.cluster() ?? {};
    const digest = bench.machine.stateDigest;
    t.equal(bench.item(command), expected, name);
    t.equal(bench.now(), after, name);
    const isDone = expected.startsWith("done");
    t.equal(bench.machine.meta.cluster()?.mapVersion, mapVersion + (isDone ? 1 : 0), name);
    if (!isDone) t.equal(bench.machine.stateDigest, digest, "a refusal leaves no trace");
  }
  t.end();
});

t.test("P-095 a removal by force: it leaves for good, one at a time, and never the last", (t) => {
  const bench = new MetaBench(3, 0);
  const evict = (nodeId: number): string => bench.meta({ kind: "evict-member", nodeId }).status;
  const role = (nodeId: number, to: "voter" | "learner" | "leaving"): string =>
    bench.meta({ kind: "set-member-role", nodeId, role: to }).status;
  const line = (nodeId: number): string => {
    const { role: its, evicted } = bench.machine.meta.member(nodeId) ?? {};
    return `${its} ${evicted}`;
  };
  t.equal(evict(0), "not-a-member");
  t.equal(evict(9), "not-a-member");
  const { membershipVersion: before = 0 } = bench.machine.meta.cluster() ?? {};
  t.equal(evict(3), "done");
  t.equal(line(3), "leaving true");
  t.equal(bench.machine.meta.cluster()?.membershipVersion, before + 1);
  t.equal(evict(3), "unchanged");
  t.equal(bench.machine.meta.cluster()?.membershipVersion, before + 1, "a repeat is none");
  t.equal(evict(2), "drain-in-progress");
  t.equal(role(3, "voter"), "invalid", "it gets no role again");
  t.equal(role(3, "learner"), "invalid");
  t.equal(role(3, "leaving"), "unchanged");
  t.equal(line(3), "leaving true");
  t.equal(bench.meta({ kind: "remove-member", nodeId: 3 }).status, "done");
  t.equal(role(2, "leaving"), "done");
  t.equal(evict(2), "done", "who leaves may be gone, too");
  t.equal(line(2), "leaving true");
  t.equal(bench.meta({ kind: "remove-member", nodeId: 2 }).status, "done");
  t.equal(evict(1), "last-voter");
  t.equal(line(1), "voter false");
  t.end();
});

t.test("P-096 who has left the cluster, and is listed to go, is not kept", (t) => {
  const bench = new MetaBench(4, 0);
  bench.setMember(4, { role: "leaving" });
  t.equal(bench.meta({ kind: "remove-member", nodeId: 4 }).status, "done");
  // The list is of an entry in which it was a learner still.
  t.equal(bench.item(place(1, 6, [1, 2, 3], [4])), "done 2");
  t.equal(bench.item(orders(2, keep(4))), "invalid 2");
  t.equal(bench.now(), "2 at 6: 1 voter, 2 voter, 3 voter, 4 removing");
  t.equal(bench.item(report(7, [1, 2, 3], [], 2)), "done 3");
  t.equal(bench.now(), "3 at 7: 1 voter, 2 voter, 3 voter");
  t.end();
});

t.test("who leaves or is evicted gets no replica; the last voter stays; nine vote", (t) => {
  for (const line of [{ role: "leaving" }, { evicted: true }] as const) {
    const bench = new MetaBench(4, 3);
    bench.setMember(4, line);
    t.equal(bench.item(orders(1, add(4))), "invalid 1");
    bench.setMember(4, { role: "learner" });
    t.equal(
      bench.item(orders(1, add(4))),
      "done 2",
      "a learner of the list may hold replicas (O-2)",
    );
  }
  const alone = new MetaBench(2, 1);
  t.equal(alone.item(orders(1, remove(1))), "last-voter 1");
  t.equal(alone.item(orders(1, add(2, 1))), "done 2");
  t.equal(alone.item(report(5, [1, 2])), "done 3");
  t.equal(alone.now(), "3 at 5: 1 removing, 2 voter@2");
  const full = new MetaBench(VOTERS_MAX, VOTERS_MAX);
  full.setMember(10);
  t.equal(full.item(orders(1, add(10))), "too-many-voters 1");
  t.equal(full.item(orders(1, add(10, 9))), "done 2", "in one joint change");
  t.equal(full.item(report(4, [1, 2, 3, 4, 5, 6, 7, 8, 10])), "done 3");
  t.match(full.now(), /8 voter, 9 removing, 10 voter@2$/, "in and out with one change");
  t.equal(full.item(orders(3, keep(9))), "too-many-voters 3");
  t.equal(full.item(report(5, [1, 2, 3, 4, 5, 6, 7, 8, 10], [], 2)), "done 4");
  t.equal(full.record().replicas.length, VOTERS_MAX + 1, "until an entry rests on its going");
  t.equal(full.item(report(6, [1, 2, 3, 4, 5, 6, 7, 8, 10], [], 3)), "done 5");
  t.equal(full.record().replicas.length, VOTERS_MAX);
  const everywhere = new MetaBench(3, 0);
  t.equal(everywhere.item(orders(1, add(3))), "not-placed 1");
  t.equal(everywhere.item(report(9, [1, 2, 3])), "not-placed 1");
  t.end();
});

t.test("P-094 P-096 the reports: every edge, whatever their order", (t) => {
  const begin: readonly Command[] = [orders(1, add(4, 3))];
  const votes = [...begin, report(7, [1, 2, 3, 4])];
  const voted = "3 at 7: 1 voter, 2 voter, 3 removing, 4 voter@2";
  const table: readonly [string, readonly Command[], Command, string, string][] = [
    [
      "a learner that is one",
      begin,
      report(5, [1, 2, 3], [4]),
      "done 3",
      "3 at 5: 1 voter, 2 voter, 3 voter, 4 learner@2 for 3",
    ],
    ["a learner that votes", begin, report(7, [1, 2, 3, 4]), "done 3", voted],
    ["a repeat", votes, report(7, [1, 2, 3, 4]), "unchanged 3", voted],
    ["an older one", votes, report(6, [1, 2], [4]), "stale 3", voted],
    ["of an old leader, to whom the voter was gone", votes, report(6, [1, 2, 4]), "stale 3", voted],
    [
      "who was to go is gone",
      votes,
      report(8, [1, 2, 4]),
      "done 4",
      "4 at 8: 1 voter, 2 voter, 4 voter@2",
    ],
    [
      "who is to go is there yet",
      votes,
      report(8, [1, 2, 3, 4]),
      "done 4",
      "4 at 8: 1 voter, 2 voter, 3 removing, 4 voter@2",
    ],
    [
      "a cancelled one that got in",
      [...begin, orders(2, cancel(4))],
      report(7, [1, 2, 3, 4]),
      "done 4",
      "4 at 7: 1 voter, 2 voter, 3 voter, 4 removing@2",
    ],
    [
      "a cancelled one that was removed",
      [...begin, orders(2, cancel(4))],
      report(7, [1, 2, 3]),
      "done 4",
      "4 at 7: 1 voter, 2 voter, 3 voter",
    ],
    [
      "from before it was ordered",
      [...begin, orders(2, cancel(4))],
      report(7, [1, 2, 3], [], 1),
      "done 4",
      "4 at 7: 1 voter, 2 voter, 3 voter, 4 removing@2",
    ],
    [
      "from before it was to go: it was taken in again since, in the same life",
      [orders(1, remove(2)), orders(2, keep(2)), orders(3, remove(2))],
      report(7, [1, 3], [], 2),
      "done 5",
      "5 at 7: 1 voter, 2 removing, 3 voter",
    ],
    [
      "of that removal itself",
      [orders(1, remove(2)), orders(2, keep(2)), orders(3, remove(2))],
      report(9, [1, 3], [], 4),
      "done 5",
      "5 at 9: 1 voter, 3 voter",
    ],
    [
      "from before one stays",
      [orders(1, remove(2)), orders(2, keep(2))],
      report(7, [1, 3], [], 2),
      "done 4",
      "4 at 7: 1 voter, 2 voter, 3 voter",
    ],
    [
      "a voter that is not there",
      [],
      report(7, [1, 2]),
      "done 2",
      "2 at 7: 1 voter, 2 voter, 3 voter",
    ],
    [
      "one that the record does not know",
      [],
      report(7, [1, 2, 3, 9], [8]),
      "taken-in 2",
      "2 at 7: 1 voter, 2 voter, 3 voter, 8 learner, 9 voter",
    ],
    ["nobody votes", [], report(7, [], [1]), "invalid 1", "1 at 0: 1 voter, 2 voter, 3 voter"],
    ["a node twice", [], report(7, [1, 2], [2]), "invalid 1", "1 at 0: 1 voter, 2 voter, 3 voter"],
    ["no node", [], report(7, [0]), "invalid 1", "1 at 0: 1 voter, 2 voter, 3 voter"],
    [
      "too many",
      [],
      report(
        7,
        Array.from({ length: MEMBERS_MAX + 1 }, (_, at) => at + 1),
      ),
      "invalid 1",
      "1 at 0: 1 voter, 2 voter, 3 voter",
    ],
    ["of nothing yet", [], report(0, [1, 2]), "unchanged 1", "1 at 0: 1 voter, 2 voter, 3 voter"],
  ];
  for (const [name, before, command, expected, after] of table) {
    const bench = new MetaBench(5, 3);
    for (const earlier of before) bench.meta(earlier);
    t.equal(bench.item(command), expected, name);
    t.equal(bench.now(), after, name);
  }
  t.end();
});

t.test("from full mode to a list, once; a node that came meanwhile is taken in", (t) => {
  const bench = new MetaBench(5, 0);
  t.equal(bench.item(place(2, 6, [1, 2, 3])), "stale 1");
  t.equal(bench.item(place(1, 6, [])), "invalid 1");
  t.equal(bench.item(place(1, 6, [1, 1])), "invalid 1");
  t.equal(
    bench.item(
      place(
        1,
        6,
        Array.from({ length: 10 }, (_, at) => at + 1),
      ),
    ),
    "invalid 1",
  );
  t.equal(bench.item(place(1, 6, [3, 2, 1], [4])), "done 2");
  t.equal(bench.now(), "2 at 6: 1 voter, 2 voter, 3 voter, 4 learner");
  t.equal(bench.record().mode, "placed");
  t.strictSame(bench.record().founders, [], "it began as the cluster did");
  t.equal(bench.item(place(1, 6, [3, 2, 1], [4])), "unchanged 2", "a repeat");
  t.equal(bench.item(place(2, 7, [1])), "unchanged 2", "there is no way back and no other one");
  t.equal(bench.item(orders(2, remove(1))), "busy 2", "what it brought along goes first");
  // A leader that did not know of the list yet had let somebody in.
  t.equal(bench.item(report(7, [1, 2, 3], [4, 5], 0)), "taken-in 3");
  t.equal(bench.item(orders(3, cancel(4))), "done 4");
  t.equal(bench.item(orders(4, cancel(5))), "done 5", "several may go, one after the other");
  t.equal(bench.item(report(8, [1, 2, 3], [5], 4)), "done 6");
  t.equal(bench.item(report(9, [1, 2, 3], [], 6)), "done 7");
  t.equal(bench.now(), "7 at 9: 1 voter, 2 voter, 3 voter");
  t.end();
});

t.test("P-205 who leaves is not listed as one that comes; who is listed is not removed", (t) => {
  const bench = new MetaBench(5, 0);
  const remove1 = { kind: "remove-member", nodeId: 1 } as const;
  t.match(bench.meta(remove1), { status: "done" });
  bench.setMember(2, { role: "leaving" });
  const config = place(1, 6, [3, 4], [1, 2, 5]);
  t.equal(bench.item(config), "done 2");
  t.equal(bench.now(), "2 at 6: 1 removing, 2 removing, 3 voter, 4 voter, 5 learner");
  const remove2 = { kind: "remove-member", nodeId: 2 } as const;
  t.match(bench.meta(remove2), { status: "busy" }, "decided before it was listed");
  t.equal(bench.item(report(8, [3, 4], [2, 5])), "done 3");
  t.match(bench.meta(remove2), { status: "busy" });
  t.equal(bench.item(report(9, [3, 4], [5])), "done 4");
  t.match(bench.meta(remove2), { status: "done" });
  t.end();
});

t.test("up to 64 partitions in one command, each decided by itself", (t) => {
  const bench = new MetaBench(4, 3, PLACEMENT_ITEMS_MAX + 1);
  const item = (partitionId: number, generation = 1) => ({
    ...{ partitionId, generation: placementGeneration(generation) },
    change: add(bench.record(partitionId).replicas.some(({ nodeId }) => nodeId === 4) ? 1 : 4),
  });
  const all = Array.from({ length: PLACEMENT_ITEMS_MAX + 1 }, (_, at) => at + 1);
  const many = (ids: readonly number[]): Command => ({
    kind: "change-replicas",
    items: ids.map((id) => item(id, id === 2 ? 5 : 1)),
  });
  t.match(bench.meta(many(all)), { status: "invalid", generation: 1, items: [] });
  t.match(bench.meta(many([])), { status: "invalid", generation: 1, items: [] });
  const { status, generation, items } = bench.meta(many(all.slice(1)));
  t.strictSame([status, generation], ["done", 2], "one version of the map");
  t.equal(items.length, PLACEMENT_ITEMS_MAX);
  t.strictSame(items[0], { status: "stale", generation: 1 });
  for (const done of items.slice(2)) if (done.status === "stale") t.fail("the others are done");
  const twice = bench.meta({ kind: "change-replicas", items: [item(1), item(1)] });
  t.strictSame(
    twice.items.map((one) => one.status),
    ["done", "stale"],
    "the second on what the first left",
  );
  t.match(bench.meta(many([2])), { status: "unchanged", generation: 3 });
  t.end();
});

t.test("a map of many records costs what changed of it: the others stay the same objects", (t) => {
  const bench = new MetaBench(5, 3, 40);
  const { meta } = bench.machine;
  const founded = meta.partitions();
  t.equal(meta.partitions(), founded, "nothing changed");
  const change = add(bench.record(7).replicas.some(({ nodeId }) => nodeId === 4) ? 1 : 4);
  t.equal(bench.item(orders(1, change, 7)), "done 2");
  const after = meta.partitions();
  t.strictSame(after, bench.recordsAnew());
  const fresh = after.filter((record) => !founded.includes(record));
  t.strictSame(
    fresh.map(({ partitionId }) => partitionId),
    [7],
  );
  t.equal(bench.item(orders(1, change, 7)), "stale 2");
  t.equal(meta.partitions(), after, "a refusal changes nothing");
  for (const id of [9, 11]) bench.item(orders(1, change, id));
  bench.flush();
  t.strictSame(meta.partitions(), bench.recordsAnew(), "two commands at a time");
  for (let id = 1; id <= 40; id++)
    bench.item(orders(1, remove(bench.record(id).founders[0] ?? 0), id));
  t.strictSame(meta.partitions(), bench.recordsAnew(), "and nearly all");
  t.end();
});

t.test("P-042 placement survives a restart and a snapshot", (t) => {
  const bench = new MetaBench(5, 3);
  bench.meta(orders(1, add(4, 3)));
  bench.flush();
  const again = new MetaBench(1, 0);
  const source = bench.machine.openSnapshot(1 << 20);
  const chunk = source.next(1 << 20);
  if (chunk === "overrun") throw new Error("nothing changes meanwhile");
  for (let at = again.machine.appliedIndex; at < bench.machine.appliedIndex; at++) {
    again.one(0, { kind: "advance-clock" });
  }
  const sink = again.machine.beginRestore();
  t.ok(sink.take(chunk.bytes).ok);
  t.equal(again.machine.meta.partitions()[0]?.founders.length, 0, "as it was founded itself");
  again.machine.install(sink);
  t.equal(again.now(), bench.now());
  t.strictSame(again.machine.meta.partitions(), bench.recordsAnew());
  t.equal(again.machine.stateDigest, bench.machine.stateDigest);
  t.end();
});

/** The group of partition 1, whose leaders know the record as it was at some time. */
class FakeGroup {
  index = 0;
  restsOn = 0;
  voters: Set<number>;
  learners = new Set<number>();
  /** Removals that were proposed already: an order asks for an entry once. */
  private readonly left = new Set<string>();
  readonly reports: Command[] = [];

  constructor(record: PartitionRecord) {
    this.voters = new Set(record.founders);
  }

  get members(): readonly number[] {
    return [...this.voters, ...this.learners];
  }

  /** A leader that applied `record` takes its next step, unless it knows that it knows too little. */
  step(record: PartitionRecord): void {
    if (record.generation < this.restsOn) return;
    for (const { nodeId, role, since } of record.replicas) {
      const order = `${nodeId}@${since}`;
      // A voter that is not there was to go, and stays.
      if (role !== "removing" && !this.members.includes(nodeId)) {
        this.learners.add(nodeId);
        return this.changed(record);
      }
      if (role !== "removing" && this.learners.delete(nodeId)) {
        this.voters.add(nodeId);
        return this.changed(record);
      }
      if (role === "removing" && (this.members.includes(nodeId) || !this.left.has(order))) {
        if (this.voters.size === 1 && this.voters.has(nodeId)) continue;
        this.left.add(order);
        this.voters.delete(nodeId);
        this.learners.delete(nodeId);
        return this.changed(record);
      }
    }
  }

  private changed({ generation }: PartitionRecord): void {
    this.index++;
    this.restsOn = Math.max(this.restsOn, generation);
    this.reports.push(report(this.index, [...this.voters], [...this.learners], this.restsOn));
  }
}

t.test(
  "P-083 P-092 P-094 P-205 any orders and reports, late and twice: the record stays lawful",
  (t) => {
    const seeds = Number(process.env["SVC_PLACEMENT_SEEDS"] ?? 400);
    const seen = { moves: 0, cancels: 0, keeps: 0, stale: 0, comebacks: 0, lateReports: 0 };
    for (let seed = 1; seed <= seeds; seed++) {
      const prng = new Prng(seed);
      const nodes = 2 + prng.below(5);
      const bench = new MetaBench(nodes, 1 + prng.below(nodes));
      const history = [bench.record()];
      const group = new FakeGroup(bench.record());
      const lives = new Map<number, number>();
      const issued: Command[] = [];
      for (let at = 0; at < 120; at++) {
        const before = bench.record();
        const draw = prng.below(10);
        let status = "";
        if (draw < 4)
          group.step(history[Math.max(0, history.length - 1 - prng.below(4))] as PartitionRecord);
        else if (draw < 7 && group.reports.length > 0) {
          const back = prng.below(prng.chance(1, 3) ? group.reports.length : 1);
          if (back > 0) seen.lateReports++;
          status = bench.item(group.reports[group.reports.length - 1 - back] as Command);
        } else {
          const node = 1 + prng.below(nodes + 1);
          const voters = before.replicas.filter(({ role }) => role === "voter");
          const other = voters[prng.below(voters.length)]?.nodeId ?? 0;
          const goes = before.replicas.find(({ role }) => role === "removing")?.nodeId ?? node;
          const comes = add(node, prng.chance(1, 2) ? other : 0);
          const changes = [
            comes,
            comes,
            comes,
            remove(node),
            remove(node),
            cancel(node),
            keep(goes),
          ];
          const change = changes[prng.below(changes.length)] as ReplicaChange;
          const generation = before.generation - (prng.chance(1, 4) ? prng.below(3) : 0);
          const old = issued[prng.below(Math.max(1, issued.length))];
          const command = old !== undefined && prng.chance(1, 5) ? old : orders(generation, change);
          issued.push(command);
          status = bench.item(command);
          if (status.startsWith("done") && command.kind === "change-replicas") {
            if (command.items[0]?.change.kind === "cancel") seen.cancels++;
            if (command.items[0]?.change.kind === "keep") seen.keeps++;
            if (command.items[0]?.generation !== before.generation)
              t.fail(`late: seed ${seed}, ${at}`);
          }
        }
        if (status.startsWith("stale")) seen.stale++;
        const after = bench.record();
        const isSame = String(encodePartition(after)) === String(encodePartition(before));
        const story = `seed ${seed}, step ${at}: ${status}; ${bench.now()}; ${group.members.join()}`;
        if (after.generation !== before.generation + (isSame ? 0 : 1))
          t.fail(`generation: ${story}`);
        if (after.configIndex < before.configIndex) t.fail(`configuration: ${story}`);
        const moving = after.replicas.filter(({ role }) => role !== "voter");
        if (moving.length > 1) t.fail(`two on their way: ${story}`);
        if (moving.length === after.replicas.length) t.fail(`nobody votes: ${story}`);
        const listed = new Set(after.replicas.map(({ nodeId }) => nodeId));
        if (group.members.some((node) => !listed.has(node)))
          t.fail(`a member is not listed: ${story}`);
        if (status.startsWith("taken-in")) t.fail(`a stranger: ${story}`);
        for (const { nodeId, incarnation } of after.replicas) {
          const last = lives.get(nodeId) ?? 0;
          if (incarnation < last) t.fail(`an earlier life: ${story}`);
          if (incarnation > last && last > 0) seen.comebacks++;
          lives.set(nodeId, incarnation);
        }
        if (!isSame) {
          history.push(after);
          if (before.replicas.length > after.replicas.length) seen.moves++;
        }
        if (!t.passing()) return t.end();
      }
    }
    for (const [what, count] of Object.entries(seen))
      t.ok(count >= seeds / 10, `${what}: ${count}`);
    t.end();
  },
);
