/**
 * The data directory with real files: layout, identity, lock, refusals, kill -9, full file systems.
 */
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { PROGRAM } from "../../../src/base/levels.js";
import type { Result } from "../../../src/base/result.js";
import { bindSocket, lockDirectory } from "../../../src/disk/lock.js";
import { type Disk, type DiskCode, type DiskOptions, openDisk } from "../../../src/disk/open.js";
import { STORAGE_FORMAT_VERSION, parseIdentity } from "../../../src/disk/data-directory.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { bytes } from "../../conformance/store.js";
import "./shortwrites.js";
import { type Told, diskPorts } from "../../doubles/disk/realports.js";

const kernels = createKernels({ mode: "wasm" });
const G = partitionId(1);

function temporary(): string {
  return fs.mkdtempSync(join(tmpdir(), "svc-disk-"));
}

function optionsFor(path: string, change: Partial<DiskOptions> = {}): DiskOptions {
  return {
    adapter: "lmdb",
    path,
    revision: "v1",
    walPath: null,
    maxBytes: 2 ** 30,
    identity: { clusterId: "one", nodeId: 1 },
    kernels,
    program: PROGRAM,
    segmentBytes: 2 ** 20,
    ...change,
  };
}

function tryOpen(options: DiskOptions, told: Told[] = []): Promise<Result<Disk, DiskCode>> {
  return new Promise((resolve) => openDisk(options, diskPorts(told), resolve));
}

async function open(options: DiskOptions, told: Told[] = []): Promise<Disk> {
  const result = await tryOpen(options, told);
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
  return result.value;
}

function closing(disk: Disk): Promise<void> {
  return new Promise((resolve) => disk.close(resolve));
}

function append(disk: Disk, index: number): Promise<void> {
  const entries = [{ index, term: 1, kind: 0, payload: bytes(`entry ${String(index)}`) }];
  return new Promise((done) => disk.log.write({ group: G, hardState: null, entries, done }));
}

async function refusal(options: DiskOptions): Promise<string> {
  const result = await tryOpen(options);
  if (!result.ok) return `${result.code}: ${result.message}`;
  await closing(result.value);
  return "opened";
}

void t.test("a new directory is private, complete, and opens again as the same", async (t) => {
  const root = temporary();
  const path = join(root, "deep", "er");
  const disk = await open(optionsFor(path));
  t.ok(disk.isNew);
  for (const directory of [path, join(path, "v1"), join(path, "v1", "state"), join(path, "wal")]) {
    t.equal(fs.statSync(directory).mode & 0o777, 0o700, directory);
  }
  for (const name of fs.readdirSync(join(path, "wal"))) {
    if (name.endsWith(".segment")) {
      t.equal(fs.statSync(join(path, "wal", name)).mode & 0o777, 0o600, name);
    }
  }
  await append(disk, 1);
  await closing(disk);
  const told: Told[] = [];
  const again = await open(optionsFor(path, { identity: { clusterId: "other", nodeId: 1 } }), told);
  t.notOk(again.isNew);
  t.same(again.identity, disk.identity, "an existing directory keeps its cluster id");
  t.equal(again.log.recovered().get(G)?.lastIndex, 1);
  t.match(told, [{ event: "recovered the log", fields: { clean: true } }]);
  await closing(again);
  fs.rmSync(root, { recursive: true });
});

void t.test("closing after the parts were closed by their user gives the lock back", async (t) => {
  const path = temporary();
  const disk = await open(optionsFor(path));
  await append(disk, 1);
  await new Promise<void>((done) => disk.log.close(() => disk.store.close(done)));
  await closing(disk);
  const again = await open(optionsFor(path));
  t.equal(again.log.recovered().get(G)?.lastIndex, 1);
  await closing(again);
  fs.rmSync(path, { recursive: true });
});

void t.test("P-124 a second opener is refused, in this process and in another", async (t) => {
  const path = temporary();
  const disk = await open(optionsFor(path));
  t.match(await refusal(optionsFor(path)), /^storage-in-use: .* is in use by another server/);
  const child = await runChild(path, () => false);
  t.match(child.lines[0], /^storage-in-use/);
  const other = temporary();
  const shared = optionsFor(other, { walPath: join(path, "wal") });
  t.match(await refusal(shared), /^storage-in-use: .*wal is in use/, "the log's directory alone");
  await closing(disk);
  t.match(await refusal(shared), /^log-foreign/, "another node's log");
  const again = await open(optionsFor(path));
  await closing(again);
  fs.rmSync(path, { recursive: true });
  fs.rmSync(other, { recursive: true });
});

