/**
 * The catalogue: how backups come into it, how they are listed, which of them make a chain, and
 * what a verification finds.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import type { ReadOptions } from "../../../src/backup/artifact-files.js";
import {
  type Catalogue,
  type CatalogueEntry,
  checkRoot,
  readCatalogue,
  readChain,
} from "../../../src/backup/catalogue.js";
import { coverageOf, restrictedCoverage } from "../../../src/backup/chain.js";
import { type Manifest, encodeManifest } from "../../../src/backup/manifest.js";
import { type VerifiedChain, validateChain } from "../../../src/backup/validate.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { falseSignatures } from "../../doubles/backup/false-archive.js";
import { SampleCluster, UNSIGNED, sampleId } from "../../doubles/backup/sample-backup.js";

/** A Full and two increments, ids 1 to 3. */
function chained(partitions?: readonly number[]): { bench: ArchiveBench; cluster: SampleCluster } {
  const bench = new ArchiveBench();
  const cluster = new SampleCluster(bench, partitions);
  cluster.take(1);
  cluster.write(2);
  cluster.take(2, 1);
  cluster.take(3, 2);
  return { bench, cluster };
}

function validate(bench: ArchiveBench, leaf = 3, options: ReadOptions = {}): string {
  return bench.said((done) =>
    validateChain(bench.archive, UNSIGNED, sampleId(leaf), options, done),
  );
}

function list(bench: ArchiveBench, signatures = UNSIGNED): Catalogue {
  return bench.value<Catalogue>((done) => readCatalogue(bench.archive, signatures, done));
}

/** Writes a manifest over the one that is there. */
function rewrite(bench: ArchiveBench, manifest: Manifest): void {
  bench.disk.put(`${manifest.backupId}.manifest`, encodeManifest(manifest, UNSIGNED));
}

t.test("a chain is published, listed, walked and verified", (t) => {
  const { bench, cluster } = chained();
  t.equal(validate(bench), "ok");
  const verified = bench.value<VerifiedChain>((done) =>
    validateChain(bench.archive, UNSIGNED, sampleId(3), {}, done),
  );
  t.same(
    verified.chain.map(({ backupId }) => backupId),
    [1, 2, 3].map(sampleId),
  );
  for (const group of cluster.groups) {
    const { image, logs } = verified.partitions.get(group.partition) ?? { logs: [] };
    t.equal(image?.head.index, 3);
    t.equal(logs.length, 3);
    t.equal(logs.at(-1)?.trailer.end.chain, group.machine.chainDigest);
  }
  const { entries, rest } = list(bench);
  t.same(rest, []);
  t.same(
    entries.map(({ id, fault, isIncomplete }) => [id, fault, isIncomplete]),
    [1, 2, 3].map((at) => [sampleId(at), null, false]),
  );
  const [root, leaf] = [verified.chain[0] as Manifest, verified.chain[2] as Manifest];
  t.same(entries[0]?.coverage, coverageOf(root, leaf));
  t.ok((entries[0]?.coverage?.minMs ?? 0) < (entries[0]?.coverage?.maxMs ?? 0));
  t.same([entries[1]?.coverage, entries[2]?.coverage], [null, null], "only roots carry it");
  const files = [...bench.disk.files()];
  const sizeBytes = files.reduce((sum, [, bytes]) => sum + bytes.length, 0);
  t.equal(
    entries.map((entry) => entry.sizeBytes).reduce((a, b) => a + b),
    sizeBytes,
  );
  t.equal(validate(bench, 2), "ok");
  t.match(validate(bench, 9), /^CorruptChain: There is no backup 0000/);
  let asked = 0;
  t.match(validate(bench, 3, { isCancelled: () => ++asked > 4 }), /^Cancelled/);
  t.equal(restrictedCoverage(root), null);
  t.match(restrictedCoverage({ ...root, clusterPartitions: [0, 1, 2] }), {
    code: "RestrictedCoverage",
    message: /lacks partition 2/,
  });
  t.end();
});

t.test("a coordinated backup ends at its instant", (t) => {
  const bench = new ArchiveBench();
  const cluster = new SampleCluster(bench);
  const cut = { n: 5, l: 1_700_000_050_000, c: 0xffff_ffff };
  const { staged, manifest } = cluster.stage(1, null, cut);
  bench.value((done) => staged.publish(manifest, UNSIGNED, done));
  t.equal(validate(bench, 1), "ok");
  t.equal(list(bench).entries[0]?.coverage?.maxMs, cut.l);
  t.end();
});

