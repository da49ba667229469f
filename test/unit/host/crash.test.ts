/**
 * Crashes of a node at every kind of moment, over the real core and machine: nothing acknowledged
 * is lost, nothing takes effect twice, and a replay gives the state that the flushes gave.
 */
import t from "tap";
import { assert } from "../../../src/base/assert.js";
import { Prng } from "../../../src/base/prng.js";
import { LeaseClock } from "../../../src/host/group/leaseclock.js";
import type { Node } from "../../../src/host/node.js";
import { Proposals } from "../../../src/host/requests/proposals.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { World, setCommand } from "../../doubles/host/world.js";

type Fate = "pending" | "acknowledged" | "certainly-not" | "unknown";

/** One cluster life after the other over the same disk, with a model of what each key must hold. */
class CrashRun {
  readonly world: World;
  readonly fates = new Map<string, Fate>();
  readonly prng: Prng;
  node: Node;
  private nextKey = 0;
  private leases = new Map<number, number>();

  constructor(seed: number, settings: Partial<HostSettings>) {
    this.prng = new Prng(seed);
    this.world = new World(settings, seed);
    this.node = this.world.ready();
  }

  write(): void {
    const key = `key-${this.nextKey++}`;
    const group = this.world.group(this.node, key);
    this.fates.set(key, "pending");
    const deadlineMs = this.node.nowMs() + 1 + this.prng.below(500);
    group.propose(setCommand(key), 80, deadlineMs, (result) => {
      assert(this.fates.get(key) === "pending", "a caller is answered once (P-033)");
      if (result.status === "applied") {
        this.fates.set(key, "acknowledged");
        this.noteLease(group.partition, result.leaseMs);
      } else if (result.status === "unknown") this.fates.set(key, "unknown");
      else this.fates.set(key, "certainly-not");
    });
  }

  private noteLease(partition: number, leaseMs: number): void {
    const before = this.leases.get(partition) ?? 0;
    assert(leaseMs >= before, "lease time never goes back, through crashes too (P-062)");
    this.leases.set(partition, leaseMs);
  }

  /** One random step of the world. */
  step(): void {
    const { world, prng } = this;
    const kind = prng.below(10);
    if (kind < 4) this.write();
    else if (kind < 7) world.timer.step();
    else if (kind === 7) world.log.sync(1 + prng.below(3));
    else if (kind === 8 && prng.chance(1, 3)) world.store.finish();
    else {
      world.timer.nowMs += prng.below(20);
      const groups = this.node.groups();
      const pinning = groups[prng.below(groups.length)];
      world.log.pinning = pinning === undefined || prng.chance(1, 2) ? [] : [pinning.partition];
    }
  }

  /** Power loss and restart; then holds the state against the model. */
  crashAndCheck(): void {
    const { world, prng } = this;
    const alsoWrites = prng.below(world.log.pending.length + 1);
    world.crash(alsoWrites, prng.chance(1, 2));
    for (const [key, fate] of this.fates) if (fate === "pending") this.fates.set(key, "unknown");
    world.log.automatic = true;
    world.store.automatic = true;
    world.timer.nowMs += prng.below(10_000);
    this.node = world.ready();
    for (const [key, fate] of this.fates) {
      const group = world.group(this.node, key);
      const { type, revision } = group.machine.reads.kvGet(key, -1n, group.committedLeaseMs());
      const there = type === 3;
      if (fate === "acknowledged") assert(there, `${key} was acknowledged and is lost`);
      if (fate === "certainly-not") assert(!there, `${key} was refused and took effect`);
      assert(!there || revision === 0, `${key} took effect twice (P-032)`);
    }
    assert(world.fatals.length === 0, "no fatal fault");
    assert(this.node.facts().queuedBytes === 0, "nothing is queued in a new life");
  }

  manual(): void {
    this.world.log.automatic = false;
    this.world.store.automatic = this.prng.chance(1, 2);
  }

  digests(): string[] {
    return this.node.groups().map((group) => group.machine.stateDigest);
  }
}

const CRASH_SETTINGS = {
  flushAgeMs: 50,
  compactEveryEntries: 8,
  batchEntriesMax: 4,
  inFlightEntriesMax: 3,
  flushRows: 10,
};

function crashOften(run: CrashRun): CrashRun {
  for (let life = 0; life < 6; life++) {
    run.manual();
    const steps = 50 + run.prng.below(300);
    for (let step = 0; step < steps; step++) run.step();
    run.crashAndCheck();
  }
  return run;
}

t.test("P-024 P-028 P-117 crashes at random moments lose and double nothing", async (t) => {
  let acknowledged = 0;
  let lost = 0;
  for (let seed = 1; seed <= 25; seed++) {
    const compactKeepEntries = seed % 3 === 0 ? 0 : 4;
    const run = crashOften(new CrashRun(seed, { ...CRASH_SETTINGS, compactKeepEntries }));
    for (const fate of run.fates.values()) {
      if (fate === "acknowledged") acknowledged++;
      if (fate === "unknown") lost++;
    }
  }
  t.ok(acknowledged > 1000, `the run was not vacuous: ${acknowledged} acknowledged`);
  t.ok(lost > 100, `crashes met requests under way: ${lost}`);
});

