/**
 * What a real server does when its world breaks: signals, a second server, a full disk, a damaged log, an input/output
 * error. Only processes and mounts that this file made are touched.
 */
import { execFileSync } from "node:child_process";
import {
  openSync,
  closeSync,
  readdirSync,
  readSync,
  statSync,
  writeFileSync,
  writeSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  serverMain,
  sleep,
  temporaryDirectory,
} from "./server-process.js";
import { hasSmallDisk } from "./small-disk.js";

t.setTimeout(300_000);
t.teardown(endAll);

interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function post(address: string, path: string, body: object): Promise<Reply> {
  const answer = await fetch(`http://${address}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

function set(address: string, key: string, bytes: number): Promise<Reply> {
  return post(address, "/v1/kv/try-set", { key, value: Buffer.alloc(bytes, 1).toString("base64") });
}

t.test("P-124 a second server on one data directory is refused", async (t) => {
  const directory = temporaryDirectory();
  t.teardown(() => directory.remove());
  const first = new ServerProcess(nodeFlags(directory.path));
  const { http } = await first.ready();
  const second = new ServerProcess(nodeFlags(directory.path));
  const ended = await second.ended;
  t.equal(ended.code, 2);
  t.match(second.log, /in use/i);
  t.equal((await set(http, "still", 1)).status, 200, "the first one is undisturbed");
  t.equal((await first.kill()).signal, "SIGKILL");
  const third = new ServerProcess(nodeFlags(directory.path));
  await third.ready();
  t.equal((await third.stop()).code, 0, "the lock of a killed server is gone with it");
});

t.test(
  "P-162 SIGTERM answers what was accepted, exits 0; nothing acknowledged is lost",
  async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const server = new ServerProcess(nodeFlags(directory.path));
    const { http } = await server.ready();
    const acknowledged: string[] = [];
    let stopping = false;
    let broken = 0;
    const writers = Array.from({ length: 16 }, async (_, writer) => {
      for (let serial = 0; !stopping; serial++) {
        const key = `stop/${writer}-${serial}`;
        try {
          const reply = await set(http, key, 20);
          if (reply.status === 200 && reply.body["type"] === 0) acknowledged.push(key);
          else if (reply.status !== 200) break;
        } catch {
          broken += 1;
          break;
        }
      }
    });
    for (let waits = 0; acknowledged.length <= 100 && waits < 1000; waits++) await sleep(20);
    const ended = await server.stop();
    stopping = true;
    await Promise.all(writers);
    t.equal(ended.code, 0);
    t.ok(
      acknowledged.length > 50,
      `acknowledged ${acknowledged.length}, connections ended ${broken}`,
    );
    const again = new ServerProcess(nodeFlags(directory.path));
    const { http: address } = await again.ready();
    let missing = 0;
    for (const key of acknowledged) {
      const reply = await post(address, "/v1/kv/try-get", { key });
      if (reply.body["type"] !== 3) missing += 1;
    }
    t.equal(missing, 0);
    again.signal("SIGTERM");
    again.signal("SIGTERM");
    const twice = await again.ended;
    t.ok(twice.code !== null || twice.signal !== null, "a second signal ends it");
  },
);

t.test("P-120 a full disk refuses writes with a type, keeps reads, and recovers", async (t) => {
  const directory = temporaryDirectory();
  const path = join(directory.path, "small");
  t.teardown(() => directory.remove());
  if (!hasSmallDisk(t, path, "size=420m")) return;
  const data = join(path, "data");
  const server = new ServerProcess(nodeFlags(data));
  const { http } = await server.ready();
  t.equal((await set(http, "early", 10)).body["type"], 0);
  const filler = join(path, "filler");
  const hog = (bytes: number): void => {
    try {
      writeFileSync(filler, Buffer.alloc(bytes));
    } catch {
      // The disk filled up before it was done: that is what it is for.
    }
  };
  hog(400 * 1024 * 1024);
  let refusal: Reply | null = null;
  let written = 0;
  for (let serial = 0; serial < 2000 && refusal === null; serial++) {
    const reply = await set(http, `fill/${serial}`, 500_000);
    if (reply.status === 503) refusal = reply;
    else written += 1;
  }
  t.match(refusal?.body, { code: "overloaded", type: 101 }, `refused after ${written} writes`);
  t.match((await post(http, "/v1/kv/try-get", { key: "early" })).body, { type: 3 }, "reads serve");
  rmSync(filler);
  let recovered = false;
  for (let attempt = 0; attempt < 100 && !recovered; attempt++) {
    await sleep(200);
    recovered = (await set(http, "late", 10)).status === 200;
  }
  t.ok(recovered, "writes go on when space returns");
  t.equal((await server.stop()).code, 0);
});

t.test(
  "P-120 writes end before the disk does, and go on when twice the reserve is free",
  async (t) => {
    const directory = temporaryDirectory();
    const path = join(directory.path, "small");
    t.teardown(() => directory.remove());
    if (!hasSmallDisk(t, path, "size=600m")) return;
    const data = join(path, "data");
    const server = new ServerProcess(nodeFlags(data));
    const { http } = await server.ready();
    const until = async (status: number): Promise<boolean> => {
      for (let attempt = 0; attempt < 150; attempt++) {
        if ((await set(http, "key", 10)).status === status) return true;
        await sleep(200);
      }
      return false;
    };
    t.ok(await until(200));
    const { bavail, bsize } = statfsSync(path);
    const filler = join(path, "filler");
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 100 * 1024 * 1024));
    t.ok(await until(503), "with 100 MiB left, of which 128 are to stay");
    t.match((await post(http, "/v1/kv/try-get", { key: "key" })).body, { type: 3 }, "reads serve");
    const ready = await fetch(`http://${http}/readyz?verbose`);
    t.equal(ready.status, 200, "no restart heals this, and no other node need be full");
    t.match(await ready.text(), /^\[\+\]storage ok: volume-space: /m);
    const shown = await (await fetch(`http://${http}/metrics`)).text();
    t.match(shown, /^svc_storage_short\{volume="log"\} 1$/m);
    t.match(shown, /^svc_wal_full 0$/m);
    rmSync(filler);
    t.ok(await until(200), "writes go on by themselves");
    t.equal((await server.stop()).code, 0);
  },
);

