/**
 * Snapshot transfers between two nodes over a lane that loses, repeats, cuts and mixes; installs
 * with crashes at every step; and the frames themselves.
 */
import t from "tap";
import { Prng } from "../../../../src/base/prng.js";
import { MemoryStore } from "../../../../src/disk/store/memorystore.js";
import { encodeMembership } from "../../../../src/host/replication/config-entries.js";
import {
  type SnapshotFrame,
  decodeSnapshotFrame,
  encodeSnapshotFrame,
} from "../../../../src/host/snapshots/snapshot-frames.js";
import {
  type InstalledState,
  installAtStart,
} from "../../../../src/host/snapshots/snapshot-recovery.js";
import type { SnapshotPurpose } from "../../../../src/host/snapshots/snapshot-pace.js";
import type { Command, Outcome } from "../../../../src/machine/commands/command.js";
import type { Machine } from "../../../../src/machine/machine.js";
import { partitionId } from "../../../../src/base/ids.js";
import { allocate, create, lock, set, unlock } from "../../../doubles/machine/bench.js";
import { FakeStore } from "../../../doubles/machine/fake-store.js";
import { Lane, MEMBERS, Side } from "../../../doubles/host/snapshot-world.js";

function apply(machine: Machine, leaseMs: number, ...commands: Command[]): Outcome[] {
  const outcomes: Outcome[] = [];
  const index = machine.appliedIndex + 1;
  const stamp = { n: 1, l: 1000 + index, c: 0 };
  machine.apply({ index, term: 3, leaseMs, stamp }, commands, outcomes);
  return outcomes;
}

/** State of every sort: values, locks with tokens, a sequence with idempotency entries. */
function fillState(side: Side, rows: number): void {
  side.applyMembership();
  const { machine, core } = side.group();
  apply(machine, 500, lock("held", "me", 100_000), lock("freed", "me", 50), create("numbers"));
  apply(machine, 600, unlock("freed", "me"), allocate("numbers", 7, "key-1"));
  for (let at = 0; at < rows; at += 50) {
    const commands: Command[] = [];
    for (let row = at; row < Math.min(rows, at + 50); row++) {
      commands.push(set(`bucket/${String(row).padStart(7, "0")}`, `value ${row}`));
    }
    apply(machine, 700 + at, ...commands);
  }
  core.commitIndex = machine.appliedIndex;
}

interface Pair {
  readonly lane: Lane;
  readonly leader: Side;
  readonly follower: Side;
}

function pair(rows = 200, settings: ConstructorParameters<typeof Side>[4] = {}): Pair {
  const lane = new Lane();
  const small = { chunkBytes: 600, ...settings };
  const leader = new Side(lane, 1, new FakeStore(), null, small);
  const follower = new Side(lane, 4, new FakeStore(), null, small);
  fillState(leader, rows);
  leader.lead(5);
  apply(follower.machine, 1, set("old", "gone"), lock("old", "x", 9));
  follower.group().core.commitIndex = 1;
  follower.log.lastIndex = 1;
  return { lane, leader, follower };
}

function order({ leader, follower }: Pair): void {
  leader.snapshots.send(leader.group(), follower.nodeId);
}

function isInstalled({ leader, follower }: Pair): boolean {
  return follower.installs > 0 && follower.machine.stateDigest === leader.machine.stateDigest;
}

