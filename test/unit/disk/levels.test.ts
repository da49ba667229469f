/**
 * The level of a data directory: what a program does not support it does not touch (contract 5.5 U4),
 * file by file; and how the level is raised.
 */
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { PROGRAM, type Program, rangeText } from "../../../src/base/levels.js";
import { failure } from "../../../src/base/result.js";
import { RealFiles } from "../../../src/disk/files.js";
import { LevelFile } from "../../../src/disk/level-file.js";
import { SECTOR_BYTES } from "../../../src/disk/log/records.js";
import { type Disk, type DiskCode, openDisk } from "../../../src/disk/open.js";
import { partitionId } from "../../../src/base/ids.js";
import type { FilesPort } from "../../../src/ports.js";
import type { Result } from "../../../src/base/result.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { diskPorts } from "../../doubles/disk/realports.js";

const kernels = createKernels({ mode: "wasm" });
const OWN_LEVELS = rangeText(PROGRAM.levels);
const withLevels = (min: number, max: number): Program => ({ ...PROGRAM, levels: { min, max } });

function tryOpen(path: string, program: Program): Promise<Result<Disk, DiskCode>> {
  const options = {
    adapter: "lmdb",
    path,
    revision: "v1",
    walPath: null,
    maxBytes: 2 ** 30,
    identity: { clusterId: "one", nodeId: 1 },
    kernels,
    program,
    segmentBytes: 2 ** 20,
  } as const;
  return new Promise((resolve) => openDisk(options, diskPorts([]), resolve));
}

async function opened(path: string, program = PROGRAM): Promise<Disk> {
  const disk = await tryOpen(path, program);
  if (!disk.ok) throw new Error(disk.message);
  return disk.value;
}

function closing(disk: Disk): Promise<void> {
  return new Promise((resolve) => disk.close(resolve));
}

/** A directory that was used. */
async function used(): Promise<string> {
  const path = fs.mkdtempSync(join(tmpdir(), "svc-level-"));
  const disk = await opened(path);
  const entries = [{ index: 1, term: 1, kind: 0, payload: new Uint8Array([1, 2, 3]) }];
  const group = partitionId(1);
  await new Promise<void>((done) => disk.log.write({ group, hardState: null, entries, done }));
  await closing(disk);
  return path;
}

function digestOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Every name below `path`, when it was changed, and what it holds. */
function treeOf(path: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const name of [".", ...(fs.readdirSync(path, { recursive: true }) as string[])].sort()) {
    const at = join(path, name);
    const stat = fs.statSync(at, { bigint: true });
    const content = stat.isFile() ? digestOf(fs.readFileSync(at)) : "";
    found.set(name, `${stat.mtimeNs} ${stat.ctimeNs} ${content}`);
  }
  return found;
}

/** Without directories, in which locks come and go, and without the lock of the state store. */
function filesOf(path: string): ReadonlyMap<string, string> {
  return new Map(
    [...treeOf(path)].filter(([name]) => {
      return fs.statSync(join(path, name)).isFile() && !name.endsWith("/lock.mdb");
    }),
  );
}

async function refusal(path: string, program = PROGRAM): Promise<string> {
  const disk = await tryOpen(path, program);
  if (!disk.ok) return `${disk.code}: ${disk.message}`;
  await closing(disk.value);
  return "it was opened";
}

t.test("U4 P-131 level file: data of a higher level is refused, nothing is touched", async (t) => {
  const path = await used();
  const home = join(path, "v1");
  fs.writeFileSync(
    join(home, "level.json"),
    '{"kind":"svc-level","version":9,"level":7,"program":"0.9","later":{}}\n',
  );
  const before = treeOf(path);
  const found = `storage-level: ${home}: data is of level 7, this program supports`;
  t.equal(await refusal(path, withLevels(5, 6)), `${found} 5 to 6: use version 0.9 or later`);
  t.equal(await refusal(path), `${found} ${OWN_LEVELS}: use version 0.9 or later`);
  t.strictSame(treeOf(path), before, "no byte, no name, no time");
  t.equal(await refusal(path, withLevels(6, 7)), "it was opened");
  fs.rmSync(path, { recursive: true });
});

t.test("U4 P-131 level file: data of a lower level is refused, nothing is touched", async (t) => {
  const path = await used();
  const before = treeOf(path);
  const found = `storage-level: ${join(path, "v1")}: data is of level 1, this program supports 3 to 4`;
  t.equal(await refusal(path, withLevels(3, 4)), `${found}: upgrade through version 0.2 first`);
  t.strictSame(treeOf(path), before, "without a file it is of level 1");
  t.equal(await refusal(path, withLevels(1, 2)), "it was opened");
  fs.rmSync(path, { recursive: true });
});