function logSegments(data: string): string[] {
  const found: string[] = [];
  const walk = (directory: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (path.includes("/wal/") && statSync(path).size > 1024 * 1024) found.push(path);
    }
  };
  walk(data);
  return found.sort();
}

/** Flips one byte at the first place of `needle` in the file. */
function damage(path: string, needle: string): boolean {
  const file = openSync(path, "r+");
  try {
    const bytes = Buffer.alloc(statSync(path).size);
    readSync(file, bytes, 0, bytes.length, 0);
    const at = bytes.indexOf(needle);
    if (at < 0) return false;
    writeSync(file, Buffer.from([bytes[at] === 0 ? 1 : 0]), 0, 1, at);
    return true;
  } finally {
    closeSync(file);
  }
}

t.test(
  "P-113 damage before the tail stops the start, naming file, offset and remedy",
  async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const server = new ServerProcess(nodeFlags(directory.path));
    const { http } = await server.ready();
    await post(http, "/v1/kv/try-set", { key: "damaged-key-marker", value: "AAAA" });
    for (let serial = 0; serial < 200; serial++) await set(http, `after/${serial}`, 2000);
    await server.kill();
    const hit = logSegments(directory.path).some((path) => damage(path, "damaged-key-marker"));
    t.ok(hit, "the record is in the log");
    const again = new ServerProcess(nodeFlags(directory.path));
    const ended = await again.ended;
    t.equal(ended.code, 1, "damaged storage is a fatal fault, not a usage error");
    t.match(again.log, /wal/);
    t.match(again.log, /offset/i);
  },
);

t.test("P-113 a torn tail is cut and reported, and the node serves", async (t) => {
  const directory = temporaryDirectory();
  t.teardown(() => directory.remove());
  const server = new ServerProcess(nodeFlags(directory.path));
  const { http } = await server.ready();
  await set(http, "kept", 10);
  await post(http, "/v1/kv/try-set", { key: "torn-key-marker", value: "AAAA" });
  await server.kill();
  // The marker's record is the last one: damaging it is what a torn write looks like.
  t.ok(logSegments(directory.path).some((path) => damage(path, "torn-key-marker")));
  const again = new ServerProcess(nodeFlags(directory.path));
  const { http: address } = await again.ready();
  t.match((await post(address, "/v1/kv/try-get", { key: "kept" })).body, { type: 3 });
  t.match(again.log, /torn|cut/i);
  t.equal((await again.stop()).code, 0);
});

function canTrace(): boolean {
  try {
    execFileSync("strace", ["-o", "/dev/null", "-e", "trace=none", process.execPath, "-e", "0"], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
}

t.test(
  "P-110 an input/output error on a log write ends the process, and what was acknowledged is kept",
  async (t) => {
    if (!canTrace()) {
      t.pass("needs strace", { skip: "no strace here, or it may not trace" });
      return;
    }
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const server = new ServerProcess(nodeFlags(directory.path), [
      "strace",
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      "trace=pwrite64",
      "-e",
      "inject=pwrite64:error=EIO:when=150+",
      process.execPath,
      serverMain,
    ]);
    const { http } = await server.ready();
    const acknowledged: string[] = [];
    for (let serial = 0; serial < 3000; serial++) {
      try {
        const reply = await set(http, `eio/${serial}`, 100);
        if (reply.body["type"] === 0) acknowledged.push(`eio/${serial}`);
      } catch {
        break;
      }
    }
    const ended = await server.ended;
    t.equal(ended.code, 1, "the exit code of a fatal fault");
    t.match(server.log, /fatal: /);
    const again = new ServerProcess(nodeFlags(directory.path));
    const { http: address } = await again.ready();
    for (const key of acknowledged) {
      const reply = await post(address, "/v1/kv/try-get", { key });
      if (reply.body["type"] !== 3) t.fail(`${key} was acknowledged and is gone`);
    }
    t.ok(acknowledged.length > 0, `${acknowledged.length} acknowledged writes are there`);
    await again.stop();
  },
);
