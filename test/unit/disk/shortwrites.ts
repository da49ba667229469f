/**
 * The real files over system calls that take fewer bytes than asked. Run by directory.test.ts.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Result } from "../../../src/base/result.js";
import { BudgetedFiles } from "../../../src/disk/budget.js";
import { type FileSystemCalls, RealFiles } from "../../../src/disk/files.js";
import type { FileErrorCode, FilesPort, OpenFile } from "../../../src/ports.js";
import { bytes } from "../../conformance/store.js";

/** Real calls, but each write takes only as many bytes as `quota` says; null fails it. */
function shortCalls(quota: () => number | null): FileSystemCalls {
  const write = (
    descriptor: number,
    data: Uint8Array,
    at: number,
    length: number,
    position: number,
    done: (error: NodeJS.ErrnoException | null, count: number) => void,
  ): void => {
    const allowed = quota();
    if (allowed === null) {
      const error: NodeJS.ErrnoException = new Error("no space left");
      error.code = "ENOSPC";
      setImmediate(() => done(error, 0));
      return;
    }
    fs.write(descriptor, data, at, Math.min(length, allowed), position, done);
  };
  return { ...fs, write: write as typeof fs.write };
}

void t.test("P-121 short writes are finished, at their positions; a stuck one fails", async (t) => {
  const directory = fs.mkdtempSync(join(tmpdir(), "svc-files-"));
  const content = Uint8Array.from({ length: 20_000 }, (_, at) => (at * 7) & 255);
  let turn = 0;
  const sizes = [1, 8192, 3, 5000];
  const files = new RealFiles(shortCalls(() => sizes[turn++] ?? 977));
  const path = join(directory, "short");
  const call = <T>(
    start: (done: (result: Result<T, FileErrorCode>) => void) => void,
  ): Promise<Result<T, FileErrorCode>> => new Promise((resolve) => start(resolve));
  t.ok((await call<null>((done) => files.allocate(path, 65_536, bytes("head"), done))).ok);
  const opened = await call<OpenFile>((done) => files.open(path, "durable", done));
  if (!opened.ok) throw new Error(opened.message);
  turn = 0;
  t.ok((await call<null>((done) => files.write(opened.value, 10_000, content, done))).ok);
  t.ok(turn > 5, "it took several calls");
  const whole = fs.readFileSync(path);
  t.equal(whole.length, 65_536);
  t.equal(whole.toString("latin1", 0, 5), "head\0");
  t.same(new Uint8Array(whole.subarray(10_000, 30_000)), content);
  const target = new Uint8Array(70_000);
  const read = await call<number>((done) => files.read(opened.value, 10_000, target, done));
  t.match(read, { ok: true, value: 55_536 }, "what there is");
  const stuck = new RealFiles(shortCalls(() => 0));
  const again = await call<OpenFile>((done) => stuck.open(path, "durable", done));
  if (!again.ok) throw new Error(again.message);
  const failed = await call<null>((done) => stuck.write(again.value, 0, content, done));
  t.match(failed, { ok: false, code: "failed", message: /took no byte/ });
  let left = 3;
  const fulls = new RealFiles(shortCalls(() => (left-- > 0 ? 100_000 : null)));
  const draft = join(directory, "draft");
  const refused = await call<null>((done) => fulls.allocate(draft, 2 ** 20, bytes("h"), done));
  t.match(refused, { ok: false, code: "no-space", message: draft });
  t.notOk(fs.existsSync(draft), "no half file is left");
  t.match(await call((done) => files.open(draft, "read", done)), { ok: false, code: "missing" });
  const twice = await call<null>((done) => files.allocate(path, 10, bytes(""), done));
  t.match(twice, { ok: false, code: "exists" });
  t.equal(fs.statSync(path).size, 65_536, "an existing file is left alone");
  await call<null>((done) => files.close(opened.value, done));
  await call<null>((done) => stuck.close(again.value, done));
  fs.rmSync(directory, { recursive: true });
});

void t.test("P-129 file calls that hang leave the log's writes their thread", (t) => {
  const hanging: { readonly name: string; readonly end: () => void }[] = [];
  const call = (name: string, done: (result: Result<never, FileErrorCode>) => void): void => {
    hanging.push({ name, end: () => done({ ok: false, code: "failed", message: name }) });
  };
  const system: FilesPort = {
    open: (_path, _access, done) => call("open", done),
    allocate: (_path, _size, _head, done) => call("allocate", done),
    read: (_file, offset, _target, done) => call(`read ${offset}`, done),
    write: (_file, _offset, _bytes, done) => call("write", done),
    sync: (_file, done) => call("sync", done),
    truncate: (_file, _size, done) => call("truncate", done),
    close: (_file, done) => call("close", done),
    rename: (_from, _to, done) => call("rename", done),
    remove: (_path, done) => call("remove", done),
    list: (_path, done) => call("list", done),
    syncDirectory: (_path, done) => call("syncDirectory", done),
  };
  const files = new BudgetedFiles(system);
  const file = { path: "f" };
  const none = new Uint8Array(0);
  const ended: string[] = [];
  const note = (result: Result<unknown, FileErrorCode>): void => {
    if (!result.ok) ended.push(result.message);
  };
  for (let at = 0; at < 20; at++) files.read(file, at, none, note);
  files.allocate("a", 1, none, note);
  files.open("a", "read", note);
  files.sync(file, note);
  files.truncate(file, 0, note);
  files.rename("a", "b", note);
  files.list("a", note);
  files.syncDirectory("a", note);
  files.remove("a", note);
  files.close(file, note);
  const names = (): string[] => hanging.map(({ name }) => name);
  t.same(names(), ["read 0", "allocate"], "one read, and one call of another kind");
  files.write(file, 0, none, note);
  t.same(names(), ["read 0", "allocate", "write"], "a log write never waits for them");
  let most = 0;
  while (hanging.length > 0) {
    most = Math.max(most, hanging.length);
    hanging.shift()?.end();
  }
  t.equal(most, 3, "three threads; the fourth belongs to the flush of the state store");
  t.equal(ended.length, 30, "each ends once");
  const reads = ended.filter((name) => name.startsWith("read"));
  t.same(
    reads,
    [...reads.keys()].map((at) => `read ${at}`),
    "in their order",
  );
  const others = ended.filter((name) => name !== "write" && !name.startsWith("read"));
  const order = "allocate open sync truncate rename list syncDirectory remove close";
  t.equal(others.join(" "), order);
  t.end();
});
