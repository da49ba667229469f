/**
 * The real files over system calls that take fewer bytes than asked. Run by directory.test.ts.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Result } from "../../src/base/result.js";
import { type FileSystemCalls, RealFiles } from "../../src/disk/files.js";
import type { FileErrorCode, OpenFile } from "../../src/ports.js";
import { bytes } from "../conformance/store.js";

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
