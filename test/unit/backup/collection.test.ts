/**
 * Leases and passes of the collection, on a directory that several nodes share: dry run and run, the
 * order of what goes, crashes, faults, and whoever begins to read meanwhile.
 */
import t from "tap";
import { ORPHAN_AGE_MS } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import { ok } from "../../../src/base/result.js";
import { type Catalogue, readCatalogue } from "../../../src/backup/catalogue.js";
import {
  type Collected,
  type CollectionOrder,
  type CollectionResult,
  collect,
} from "../../../src/backup/collection.js";
import { type Lease, readProtection, takeLease } from "../../../src/backup/lease.js";
import { validateChain } from "../../../src/backup/validate.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { FalseArchive } from "../../doubles/backup/false-archive.js";
import { SampleCluster, UNSIGNED, sampleId } from "../../doubles/backup/sample-backup.js";
import { ManualTimer } from "../../doubles/host/world.js";

/** A chain of two, and two chains of one. */
function filled(): ArchiveBench {
  const bench = new ArchiveBench();
  const cluster = new SampleCluster(bench);
  cluster.take(1);
  cluster.take(2, 1);
  cluster.take(3);
  cluster.take(4);
  return bench;
}

function order(change: Partial<CollectionOrder> = {}): CollectionOrder {
  return {
    rules: { maxChains: 1, maxAgeMs: 0, maxBytes: 0 },
    ...{ isDry: false, node: "a:1", tag: "0000000a", waitMs: 0, isCancelled: () => false },
    wallMs: () => 1_700_000_000_000,
    ...change,
  };
}

const timer = new ManualTimer();

function pass(bench: ArchiveBench, change: Partial<CollectionOrder> = {}): CollectionResult {
  const ports = { archive: bench.archive, timer, signatures: UNSIGNED };
  const result = bench.call<CollectionResult>((done) => collect(ports, order(change), done));
  if (result === undefined) throw new Error("no answer");
  return result;
}

function collected(result: CollectionResult): Collected {
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
  return result.value;
}

/** What has a manifest. */
function ids(bench: ArchiveBench): string[] {
  const read = bench.value<Catalogue>((done) => readCatalogue(bench.archive, UNSIGNED, done));
  return read.entries.filter(({ isIncomplete }) => !isIncomplete).map(({ id }) => id);
}

function lease(bench: ArchiveBench, backups: readonly string[], operation = "abc"): Lease {
  const terms = { operation, kind: "restore", node: "b:1", backups };
  return bench.value<Lease>((done) => takeLease({ archive: bench.archive, timer }, terms, done));
}

t.test("7.4 a dry run is the plan, and the run does what it says", (t) => {
  const bench = filled();
  bench.disk.put(`${sampleId(9)}.staging_1/checkpoint/p00000.image`, new Uint8Array(7));
  bench.disk.put(`${sampleId(8)}/log/p00000.log`, new Uint8Array(11));
  bench.disk.nowMs += ORPHAN_AGE_MS;
  const before = bench.disk.files();
  const dry = collected(pass(bench, { isDry: true }));
  t.strictSame(bench.disk.files(), before, "a dry run leaves everything as it is");
  const run = collected(pass(bench));
  t.equal(dry.applied, false);
  t.equal(run.applied, true);
  t.same({ ...run, applied: false }, dry);
  t.same(
    run.deletions.map(({ entry: { id } }) => id),
    [2, 1, 3].map(sampleId),
  );
  t.equal(run.orphans.length, 2);
  const after = [...bench.disk.files()].reduce((sum, [, bytes]) => sum + bytes.length, 0);
  const all = [...before].reduce((sum, [, bytes]) => sum + bytes.length, 0);
  t.equal(run.sizeBytes, all - after, "and says how much it freed");
  t.same(ids(bench), [sampleId(4)]);
  t.equal(collected(pass(bench)).sizeBytes, 0, "a second pass finds nothing");
  t.end();
});

t.test("P-141 leaves go before what they rest on, manifests before data", (t) => {
  const bench = filled();
  const { calls } = bench.disk;
  calls.length = 0;
  collected(pass(bench, { rules: { maxChains: 2, maxAgeMs: 0, maxBytes: 0 } }));
  const changes = calls
    .filter(({ call, path }) => (call === "rename" || call.startsWith("remove")) && path[0] !== ".")
    .map(({ call, path }) => `${call} ${path.slice(30)}`);
  t.same(changes, [
    "rename 02.manifest",
    "rename 01.manifest",
    "remove 02.manifest.quarantine_0000000a",
    "remove 01.manifest.quarantine_0000000a",
    "removeTree 02",
    "removeTree 01",
  ]);
  t.end();
});

