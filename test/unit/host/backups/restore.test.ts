/** A chain of backups becomes a storage directory: what is in it, what is told, and what is refused. */
import t from "tap";
import { ORPHAN_AGE_MS } from "../../../../src/base/limits.js";
import { partitionId } from "../../../../src/base/ids.js";
import type { Restored } from "../../../../src/host/restoring/restore-types.js";
import { decodeClaim } from "../../../../src/host/restoring/claims.js";
import { decodeRestoredMark } from "../../../../src/host/restoring/restored-mark.js";
import { Machine } from "../../../../src/machine/machine.js";
import { Memtable } from "../../../../src/machine/store/memtable.js";
import { allocate, create, lock, set, update } from "../../../doubles/machine/bench.js";
import type { FakeStore } from "../../../doubles/machine/fake-store.js";
import { RESTORE_ROOT, RestoreBench } from "../../../doubles/backup/restore-bench.js";
import { UNSIGNED, sampleId } from "../../../doubles/backup/sample-backup.js";
import { falseSignatures } from "../../../doubles/backup/false-archive.js";

const TOKENS = 1n << 44n;

// A loaded machine takes its time for thousands of restores.
t.setTimeout(240_000);

function value(bench: RestoreBench, request = {}): Restored {
  const end = bench.restore(request);
  if (end?.ok !== true) throw new Error(JSON.stringify(end));
  return end.value;
}

function machineOf(store: FakeStore, partition: number): Machine {
  return new Machine(new Memtable({ store }), partitionId(partition));
}

/** What lies below the restore root beside claims. */
function left(bench: RestoreBench): string[] {
  const names = [...bench.targets.disk.root.names.keys()];
  return names.filter((name) => !name.endsWith(".claim"));
}

t.test("P-132 a restored state is that of the live replica, bit for bit", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  bench.cluster.write(3);
  bench.cluster.take(2, 1);
  bench.cluster.write(2);
  bench.cluster.take(3, 2);
  const live = bench.cluster.groups.map(({ machine }) => machine.chainDigest);
  bench.cluster.write(4);
  const restored = value(bench, { leafId: sampleId(3) });
  t.equal(restored.partitionsRestored, 3);
  t.equal(restored.chain.length, 3);
  t.equal(restored.chain[0]?.backupId, sampleId(1));
  t.equal(restored.sequencesAheadCount, 0);
  t.same(left(bench), ["new"]);
  const store = bench.state();
  for (const partition of [0, 1, 2]) {
    const machine = machineOf(store, partition);
    t.equal(machine.chainDigest, live[partition], `partition ${partition}`);
    t.equal(machine.membership, null);
    t.equal(machine.installed.index, machine.appliedIndex);
    t.ok(machine.tokenFloor >= TOKENS);
  }
  t.ok(restored.lastAppliedPhysicalMs >= restored.maxRecoverablePhysicalMs);
  const path = [...bench.targets.disk.files().keys()].find((name) =>
    name.endsWith("restored.json"),
  );
  t.equal(path, "new/v1/restored.json");
  const mark = decodeRestoredMark("m", bench.targets.disk.files().get(path ?? "") as Uint8Array);
  const meta = machineOf(store, 0).meta;
  t.match(mark, { ok: true, value: { clusterId: meta.cluster()?.clusterId, ordinal: 1 } });
  t.same(meta.members(), []);
  t.equal(bench.levels.size, 1);
  t.end();
});