t.test("U4 P-128 level file: damage is refused, nothing is touched", async (t) => {
  const path = await used();
  const file = join(path, "v1", "level.json");
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    "\u0000".repeat(60),
    "x".repeat(100_000),
    '{"kind":"svc-storage","version":1,"level":1,"program":""}',
    '{"kind":"svc-level","version":1,"level":0,"program":""}',
    '{"kind":"svc-level","version":1,"level":1.5,"program":""}',
    '{"kind":"svc-level","version":1,"level":"1","program":""}',
    '{"kind":"svc-level","version":1,"level":1}',
  ]) {
    fs.writeFileSync(file, text);
    const before = treeOf(path);
    t.match(await refusal(path), /^storage-damaged: .*level.json is damaged; restore/, text);
    t.strictSame(treeOf(path), before);
  }
  fs.rmSync(path, { recursive: true });
});

t.test("U4 P-131 identity file: a newer format is refused, nothing is touched", async (t) => {
  const path = await used();
  const file = join(path, "v1", "identity.json");
  fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace('"version": 2', '"version": 3'));
  const before = treeOf(path);
  t.match(await refusal(path), /^storage-newer: .*identity.json has format version 3.*newer/);
  t.strictSame(treeOf(path), before);
  fs.rmSync(path, { recursive: true });
});

t.test("U4 P-131 log segment: a newer format is refused, no file is written", async (t) => {
  const path = await used();
  const [name = ""] = fs.readdirSync(join(path, "wal")).sort();
  const file = join(path, "wal", name);
  const region = kernels.record.acquire();
  region?.append(16, 0, 0, 1, 0, new Uint8Array([2, 0, 0, 0, 99]));
  const place = { segmentId: 0, salt: 0, offset: 0, previousChecksum: 0, durableOffset: 0 };
  const sealed = region?.seal({ ...place, sectorBytes: SECTOR_BYTES });
  const whole = fs.readFileSync(file);
  whole.set(sealed?.bytes ?? new Uint8Array(0));
  region?.release();
  fs.writeFileSync(file, whole);
  const before = filesOf(path);
  t.match(await refusal(path), /^log-newer: .*has format version 2, .*use a newer one/);
  t.strictSame(filesOf(path), before);
  fs.rmSync(path, { recursive: true });
});

t.test("U4 the level rises durably, and outlives the process", async (t) => {
  const path = await used();
  const program = withLevels(1, 3);
  const disk = await opened(path, program);
  t.equal(disk.level.level, 1);
  const raise = (level: number): Promise<unknown> => {
    return new Promise((resolve) => disk.level.raise(level, resolve));
  };
  t.match(await raise(2), { ok: true });
  t.equal(disk.level.level, 2);
  t.throws(() => disk.level.raise(2, () => undefined), /only rises/);
  const file = join(path, "v1", "level.json");
  const content = { kind: "svc-level", version: 1, level: 2, program: PROGRAM.version };
  t.strictSame(JSON.parse(fs.readFileSync(file, "utf8")), content);
  fs.writeFileSync(`${file}.new`, "left by a start that was killed");
  t.match(await raise(3), { ok: true });
  t.notOk(fs.existsSync(`${file}.new`));
  await closing(disk);
  const found = `data is of level 3, this program supports ${OWN_LEVELS}: use version 0`;
  t.match(await refusal(path), found);
  const again = await opened(path, program);
  t.equal(again.level.level, 3);
  await closing(again);
  fs.rmSync(path, { recursive: true });
});

t.test("U4 a level that could not be made durable is not reported", async (t) => {
  const path = fs.mkdtempSync(join(tmpdir(), "svc-level-"));
  const real = new RealFiles();
  for (const failing of ["remove", "allocate", "rename", "syncDirectory"] as const) {
    const files = new Proxy<FilesPort>(real, {
      get(target, name) {
        if (name !== failing)
          return (Reflect.get(target, name) as (...all: unknown[]) => void).bind(target);
        return (...all: unknown[]) => {
          (all.at(-1) as (result: unknown) => void)(failure("no-space", `no ${failing}`));
        };
      },
    });
    const level = await new Promise<LevelFile>((resolve, reject) => {
      LevelFile.open(path, withLevels(1, 2), files, true, (result) => {
        if (result.ok) resolve(result.value);
        else reject(new Error(result.message));
      });
    });
    const result = await new Promise((resolve) => level.raise(2, resolve));
    t.strictSame(result, failure("no-space", `no ${failing}`));
    t.equal(level.level, 1, failing);
    fs.rmSync(join(path, "level.json"), { force: true });
  }
  fs.rmSync(path, { recursive: true });
});