t.test("a snapshot goes over, whole: rows, tokens, lease clock, idempotency, membership", (t) => {
  const world = pair();
  const { lane, leader, follower } = world;
  const { machine } = leader;
  order(world);
  t.ok(lane.run(() => leader.group().core.reports.length > 0));
  t.strictSame(leader.group().core.reports, ["4 ok"]);
  t.ok(isInstalled(world));
  t.equal(follower.machine.chainDigest, machine.chainDigest);
  t.equal(follower.machine.appliedIndex, machine.appliedIndex);
  t.equal(follower.machine.tokenFloor, machine.tokenFloor);
  t.equal(follower.machine.leaseMs, machine.leaseMs);
  t.strictSame(follower.machine.membership, encodeMembership(MEMBERS));
  t.strictSame(follower.machine.installed, { index: machine.appliedIndex, term: 3 });
  t.strictSame(follower.group().replacedAt, [machine.appliedIndex], "P-042 told once");
  t.strictSame(follower.log.floor, { index: machine.appliedIndex, term: 3 });
  t.equal(follower.log.hardState.commit, machine.appliedIndex);
  t.strictSame(
    apply(follower.machine, 5000, allocate("numbers", 7, "key-1"), lock("next", "me", 5)),
    apply(machine, 5000, allocate("numbers", 7, "key-1"), lock("next", "me", 5)),
    "a remembered allocation is given again, and the next token is the leader's",
  );
  t.equal(follower.snapshots.installed, 1);
  t.equal(leader.snapshots.delivered, 1);
  t.ok(lane.run(() => !follower.snapshots.hasWork));
  follower.flush();
  const { store } = new Side(new Lane(), 4, (follower.store as FakeStore).copy(), follower.log);
  leader.flush();
  t.equal((store as FakeStore).size, (leader.store as FakeStore).size, "nothing else is left");
  t.strictSame(leader.snapshots.facts(), []);
  t.end();
});

t.test(
  "P-036 P-037 a lossy lane: skips, repeats, cuts, flips, delays; whatever ends, ends",
  (t) => {
    let installs = 0;
    let repeated = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const random = new Prng(seed);
      const world = pair(150, { progressMs: 4000, retryMs: 100 });
      const { lane, leader, follower } = world;
      const rows = follower.machine.stateDigest;
      const frames: Uint8Array[] = [];
      lane.script = (bytes) => {
        if (frames.length < 50) frames.push(bytes);
        const dice = random.below(40);
        if (dice === 0) return [];
        if (dice === 1) return [bytes, bytes];
        if (dice === 2) return [bytes.slice(0, random.below(bytes.length))];
        if (dice === 3) return [frames[random.below(frames.length)] as Uint8Array, bytes];
        if (dice === 4 && random.chance(1, 4)) {
          const flipped = bytes.slice();
          const at = random.below(flipped.length);
          flipped[at] = (flipped[at] as number) ^ (1 << random.below(8));
          return [flipped];
        }
        return [bytes];
      };
      order(world);
      let heldMax = 0;
      let orders = 1;
      const ended = lane.run(() => {
        for (const { heldBytes } of leader.snapshots.facts())
          heldMax = Math.max(heldMax, heldBytes);
        const { reports } = leader.group().core;
        if (reports.length === orders && reports[orders - 1] === "4 failed") {
          orders++;
          order(world);
        }
        return follower.installs > 0 && reports.includes("4 ok");
      }, 20_000);
      t.ok(ended, `seed ${seed} ends`);
      t.ok(heldMax < 10_000, "memory is bounded");
      if (orders > 1) repeated++;
      if (isInstalled(world)) installs++;
      else t.equal(follower.machine.stateDigest, rows, "or nothing changed");
    }
    t.equal(installs, 60, "all of them arrived in the end");
    t.ok(repeated < 40, "most of them at the first order");
    t.end();
  },
);

t.test("P-037 losses and repeats alone cost no second snapshot", (t) => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = new Prng(seed);
    const world = pair(150);
    world.lane.script = (bytes) => {
      const dice = random.below(12);
      return dice === 0 ? [] : dice === 1 ? [bytes, bytes] : [bytes];
    };
    order(world);
    const { leader, lane } = world;
    if (!lane.run(() => leader.group().core.reports.length > 0)) t.fail(`seed ${seed} ends`);
    t.strictSame(leader.group().core.reports, ["4 ok"], `seed ${seed}`);
    t.ok(isInstalled(world));
    t.notOk(leader.lines.some((line) => line.includes("begins anew")));
  }
  t.end();
});

