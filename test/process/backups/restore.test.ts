/** Backups restored by real processes on a real disk, and nodes started on what came of it. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  ServerProcess,
  endAll,
  freePorts,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { DiskCatalogue } from "./catalogue.js";

const directory = temporaryDirectory();
t.setTimeout(600_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

function start(path: string, id: number, port: number, ...flags: string[]): ServerProcess {
  return new ServerProcess([
    ...["--grpc-port=off", "--https-port=off", "--http-port=0", "--storage-revision=v1"],
    ...[`--raft-nodeid=${id}`, `--peer-port=${port}`, `--storage-path=${path}`, ...flags],
  ]);
}

async function post(
  node: ServerProcess,
  path: string,
  body: object,
): Promise<Record<string, unknown>> {
  const { http } = await node.addresses();
  const answer = await fetch(`http://${http}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as Record<string, unknown>;
}

t.test("7.5 T7 a restored directory serves as a cluster of one, and others join it", async (t) => {
  const catalogue = new DiskCatalogue(join(directory.path, "serves"));
  catalogue.write(50);
  catalogue.take(1);
  catalogue.write(30);
  catalogue.take(2, 1);
  const end = await catalogue.restore(2, "new");
  t.match(end, { ok: true, value: { partitionsRestored: 3 } });
  t.same(readdirSync(catalogue.restoreRoot).sort(), ["new", "restore_1.claim"]);
  const [one = 0, two = 0] = await freePorts(2);
  const path = join(catalogue.restoreRoot, "new");
  // It has a roster in all but name: whom it is told to join is not asked.
  const first = start(path, 7, one, `--join=127.0.0.1:${two}`);
  await first.ready();
  t.match(await post(first, "/v1/kv/try-get", { key: "key 79", durability: 1 }), { value: String });
  const held = await post(first, "/v1/locks/get-info", { resource: "held", durability: 1 });
  t.match(held, { owner: "somebody" });
  const fresh = { resource: "fresh", owner: "o", expiresMs: 1000, durability: 1 };
  const granted = await post(first, "/v1/locks/try-lock", fresh);
  t.ok(BigInt(granted["fencingToken"] as number) >= 1n << 44n, JSON.stringify(granted));
  const second = start(join(catalogue.path, "second"), 8, two, `--join=127.0.0.1:${one}`);
  await second.ready();
  t.match(await post(second, "/v1/kv/try-get", { key: "key 3", durability: 1 }), { value: String });
  await second.stop();
  await first.stop();
  const again = start(path, 7, one);
  await again.addresses();
  await again.stop();
  t.notMatch(again.log, /refus/);
});

t.test("P-138 a restored node and its old cluster keep each other out", async (t) => {
  const catalogue = new DiskCatalogue(join(directory.path, "stranger"));
  catalogue.write(5);
  catalogue.take(1);
  for (const name of ["old", "new"]) t.match(await catalogue.restore(1, name), { ok: true });
  const [one = 0, two = 0] = await freePorts(2);
  const old = start(join(catalogue.restoreRoot, "old"), 1, one);
  await old.ready();
  const restored = start(join(catalogue.restoreRoot, "new"), 2, two, `--join=127.0.0.1:${one}`);
  await restored.ready();
  await sleep(1000);
  for (const node of [old, restored]) {
    const { http } = await node.addresses();
    const answer = await fetch(`http://${http}/v1/cluster/membership`);
    const text = await answer.text();
    t.equal(text.match(/"nodeId"/g)?.length, 1, text);
  }
  await Promise.all([old.stop(), restored.stop()]);
});

t.test(
  "P-140 a restore whose process is killed leaves nothing, and the next one succeeds",
  async (t) => {
    const catalogue = new DiskCatalogue(join(directory.path, "killed"));
    catalogue.write(2000, 2000);
    catalogue.take(1);
    for (let round = 0; round < 6; round++) {
      const name = `r${round}`;
      const end = await new Promise<{ ok: boolean; code?: string }>((resolve) => {
        const request = {
          ...{ leafId: "00000000000000000000000000000001", targetTimeMs: 0, sequenceSkip: 0n },
          targetDir: join(catalogue.restoreRoot, name),
        };
        // A restore that ended before the kill takes the kill along: it would hit the next one.
        const kill = setTimeout(
          () => {
            const pid = childOf(process.pid);
            if (pid > 0) process.kill(pid, "SIGKILL");
          },
          150 + round * 120,
        );
        catalogue.restoring().restore(
          request,
          "op",
          () => undefined,
          (ended) => {
            clearTimeout(kill);
            resolve(ended);
          },
        );
      });
      if (!end.ok) t.equal(end.code, "IoError");
      const names = readdirSync(catalogue.restoreRoot).filter((left) => !left.endsWith(".claim"));
      t.notOk(
        names.some((left) => left.includes("staging")),
        `${round}: ${names.join()}`,
      );
      t.equal(names.includes(name), end.ok, `${round}`);
    }
    t.match(await catalogue.restore(1, "last"), { ok: true });
    t.ok(existsSync(join(catalogue.restoreRoot, "last", "v1", "restored.json")));
  },
);

/** A process of ours that restores; 0 = none. */
function childOf(parent: number): number {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const [, , , ppid = ""] = readFileSync(`/proc/${name}/stat`, "utf8").split(" ");
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      if (Number(ppid) === parent && command.includes("--restore-child")) return Number(name);
    } catch {
      // It is gone.
    }
  }
  return 0;
}