t.test("P-141 after a crash or a fault at any moment what has a manifest is whole", (t) => {
  const steps = ((): number => {
    const bench = filled();
    bench.disk.calls.length = 0;
    collected(pass(bench));
    return bench.disk.calls.length;
  })();
  let crashes = 0;
  for (let step = 0; step < steps; step++) {
    const bench = filled();
    let left = step;
    bench.disk.fails = () => left-- === 0;
    const failed = pass(bench);
    bench.disk.fails = () => false;
    bench.disk.crash("", new Prng(step));
    for (const id of ids(bench)) {
      const said = bench.said((done) => validateChain(bench.archive, UNSIGNED, id, {}, done));
      if (said !== "ok") t.fail(`step ${step}: ${id}: ${said}`);
    }
    if (!ids(bench).includes(sampleId(4))) t.fail(`step ${step}: the newest chain is gone`);
    if (!failed.ok) crashes++;
    // A pass later, after an hour, nothing is left of what was begun.
    bench.disk.nowMs += 2 * ORPHAN_AGE_MS;
    collected(pass(bench));
    const names = [...bench.disk.files().keys()].filter((name) => !name.includes(sampleId(4)));
    t.same(names, [], `step ${step}`);
  }
  t.ok(crashes > 20, `${crashes} faults were told`);
  t.end();
});

t.test("P-141 a listing that fails reclaims nothing", (t) => {
  const bench = filled();
  const before = bench.disk.files();
  bench.disk.fails = (call, path) => call === "list" && path.startsWith(sampleId(4));
  t.match(pass(bench), { ok: false, code: "IoError" });
  bench.disk.fails = () => false;
  t.strictSame(bench.disk.files(), before);
  t.end();
});

t.test("P-141 whoever has a lease keeps its chain; a stale one keeps nothing", (t) => {
  const bench = filled();
  const held = lease(bench, [sampleId(1)]);
  collected(pass(bench));
  t.same(ids(bench), [1, 2, 4].map(sampleId));
  bench.call<undefined>((done) => held.release(() => done(undefined)));
  t.same(
    collected(pass(bench)).deletions.map(({ entry: { id } }) => id),
    [2, 1].map(sampleId),
  );
  const other = filled();
  lease(other, [sampleId(3)]);
  other.disk.put(".lease_unreadable", new Uint8Array([1, 2, 3]));
  t.same(collected(pass(other)).deletions, [], "one that nobody can read keeps everything");
  other.disk.nowMs += 60_000;
  t.equal(collected(pass(other)).deletions.length, 3, "until it is stale");
  t.end();
});

t.test("P-141 a lease that comes while manifests are put aside brings them back", (t) => {
  const bench = filled();
  const { disk } = bench;
  const reader = new FalseArchive(disk, "b");
  let taken = false;
  disk.fails = (call, path) => {
    if (call === "rename" && path === `${sampleId(2)}.manifest` && !taken) {
      taken = true;
      const terms = { operation: "late", kind: "restore", node: "b:1", backups: [sampleId(2)] };
      takeLease({ archive: reader, timer }, terms, () => undefined);
    }
    return false;
  };
  const run = collected(pass(bench));
  t.ok(taken);
  t.same(
    run.deletions.map(({ entry: { id } }) => id),
    [sampleId(3)],
  );
  t.same(ids(bench), [1, 2, 4].map(sampleId));
  t.equal(
    bench.said((done) => validateChain(bench.archive, UNSIGNED, sampleId(2), {}, done)),
    "ok",
  );
  t.end();
});

t.test("P-141 what is published while manifests are put aside keeps what it goes on from", (t) => {
  for (const call of ["rename", "list"]) {
    const bench = new ArchiveBench();
    const { disk } = bench;
    const cluster = new SampleCluster(bench);
    for (const [id, parent] of [[1], [2, 1], [3], [5, 1], [4]] as const) cluster.take(id, parent);
    const manifest = `${sampleId(5)}.manifest`;
    const bytes = disk.find(manifest)?.bytes ?? new Uint8Array();
    disk.drop(manifest);
    let isPublished = false;
    disk.fails = (made, path) => {
      const isMoment =
        call === "rename" ? path === `${sampleId(2)}.manifest` : path.startsWith(sampleId(4));
      if (made === call && isMoment && !isPublished) {
        isPublished = true;
        // Its keeper took a lease before, and has let it go by now.
        disk.put(manifest, bytes);
      }
      return false;
    };
    const run = collected(pass(bench));
    t.ok(isPublished);
    t.same(
      run.deletions.map(({ entry: { id } }) => id),
      [sampleId(3)],
      call,
    );
    for (const id of [1, 2, 4, 5].map(sampleId)) {
      t.equal(
        bench.said((done) => validateChain(bench.archive, UNSIGNED, id, {}, done)),
        "ok",
        id,
      );
    }
  }
  t.end();
});