t.test("P-040 a term that rises before the last chunk, and before the offer", (t) => {
  const half = pair();
  order(half);
  half.lane.run(() => (half.follower.snapshots.facts()[0]?.chunks ?? 0) >= 3);
  const before = half.follower.machine.stateDigest;
  half.follower.group().core.term = 6;
  t.ok(half.lane.run(() => half.leader.group().core.reports.length > 0));
  t.strictSame(half.leader.group().core.reports, ["4 failed"]);
  t.equal(half.follower.machine.stateDigest, before);
  t.equal(half.follower.installs, 0);

  const late = pair();
  order(late);
  const follower = late.follower.group();
  follower.losesMessages = 1;
  t.ok(
    late.lane.run(() => follower.losesMessages === 0),
    "the snapshot was offered, and lost",
  );
  follower.core.term = 6;
  t.ok(late.lane.run(() => late.leader.group().core.reports.length > 0));
  t.equal(late.follower.installs, 0);
  t.ok(
    late.lane.run(() => !late.follower.snapshots.hasWork),
    "and its rows are swept",
  );

  const deposed = pair();
  order(deposed);
  deposed.lane.run(() => deposed.follower.snapshots.facts().length > 0);
  deposed.leader.group().core.role = "follower";
  t.ok(deposed.lane.run(() => deposed.leader.snapshots.facts().length === 0));
  t.strictSame(deposed.leader.group().core.reports, [], "who does not lead hears nothing");
  t.ok(deposed.lane.run(() => deposed.follower.snapshots.facts().length === 0));
  t.equal(deposed.follower.installs, 0);
  t.end();
});

t.test("P-037 an offer that got lost is made again", (t) => {
  const world = pair();
  world.follower.group().losesMessages = 3;
  order(world);
  t.ok(world.lane.run(() => isInstalled(world)));
  t.end();
});

t.test(
  "P-040 sessions are not mixed: a newer leader's snapshot takes the place of an older one",
  (t) => {
    const lane = new Lane();
    const small = { chunkBytes: 600 };
    const old = new Side(lane, 1, new FakeStore(), null, small);
    const fresh = new Side(lane, 2, new FakeStore(), null, small);
    const follower = new Side(lane, 4, new FakeStore(), null, small);
    fillState(old, 300);
    fillState(fresh, 100);
    old.lead(5);
    old.snapshots.send(old.group(), 4);
    lane.run(() => (follower.snapshots.facts()[0]?.chunks ?? 0) >= 3);
    fresh.lead(6);
    fresh.snapshots.send(fresh.group(), 4);
    t.ok(lane.run(() => [fresh, old].every((side) => side.group().core.reports.length > 0)));
    t.equal(follower.machine.chainDigest, fresh.machine.chainDigest);
    t.equal(follower.installs, 1);
    t.strictSame(fresh.group().core.reports, ["4 ok"]);
    t.strictSame(old.group().core.reports, ["4 failed"]);
    fresh.lead(7);
    follower.group().core.term = 7;
    follower.group().core.commitIndex = fresh.machine.appliedIndex;
    fresh.snapshots.send(fresh.group(), 4);
    t.ok(lane.run(() => fresh.group().core.reports.length === 2));
    t.equal(fresh.group().core.reports[1], "4 ok", "P-038 what is there already needs no snapshot");
    t.equal(follower.installs, 1);
    t.end();
  },
);

t.test(
  "P-037 the receiver restarts in the middle: the sender begins anew, rubbish is swept",
  (t) => {
    const world = pair(400);
    const { lane, leader } = world;
    world.follower.fillRows = 20;
    order(world);
    lane.run(() => (world.follower.snapshots.facts()[0]?.chunks ?? 0) >= 8);
    const store = (world.follower.store as FakeStore).copy();
    t.ok(store.size > 20, "some of its rows were durable");
    const follower = new Side(lane, 4, store, world.follower.log, { chunkBytes: 600 });
    lane.drop();
    t.ok(lane.run(() => leader.group().core.reports.length > 0));
    t.ok(isInstalled({ lane, leader, follower }));
    t.strictSame(leader.group().core.reports, ["4 ok"], "it was one order");
    t.ok(lane.run(() => !follower.snapshots.hasWork));
    follower.flush();
    leader.flush();
    t.equal((follower.store as FakeStore).size, (leader.store as FakeStore).size);
    t.end();
  },
);

