/**
 * The real files where the system grants direct writes, and where it refuses them, at opening or
 * later. Run by log.test.ts.
 *
 * The calls of most tests only pretend: they leave O_DIRECT out, so that they hold on every file
 * system.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Result } from "../../../src/base/result.js";
import { type FileSystemCalls, RealFiles } from "../../../src/disk/files.js";
import type { FileErrorCode, OpenFile } from "../../../src/ports.js";

const SECTOR = 4096;
const { O_DIRECT } = fs.constants as { readonly O_DIRECT?: number };

interface Traffic {
  /** Descriptors that were opened for direct writes. */
  readonly direct: Set<number>;
  readonly open: Set<number>;
  /** "direct" or "cached", and the bytes asked for, by write. */
  readonly writes: string[];
}

/** Real calls without O_DIRECT, and what went through them; `refusals` has codes to refuse with. */
function pretending(
  traffic: Traffic,
  refusals: { readonly open?: string; readonly write?: string; readonly takes?: number } = {},
): FileSystemCalls {
  type Opened = (error: NodeJS.ErrnoException | null, number: number) => void;
  const refusal = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });
  const open = (path: string, flags: number, mode: number | Opened, last?: Opened): void => {
    const done = typeof mode === "function" ? mode : (last as Opened);
    const direct = O_DIRECT !== undefined && (flags & O_DIRECT) !== 0;
    if (direct && refusals.open !== undefined) {
      const { open: code } = refusals;
      return void setImmediate(() => done(refusal(code), -1));
    }
    const asked = typeof mode === "number" ? mode : 0o600;
    fs.open(path, direct ? flags & ~O_DIRECT : flags, asked, (error, number) => {
      if (!error) traffic.open.add(number);
      if (!error && direct) traffic.direct.add(number);
      done(error, number);
    });
  };
  const write = (
    number: number,
    data: Uint8Array,
    at: number,
    length: number,
    position: number,
    done: (error: NodeJS.ErrnoException | null, count: number) => void,
  ): void => {
    const direct = traffic.direct.has(number);
    traffic.writes.push(`${direct ? "direct" : "cached"} ${String(length)}`);
    if (direct && refusals.write !== undefined) {
      const { write: code } = refusals;
      return void setImmediate(() => done(refusal(code), 0));
    }
    const takes = direct ? (refusals.takes ?? length) : length;
    fs.write(number, data, at, Math.min(length, takes), position, done);
  };
  const close = (number: number, done: (error: NodeJS.ErrnoException | null) => void): void => {
    traffic.open.delete(number);
    traffic.direct.delete(number);
    fs.close(number, done);
  };
  return {
    ...fs,
    open: open as typeof fs.open,
    write: write as typeof fs.write,
    close: close as typeof fs.close,
  };
}

function call<T>(
  start: (done: (result: Result<T, FileErrorCode>) => void) => void,
): Promise<Result<T, FileErrorCode>> {
  return new Promise((resolve) => start(resolve));
}

/** Opens a file of 16 sectors for durable writes. */
async function opened(files: RealFiles, path: string): Promise<Result<OpenFile, FileErrorCode>> {
  if (!fs.existsSync(path)) fs.writeFileSync(path, new Uint8Array(16 * SECTOR));
  return call<OpenFile>((done) => files.open(path, "durable", done));
}

async function write(
  files: RealFiles,
  file: OpenFile,
  offset: number,
  bytes: Uint8Array,
): Promise<void> {
  const result = await call<null>((done) => files.write(file, offset, bytes, done));
  if (!result.ok) throw new Error(result.message);
}