t.test(
  "7.5 a target time takes all entries up to the end of its millisecond, and no other",
  (t) => {
    const bench = new RestoreBench();
    const [meta, first] = bench.cluster.groups;
    bench.cluster.take(1);
    first?.apply([create("s"), create("still"), create("later", { initialValue: 5n })], 1000);
    first?.apply([set("k", "one")], 1000);
    const at = first?.machine.lastStamp.l ?? 0;
    first?.apply([set("k", "same millisecond")], 0, 7);
    first?.apply([set("k", "two"), update("s", { currentValue: 700n })], 1);
    first?.apply([create("new one")], 1);
    for (const group of bench.cluster.groups) group.apply([set("x", "x")], 5000);
    meta?.apply([set("x", "y")], 5000);
    bench.cluster.take(2, 1);
    const request = { leafId: sampleId(2), targetTimeMs: at };
    const restored = value(bench, request);
    t.equal(restored.lastAppliedPhysicalMs <= at, true);
    t.same(restored.sequencesAhead, ["s"]);
    t.equal(restored.sequencesAheadCount, 1);
    const state = [...bench.stores].find(([path]) => path.endsWith("/state"))?.[1];
    const machine = machineOf(state as FakeStore, 1);
    t.match(machine.reads.kvGet("k", -1n, 0), { value: Buffer.from("same millisecond") });
    t.equal(machine.reads.getSequence("new one"), null);
    t.equal(machine.reads.getSequence("s")?.currentValue, 0n);
    t.same(left(bench), ["new"]);
    const { minRecoverablePhysicalMs: min, maxRecoverablePhysicalMs: max } = restored;
    for (const [time, said] of [
      [min - 1, /^TargetOutsideCoverage/],
      [max + 1, /^TargetOutsideCoverage/],
      [min, /^ok/],
      [max, /^ok/],
    ] as const) {
      const targetDir = `${RESTORE_ROOT}/at-${time}`;
      t.match(bench.said({ ...request, targetDir, targetTimeMs: time }), said);
    }
    t.end();
  },
);

t.test("P-137 L14 S6 one backup restored again and again hands out nothing twice", (t) => {
  const bench = new RestoreBench();
  const [, first] = bench.cluster.groups;
  first?.apply([create("s"), lock("l", "o", 1000)]);
  first?.apply([allocate("s", 10)]);
  bench.cluster.take(1);
  let floor = 0n;
  let incarnation = 0;
  const clusters = new Set<string>();
  for (let round = 1; round <= 3; round++) {
    value(bench, { targetDir: `${RESTORE_ROOT}/r${round}`, sequenceSkip: BigInt(round) });
    const machine = machineOf(bench.state(), 1);
    t.ok(machine.tokenFloor >= floor + TOKENS);
    const sequence = machine.reads.getSequence("s");
    t.ok((sequence?.incarnation ?? 0) >= incarnation + 2 ** 20);
    t.equal(sequence?.currentValue, 10n + BigInt(round));
    floor = machine.tokenFloor;
    incarnation = sequence?.incarnation ?? 0;
    const cluster = machineOf(bench.state(), 0).meta.cluster();
    clusters.add(cluster?.clusterId ?? "");
    t.equal(Math.floor((cluster?.topologyVersion ?? 0) / 2 ** 20), round);
    for (const files of [bench.backups.disk.files(), bench.targets.disk.files()]) {
      const bytes = files.get(`restore_${round}.claim`) as Uint8Array;
      const claim = decodeClaim("c", round, bytes, UNSIGNED);
      t.match(claim, { ok: true, value: { floors: { tokenFloor: floor } } });
    }
  }
  t.equal(clusters.size, 3);
  t.end();
});

t.test("P-137 the root counts too: a catalogue that lost its claims goes on above", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  value(bench, { targetDir: `${RESTORE_ROOT}/a` });
  const { tokenFloor } = machineOf(bench.state(), 1);
  bench.backups.disk.drop("restore_1.claim");
  value(bench, { targetDir: `${RESTORE_ROOT}/b` });
  t.ok(machineOf(bench.state(), 1).tokenFloor >= tokenFloor + TOKENS);
  t.ok(bench.backups.disk.files().has("restore_2.claim"));
  t.end();
});