t.test("P-037 P-153 a hung link: deadline, report, back-off; then it heals", (t) => {
  const world = pair(200, { progressMs: 1000, retryMs: 200 });
  const { lane, leader } = world;
  const { reports } = leader.group().core;
  lane.script = () => [];
  const pauses: number[] = [];
  for (let round = 1; round <= 4; round++) {
    order(world);
    const beganMs = lane.nowMs;
    t.ok(lane.run(() => reports.length === round));
    pauses.push(lane.nowMs - beganMs);
    t.equal(reports[round - 1], "4 failed");
    t.strictSame(leader.snapshots.facts(), []);
  }
  t.ok((pauses[3] as number) > (pauses[1] as number), "each failure waits longer than the last");
  lane.script = (bytes) => [bytes];
  order(world);
  t.ok(lane.run(() => isInstalled(world)));
  const full = pair();
  full.lane.roomFrames = 0;
  order(full);
  for (let step = 0; step < 20; step++) full.lane.step();
  full.lane.roomFrames = 2;
  t.ok(
    full.lane.run(() => isInstalled(full)),
    "a lane without room drops nothing that matters",
  );
  t.end();
});

t.test(
  "P-037 a snapshot may take longer than any fixed time, at a pace; a slower one ends",
  (t) => {
    const slow = { totalMs: 2000, bytesPerSecond: 4000, chunkBytes: 600 };
    for (const [leastBytesPerSecond, goesOver] of [
      [500, true],
      [40_000, false],
    ] as const) {
      const world = pair(300, { ...slow, leastBytesPerSecond });
      const { lane, leader } = world;
      const { reports } = leader.group().core;
      order(world);
      const beganMs = lane.nowMs;
      t.ok(lane.run(() => reports.length > 0));
      t.equal(isInstalled(world), goesOver);
      t.strictSame(reports, [goesOver ? "4 ok" : "4 failed"]);
      t.ok(lane.nowMs - beganMs >= slow.totalMs, "it took that long");
    }
    t.end();
  },
);

t.test("P-106 snapshots of planned moves keep to rates of their own", (t) => {
  const rates = { balanceBytesPerSecond: 10_000, drainLeastBytesPerSecond: 20_000 };
  const tookMs = (purpose: SnapshotPurpose): number => {
    const world = pair(300, { ...rates, bytesPerSecond: 40_000, chunkBytes: 600 });
    world.leader.purpose = purpose;
    const beganMs = world.lane.nowMs;
    order(world);
    t.ok(world.lane.run(() => isInstalled(world)));
    return world.lane.nowMs - beganMs;
  };
  const repairMs = tookMs("repair");
  const drain = tookMs("drain") / repairMs;
  const balance = tookMs("balance") / repairMs;
  t.ok(drain > 1.5 && drain < 2.5, `a drain takes ${drain} times as long`);
  t.ok(balance > 3 && balance < 5, `balance takes ${balance} times as long`);
  t.end();
});

t.test("P-035 P-037 busy writes: bounded memory, at most two snapshots", (t) => {
  const world = pair(300);
  const { lane, leader, follower } = world;
  let written = 0;
  order(world);
  const write = (): void => {
    const row = String((written * 37) % 300).padStart(7, "0");
    apply(leader.machine, 9000 + written++, set(`bucket/${row}`, `new ${written}`));
  };
  t.ok(
    lane.run(() => {
      write();
      return leader.group().core.reports.length > 0;
    }),
  );
  t.strictSame(leader.group().core.reports, ["4 ok"]);
  t.ok(written > 10, `${written} writes went on meanwhile`);
  const { index } = follower.machine.installed;
  t.equal(leader.snapshots.keepFrom(partitionId(1)), Infinity);
  t.ok(index < leader.machine.appliedIndex, "the snapshot is of its moment");

  const tight = pair(300, { heldBytesMax: 300, snapshotsMax: 3, retryMs: 20 });
  order(tight);
  let number = 0;
  t.ok(
    tight.lane.run(() => {
      for (let count = 0; count < 10; count++) {
        const row = String((number * 37) % 300).padStart(7, "0");
        apply(tight.leader.machine, 9000 + number++, set(`bucket/${row}`, `new ${number}`));
      }
      return tight.leader.group().core.reports.length > 0;
    }),
  );
  t.strictSame(tight.leader.group().core.reports, ["4 failed"]);
  const anew = tight.leader.lines.filter((line) => line.includes("begins anew")).length;
  t.equal(anew, 3, "an overrun snapshot begins anew, so many times and no more");
  order(tight);
  t.ok(
    tight.lane.run(() => isInstalled(tight)),
    "and when the writes calm down it goes over",
  );
  t.end();
});