/** Writes two sectors and a part of one, and checks what is there afterwards. */
async function exercise(t: Test, files: RealFiles, file: OpenFile): Promise<void> {
  const memory = new Uint8Array(new ArrayBuffer(4 * SECTOR)).map((_, at) => (at * 13) & 255);
  await write(files, file, SECTOR, memory.subarray(0, 2 * SECTOR));
  await write(files, file, 8 * SECTOR, memory.subarray(0, 100));
  await write(files, file, 9 * SECTOR + 8, memory.subarray(0, SECTOR));
  await write(files, file, 12 * SECTOR, memory.subarray(8, SECTOR + 8));
  const there = new Uint8Array(16 * SECTOR);
  const read = await call<number>((done) => files.read(file, 0, there, done));
  t.match(read, { ok: true, value: there.length });
  const wanted = new Uint8Array(16 * SECTOR);
  wanted.set(memory.subarray(0, 2 * SECTOR), SECTOR);
  wanted.set(memory.subarray(0, 100), 8 * SECTOR);
  wanted.set(memory.subarray(0, SECTOR), 9 * SECTOR + 8);
  wanted.set(memory.subarray(8, SECTOR + 8), 12 * SECTOR);
  t.ok(Buffer.from(there).equals(wanted), "reads see every write");
  t.ok(fs.readFileSync(file.path).equals(wanted), "and so does everybody else");
}

const CACHED = ["cached 100", "cached 4096", "cached 4096"];

void t.test("whole sectors are written directly where that is possible", async (t) => {
  const directory = fs.mkdtempSync(join(tmpdir(), "svc-direct-"));
  const traffic: Traffic = { direct: new Set(), open: new Set(), writes: [] };
  const none = { skip: O_DIRECT === undefined ? "no O_DIRECT on this platform" : false };
  const run = async (
    name: string,
    refusals: Parameters<typeof pretending>[1],
    wanted: readonly string[],
  ): Promise<void> => {
    await t.test(name, none, async (t) => {
      traffic.writes.length = 0;
      const files = new RealFiles(pretending(traffic, refusals));
      const file = await opened(files, join(directory, name));
      if (!file.ok) throw new Error(file.message);
      await exercise(t, files, file.value);
      t.same(traffic.writes, wanted);
      t.match(await call<null>((done) => files.close(file.value, done)), { ok: true });
      t.equal(traffic.open.size, 0, "no descriptor is left open");
    });
  };
  await run("granted", {}, ["direct 8192", ...CACHED]);
  await run("short", { takes: 1000 }, ["direct 8192", "cached 7192", ...CACHED]);
  await run("refused at opening", { open: "EINVAL" }, ["cached 8192", ...CACHED]);
  const late = ["direct 8192", "cached 8192", ...CACHED];
  await run("refused at the first write", { write: "EINVAL" }, late);
  fs.rmSync(directory, { recursive: true });
});

void t.test("other failures of the direct descriptor are failures", async (t) => {
  if (O_DIRECT === undefined) return;
  const directory = fs.mkdtempSync(join(tmpdir(), "svc-direct-"));
  const traffic: Traffic = { direct: new Set(), open: new Set(), writes: [] };
  const path = join(directory, "segment");
  const many = new RealFiles(pretending(traffic, { open: "EMFILE" }));
  t.match(await opened(many, path), { ok: false, code: "no-descriptors" });
  t.equal(traffic.open.size, 0, "no descriptor is left open");
  const faulty = new RealFiles(pretending(traffic, { write: "EIO" }));
  const file = await opened(faulty, path);
  if (!file.ok) throw new Error(file.message);
  const sector = new Uint8Array(new ArrayBuffer(SECTOR));
  const written = await call<null>((done) => faulty.write(file.value, 0, sector, done));
  t.match(written, { ok: false, code: "failed" });
  t.same(traffic.writes, ["direct 4096"], "P-110: a failed write is not tried another way");
  await call<null>((done) => faulty.close(file.value, done));
  fs.rmSync(directory, { recursive: true });
});

void t.test("the real system: granted or not, the bytes are the same", async (t) => {
  const directory = fs.mkdtempSync(join(tmpdir(), "svc-direct-"));
  const files = new RealFiles();
  const file = await opened(files, join(directory, "segment"));
  if (!file.ok) throw new Error(file.message);
  await exercise(t, files, file.value);
  await call<null>((done) => files.close(file.value, done));
  fs.rmSync(directory, { recursive: true });
});
