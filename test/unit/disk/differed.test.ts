/** The note that replicas of a data directory were found to differ (C14): it outlives the process that ends there. */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { DifferedFile } from "../../../src/disk/differed-file.js";
import type { LoggerPort } from "../../../src/ports.js";

const REVISION = "v1";

function directory(t: Test): string {
  const path = fs.mkdtempSync(join(tmpdir(), "svc-differed-"));
  t.teardown(() => fs.rmSync(path, { recursive: true, force: true }));
  fs.mkdirSync(join(path, REVISION));
  return path;
}

function read(path: string, storage: "lmdb" | "memory" = "lmdb"): [DifferedFile, string[]] {
  const lines: string[] = [];
  const logger: LoggerPort = { log: (level, event) => void lines.push(`${level}: ${event}`) };
  const place = { storage, storagePath: path, storageRevision: REVISION };
  return [DifferedFile.of(place, logger), lines];
}

t.test("C14: what differed is counted over starts, until the directory is another", (t) => {
  const path = directory(t);
  const [none, silent] = read(path);
  t.equal(none.count, 0);
  t.same(silent, []);
  none.add(partitionId(7), 4096);
  t.equal(none.count, 1);
  const [one, told] = read(path);
  t.equal(one.count, 1);
  t.match(told, [/^error: .*replace it/], "a start says so");
  one.add(partitionId(8), 8192);
  t.equal(read(path)[0].count, 2);
  t.same(fs.readdirSync(join(path, REVISION)), ["differed.json"], "one file, whatever differed");
  fs.rmSync(join(path, REVISION), { recursive: true });
  t.equal(read(path)[0].count, 0);
  t.end();
});

t.test("a note that cannot be read counts as one and keeps nobody from starting", (t) => {
  const path = directory(t);
  const file = join(path, REVISION, "differed.json");
  const texts = ["", "{", "null", '{"kind":"svc-differed","count":-1}', '{"kind":"x","count":3}'];
  for (const text of [...texts, " ".repeat(100_000)]) {
    fs.writeFileSync(file, text);
    t.equal(read(path)[0].count, 1, text.slice(0, 40));
  }
  fs.rmSync(file);
  fs.mkdirSync(file);
  t.equal(read(path)[0].count, 1, "a directory");
  t.end();
});

t.test("what cannot be noted is logged and counted: the process ends all the same", (t) => {
  const path = directory(t);
  fs.mkdirSync(join(path, REVISION, "differed.json"));
  const [note, lines] = read(path);
  note.add(partitionId(1), 1);
  t.equal(note.count, 2);
  t.match(lines.at(-1), /^error: .*could not be noted/);
  const [inMemory, silent] = read(path, "memory");
  inMemory.add(partitionId(1), 1);
  t.equal(inMemory.count, 1);
  t.same(silent, [], "there is no directory");
  t.end();
});