void t.test("a socket file that a crash left behind is taken over", async (t) => {
  const path = temporary();
  const first = await new Promise<string>((resolve) => {
    lockDirectory(path, (result) => {
      if (!result.ok) return resolve(result.code);
      const left = join(path, "lock.sock");
      const kept = `${left}.kept`;
      // As after kill -9: the name stays, nobody listens.
      fs.linkSync(left, kept);
      result.value.release(() => {
        fs.renameSync(kept, left);
        resolve("left");
      });
    });
  });
  t.equal(first, "left");
  t.ok(fs.existsSync(join(path, "lock.sock")));
  const second = await new Promise<string>((resolve) => {
    lockDirectory(path, (result) => {
      if (!result.ok) return resolve(result.code);
      lockDirectory(path, (third) => {
        result.value.release(() => resolve(third.ok ? "twice" : third.code));
      });
    });
  });
  t.equal(second, "storage-in-use", "it was taken, and is held");
  fs.rmSync(path, { recursive: true });
});

void t.test("P-124 of many that find the same socket file left over one takes it", async (t) => {
  const path = temporary();
  const name = join(path, "lock.sock");
  for (let round = 0; round < 5; round++) {
    // As after kill -9: the name stays, nobody listens.
    await new Promise<void>((resolve) => {
      const server = net.createServer().listen(name, () => {
        fs.linkSync(name, `${name}.kept`);
        server.close(() => {
          fs.renameSync(`${name}.kept`, name);
          resolve();
        });
      });
    });
    const starters = Array.from({ length: 8 }, () => {
      return new Promise<net.Server | null>((resolve) => {
        bindSocket(name, (result) => resolve(result.ok ? result.value : null));
      });
    });
    const held = (await Promise.all(starters)).filter((server) => server !== null);
    t.equal(held.length, 1);
    t.ok(fs.existsSync(name), "and has its name");
    for (const server of held) await new Promise((resolve) => server.close(resolve));
  }
  fs.rmSync(path, { recursive: true });
});

void t.test(
  "P-112 each start makes the names durable that an earlier one left behind",
  async (t) => {
    const path = temporary();
    const options = optionsFor(join(path, "one", "two"));
    await closing(await open(options));
    const calls = createRequire(import.meta.url)("node:fs") as typeof fs;
    const { openSync, fsyncSync } = calls;
    const paths = new Map<number, string>();
    const synced = new Set<string>();
    calls.openSync = (name, ...rest) => {
      const descriptor = openSync(name, ...rest);
      paths.set(descriptor, String(name));
      return descriptor;
    };
    calls.fsyncSync = (descriptor) => {
      fsyncSync(descriptor);
      synced.add(paths.get(descriptor) ?? "");
    };
    syncBuiltinESMExports();
    try {
      await closing(await open(options));
    } finally {
      Object.assign(calls, { openSync, fsyncSync });
      syncBuiltinESMExports();
    }
    const wanted = ["", "one", "one/two", "one/two/v1", "one/two/v1/state"];
    for (const name of wanted) t.ok(synced.has(join(path, name)), `${name} is synced`);
    fs.rmSync(path, { recursive: true });
  },
);

void t.test(
  "nodes of one machine that start at once make the folder of their directories together",
  async (t) => {
    const path = temporary();
    const calls = createRequire(import.meta.url)("node:fs") as typeof fs;
    const { mkdirSync } = calls;
    const others: string[] = [];
    // Another one was a moment quicker, at each folder.
    calls.mkdirSync = ((name: string, options: fs.MakeDirectoryOptions) => {
      others.push(name);
      mkdirSync(name, options);
      return mkdirSync(name, options);
    }) as typeof fs.mkdirSync;
    syncBuiltinESMExports();
    try {
      await closing(await open(optionsFor(join(path, "data", "1"))));
    } finally {
      Object.assign(calls, { mkdirSync });
      syncBuiltinESMExports();
    }
    t.ok(others.includes(join(path, "data")), `${others.length} folders`);
    fs.rmSync(path, { recursive: true });
  },
);

void t.test(
  "P-131 P-128 identities that are newer, damaged or another's are refused",
  async (t) => {
    const path = temporary();
    await closing(await open(optionsFor(path)));
    const file = join(path, "v1", "identity.json");
    const whole = fs.readFileSync(file, "utf8");
    const [own, newer] = [STORAGE_FORMAT_VERSION, STORAGE_FORMAT_VERSION + 1];
    t.match(whole, `"version": ${own}`);
    fs.writeFileSync(file, whole.replace(`"version": ${own}`, `"version": ${newer}`));
    const told = new RegExp(`^storage-newer: .*version ${newer}.*newer program`);
    t.match(await refusal(optionsFor(path)), told);
    fs.writeFileSync(file, whole.slice(0, 30));
    t.match(await refusal(optionsFor(path)), /^storage-damaged: .*identity.json/);
    fs.writeFileSync(file, "x".repeat(100_000));
    t.match(await refusal(optionsFor(path)), /^storage-damaged/);
    fs.writeFileSync(file, whole);
    const other = optionsFor(path, { identity: { clusterId: "one", nodeId: 2 } });
    t.match(await refusal(other), /^storage-foreign: .*node 1, not to node 2/);
    for (const text of [
      "null",
      "[]",
      "3",
      '{"kind":"svc-storage","version":1}',
      '{"version":"1"}',
    ]) {
      t.match(parseIdentity("identity.json", text), { ok: false, code: "storage-damaged" }, text);
    }
    for (const segment of fs.readdirSync(join(path, "wal"))) fs.rmSync(join(path, "wal", segment));
    t.match(await refusal(optionsFor(path)), /^log-incomplete: .*there was a log/);
    fs.rmSync(path, { recursive: true });
    fs.writeFileSync(path, "a file");
    t.match(await refusal(optionsFor(path)), /^storage-unreadable/);
    fs.rmSync(path);
  },
);