/** Whether 25 seeds of crashes find something wrong with a world that `spoil` spoiled. */
function isCaught(spoil: (world: World) => void): boolean {
  for (let seed = 1; seed <= 25; seed++) {
    const run = new CrashRun(seed, { ...CRASH_SETTINGS, compactKeepEntries: 0 });
    spoil(run.world);
    try {
      crashOften(run);
    } catch {
      return true;
    }
  }
  return false;
}

t.test("planted faults are caught by the crash runs", async (t) => {
  const { expire } = Proposals.prototype;
  const { next } = LeaseClock.prototype;
  t.notOk(
    isCaught(() => undefined),
    "the runs find nothing where nothing is wrong",
  );
  const logLies = isCaught(({ log, timer }) => {
    const write = log.write.bind(log);
    log.write = (entry) => {
      write({ ...entry, done: () => undefined });
      timer.soon(entry.done);
    };
  });
  t.ok(logLies, "a log that answers before it is durable");
  const storeLies = isCaught(({ store, timer }) => {
    store.write = (_changes, done) => timer.soon(() => done({ ok: true, value: null }));
  });
  t.ok(storeLies, "a store that answers and keeps nothing");
  Proposals.prototype.expire = function (this: Proposals, nowMs: number): void {
    const answer = this.answer.bind(this);
    this.answer = (waiter) => answer(waiter, { status: "aborted" });
    expire.call(this, nowMs);
    this.answer = answer;
  };
  t.ok(
    isCaught(() => undefined),
    "a deadline that calls a proposed command aborted",
  );
  Proposals.prototype.expire = expire;
  LeaseClock.prototype.next = function (this: LeaseClock, monotonicMs: number): number {
    return Math.max(0, next.call(this, monotonicMs) - (Math.floor(monotonicMs) % 3));
  };
  // Apply lifts what goes back: the machine is the second line, so the clock stays monotone.
  t.notOk(
    isCaught(() => undefined),
    "a lease clock that trembles does no harm",
  );
  LeaseClock.prototype.next = next;
});

t.test("a full replay of the log gives the digests of the flushed state", async (t) => {
  const run = new CrashRun(7, { flushAgeMs: 20, compactKeepEntries: 1_000_000 });
  for (let life = 0; life < 4; life++) {
    for (let at = 0; at < 500; at++) {
      run.write();
      if (run.prng.chance(1, 4)) run.world.settle();
      if (run.prng.chance(1, 50)) run.world.pass(30);
    }
    run.crashAndCheck();
    const flushed = run.digests();
    const applied = run.node.groups().map((group) => group.machine.appliedIndex);
    run.world.crash();
    for (const name of [...run.world.store.rows.keys()]) {
      if (name.charCodeAt(0) !== 3) run.world.store.rows.delete(name);
    }
    run.node = run.world.ready();
    t.same(run.digests(), flushed, "replay from the first entry equals the flushed state");
    t.ok(run.node.groups().every((group, at) => group.machine.appliedIndex > (applied[at] ?? 0)));
  }
});

t.test("a crash at every single step of the founding leaves a directory that starts", async (t) => {
  for (let steps = 0; steps < 60; steps++) {
    const world = new World({}, steps + 1);
    world.open();
    for (let at = 0; at < steps; at++) world.timer.step();
    world.crash(steps % 2, steps % 3 === 0);
    const node = world.ready();
    t.equal(node.groups().length, 4);
    const id = node.metaGroup().machine.meta.cluster()?.clusterId;
    world.crash();
    t.equal(world.ready().metaGroup().machine.meta.cluster()?.clusterId, id, "founded once");
  }
});

t.test("100,000 proposals from many callers, stopped and started in between", async (t) => {
  const world = new World({ initialPartitions: 16, flushAgeMs: 100 }, 3);
  let node = world.ready();
  let applied = 0;
  let other = 0;
  const total = 100_000;
  let started = 0;
  const propose = (): void => {
    if (started >= total || node.shuttingDown) return;
    const key = `k${started++ % 5000}`;
    world.group(node, key).propose(setCommand(key), 80, node.nowMs() + 10_000, (result) => {
      if (result.status === "applied") applied++;
      else other++;
      propose();
    });
  };
  while (started < total) {
    for (let at = 0; at < 256; at++) propose();
    const goal = Math.min(total, started + 30_000);
    while (started < goal) {
      for (let step = 0; step < 200; step++) world.timer.step();
      world.timer.nowMs += 1;
    }
    let closed = false;
    node.stop(node.nowMs() + 1000, () => (closed = true));
    world.settle();
    t.ok(closed, "the stop came to its end");
    const digests = node.groups().map((group) => group.machine.stateDigest);
    world.crash();
    node = world.ready();
    const again = node.groups().map((group) => group.machine.stateDigest);
    t.same(again, digests, "the state is the one that was left");
  }
  t.equal(applied, total);
  t.equal(other, 0);
});