t.test("P-139 a target is judged by its text and by what is there", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  const { disk } = bench.targets;
  disk.put("there/file", new Uint8Array(1));
  disk.put("live/x/y", new Uint8Array(1));
  disk.putLink("link");
  disk.put("plain", new Uint8Array(1));
  for (const target of [
    RESTORE_ROOT,
    `${RESTORE_ROOT}/`,
    "/restoresx/new",
    "/Restores/new",
    "/",
    "/etc",
    `${RESTORE_ROOT}/../new`,
    `${RESTORE_ROOT}/./new`,
    `${RESTORE_ROOT}//new`,
    `${RESTORE_ROOT}/a\0b`,
    `${RESTORE_ROOT}/there`,
    `${RESTORE_ROOT}/nowhere/new`,
    `${RESTORE_ROOT}/link`,
    `${RESTORE_ROOT}/link/new`,
    `${RESTORE_ROOT}/plain/new`,
    `${RESTORE_ROOT}/live/data`,
    `${RESTORE_ROOT}/LIVE/Data`,
    `${RESTORE_ROOT}/live/data/new`,
    `${RESTORE_ROOT}/live`,
    `${RESTORE_ROOT}/${"n".repeat(300)}`,
  ]) {
    t.match(bench.said({ targetDir: target }), /^TargetConflict/, target);
  }
  for (const live of ["live", "live/data", "LIVE/Data", "Live/data/new"]) {
    const targetDir = `${RESTORE_ROOT}/${live}`;
    t.match(bench.said({ targetDir }), /^TargetConflict: .*overlaps/, live);
  }
  t.equal(bench.said({ targetDir: `${RESTORE_ROOT}/live/other` }), "ok");
  t.equal(bench.said({ targetDir: `${RESTORE_ROOT}/there/new/` }), "ok");
  t.end();
});

t.test("P-139 what comes under the target's name meanwhile is not touched", (t) => {
  for (const comes of ["file", "link", "parent"]) {
    const bench = new RestoreBench();
    bench.cluster.take(1);
    bench.targets.disk.put("sub/other", new Uint8Array(1));
    bench.atTurn = () => {
      if (!bench.targets.disk.files().has("restore_1.claim")) return;
      bench.atTurn = () => undefined;
      if (comes === "file") bench.targets.disk.put("sub/new", new Uint8Array([7]));
      else if (comes === "link") bench.targets.disk.putLink("sub/new");
      else {
        bench.targets.disk.drop("sub");
        bench.targets.disk.putLink("sub");
      }
    };
    const said = bench.said({ targetDir: `${RESTORE_ROOT}/sub/new` });
    t.match(said, comes === "parent" ? /^(TargetConflict|IoError)/ : /^TargetConflict/, comes);
    const expected = comes === "file" ? ["other", "new"] : ["other"];
    const names = [...(bench.targets.disk.find("sub")?.names.keys() ?? [])];
    t.same(names, comes === "parent" ? [] : comes === "link" ? ["other", "new"] : expected);
  }
  t.end();
});

t.test(
  "P-140 whatever fails, and whenever: no target, no staging, and the next one succeeds",
  (t) => {
    const count = new RestoreBench();
    count.cluster.take(1);
    value(count);
    const calls = count.targets.disk.calls.length;
    t.ok(calls > 10);
    for (let at = 0; at < calls; at++) {
      const bench = new RestoreBench();
      bench.cluster.take(1);
      let seen = 0;
      bench.targets.disk.fails = () => seen++ === at;
      const said = bench.said();
      bench.targets.disk.fails = () => false;
      t.not(said, "no answer");
      if (said === "ok") continue;
      t.match(said, /^(IoError|TargetConflict|CorruptArtifact)/, `call ${at}`);
      t.notOk(bench.targets.disk.find("new"), `call ${at}: ${said}`);
      const again = bench.said({ targetDir: `${RESTORE_ROOT}/again` });
      t.equal(again, "ok", `after call ${at}`);
    }
    const bench = new RestoreBench();
    bench.cluster.take(1);
    bench.storeIsFull = true;
    t.match(bench.said(), /^IoError: The state store is full/);
    t.same(left(bench), []);
    t.end();
  },
);

t.test("P-140 a cancelled restore ends in each of its steps and leaves nothing", (t) => {
  for (let turns = 1; turns < 400; turns += 11) {
    const bench = new RestoreBench();
    bench.cluster.take(1);
    const restore = bench.begin();
    let at = 0;
    bench.atTurn = () => {
      if (++at === turns) restore.cancel();
    };
    const end = bench.backups.call<{ ok: boolean; code?: string }>((done) => restore.run(done));
    if (end?.ok === true) {
      t.same(left(bench), ["new"]);
      continue;
    }
    t.match(end, { code: "Cancelled" }, `turn ${turns}`);
    t.same(left(bench), [], `turn ${turns}`);
  }
  t.end();
});

