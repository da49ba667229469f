/** Images and logs on a directory that fails, fills up, loses bits and is changed meanwhile. */
import t from "tap";
import { concatBytes, equalBytes } from "../../../src/base/bytes.js";
import {
  type ImageFile,
  type LogFile,
  createImage,
  createLog,
  readArtifact,
} from "../../../src/backup/artifact-files.js";
import { ImageDecoder } from "../../../src/backup/image-file.js";
import { LogDecoder, type LogSummary } from "../../../src/backup/log-file.js";
import { catalogueName, idOfUuid, imageName, logName, uuidOf } from "../../../src/backup/names.js";
import type { ArchiveReader, ArchiveResult, ArchiveSum } from "../../../src/ports.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { SampleGroup } from "../../doubles/backup/sample-group.js";

const ID = "0123456789abcdef0123456789abcdef";

function writeImage(bench: ArchiveBench, path: string, writes = 9): ArchiveSum {
  const group = new SampleGroup(2);
  group.write(writes);
  const { head, chunks } = group.image(ID);
  const file = bench.value<ImageFile>((done) => createImage(bench.archive, path, head, done));
  for (const chunk of chunks) bench.value((done) => file.chunks([chunk], done));
  return bench.value((done) => file.finish(done));
}

function writeLog(bench: ArchiveBench, path: string): { sum: ArchiveSum; group: SampleGroup } {
  const group = new SampleGroup(2);
  group.write(3);
  const before = group.place();
  group.write(6000);
  group.mark(ID);
  const head = { origin: group.origin(ID), before };
  const file = bench.value<LogFile>((done) => createLog(bench.archive, path, head, done));
  const entries = group.since(before.index);
  bench.value((done) => file.entries(entries.slice(0, 2100), done));
  bench.value((done) => file.entries(entries.slice(2100), done));
  return { group, sum: bench.value((done) => file.finish(group.trailer(), done)) };
}

t.test("artifacts are written and read back, with their sums", (t) => {
  const bench = new ArchiveBench();
  const sum = writeImage(bench, "i");
  t.equal(sum.sizeBytes, bench.disk.files().get("i")?.length);
  const image = bench.value((done) =>
    readArtifact(bench.archive, "i", sum, new ImageDecoder("i"), {}, done),
  );
  t.match(image, { head: { index: 9 }, record: { appliedIndex: 9 } });
  const written = writeLog(bench, "l");
  let slices = 0;
  const between = (next: () => void): void => {
    slices++;
    next();
  };
  const log = bench.value<LogSummary>((done) =>
    readArtifact(bench.archive, "l", written.sum, new LogDecoder("l"), { between }, done),
  );
  t.match(log.trailer, {
    count: 6001,
    end: { index: 6004, chain: written.group.machine.chainDigest },
  });
  t.ok(slices > 1, "in slices");
  let asked = 0;
  const isCancelled = (): boolean => ++asked > 1;
  const text = bench.said((done) =>
    readArtifact(bench.archive, "l", written.sum, new LogDecoder("l"), { isCancelled }, done),
  );
  t.equal(text, "Cancelled: The call was cancelled.");
  t.end();
});

t.test("P-136 a file that is missing, shorter, changed or a link is told", (t) => {
  const bench = new ArchiveBench();
  const sum = writeImage(bench, "i");
  const read = (expected = sum): string =>
    bench.said((done) =>
      readArtifact(bench.archive, "i", expected, new ImageDecoder("i"), {}, done),
    );
  t.equal(read(), "ok");
  t.match(read({ ...sum, sizeBytes: 5 }), /CorruptArtifact: "i" has \d+ bytes and should have 5/);
  t.match(read({ ...sum, sha256: "0".repeat(64) }), /CorruptArtifact: "i": its SHA-256/);
  const bytes = bench.disk.files().get("i") as Uint8Array;
  for (let at = 0; at < bytes.length; at += 97) {
    bench.disk.flip("i", at, 1 << (at % 8));
    t.match(read(), /^CorruptArtifact: "i" at byte/);
    bench.disk.put("i", bytes);
  }
  bench.disk.put("i", bytes.subarray(1));
  t.match(read(), /^CorruptArtifact: "i" has/);
  bench.disk.drop("i");
  t.match(read(), /^CorruptArtifact: no "i"/);
  bench.disk.putLink("i");
  t.match(read(), /^CorruptArtifact: "i" is no file/);
  bench.disk.put("i", bytes);
  bench.disk.fails = (call) => call === "read";
  t.equal(read(), 'IoError: cannot read "i"');
  t.end();
});

