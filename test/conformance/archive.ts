/**
 * What every ArchivePort must do: one suite for the real one and the false one.
 *
 * Invariants: 1. Only the port and the harness are used.
 */
import type { Test } from "tap";
import { AssertionError } from "../../src/base/assert.js";
import type {
  ArchiveEntry,
  ArchivePort,
  ArchiveReader,
  ArchiveResult,
  ArchiveSum,
  ArchiveWriter,
} from "../../src/ports.js";

export interface ArchiveHarness {
  readonly archive: ArchivePort;
  /** Starts something and waits until it answers. */
  call<T>(start: (done: (value: T) => void) => void): Promise<T>;
  /** Makes a symbolic link at `path`, to a directory or file that is there. */
  link(path: string, toDirectory: boolean): void;
  /** Puts a link in the place of the root. */
  linkRoot(): void;
  /** Sets the time of the last change of a file back. */
  age(path: string, byMs: number): void;
  /** Turns a bit of a file over. */
  flip(path: string, offset: number): void;
  finish(): void;
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC_SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class Driver {
  constructor(readonly harness: ArchiveHarness) {}

  /** "ok", or the code of the failure. */
  async code(
    start: (archive: ArchivePort, done: (result: ArchiveResult<unknown>) => void) => void,
  ): Promise<string> {
    const { archive } = this.harness;
    const result = await this.harness.call<ArchiveResult<unknown>>((done) => start(archive, done));
    return result.ok ? "ok" : result.code;
  }

  async value<T>(
    start: (archive: ArchivePort, done: (result: ArchiveResult<T>) => void) => void,
  ): Promise<T> {
    const { archive } = this.harness;
    const result = await this.harness.call<ArchiveResult<T>>((done) => start(archive, done));
    if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
    return result.value;
  }

  async write(path: string, ...parts: readonly string[]): Promise<ArchiveSum> {
    const writer = await this.value<ArchiveWriter>((archive, done) => archive.create(path, done));
    for (const part of parts) await this.value((_, done) => writer.write(bytes(part), done));
    return this.value((_, done) => writer.finish(done));
  }

  async read(path: string, slice: number): Promise<{ text: string; sum: ArchiveSum }> {
    const reader = await this.value<ArchiveReader>((archive, done) => archive.open(path, done));
    let text = "";
    for (;;) {
      const part = await this.value<Uint8Array>((_, done) => reader.read(slice, done));
      if (part.length === 0) break;
      text += new TextDecoder().decode(part);
    }
    const sum = reader.sum();
    await this.harness.call<undefined>((done) => reader.close(() => done(undefined)));
    return { text, sum };
  }

  async names(path: string): Promise<string[]> {
    const found = await this.value<readonly ArchiveEntry[]>((archive, done) =>
      archive.list(path, done),
    );
    return found.map(({ name, kind }) => `${name} ${kind}`);
  }
}

type Case = (t: Test, driver: Driver) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "files are written in parts and read back, with length and digest": async (t, driver) => {
    t.same(await driver.write("a"), { sizeBytes: 0, sha256: EMPTY_SHA256 });
    t.same(await driver.write("b", "a", "b", "c"), { sizeBytes: 3, sha256: ABC_SHA256 });
    for (const slice of [1, 2, 3, 64]) {
      t.same(await driver.read("b", slice), {
        text: "abc",
        sum: { sizeBytes: 3, sha256: ABC_SHA256 },
      });
    }
    t.same((await driver.read("a", 10)).sum, { sizeBytes: 0, sha256: EMPTY_SHA256 });
  },
  "P-136 a bit that turned over shows in the digest of what is read": async (t, driver) => {
    const { sha256 } = await driver.write("b", "abc");
    driver.harness.flip("b", 1);
    const { sum } = await driver.read("b", 2);
    t.equal(sum.sizeBytes, 3);
    t.not(sum.sha256, sha256);
  },
  "P-139 what is made is private": async (t, driver) => {
    await driver.value((archive, done) => archive.makeDirectory("d", done));
    await driver.write("d/f", "x");
    const directory = await driver.value<ArchiveEntry>((archive, done) =>
      archive.examine("d", done),
    );
    t.match(directory, { name: "d", kind: "directory", sizeBytes: 0, mode: 0o700 });
    const file = await driver.value<ArchiveEntry>((archive, done) => archive.examine("d/f", done));
    t.match(file, { name: "f", kind: "file", sizeBytes: 1, mode: 0o600 });
    const root = await driver.value<ArchiveEntry>((archive, done) => archive.examine("", done));
    t.match(root, { name: "", kind: "directory" });
  },
  "nothing is made twice, and nothing is renamed over anything": async (t, driver) => {
    await driver.write("f", "1");
    await driver.value((archive, done) => archive.makeDirectory("d", done));
    await driver.value((archive, done) => archive.makeDirectory("e", done));
    for (const name of ["f", "d"]) {
      t.equal(await driver.code((archive, done) => archive.create(name, done)), "exists");
      t.equal(await driver.code((archive, done) => archive.makeDirectory(name, done)), "exists");
      t.equal(await driver.code((archive, done) => archive.rename("e", name, done)), "exists");
    }
    t.equal(await driver.code((archive, done) => archive.rename("e", "g", done)), "ok");
    t.same(await driver.names(""), ["d directory", "f file", "g directory"]);
    t.equal((await driver.read("f", 9)).text, "1");
  },
  "what is missing is missing": async (t, driver) => {
    const missing: ((archive: ArchivePort, done: (r: ArchiveResult<unknown>) => void) => void)[] = [
      (archive, done) => archive.examine("x", done),
      (archive, done) => archive.examine("x/y", done),
      (archive, done) => archive.list("x", done),
      (archive, done) => archive.open("x", done),
      (archive, done) => archive.create("x/y", done),
      (archive, done) => archive.makeDirectory("x/y", done),
      (archive, done) => archive.touch("x", done),
      (archive, done) => archive.rename("x", "y", done),
      (archive, done) => archive.remove("x", done),
      (archive, done) => archive.removeTree("x", done),
      (archive, done) => archive.syncDirectory("x", done),
    ];
    for (const call of missing) t.equal(await driver.code(call), "missing");
  },
  "P-139 a link is refused at every place, and goes without what it names": async (t, driver) => {
    await driver.value((archive, done) => archive.makeDirectory("d", done));
    await driver.write("d/f", "kept");
    driver.harness.link("toDirectory", true);
    driver.harness.link("toFile", false);
    driver.harness.link("d/inside", true);
    t.same(await driver.names(""), ["d directory", "toDirectory link", "toFile link"]);
    for (const path of ["toDirectory", "toFile", "d/inside"]) {
      t.equal(await driver.code((archive, done) => archive.list(path, done)), "link", path);
      t.equal(await driver.code((archive, done) => archive.open(path, done)), "link", path);
      t.equal(await driver.code((archive, done) => archive.touch(path, done)), "link", path);
      t.equal(await driver.code((archive, done) => archive.create(path, done)), "exists", path);
      t.equal(await driver.code((archive, done) => archive.syncDirectory(path, done)), "link");
      for (const call of ["examine", "open", "create", "makeDirectory", "remove"] as const) {
        const code = await driver.code((archive, done) => archive[call](`${path}/f`, done));
        t.equal(code, "link", `${call} behind ${path}`);
      }
      t.equal(
        await driver.code((archive, done) => archive.rename(`${path}/f`, `${path}/g`, done)),
        "link",
      );
      t.equal(await driver.code((archive, done) => archive.removeTree(`${path}/f`, done)), "link");
    }
    t.equal(await driver.code((archive, done) => archive.remove("toFile", done)), "ok");
    t.equal(await driver.code((archive, done) => archive.removeTree("toDirectory", done)), "ok");
    t.equal((await driver.read("d/f", 9)).text, "kept");
    t.equal(await driver.code((archive, done) => archive.removeTree("d", done)), "ok");
    t.same(await driver.names(""), []);
  },
  "P-139 a root that is a link is told as one and never used": async (t, driver) => {
    await driver.write("f", "x");
    driver.harness.linkRoot();
    const root = await driver.value<ArchiveEntry>((archive, done) => archive.examine("", done));
    t.equal(root.kind, "link");
    t.equal(await driver.code((archive, done) => archive.list("", done)), "link");
    t.equal(await driver.code((archive, done) => archive.open("f", done)), "link");
    t.equal(await driver.code((archive, done) => archive.create("g", done)), "link");
  },
  "a directory is no file and a file no directory": async (t, driver) => {
    await driver.value((archive, done) => archive.makeDirectory("d", done));
    await driver.write("f", "x");
    t.equal(await driver.code((archive, done) => archive.open("d", done)), "link");
    t.equal(await driver.code((archive, done) => archive.list("f", done)), "link");
    t.equal(await driver.code((archive, done) => archive.create("f/x", done)), "link");
    t.not(await driver.code((archive, done) => archive.remove("d", done)), "ok");
    t.same(await driver.names(""), ["d directory", "f file"]);
  },
  "a tree goes as a whole": async (t, driver) => {
    for (const path of ["d", "d/a", "d/a/b"]) {
      await driver.value((archive, done) => archive.makeDirectory(path, done));
      await driver.write(`${path}/f`, path);
    }
    t.equal(await driver.code((archive, done) => archive.removeTree("d", done)), "ok");
    t.same(await driver.names(""), []);
    t.equal(await driver.code((archive, done) => archive.removeTree("d", done)), "missing");
  },
  "an abandoned file leaves nothing": async (t, driver) => {
    const writer = await driver.value<ArchiveWriter>((archive, done) => archive.create("f", done));
    await driver.value((_, done) => writer.write(bytes("half"), done));
    await driver.harness.call<undefined>((done) => writer.abandon(() => done(undefined)));
    t.same(await driver.names(""), []);
    t.equal((await driver.write("f", "again")).sizeBytes, 5);
  },
  "a touch makes a file young and changes nothing in it": async (t, driver) => {
    await driver.write("f", "abc");
    await driver.write("g");
    const modifiedMs = async (path: string): Promise<number> => {
      const entry = await driver.value<ArchiveEntry>((archive, done) =>
        archive.examine(path, done),
      );
      return entry.modifiedMs;
    };
    const young = await modifiedMs("f");
    driver.harness.age("f", 3_600_000);
    driver.harness.age("g", 3_600_000);
    t.ok((await modifiedMs("f")) <= young - 3_500_000);
    for (const path of ["f", "g"]) {
      t.equal(await driver.code((archive, done) => archive.touch(path, done)), "ok");
      t.ok((await modifiedMs(path)) >= young - 1000, path);
    }
    t.equal((await driver.read("f", 9)).text, "abc");
  },
  "lists are in byte order, and say what a thing is": async (t, driver) => {
    for (const name of ["b", "a", "é", "Z", "\u{1f600}", "\uffee"]) await driver.write(name, name);
    const sorted = ["Z file", "a file", "b file", "é file", "\uffee file", "\u{1f600} file"];
    t.same(await driver.names(""), sorted);
  },
  "several files at once, many calls at once": async (t, driver) => {
    const writers: ArchiveWriter[] = [];
    for (let at = 0; at < 5; at++) {
      const path = String(at);
      writers.push(await driver.value((archive, done) => archive.create(path, done)));
    }
    const sums = await driver.harness.call<string[]>((done) => {
      const ended: string[] = [];
      for (const [at, writer] of writers.entries()) {
        writer.write(new Uint8Array(1000).fill(at), () => {
          writer.finish((result) => {
            ended.push(result.ok ? "ok" : result.code);
            if (ended.length === writers.length) done(ended);
          });
        });
      }
    });
    t.same(sums, ["ok", "ok", "ok", "ok", "ok"]);
    t.equal((await driver.names("")).length, 5);
  },
  "a call never answers in its own turn": async (t, driver) => {
    let returned = false;
    const inTurn = await driver.harness.call<boolean>((done) => {
      driver.harness.archive.list("", () => done(!returned));
      returned = true;
    });
    t.notOk(inTurn);
  },
  "P-139 a path that leads up, is absolute or rooted is a bug, and says so": async (t, driver) => {
    const { archive } = driver.harness;
    for (const path of ["..", "a/../b", "/etc", "a//b", "./a", "a/.", "a\0b"]) {
      t.throws(() => archive.open(path, () => undefined), AssertionError, path);
    }
    t.throws(() => archive.rename("a", "b/c", () => undefined), AssertionError);
    await Promise.resolve();
  },
};

/** Runs all cases, each on a directory of its own. */
export function archiveConformance(t: Test, name: string, make: () => ArchiveHarness): void {
  for (const [title, run] of Object.entries(cases)) {
    void t.test(`${name}: ${title}`, async (inner) => {
      const harness = make();
      await run(inner, new Driver(harness));
      harness.finish();
    });
  }
}