t.test("P-037 the log behind a transfer is asked for; order of one transfer per node", (t) => {
  const lane = new Lane();
  const settings = { chunkBytes: 600, sendersMax: 2 };
  const leader = new Side(lane, 1, new FakeStore(), null, settings);
  fillState(leader, 100);
  leader.lead(5);
  const others = [4, 2, 3].map((id) => new Side(lane, id, new FakeStore(), null, settings));
  for (const { nodeId } of others) leader.snapshots.send(leader.group(), nodeId);
  let most = 0;
  lane.run(() => {
    const running = leader.snapshots.facts().length;
    most = Math.max(most, running);
    const { appliedIndex } = leader.machine;
    if (running > 0) t.equal(leader.snapshots.keepFrom(partitionId(1)), appliedIndex);
    return leader.group().core.reports.length === 3;
  });
  t.equal(most, 2, "at most so many at the same time");
  t.strictSame([...leader.group().core.reports].sort(), ["2 ok", "3 ok", "4 ok"]);
  for (const other of others) t.equal(other.machine.chainDigest, leader.machine.chainDigest);
  t.end();
});

t.test("receivers are bounded; an unknown group is not made by a frame (P-097)", (t) => {
  const lane = new Lane();
  const ids = [1, 2, 3];
  const settings = { chunkBytes: 600, sendersMax: 3, receiversMax: 2, retryMs: 50 };
  const leader = new Side(lane, 1, new FakeStore(), null, settings, ids);
  const follower = new Side(lane, 4, new FakeStore(), null, settings, [1, 2]);
  for (const id of ids) {
    leader.applyMembership(id);
    for (let row = 0; row < 60; row++) {
      apply(leader.group(id).machine, row, set(`k/${row}`, "x".repeat(100)));
    }
  }
  leader.lead(5);
  for (const id of ids) leader.snapshots.send(leader.group(id), 4);
  lane.run(() => leader.group(3).core.reports.length > 0);
  t.strictSame(leader.group(3).core.reports, ["4 failed"], "the group is not there");
  t.ok(lane.run(() => follower.installs === 2));
  t.equal(follower.snapshots.facts().length <= 2, true);
  t.end();
});

t.test("an empty group, and one whose founders never changed", (t) => {
  const lane = new Lane();
  const leader = new Side(lane, 1);
  const follower = new Side(lane, 4);
  leader.machine.applyEmpty({ index: 1, term: 2 });
  leader.lead(5);
  leader.snapshots.send(leader.group(), 4);
  t.ok(lane.run(() => follower.installs === 1));
  t.equal(follower.machine.appliedIndex, 1);
  t.equal(follower.machine.membership, null);
  t.end();
});

t.test("P-130 a snapshot that is not what was announced is refused", (t) => {
  const world = pair();
  const { lane, leader, follower } = world;
  lane.script = (bytes) => {
    const frame = decodeSnapshotFrame(bytes);
    if (frame?.kind !== "begin") return [bytes];
    const meta = { ...frame.meta, membership: { ...MEMBERS, voters: [1, 2, 4], learners: [] } };
    return [encodeSnapshotFrame({ ...frame, meta })];
  };
  order(world);
  t.ok(lane.run(() => leader.group().core.reports.length > 0));
  t.strictSame(leader.group().core.reports, ["4 failed"]);
  t.equal(follower.installs, 0);
  t.equal(follower.machine.appliedIndex, 1);
  const stranger = pair();
  stranger.lane.script = (bytes) => {
    const frame = decodeSnapshotFrame(bytes);
    if (frame?.kind !== "begin") return [bytes];
    const meta = { ...frame.meta, membership: { ...MEMBERS, learners: [] } };
    return [encodeSnapshotFrame({ ...frame, meta })];
  };
  order(stranger);
  t.ok(stranger.lane.run(() => stranger.leader.group().core.reports.length > 0));
  t.equal(stranger.follower.machine.appliedIndex, 1, "P-039 a snapshot without this node");
  t.end();
});

