/** A cluster is forced out of what one node has: what it takes, what it gives up, and crashes at each write. */
import t, { type Test } from "tap";
import { FOUNDING_INCARNATION, level, partitionId } from "../../../../src/base/ids.js";
import { ForcedState, type ForcedOrder } from "../../../../src/host/restoring/forced-state.js";
import { NO_FLOORS } from "../../../../src/host/restoring/claims.js";
import { encodeIdentity, IDENTITY_KEY } from "../../../../src/host/storage/identity.js";
import { encodeReplicaRow, replicaRowKey } from "../../../../src/host/storage/replica-row.js";
import { installAtStart } from "../../../../src/host/snapshots/snapshot-recovery.js";
import { Machine } from "../../../../src/machine/machine.js";
import { fromByteKey, groupRecordKey } from "../../../../src/machine/store/keys.js";
import { Memtable } from "../../../../src/machine/store/memtable.js";
import type {
  LogEntry,
  LogPort,
  RecoveredGroupLog,
  StoreChange,
  StorePort,
} from "../../../../src/ports.js";
import { create, lock, set } from "../../../doubles/machine/bench.js";
import { FakeStore, flush } from "../../../doubles/machine/fake-store.js";
import { newMember } from "../../../doubles/machine/members.js";
import { SampleGroup } from "../../../doubles/backup/sample-group.js";

const TOKENS = 1n << 44n;
const ORDER: ForcedOrder = { clusterId: "new", ordinal: 1, earlier: NO_FLOORS };

/** Entries behind the state store of each group. */
class Bereft {
  readonly store = new FakeStore();
  private readonly logs = new Map<number, { entries: LogEntry[]; commit: number; floor: number }>();

  constructor() {
    const groups = [0, 1, 2].map((partition) => new SampleGroup(partition));
    for (const group of groups) group.apply([{ kind: "set-level", level: level(2) }]);
    groups[0]?.apply([
      {
        ...{ kind: "found-cluster", clusterId: "old", dataPartitions: 2, replicationFactor: 0 },
        ...{ level: level(2), members: [newMember(1, "n1:1", "s1"), newMember(2, "n2:1", "s2")] },
      },
    ]);
    for (const group of groups) this.add(group);
    const founders = [1, 2].map((nodeId) => ({ nodeId, endpoint: "", storageId: "" }));
    const identity = { nodeId: 1, founders, isJoiner: false, bootNumber: 3, bootNonces: [1, 2, 3] };
    this.put(fromByteKey(IDENTITY_KEY), encodeIdentity(identity));
  }

  private put(key: Uint8Array, value: Uint8Array): void {
    this.store.write([{ key, value }], () => undefined);
  }

  private add(group: SampleGroup): void {
    group.write(2);
    group.apply([set("flushed", "yes"), lock("l", "o", 1000), create("s")]);
    flush(group.bench.memtable, group.bench.store);
    group.bench.store.scan(new Uint8Array([0]), null, (key, value) => {
      this.put(key, value);
      return true;
    });
    const floor = group.machine.appliedIndex - 1;
    group.apply([set("committed", "yes"), lock("m", "o", 1000)]);
    const commit = group.machine.appliedIndex;
    group.apply([set("beyond", "yes")]);
    this.logs.set(group.partition, { entries: group.since(floor), commit, floor });
  }

  /** What a partition left that its replica had not taken away yet. */
  leave(partition: number): void {
    const group = new SampleGroup(partition);
    group.write(2);
    flush(group.bench.memtable, group.bench.store);
    group.bench.store.scan(new Uint8Array([0]), null, (key, value) => {
      this.put(key, value);
      return true;
    });
    const life = { incarnation: FOUNDING_INCARNATION, term: 1, vote: 0, lastGeneration: 0 };
    const row = { ...life, state: "dropping" } as const;
    this.put(fromByteKey(replicaRowKey(partitionId(partition))), encodeReplicaRow(row));
  }

  log(): LogPort {
    const recovered = new Map<ReturnType<typeof partitionId>, RecoveredGroupLog>();
    for (const [group, { entries, commit, floor }] of this.logs) {
      recovered.set(partitionId(group), {
        ...{ group: partitionId(group), hardState: { term: 5, vote: 2, commit } },
        ...{ floor: { term: 3, index: floor }, lastIndex: floor + entries.length },
        ...{ termRuns: [], specialEntries: [], sizeRuns: [] },
      });
    }
    const read: LogPort["read"] = (group, first, last, _maxBytes, done) => {
      const all = this.logs.get(group)?.entries ?? [];
      const found = all.filter(({ index }) => index >= first && index <= last).slice(0, 2);
      setImmediate(() => done({ ok: true, value: found }));
    };
    return { recovered: () => recovered, read } as unknown as LogPort;
  }
}

/** Stops after so many writes, as a node whose power fails. */
class MortalStore implements StorePort {
  writes = 0;

  constructor(
    private readonly rows: FakeStore,
    private readonly lastWrite = Infinity,
    private readonly died: () => void = () => undefined,
  ) {}

  get(key: Uint8Array): Uint8Array | null {
    return this.rows.get(key);
  }