t.test("7.3 the rules of chains, one by one", (t) => {
  type Ranges = Manifest["partitionRanges"];
  const each = (m: Manifest, change: (range: Ranges[number]) => object): Partial<Manifest> => ({
    partitionRanges: m.partitionRanges.map((range) => ({ ...range, ...change(range) })),
  });
  const cases: readonly (readonly [string, RegExp, (m: Manifest) => Partial<Manifest>])[] = [
    ["clusterId", /differs from its parent in clusterId/, () => ({ clusterId: "other" })],
    ["storage", /differs from its parent in storageType/, () => ({ storageType: "memory" })],
    ["revision", /in storageRevision/, () => ({ storageRevision: "v2" })],
    ["topology", /in topologyGeneration/, () => ({ topologyGeneration: 9 })],
    [
      "gap",
      /does not continue partition 0/,
      (m) => each(m, (r) => ({ fromIndex: r.fromIndex + 1 })),
    ],
    ["overlap", /does not continue/, (m) => each(m, (r) => ({ fromIndex: r.fromIndex - 1 }))],
    ["stamp", /does not continue/, (m) => each(m, () => ({ fromStamp: { n: 0, l: 1, c: 0 } }))],
    ["term", /does not continue/, (m) => each(m, () => ({ toTerm: 1 }))],
    ["circle", /is its own ancestor/, () => ({ parentBackupId: sampleId(3) })],
    ["itself", /is its own ancestor/, () => ({ parentBackupId: sampleId(2) })],
    ["orphan", /has a parent that is not there/, () => ({ parentBackupId: sampleId(77) })],
  ];
  const walk = (bench: ArchiveBench): string =>
    bench.said((done) => readChain(bench.archive, UNSIGNED, sampleId(3), done));
  const middle = (cluster: SampleCluster, bench: ArchiveBench): Manifest =>
    list(bench).entries.find(({ id }) => id === sampleId(2))?.manifest ?? cluster.take(99);
  for (const [name, pattern, change] of cases) {
    const { bench, cluster } = chained();
    t.equal(walk(bench), "ok");
    const manifest = middle(cluster, bench);
    rewrite(bench, { ...manifest, ...change(manifest) });
    t.match(walk(bench), pattern, name);
    t.match(walk(bench), /^CorruptChain/, name);
    t.match(validate(bench), /^CorruptChain/, name);
  }
  const { bench, cluster } = chained();
  const manifest = middle(cluster, bench);
  const root = list(bench).entries[0]?.manifest?.files ?? [];
  bench.disk.drop(`${sampleId(2)}.manifest`);
  t.match(walk(bench), /CorruptChain: .* has a parent that is not there/);
  const files = new Map([...root, ...manifest.files]);
  rewrite(bench, { ...manifest, type: "Full", parentBackupId: null, files });
  t.equal(walk(bench), "ok", "a Full in the middle begins the chain");
  t.match(validate(bench), /^CorruptArtifact: .* is missing/, "its images are looked for");
  t.end();
});

t.test("P-136 fuzz: whatever changes in any file of a chain is found", (t) => {
  const { bench } = chained([0, 1]);
  const prng = new Prng(5);
  const files = [...bench.disk.files()];
  t.equal(files.length, 3 + 4 + 2 + 2);
  const missed: string[] = [];
  const informs = /"(?:CreatedAtUtc|CoordinatorNode|CoordinatorTerm)":"?[^",]*$/;
  for (const [path, bytes] of files) {
    for (let round = 0; round < 25; round++) {
      const at = prng.below(bytes.length);
      const mask = 1 + prng.below(255);
      bench.disk.flip(path, at, mask);
      const said = validate(bench);
      // Without a signature, what a manifest says of its making can be anything.
      const before = String.fromCharCode(...bytes.subarray(Math.max(0, at - 60), at));
      const isTold = /^(?:Corrupt|UnsupportedFormat)/.test(said);
      if (!isTold && !informs.test(before)) missed.push(`${path} ${at} ^ ${mask}: ${said}`);
      bench.disk.put(path, bytes);
    }
    bench.disk.put(path, bytes.subarray(0, bytes.length - 1));
    if (validate(bench) === "ok") missed.push(`${path} is shorter`);
    bench.disk.drop(path);
    if (!/^Corrupt/.test(validate(bench))) missed.push(`${path} is missing`);
    bench.disk.put(path, bytes);
    bench.disk.drop(path);
    bench.disk.putLink(path);
    if (!/^Corrupt/.test(validate(bench))) missed.push(`${path} is a link`);
    bench.disk.put(path, bytes);
  }
  t.same(missed, []);
  t.equal(validate(bench), "ok");
  t.end();
});