t.test("3.7 a node that serves restores what it is asked for, and goes on", async (t) => {
  const catalogue = new DiskCatalogue(join(directory.path, "asked"));
  catalogue.write(20);
  catalogue.take(1);
  catalogue.write(5);
  catalogue.take(2, 1);
  const [port = 0] = await freePorts(1);
  const node = start(
    ...([join(catalogue.path, "live"), 1, port] as const),
    `--pitr-backup-dir=${catalogue.backupDir}`,
    "--pitr-backup-cluster-id=prod",
    `--pitr-restore-root=${catalogue.restoreRoot}`,
  );
  await node.ready();
  const leafBackupId = "00000000-0000-0000-0000-000000000002";
  const targetDir = join(catalogue.restoreRoot, "by-rest");
  const answer = await post(node, "/v1/restore", { leafBackupId, targetDir, sequenceSkip: 3 });
  t.match(answer, { targetDir, partitionsRestored: 3, outcome: 0, sequencesAheadCount: 0 });
  t.equal((answer["chain"] as unknown[]).length, 2);
  t.match(await post(node, "/v1/restore", { leafBackupId, targetDir }), {
    outcome: "TargetConflict",
  });
  const live = join(catalogue.path, "live", "new");
  t.match(await post(node, "/v1/restore", { leafBackupId, targetDir: live }), {
    outcome: "TargetConflict",
  });
  const early = { leafBackupId, targetDir: `${targetDir}-2`, targetTimeMs: 5 };
  t.match(await post(node, "/v1/restore", early), { outcome: "TargetOutsideCoverage" });
  t.same(readdirSync(catalogue.restoreRoot).sort(), ["by-rest", "restore_1.claim"]);
  await node.stop();
});

t.test(
  "P-140 a server that is killed takes its restore along, and nothing of it stays",
  async (t) => {
    const catalogue = new DiskCatalogue(join(directory.path, "server-killed"));
    catalogue.write(2000, 2000);
    catalogue.take(1);
    for (let round = 0; round < 3; round++) {
      const [port = 0] = await freePorts(1);
      const node = start(
        ...([join(catalogue.path, "live"), 1, port] as const),
        `--pitr-backup-dir=${catalogue.backupDir}`,
        "--pitr-backup-cluster-id=prod",
        `--pitr-restore-root=${catalogue.restoreRoot}`,
      );
      await node.ready();
      const leafBackupId = "00000000-0000-0000-0000-000000000001";
      const targetDir = join(catalogue.restoreRoot, `r${round}`);
      void post(node, "/v1/restore", { leafBackupId, targetDir }).catch(() => undefined);
      let child = 0;
      for (let look = 0; look < 200 && child === 0; look++) {
        await sleep(20);
        child = childOf(node.child.pid ?? 0);
      }
      await sleep(round * 400);
      await node.kill();
      for (let look = 0; look < 500 && existsSync(`/proc/${child}`); look++) await sleep(20);
      t.notOk(existsSync(`/proc/${child}`), "the process that restores has ended");
      const names = readdirSync(catalogue.restoreRoot).filter((left) => !left.endsWith(".claim"));
      t.notOk(
        names.some((left) => left.includes("staging")),
        names.join(),
      );
    }
    t.match(await catalogue.restore(1, "last"), { ok: true });
  },
);

t.test("P-140 a disk that fills up ends the restore, and is as free as before", async (t) => {
  const catalogue = new DiskCatalogue(join(directory.path, "full"));
  catalogue.write(1500, 3000);
  catalogue.take(1);
  const root = catalogue.restoreRoot;
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", root]);
  if (mounted.status !== 0) {
    t.comment("no file system can be mounted here");
    return;
  }
  try {
    const end = await catalogue.restore(1, "new");
    t.match(end, { ok: false, code: "IoError" });
    t.same(
      readdirSync(root).filter((name) => !name.endsWith(".claim")),
      [],
    );
    spawnSync("mount", ["-o", "remount,size=64m", root]);
    t.match(await catalogue.restore(1, "new"), { ok: true });
  } finally {
    spawnSync("umount", [root]);
  }
});

t.test("P-139 links on the way to a target or in it are not followed", async (t) => {
  const catalogue = new DiskCatalogue(join(directory.path, "links"));
  catalogue.write(5);
  catalogue.take(1);
  const outside = join(catalogue.path, "outside");
  mkdirSync(outside, { mode: 0o700 });
  symlinkSync(outside, join(catalogue.restoreRoot, "link"));
  symlinkSync(catalogue.backupDir, join(catalogue.restoreRoot, "backups"));
  for (const name of ["link", "link/new", "backups/new", "../outside/new"]) {
    const request = {
      ...{ leafId: "00000000000000000000000000000001", targetTimeMs: 0, sequenceSkip: 0n },
      targetDir: `${catalogue.restoreRoot}/${name}`,
    };
    const end = await new Promise((resolve) => {
      catalogue.restoring().restore(request, "op", () => undefined, resolve);
    });
    t.match(end, { ok: false, code: "TargetConflict" }, name);
  }
  t.same(readdirSync(outside), []);
});