interface Child {
  readonly lines: readonly string[];
}

/** Runs the writer until `enough` says so, then kills it. */
function runChild(path: string, enough: (lines: readonly string[]) => boolean): Promise<Child> {
  const program = join(dirname(fileURLToPath(import.meta.url)), "killchild.js");
  const child = spawn(process.execPath, [program, path], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    if (enough(lines)) child.kill("SIGKILL");
  });
  return new Promise((resolve) => child.on("close", () => resolve({ lines })));
}

void t.test("P-110 P-113 kill -9 loses nothing that was acknowledged", async (t) => {
  const path = temporary();
  const acknowledged = new Map<string, number>();
  for (let round = 0; round < 5; round++) {
    const limit = 300 + round * 211;
    const { lines } = await runChild(path, (all) => all.length > limit);
    t.equal(lines[0], "open", `start ${String(round)}: ${lines[0] ?? "nothing"}`);
    for (const line of lines.slice(1)) {
      const at = line.lastIndexOf(" ");
      acknowledged.set(line.slice(0, at), Number(line.slice(at + 1)));
    }
    const disk = await open(optionsFor(path));
    for (const [name, index] of acknowledged) {
      if (name === "store") {
        const stored = disk.store.get(bytes("count")) ?? bytes("0");
        t.ok(Number(String.fromCharCode(...stored)) >= index, `store ${String(index)}`);
        t.same(disk.store.get(new Uint8Array(1500).fill(200)), stored, "rows of one write");
        continue;
      }
      const group = partitionId(Number(name.slice(4)));
      const snapshot = disk.log.recovered().get(group);
      t.ok((snapshot?.lastIndex ?? 0) >= index, `${name} ${String(index)}`);
      const found = await new Promise<string>((resolve) => {
        disk.log.read(
          group,
          snapshot?.lastIndex ?? 1,
          snapshot?.lastIndex ?? 1,
          10_000,
          (result) => {
            const payload = result.ok ? result.value[0]?.payload : undefined;
            resolve(payload === undefined ? "" : String.fromCharCode(...payload));
          },
        );
      });
      t.match(found, `${String(group)}:${String(snapshot?.lastIndex)}:`);
    }
    await closing(disk);
  }
  t.equal(acknowledged.size, 4, "log of three groups, and store");
  fs.rmSync(path, { recursive: true });
});

const small = process.env.SVC_TEST_SMALL_DISK;
const skip =
  small === undefined ? "SVC_TEST_SMALL_DISK names no small file system (16 MiB)" : false;

void t.test("P-120 a really full file system: typed, parked, resumed", { skip }, async (t) => {
  const path = join(small ?? "", "data");
  const disk = await open(optionsFor(path));
  const filler = join(small ?? "", "filler");
  const descriptor = fs.openSync(filler, "w");
  t.throws(
    () => {
      for (;;) fs.writeSync(descriptor, new Uint8Array(2 ** 16));
    },
    { code: "ENOSPC" },
  );
  fs.closeSync(descriptor);
  let durable = 0;
  let index = 0;
  while (disk.log.space() === "available" && index < 20_000) {
    await Promise.race([
      append(disk, ++index).then(() => durable++),
      new Promise((resolve) => setTimeout(resolve, 200)),
    ]);
  }
  t.equal(disk.log.space(), "full");
  const large = [{ key: bytes("k"), value: new Uint8Array(2 ** 21) }];
  const flush = (): Promise<string> =>
    new Promise((resolve) => {
      disk.store.write(large, (result) => resolve(result.ok ? "written" : result.code));
    });
  t.equal(await flush(), "full");
  t.equal(await flush(), "full", "and again");
  fs.rmSync(filler);
  t.equal(await flush(), "written");
  while (durable < index || disk.log.space() === "full") {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await closing(disk);
  const again = await open(optionsFor(path));
  t.equal(again.log.recovered().get(G)?.lastIndex, index);
  t.equal(again.store.get(bytes("k"))?.length, 2 ** 21);
  await closing(again);
  fs.rmSync(path, { recursive: true });
});