t.test("P-140 what a restore that died with its machine left goes with the next one", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  const { disk } = bench.targets;
  const old = ["dead.staging_0000000a", "beside/dead.staging_0000000b"];
  const kept = ["young.staging_0000000c", "busy.staging_0000000d", "dead.staging_x", "data"];
  for (const name of [...old, ...kept]) disk.put(`${name}/v1/state/data.mdb`, new Uint8Array(9));
  disk.put("file.staging_0000000e", new Uint8Array(9));
  disk.putLink("link.staging_0000000f");
  const parts = ["", "/v1", "/v1/state", "/v1/state/data.mdb"];
  for (const name of [...old, ...kept]) {
    for (const part of parts) disk.age(`${name}${part}`, ORPHAN_AGE_MS + 1);
  }
  for (const part of parts) disk.age(`young.staging_0000000c${part}`, -2);
  // Whoever restores writes: the directories alone say nothing.
  disk.age("busy.staging_0000000d/v1/state/data.mdb", -ORPHAN_AGE_MS);
  const others = ["file.staging_0000000e", "link.staging_0000000f"];
  for (const name of others) disk.age(name, 2 * ORPHAN_AGE_MS);
  t.equal(bench.said(), "ok");
  t.same(left(bench).sort(), [...kept, ...others, "beside", "new"].sort());
  t.equal(bench.said({ targetDir: `${RESTORE_ROOT}/beside/new` }), "ok");
  t.same([...(disk.find("beside")?.names.keys() ?? [])], ["new"], "those beside the target");
  t.end();
});

t.test("P-136 a flipped byte, wherever it lies, is told and never restored", (t) => {
  // An unsigned manifest may say another time of creation, and nobody can tell.
  const bench = new RestoreBench(falseSignatures("key"));
  bench.cluster.take(1);
  bench.cluster.take(2, 1);
  const names = [...bench.backups.disk.files().keys()];
  for (const name of names) {
    const size = bench.backups.disk.files().get(name)?.length ?? 0;
    const step = Math.max(1, Math.floor(size / 15));
    for (let at = 0; at < size; at += step) {
      bench.backups.disk.flip(name, at, 1 << (at % 8));
      const said = bench.said({ leafId: sampleId(2) });
      t.match(said, /^(CorruptArtifact|CorruptChain|UnsupportedFormat)/, `${name} at ${at}`);
      t.same(left(bench), []);
      bench.backups.disk.flip(name, at, 1 << (at % 8));
    }
  }
  t.equal(bench.said({ leafId: sampleId(2) }), "ok");
  t.end();
});

t.test("P-136 a file that is swapped between the two readings is not believed", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  const name = [...bench.backups.disk.files().keys()].find((path) => path.endsWith("1.image"));
  bench.atTurn = () => {
    // The verification has ended.
    if (bench.progress.every(({ phase }) => phase !== "replaying")) return;
    bench.atTurn = () => undefined;
    bench.backups.disk.flip(name ?? "", 200);
  };
  t.match(bench.said(), /^CorruptArtifact/);
  t.same(left(bench), []);
  t.end();
});

t.test("7.5 what cannot be restored is told by its outcome", (t) => {
  const outcomes: readonly (readonly [object, RegExp])[] = [
    [{ storageType: "memory" }, /^UnsupportedFormat/],
    [{ storageRevision: "../x" }, /^CorruptArtifact/],
    [{ clusterPartitions: [0, 1, 2, 3] }, /^RestrictedCoverage/],
  ];
  for (const [change, said] of outcomes) {
    const bench = new RestoreBench();
    bench.cluster.take(1, null, change);
    t.match(bench.said(), said);
    t.same(left(bench), []);
  }
  const bench = new RestoreBench();
  bench.cluster.take(1);
  t.match(bench.said({ leafId: sampleId(9) }), /^CorruptChain/);
  bench.backups.disk.chmod("", 0o770);
  t.match(bench.said(), /^InsecureRoot/);
  const signed = new RestoreBench(falseSignatures("key"));
  signed.cluster.take(1);
  t.equal(signed.said(), "ok");
  t.end();
});