t.test("P-041 P-112 P-117 a crash at every step leaves the old state or the new one", (t) => {
  const world = pair(120, { chunkBytes: 900 });
  const { lane, leader, follower } = world;
  follower.flush();
  follower.log.hardState = { term: 4, vote: 2, commit: 1 };
  const oldDigest = follower.machine.chainDigest;
  const newDigest = leader.machine.chainDigest;
  const index = leader.machine.appliedIndex;
  const seen = { old: 0, reset: 0, done: 0 };
  const crash = (): void => {
    const store = (follower.store as FakeStore).copy();
    const { log } = follower;
    const other = new Lane();
    const again = new Side(other, 4, store, { ...log });
    const { machine } = again;
    const snapshot = {
      group: partitionId(1),
      hardState: log.hardState,
      floor: log.floor,
      lastIndex: log.lastIndex,
      termRuns: [],
      specialEntries: [],
      sizeRuns: [],
    };
    const start = installAtStart(machine, snapshot);
    if (machine.appliedIndex === 1) {
      if (machine.chainDigest !== oldDigest || start.kind !== "none") t.fail("the old state");
      seen.old++;
    } else {
      if (machine.chainDigest !== newDigest) t.fail("the new state");
      if (machine.appliedIndex !== index) t.fail("the new position");
      if (log.floor.index === index) {
        if (start.kind !== "none") t.fail("the reset was durable");
        seen.done++;
      } else {
        if (start.kind !== "reset") throw new Error("the reset is made up for");
        t.strictSame(start.floor, { term: 3, index });
        t.strictSame(start.hardState, { term: 4, vote: 2, commit: index });
        t.equal(start.recovered.lastIndex, index);
        seen.reset++;
      }
    }
    for (let count = 0; machine.sweep(1000) > 0; count++) if (count > 10) t.fail("sweep ends");
    again.flush();
    const digest = machine.chainDigest;
    const last = new Side(new Lane(), 4, (again.store as FakeStore).copy(), { ...log });
    if (last.machine.chainDigest !== digest) t.fail("and the same after another start");
  };
  order(world);
  for (let step = 0; step < 400 && leader.group().core.reports.length === 0; step++) {
    lane.step(crash);
  }
  t.ok(isInstalled(world));
  t.ok(seen.old > 10 && seen.reset > 0 && seen.done > 0, JSON.stringify(seen));
  t.end();
});

t.test("what a start makes of log and store of different moments", (t) => {
  const group = partitionId(1);
  const snapshot = {
    group,
    hardState: { term: 7, vote: 3, commit: 20 },
    floor: { term: 2, index: 10 },
    lastIndex: 30,
    termRuns: [],
    specialEntries: [],
    sizeRuns: [],
  };
  const state = (appliedIndex: number, index: number): InstalledState => {
    return { group, appliedIndex, appliedTerm: 5, installed: { index, term: index === 0 ? 0 : 5 } };
  };
  t.equal(installAtStart(state(15, 0), snapshot).kind, "none");
  t.equal(installAtStart(state(15, 10), snapshot).kind, "none");
  t.equal(installAtStart(state(15, 9), snapshot).kind, "none");
  t.match(installAtStart(state(25, 25), snapshot), {
    kind: "reset",
    hardState: { term: 7, vote: 3, commit: 25 },
  });
  t.match(installAtStart(state(90, 90), null), {
    kind: "reset",
    hardState: { term: 5, vote: 0, commit: 90 },
  });
  const younger = { ...snapshot, hardState: { term: 4, vote: 3, commit: 20 } };
  t.match(installAtStart(state(90, 90), younger), {
    hardState: { term: 5, vote: 0, commit: 90 },
  });
  t.equal(installAtStart(state(26, 25), snapshot).kind, "mixed");
  t.equal(installAtStart(state(24, 25), snapshot).kind, "mixed");
  t.equal(installAtStart({ ...state(25, 25), appliedTerm: 4 }, snapshot).kind, "mixed");
  t.end();
});