t.test("P-136 the bytes that are checked are the bytes that are used", (t) => {
  const bench = new ArchiveBench();
  const sum = writeImage(bench, "i");
  const mine = bench.disk.files().get("i") as Uint8Array;
  writeImage(bench, "j");
  // Another whole image of the same size: only its digest tells.
  const group = new SampleGroup(2);
  group.write(9);
  const other = bench.disk.files().get("j") as Uint8Array;
  t.ok(equalBytes(mine, other), "the same history makes the same bytes");
  let opened = 0;
  const archive = Object.create(bench.archive) as typeof bench.archive;
  archive.open = (path, done) => {
    bench.archive.open(path, (result: ArchiveResult<ArchiveReader>) => {
      opened++;
      // Whoever swaps the file does it right after it was looked at.
      bench.disk.drop("i");
      writeElse(bench);
      done(result);
    });
  };
  const used: Uint8Array[] = [];
  const decoder = new ImageDecoder("i", (chunk) => void used.push(chunk.slice()));
  bench.said((done) => readArtifact(archive, "i", sum, decoder, {}, done));
  const first: Uint8Array[] = [];
  new ImageDecoder("i", (chunk) => void first.push(chunk.slice())).push(mine);
  t.ok(equalBytes(concatBytes(...used), concatBytes(...first)), "of the copy that was hashed");
  t.equal(opened, 1);
  t.end();
});

/** A whole image of another state under the name. */
function writeElse(bench: ArchiveBench): void {
  const side = new ArchiveBench();
  writeImage(side, "i", 10);
  bench.disk.put("i", side.disk.files().get("i") as Uint8Array);
}

t.test("P-140 a full disk or a fault leaves no file, and says so", (t) => {
  const group = new SampleGroup(2);
  group.write(9);
  const { head, chunks } = group.image(ID);
  for (const free of [1, 40, 300, 900]) {
    const bench = new ArchiveBench();
    bench.disk.freeBytes = free;
    const file = bench.call<{ ok: boolean }>((done) =>
      createImage(bench.archive, "i", head, done),
    ) as { ok: true; value: ImageFile } | { ok: false; code: string };
    let text = file.ok ? "" : file.code;
    for (const chunk of file.ok ? chunks : []) {
      if (file.ok && text === "") {
        const said = bench.said((done) => file.value.chunks([chunk], done));
        text = said === "ok" ? "" : said;
      }
    }
    t.match(text, /^IoError/, `${free}`);
    t.same([...bench.disk.files().keys()], [], "nothing is left");
  }
  const bench = new ArchiveBench();
  writeImage(bench, "i");
  t.match(
    bench.said((done) => createImage(bench.archive, "i", head, done)),
    /^IoError: "i" exists/,
  );
  const place = group.place();
  const log = bench.value<LogFile>((done) =>
    createLog(bench.archive, "l", { origin: head.origin, before: place }, done),
  );
  bench.call<undefined>((done) => log.abandon(() => done(undefined)));
  t.same([...bench.disk.files().keys()], ["i"]);
  t.end();
});

t.test("names tell what a thing is, and only that name is its name", (t) => {
  t.equal(uuidOf(ID), "01234567-89ab-cdef-0123-456789abcdef");
  t.equal(idOfUuid("01234567-89AB-cdef-0123-456789abcdef"), ID);
  for (const bad of ["", ID, "01234567-89ab-cdef-0123-456789abcdeg", ` ${uuidOf(ID)}`]) {
    t.equal(idOfUuid(bad), null, bad);
  }
  t.equal(imageName(3), "checkpoint/p00003.image");
  t.equal(logName(123_456), "log/p123456.log");
  const kinds: Readonly<Record<string, object>> = {
    [ID]: { kind: "artifacts", id: ID },
    [`${ID}.manifest`]: { kind: "manifest", id: ID },
    [`${ID}.manifest.tmp_0011aabb`]: { kind: "leftover", id: ID },
    [`${ID}.staging_0011aabb`]: { kind: "leftover", id: ID },
    [`${ID}.manifest.quarantine_1`]: { kind: "leftover", id: ID },
    "x.merge_1": { kind: "leftover", id: null },
    ".lease_gc_0a": { kind: "lease", operation: "gc_0a" },
    "restore_12.claim": { kind: "claim", ordinal: 12 },
    "restore_012.claim": { kind: "foreign" },
    [`${ID}x`]: { kind: "foreign" },
    "lost+found": { kind: "foreign" },
  };
  for (const [name, kind] of Object.entries(kinds)) t.same(catalogueName(name), kind, name);
  t.end();
});