t.test("P-137 a damaged claim ends the restore, one that was never finished does not", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  value(bench, { targetDir: `${RESTORE_ROOT}/a` });
  bench.backups.disk.put("restore_2.claim", new Uint8Array(100));
  t.equal(bench.said({ targetDir: `${RESTORE_ROOT}/b` }), "ok");
  t.ok(bench.backups.disk.files().has("restore_3.claim"));
  for (const at of [0, 30, 90, 200, 1023]) {
    bench.backups.disk.flip("restore_1.claim", at);
    t.match(bench.said({ targetDir: `${RESTORE_ROOT}/c` }), /^CorruptArtifact/, `${at}`);
    bench.backups.disk.flip("restore_1.claim", at);
  }
  t.end();
});

/** A claim has its name long before it has its content. */
function writeClaimsSlowly(bench: RestoreBench): void {
  const { archive, disk } = bench.backups;
  const later = (turns: number, then: () => void): void =>
    turns === 0 ? then() : disk.soon(() => later(turns - 1, then));
  const create = archive.create.bind(archive);
  archive.create = (path, done) => {
    create(path, (made) => {
      if (made.ok) {
        const write = made.value.write.bind(made.value);
        made.value.write = (bytes, then) => later(30, () => write(bytes, then));
      }
      done(made);
    });
  };
}

t.test("P-137 of two restores at the same time one knows what the other set", (t) => {
  for (let seed = 1; seed <= 20; seed++) {
    const bench = new RestoreBench(UNSIGNED, [0, 1], seed);
    bench.cluster.take(1);
    writeClaimsSlowly(bench);
    const ends: string[] = [];
    const begin = (name: string): void => {
      bench.begin({ targetDir: `${RESTORE_ROOT}/${name}` }).run((end) => {
        ends.push(end.ok ? "ok" : end.code);
      });
    };
    let turn = 0;
    bench.backups.call<undefined>(() => {
      begin("a");
      bench.atTurn = () => {
        if (++turn === seed) begin("b");
      };
    });
    t.same(ends, ["ok", "ok"], `seed ${seed}`);
    const floors = [-2, -1].map((at) => machineOf(bench.state(at), 1).tokenFloor);
    const [low = 0n, high = 0n] = floors.sort((a, b) => (a < b ? -1 : 1));
    t.ok(high >= low + TOKENS, `seed ${seed}: ${floors.join()}`);
  }
  t.end();
});

t.test("P-130 a replay that leads elsewhere than the live replica was is refused", (t) => {
  const bench = new RestoreBench();
  const [, first] = bench.cluster.groups;
  if (first === undefined) throw new Error("no group");
  const trailer = first.trailer.bind(first);
  // The mark of a replica that had gone another way.
  first.trailer = () => {
    const made = trailer();
    return { ...made, end: { ...made.end, chain: "0123456789abcdef" } };
  };
  bench.cluster.take(1);
  t.match(bench.said(), /^CorruptArtifact: .*another state than there was/);
  t.same(left(bench), []);
  t.end();
});

t.test("P-140 what is read back and is not what was written ends the restore", (t) => {
  const bench = new RestoreBench();
  bench.cluster.take(1);
  bench.atTurn = () => {
    if (bench.progress.every(({ phase }) => phase !== "publishing")) return;
    bench.atTurn = () => undefined;
    const store = bench.state();
    let some: Uint8Array | null = null;
    store.scan(new Uint8Array([2]), null, (key) => {
      some = key;
      return false;
    });
    if (some !== null) store.write([{ key: some, value: null }], () => undefined);
  };
  t.match(bench.said(), /^IoError: Partition \d was read back/);
  t.same(left(bench), []);
  t.end();
});