  scan(...given: Parameters<StorePort["scan"]>): void {
    this.rows.scan(...given);
  }

  write(changes: readonly StoreChange[], done: Parameters<StorePort["write"]>[1]): void {
    if (++this.writes > this.lastWrite) return this.died();
    this.rows.write(changes, (result) => setImmediate(() => done(result)));
  }

  sizeBytes(): number {
    return this.rows.sizeBytes();
  }

  close(done: () => void): void {
    setImmediate(done);
  }
}

const timer = {
  soon: (callback: () => void): void => void setImmediate(callback),
  after: () => ({ cancel: () => undefined }),
};

type Phase = "lifting" | "forgetting" | "done";

/** One try; where it came to. */
function force(store: StorePort, log: LogPort, died: Promise<void>): Promise<Phase> {
  const state = new ForcedState(store, log, timer, 200);
  t.equal(state.survey(), null);
  let phase: Phase = "lifting";
  const whole = new Promise<Phase>((resolve) => {
    state.replay((replayed) => {
      if (!replayed.ok) throw new Error(replayed.message);
      state.lift(ORDER, (lifted) => {
        if (!lifted.ok) throw new Error(lifted.message);
        phase = "forgetting";
        state.forget(() => {
          phase = "done";
          state.close(() => resolve("done"));
        });
      });
    });
  });
  return Promise.race([whole, died.then(() => phase)]);
}

function check(t2: Test, store: FakeStore, what: string): void {
  const memtable = new Memtable({ store });
  const meta = new Machine(memtable, partitionId(0)).meta;
  t2.match(meta.cluster(), { clusterId: "new", membershipVersion: 0 }, what);
  t2.equal(Math.floor((meta.cluster()?.topologyVersion ?? 0) / 2 ** 20), 1, `${what}: once`);
  t2.same(meta.members(), [], what);
  for (const partition of [1, 2]) {
    const machine = new Machine(memtable, partitionId(partition));
    t2.ok(machine.tokenFloor >= TOKENS && machine.tokenFloor < TOKENS + 1000n, what);
    t2.equal(machine.membership, null, what);
    const { appliedIndex, appliedTerm, installed } = machine;
    const start = { group: partitionId(partition), appliedIndex, appliedTerm, installed };
    t2.equal(installAtStart(start, null).kind, "reset", `${what}: its log begins there`);
    const text = (key: string): string => {
      const { value = null } = machine.reads.kvGet(key, -1n, 0) as { value?: Uint8Array | null };
      return value === null ? "" : Buffer.from(value).toString();
    };
    t2.same(["flushed", "committed", "beyond"].map(text), ["yes", "yes", ""], what);
    t2.ok((machine.reads.getSequence("s")?.incarnation ?? 0) >= 2 ** 20, what);
  }
  t2.equal(memtable.get(IDENTITY_KEY), null, what);
}

t.test("7.7 what is known to be committed is taken, what lies above is not", async (t2) => {
  const bereft = new Bereft();
  const state = new ForcedState(bereft.store, bereft.log(), timer);
  t2.equal(state.survey(), null);
  const report = state.report();
  t2.equal(report.length, 3);
  for (const found of report) {
    t2.equal(found.commitIndex, found.appliedIndex + 1);
    t2.equal(found.lastIndex, found.commitIndex + 1);
    t2.equal(found.leader, 1);
    t2.ok(found.heardMs > 0);
  }
  const before = bereft.store.size;
  t2.equal(bereft.store.size, before, "a survey writes nothing");
  await force(new MortalStore(bereft.store), bereft.log(), new Promise(() => undefined));
  check(t2, bereft.store, "forced");
});

t.test(
  "P-140 cut short at any write, it is brought to its end by being begun again",
  async (t2) => {
    const count = new MortalStore(new Bereft().store);
    await force(count, new Bereft().log(), new Promise(() => undefined));
    t2.ok(count.writes > 5, `${count.writes} writes`);
    for (let at = 0; at < count.writes; at++) {
      const bereft = new Bereft();
      let die: () => void = () => undefined;
      const died = new Promise<void>((resolve) => (die = resolve));
      const phase = await force(new MortalStore(bereft.store, at, () => die()), bereft.log(), died);
      if (phase === "done") continue;
      // The file of the directory says from when on only what is forgotten is still to be done.
      if (phase === "lifting") {
        await force(new MortalStore(bereft.store), bereft.log(), new Promise(() => undefined));
      } else {
        const again = new ForcedState(new MortalStore(bereft.store), null, timer);
        await new Promise<void>((resolve) => again.forget(() => again.close(resolve)));
      }
      check(t2, bereft.store, `after write ${at}`);
    }
  },
);

t.test("7.7 of what the map does not name nothing is left", async (t) => {
  const bereft = new Bereft();
  bereft.leave(3);
  const { store } = bereft;
  t.ok(store.get(fromByteKey(groupRecordKey(partitionId(3)))), "there was a group");
  const never = new Promise<void>(() => undefined);
  t.equal(await force(new MortalStore(store), bereft.log(), never), "done");
  t.equal(store.get(fromByteKey(groupRecordKey(partitionId(3)))), null);
  check(t, store, "the others");
});