t.test("P-127 100,000 rows go over in slices, in bounded memory", (t) => {
  const lane = new Lane();
  const settings = { chunkBytes: 128 << 10, bytesPerSecond: 1 << 30 };
  const timer = { soon: (run: () => void) => run(), after: () => ({ cancel: () => undefined }) };
  const leader = new Side(lane, 1, new MemoryStore(timer, 1 << 30), null, settings);
  const follower = new Side(lane, 4, new MemoryStore(timer, 1 << 30), null, settings);
  leader.applyMembership();
  const { machine } = leader;
  for (let at = 0; at < 100_000; at += 500) {
    const commands: Command[] = [];
    for (let row = at; row < at + 500; row++) commands.push(set(`b/${row * 7919}`, `value ${row}`));
    apply(machine, at, ...commands);
  }
  leader.lead(5);
  follower.fillRows = 20_000;
  leader.snapshots.send(leader.group(), 4);
  let rowsBefore = 0;
  let most = 0;
  let waiting = 0;
  let steps = 0;
  while (follower.installs === 0 && steps++ < 2000) {
    lane.step(() => {
      most = Math.max(most, follower.memtable.rows - rowsBefore);
      rowsBefore = follower.memtable.rows;
      for (const { heldBytes } of follower.snapshots.facts())
        waiting = Math.max(waiting, heldBytes);
    });
  }
  t.equal(follower.machine.chainDigest, machine.chainDigest);
  t.ok(most > 0 && most <= 4 * 4000, `${most} rows at once`);
  t.ok(waiting <= 5 * (128 << 10), `${waiting} bytes wait at most`);
  t.ok(steps < 1000, `${steps} steps`);
  t.end();
});

t.test("fuzz: frames go through bytes and back; damage is null, nothing throws (P-128)", (t) => {
  const random = new Prng(7);
  const at = { group: 3, session: 2 ** 52 + 5 };
  const meta = { index: 12, term: 4, membership: MEMBERS };
  const frames: readonly SnapshotFrame[] = [
    { kind: "begin", ...at, fromLife: 7, toLife: 2 ** 53 - 1, term: 5, meta },
    { kind: "chunk", ...at, sequence: 2 ** 32 - 1, bytes: new Uint8Array([1, 2, 3]) },
    { kind: "chunk", ...at, sequence: 0, bytes: new Uint8Array(0) },
    { kind: "ack", ...at, next: 9, resend: true },
    { kind: "result", ...at, code: "unknown" },
    { kind: "query", ...at },
    { kind: "abort", ...at },
  ];
  const world = pair(10);
  let read = 0;
  for (const frame of frames) {
    const bytes = encodeSnapshotFrame(frame);
    t.strictSame(decodeSnapshotFrame(bytes), frame);
    for (let cut = 0; cut < bytes.length; cut++) {
      if (decodeSnapshotFrame(bytes.slice(0, cut)) !== null) t.fail("a cut frame was read");
    }
    t.equal(decodeSnapshotFrame(new Uint8Array([...bytes, 0])), null);
    for (let round = 0; round < 8000; round++) {
      const changed = bytes.slice();
      for (let count = 1 + random.below(3); count > 0; count--) {
        changed[random.below(changed.length)] = random.below(256);
      }
      const decoded = decodeSnapshotFrame(changed);
      if (decoded !== null) {
        read++;
        const same = encodeSnapshotFrame(decoded);
        if (same.length !== changed.length || same.some((byte, i) => byte !== changed[i])) {
          t.fail("one encoding for one frame");
        }
      }
      const side = round % 2 === 0 ? world.follower : world.leader;
      side.snapshots.frame(1 + random.below(4), changed);
    }
  }
  t.ok(read > 1000, `${read} of them were frames`);
  t.ok(world.follower.snapshots.badFrames > 1000);
  t.equal(world.follower.machine.appliedIndex, 1);
  t.end();
});