t.test("P-136 files that are swapped, foreign or too many are found", (t) => {
  const { bench } = chained();
  const id = sampleId(2);
  const files = bench.disk.files();
  const swap = (a: string, b: string): void => {
    bench.disk.put(a, files.get(b) as Uint8Array);
    bench.disk.put(b, files.get(a) as Uint8Array);
  };
  const back = (): void => files.forEach((bytes, path) => bench.disk.put(path, bytes));
  swap(`${id}/log/p00000.log`, `${id}/log/p00001.log`);
  t.match(validate(bench), /^CorruptArtifact/);
  back();
  swap(`${id}.manifest`, `${sampleId(1)}.manifest`);
  t.match(validate(bench), /^CorruptArtifact: .* is the manifest of another backup/);
  back();
  for (const path of [
    `${id}/x`,
    `${id}/log/p00002.log`,
    `${id}/log/deep/er/x`,
    `${id}/log/.hidden`,
  ]) {
    bench.disk.put(path, new Uint8Array(3));
    t.match(validate(bench), /^CorruptArtifact: .*does not belong to the backup/, path);
    bench.disk.drop(path);
    bench.disk.drop(path.includes("deep") ? `${id}/log/deep` : path);
  }
  t.equal(validate(bench), "ok");
  const other = new ArchiveBench();
  const foreign = new SampleCluster(other);
  foreign.write(1);
  foreign.take(1);
  foreign.take(2, 1);
  for (const [path, bytes] of other.disk.files()) {
    if (path.startsWith(id)) bench.disk.put(path, bytes);
  }
  t.match(validate(bench), /^CorruptChain/, "an increment of another history");
  t.end();
});

