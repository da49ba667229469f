/**
 * The archive port: conformance of the real and of the false one, crashes and full disks of the
 * false one, and what only the real one can do.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { RealArchive, signatures } from "../../../src/disk/archive.js";
import type { ArchivePort, ArchiveResult, ArchiveWriter } from "../../../src/ports.js";
import { archiveConformance } from "../../conformance/archive.js";
import {
  FalseArchive,
  FalseArchiveDisk,
  falseSignatures,
} from "../../doubles/backup/false-archive.js";

function waiting<T>(start: (done: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve) => start(resolve));
}

archiveConformance(t, "a real directory", () => {
  const top = fs.mkdtempSync(join(tmpdir(), "svc-archive-"));
  const root = join(top, "root");
  fs.mkdirSync(root, { mode: 0o700 });
  const aside = join(top, "aside");
  fs.mkdirSync(aside);
  fs.writeFileSync(join(aside, "f"), "not to be touched");
  return {
    archive: new RealArchive(root),
    call: waiting,
    link: (path, toDirectory) =>
      fs.symlinkSync(toDirectory ? aside : join(aside, "f"), join(root, path)),
    linkRoot() {
      fs.renameSync(root, `${root}.real`);
      fs.symlinkSync(`${root}.real`, root);
    },
    age(path, byMs) {
      const { mtimeMs } = fs.statSync(join(root, path));
      fs.utimesSync(join(root, path), new Date(mtimeMs - byMs), new Date(mtimeMs - byMs));
    },
    flip(path, offset) {
      const content = fs.readFileSync(join(root, path));
      content.writeUInt8(content.readUInt8(offset) ^ 1, offset);
      fs.writeFileSync(join(root, path), content);
    },
    finish() {
      t.same(fs.readdirSync(aside), ["f"], "nothing aside was touched");
      t.equal(fs.readFileSync(join(aside, "f"), "utf8"), "not to be touched");
      fs.rmSync(top, { recursive: true });
    },
  };
});

archiveConformance(t, "a false directory", () => {
  const disk = new FalseArchiveDisk((callback) => void setImmediate(callback));
  return {
    archive: new FalseArchive(disk),
    call: waiting,
    link: (path) => disk.putLink(path),
    linkRoot: () => Object.assign(disk.root, { kind: "link" }),
    age: (path, byMs) => disk.age(path, byMs),
    flip: (path, offset) => disk.flip(path, offset),
    finish: () => undefined,
  };
});

async function told<T>(start: (done: (result: ArchiveResult<T>) => void) => void): Promise<T> {
  const result = await waiting(start);
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
  return result.value;
}

function falseDisk(): FalseArchiveDisk {
  return new FalseArchiveDisk((callback) => void setImmediate(callback));
}

async function file(
  archive: ArchivePort,
  path: string,
  text: string,
  synced: boolean,
): Promise<void> {
  const writer = await told<ArchiveWriter>((done) => archive.create(path, done));
  await told((done) => writer.write(new TextEncoder().encode(text), done));
  if (synced) await told((done) => writer.finish(done));
}

void t.test("a crash keeps what was synced, and of the rest anything", async (t) => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 200; seed++) {
    const disk = falseDisk();
    const archive = new FalseArchive(disk);
    await file(archive, "kept", "whole", true);
    await told((done) => archive.syncDirectory("", done));
    await told((done) => archive.rename("kept", "moved", done));
    await file(archive, "open", "a half-written file", false);
    await file(archive, "unnamed", "synced without its name", true);
    archive.ended = true;
    disk.crash("a", new Prng(seed));
    const files = disk.files();
    const names = [...files.keys()];
    t.equal(Number(files.has("kept")) + Number(files.has("moved")), 1, "a rename is whole");
    const text = new TextDecoder().decode(files.get("kept") ?? files.get("moved"));
    t.equal(text, "whole");
    seen.add(names.join(" "));
    const open = files.get("open");
    if (open !== undefined) seen.add(`open ${open.length === 19 ? "whole" : "torn"}`);
    const unnamed = files.get("unnamed");
    if (unnamed !== undefined) t.equal(unnamed.length, 23, "what was synced is whole");
  }
  for (const sight of ["kept", "moved", "open torn", "kept open unnamed", "moved unnamed"]) {
    t.ok(seen.has(sight), sight);
  }
});

void t.test("a crash of one node leaves what the others did", async (t) => {
  for (let seed = 1; seed <= 50; seed++) {
    const disk = falseDisk();
    const a = new FalseArchive(disk, "a");
    const b = new FalseArchive(disk, "b");
    await file(a, "of-a", "1", false);
    await file(b, "of-b", "2", false);
    disk.crash("a", new Prng(seed));
    t.equal(new TextDecoder().decode(disk.files().get("of-b")), "2");
    await told((done) => b.syncDirectory("", done));
    disk.crash("b", new Prng(seed));
    t.ok(disk.files().has("of-b"), "the name is durable, the content need not be");
  }
});

void t.test("a full false disk takes what fits and says so", async (t) => {
  const disk = falseDisk();
  const archive = new FalseArchive(disk);
  disk.freeBytes = 10;
  const writer = await told<ArchiveWriter>((done) => archive.create("f", done));
  await told((done) => writer.write(new Uint8Array(8), done));
  const refused = await waiting<ArchiveResult<null>>((done) =>
    writer.write(new Uint8Array(8), done),
  );
  t.match(refused, { ok: false, code: "no-space" });
  const none = await waiting<ArchiveResult<ArchiveWriter>>((done) => archive.create("g", done));
  t.match(none, { ok: false, code: "no-space" });
  await waiting<undefined>((done) => writer.abandon(() => done(undefined)));
  t.equal(disk.freeBytes, 10);
});

void t.test("a fault that is asked for fails one call", async (t) => {
  const disk = falseDisk();
  const archive = new FalseArchive(disk);
  disk.fails = (call, path) => call === "makeDirectory" && path === "d";
  const failed = await waiting<ArchiveResult<null>>((done) => archive.makeDirectory("d", done));
  t.match(failed, { ok: false, code: "failed", message: 'cannot makeDirectory "d"' });
  await told((done) => archive.makeDirectory("e", done));
});

void t.test("P-129 a real archive has two calls with the system at a time, in order", async (t) => {
  const root = fs.mkdtempSync(join(tmpdir(), "svc-archive-"));
  const archive = new RealArchive(root);
  const ended: number[] = [];
  await new Promise<void>((resolve) => {
    for (let at = 0; at < 20; at++) {
      archive.makeDirectory(String(at), () => {
        ended.push(at);
        if (ended.length === 20) resolve();
      });
    }
  });
  // A call ends when the system is done with it, but begins in turn: of those before it one may be under way, no more.
  for (const [place, at] of ended.entries()) {
    const behind = ended.slice(place).filter((other) => other < at).length;
    t.ok(behind <= 1, `${at} began in turn`);
  }
  fs.rmSync(root, { recursive: true });
});

void t.test("P-139 messages of a real archive name the path below the root alone", async (t) => {
  const root = fs.mkdtempSync(join(tmpdir(), "svc-archive-"));
  const archive = new RealArchive(root);
  const result = await waiting<ArchiveResult<unknown>>((done) => archive.open("none", done));
  t.match(result, { ok: false, message: 'cannot open "none": ENOENT' });
  fs.rmSync(root, { recursive: true });
});

void t.test("signatures: known answers, and nothing without a key", (t) => {
  const data = new TextEncoder().encode("what do ya want for nothing?");
  for (const keyed of [signatures(new TextEncoder().encode("Jefe")), falseSignatures("Jefe")]) {
    // RFC 4231, test case 2.
    const mac = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    t.equal(keyed.sign(data), mac);
    t.ok(keyed.verify(data, mac));
    t.notOk(keyed.verify(data, mac.replace("5", "6")));
    t.notOk(keyed.verify(data, ""));
    t.notOk(keyed.verify(data, mac.toUpperCase()));
    t.equal(
      keyed.sha256(new Uint8Array(0)),
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
  }
  for (const without of [signatures(null), falseSignatures(null)]) {
    t.notOk(without.hasKey);
    t.equal(without.sign(data), "");
    t.notOk(without.verify(data, ""));
  }
  t.end();
});