t.test("P-141 what a pass that died had put aside gets its name back", (t) => {
  const bench = filled();
  const { disk } = bench;
  const aside = (id: number): string => `${sampleId(id)}.manifest.quarantine_0000000b`;
  const away = (id: number): void => {
    disk.put(aside(id), disk.find(`${sampleId(id)}.manifest`)?.bytes ?? new Uint8Array());
    disk.drop(`${sampleId(id)}.manifest`);
  };
  away(2);
  away(1);
  // Of this one the files are gone already, and of this one there is another manifest.
  disk.put(aside(7), new Uint8Array(3));
  disk.put(aside(4), new Uint8Array(3));
  const keep = { rules: { maxChains: 0, maxAgeMs: 0, maxBytes: 0 } };
  collected(pass(bench, { ...keep, isDry: true }));
  t.same(ids(bench), [3, 4].map(sampleId), "a dry run touches nothing");
  collected(pass(bench, keep));
  t.same(ids(bench), [1, 2, 3, 4].map(sampleId));
  for (const id of [1, 2, 3, 4].map(sampleId)) {
    t.equal(
      bench.said((done) => validateChain(bench.archive, UNSIGNED, id, {}, done)),
      "ok",
    );
  }
  t.end();
});

t.test("P-141 a pass whose manifests another one has brought back takes no files", (t) => {
  const bench = filled();
  const { disk } = bench;
  disk.fails = (call, path) => {
    if (call === "remove" && path === `${sampleId(1)}.manifest.quarantine_0000000a`) {
      disk.put(`${sampleId(1)}.manifest`, disk.find(path)?.bytes ?? new Uint8Array());
      disk.drop(path);
    }
    return false;
  };
  const run = collected(pass(bench));
  t.same(
    run.deletions.map(({ entry: { id } }) => id),
    [2, 3].map(sampleId),
    "what it had removed for good is gone with its files",
  );
  t.same(ids(bench), [1, 4].map(sampleId));
  t.equal(
    bench.said((done) => validateChain(bench.archive, UNSIGNED, sampleId(1), {}, done)),
    "ok",
  );
  t.end();
});

t.test("7.4 passes of two nodes are one after the other; a dead one is not waited for", (t) => {
  const bench = filled();
  lease(bench, [], "gc");
  t.match(pass(bench), { ok: false, code: "busy" });
  t.same(ids(bench).length, 4);
  bench.disk.nowMs += 60_000;
  const ports = { archive: bench.archive, timer, signatures: UNSIGNED };
  const results: CollectionResult[] = [];
  collect(ports, order({ waitMs: 5000 }), (result) => void results.push(result));
  for (let round = 0; round < 100 && results.length === 0; round++) {
    bench.call<undefined>((done) => done(undefined));
    timer.nowMs += 100;
    while (timer.step());
  }
  t.match(results, [{ ok: true, value: { deletions: { length: 3 } } }]);
  t.notOk([...bench.disk.files().keys()].some((name) => name.includes("lease")));
  t.end();
});

t.test("7.4 a full disk can be collected", (t) => {
  const bench = filled();
  bench.disk.freeBytes = 0;
  t.equal(collected(pass(bench)).deletions.length, 3);
  t.end();
});

t.test("leases are touched while they are held, and tell when they are lost", (t) => {
  const bench = filled();
  const held = lease(bench, [sampleId(1)]);
  const look = (): readonly string[] => {
    const leases = [{ name: held.name, modifiedMs: bench.disk.find(held.name)?.modifiedMs ?? 0 }];
    const value = bench.value<ReadonlySet<string>>((done) =>
      readProtection(bench.archive, leases, bench.disk.nowMs, ({ backups }) => done(ok(backups))),
    );
    return [...value];
  };
  const wait = (ms: number): void => {
    bench.disk.nowMs += ms;
    timer.nowMs += ms;
    while (timer.step());
    bench.call<undefined>((done) => done(undefined));
  };
  for (let round = 0; round < 20; round++) wait(10_000);
  t.same(look(), [sampleId(1)]);
  t.equal(held.fault, null);
  bench.disk.drop(held.name);
  wait(10_000);
  t.match(held.fault, { code: "missing" });
  t.end();
});