t.test("the listing tells what is invalid or incomplete, and why", (t) => {
  const { bench, cluster } = chained();
  const KEYED = falseSignatures("key");
  const of = (number: number, signatures = UNSIGNED): CatalogueEntry | undefined =>
    list(bench, signatures).entries.find(({ id }) => id === sampleId(number));
  t.match(of(1, KEYED)?.fault, { code: "CorruptArtifact", message: /it is not signed/ });
  bench.disk.put(`${sampleId(3)}/log/p00001.log`, new Uint8Array(5));
  t.match(of(3)?.fault, { message: /p00001.log" has 5 bytes and should have/ });
  const [first, second] = [of(1)?.manifest, of(2)?.manifest];
  if (!first || !second) return t.fail("two are whole");
  t.equal(of(1)?.coverage?.maxMs, coverageOf(first, second).maxMs);
  bench.disk.put(`${sampleId(2)}.manifest`, new Uint8Array(9));
  t.match(of(2), { manifest: null, told: null, isIncomplete: false, fault: { message: /JSON/ } });
  t.same(of(3)?.told, { parent: sampleId(2) });
  bench.disk.drop(sampleId(1));
  t.match(of(1)?.fault, { code: "CorruptArtifact", message: /is missing/ });
  t.equal(of(1)?.coverage, null);
  cluster.stage(8, null);
  t.match(of(8), { isIncomplete: true, fault: { message: /never published/ }, manifest: null });
  bench.disk.put(`${sampleId(9)}/log/p00000.log`, new Uint8Array(5));
  t.match(of(9), { isIncomplete: true, sizeBytes: 5 });
  bench.disk.put("restore_4.claim", new Uint8Array(4));
  bench.disk.put("lost+found/x", new Uint8Array(2));
  t.match(
    list(bench).rest.map(({ name, is: { kind }, isDirectory, sizeBytes }) => [
      ...[name, kind, isDirectory, sizeBytes > 0],
    ]),
    [
      [`${sampleId(8)}.staging_00000008`, "leftover", true, true],
      ["lost+found", "foreign", true, true],
      ["restore_4.claim", "claim", false, true],
    ],
  );
  bench.disk.fails = (call, path) => call === "list" && path.startsWith(sampleId(3));
  const text = bench.said((done) => readCatalogue(bench.archive, UNSIGNED, done));
  t.match(text, /^IoError: cannot list/, "P-141 what cannot be listed is not left out");
  t.end();
});

t.test("P-141 what goes while the catalogue is read is gone, and no fault of the reader", (t) => {
  const [staging, first] = [`${sampleId(8)}.staging_00000008`, sampleId(1)];
  for (const path of [staging, `${staging}/checkpoint`, first, `${first}/log`]) {
    const { bench, cluster } = chained();
    cluster.stage(8, null);
    bench.disk.fails = (call, asked) => {
      if (call === "list" && asked === path) bench.disk.drop(path);
      return false;
    };
    const { entries } = list(bench);
    t.equal(bench.disk.find(path), undefined, `${path} went meanwhile`);
    const told = new Map(entries.map(({ id, fault }) => [id, fault?.code ?? "whole"]));
    const isFirst = path.startsWith(first);
    t.same(
      [2, 3].map((at) => told.get(sampleId(at))),
      ["whole", "whole"],
    );
    t.equal(told.get(first), isFirst ? "CorruptArtifact" : "whole");
    t.match(
      entries.find(({ id }) => id === sampleId(8)),
      { isIncomplete: true },
    );
  }
  t.end();
});

t.test("a root that is a link, missing or open to others is refused", (t) => {
  const { bench } = chained();
  const said = (): string => bench.said((done) => checkRoot(bench.archive, done));
  t.equal(said(), "ok");
  for (const mode of [0o720, 0o702, 0o777]) {
    bench.disk.chmod("", mode);
    t.match(said(), /^InsecureRoot/);
    t.match(validate(bench), /^InsecureRoot/);
    t.match(
      bench.said((done) => readCatalogue(bench.archive, UNSIGNED, done)),
      /^InsecureRoot/,
    );
  }
  bench.disk.chmod("", 0o755);
  t.equal(said(), "ok");
  Object.assign(bench.disk.root, { kind: "link" });
  t.match(said(), /^InsecureRoot/);
  t.end();
});

/** Publishes a backup whose node ends after some calls and loses its power; what is left is told. */
function crashed(calls: number, seed: number): { bench: ArchiveBench; isPublished: boolean } {
  const bench = new ArchiveBench();
  const cluster = new SampleCluster(bench, [0, 1]);
  const { staged, manifest } = cluster.stage(1, null);
  let left = calls;
  bench.disk.fails = () => {
    if (left-- === 0) bench.archive.ended = true;
    return false;
  };
  const answer = bench.call<{ readonly ok: boolean }>((done) =>
    staged.publish(manifest, UNSIGNED, done),
  );
  bench.archive.ended = true;
  bench.disk.crash("a", new Prng(seed));
  bench.archive.ended = false;
  bench.disk.fails = () => false;
  return { bench, isPublished: answer?.ok === true };
}

t.test("P-140 after a crash at any moment whatever has a manifest is whole", (t) => {
  const sights = new Set<string>();
  for (let calls = 0; calls < 16; calls++) {
    for (let seed = 1; seed <= 12; seed++) {
      const { bench, isPublished } = crashed(calls, seed);
      const has = bench.disk.files().has(`${sampleId(1)}.manifest`);
      if (isPublished && !has) t.fail("a published backup is gone");
      if (has && validate(bench, 1) !== "ok") t.fail(`${calls} ${seed}: ${validate(bench, 1)}`);
      sights.add(`${isPublished ? "answered" : "cut"} ${has ? "there" : "not there"}`);
    }
  }
  for (const sight of ["answered there", "cut there", "cut not there"]) t.ok(sights.has(sight));
  t.end();
});

t.test("P-140 a fault at any step publishes nothing and leaves nothing", (t) => {
  for (let failing = 0; failing < 12; failing++) {
    const bench = new ArchiveBench();
    const { staged, manifest } = new SampleCluster(bench).stage(1, null);
    let at = 0;
    bench.disk.fails = () => at++ === failing;
    const said = bench.said((done) => staged.publish(manifest, UNSIGNED, done));
    bench.disk.fails = () => false;
    t.ok(at > failing ? said.startsWith("IoError") : said === "ok", `${failing}: ${said}`);
    if (said === "ok") t.equal(validate(bench, 1), "ok");
    else t.same([...bench.disk.files().keys()], [], `${failing}`);
  }
  const bench = new ArchiveBench();
  const { staged } = new SampleCluster(bench).stage(1, null);
  bench.call<undefined>((done) => staged.discard(() => done(undefined)));
  t.same([...bench.disk.root.names.keys()], []);
  t.end();
});

t.test(
  "P-140 faults that last leave no manifest without its files, a crash behind them neither",
  (t) => {
    const sights = new Set<string>();
    for (let failing = 0; failing < 16; failing++) {
      for (let lasting = 2; lasting < 8; lasting++) {
        for (let seed = 0; seed <= 4; seed++) {
          const bench = new ArchiveBench();
          const { staged, manifest } = new SampleCluster(bench).stage(1, null);
          let at = 0;
          bench.disk.fails = () => {
            const call = at++;
            return call >= failing && call < failing + lasting;
          };
          const said = bench.said((done) => staged.publish(manifest, UNSIGNED, done));
          bench.disk.fails = () => false;
          if (seed > 0) bench.disk.crash("a", new Prng(seed));
          const has = bench.disk.files().has(`${sampleId(1)}.manifest`);
          const what = `${lasting} faults from call ${failing}, seed ${seed}`;
          if (has && validate(bench, 1) !== "ok") t.fail(`${what}: ${validate(bench, 1)}`);
          sights.add(`${said === "ok" ? "done" : "failed"} ${has ? "there" : "not there"}`);
        }
      }
    }
    for (const sight of ["failed there", "failed not there", "done there"]) {
      t.ok(sights.has(sight), sight);
    }
    t.end();
  },
);
