/** The server as a process among probes and signals: its first moment, its health, its end. */
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import t from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import {
  ServerProcess,
  endAll,
  freePorts,
  nodeFlags,
  serverMain,
  serverModules,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

function probe(url: string): number | null {
  return spawnSync(process.execPath, [serverMain, "--probe", url], { stdio: "ignore" }).status;
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
    await sleep(20);
  }
}

async function textOf(url: string, init: RequestInit = {}): Promise<[number, string]> {
  const answer = await fetch(url, init);
  return [answer.status, await answer.text()];
}

async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

t.test(
  "a joiner that waits answers its probes, and a signal ends it at once (P-148)",
  async (t) => {
    const port = await freePort();
    const nobody = await freePort();
    const flags = [`--health-port=${port}`, "--storage=memory", `--join=127.0.0.1:${nobody}`];
    const joiner = new ServerProcess([...nodeFlags(join(directory.path, "joiner")), ...flags]);
    const base = `http://127.0.0.1:${port}`;
    await until("it listens", () =>
      textOf(`${base}/livez`).then(
        () => true,
        () => false,
      ),
    );
    t.same(await textOf(`${base}/livez`), [200, "ok"]);
    const [live, liveLines] = await textOf(`${base}/livez?verbose`);
    t.equal(live, 200);
    t.match(liveLines, /\[\+\]process ok\n\[\+\]start ok: finding out which cluster.*\nok$/);
    const [ready, readyLines] = await textOf(`${base}/readyz?verbose`);
    t.equal(ready, 503);
    t.match(
      readyLines,
      /\[-\]initialized failed: starting: finding out.*\n.*failed: not-initialized$/s,
    );
    const [health, body] = await textOf(`${base}/v1/cluster/health`);
    t.equal(health, 503);
    t.match(JSON.parse(body), { ready: false, initialized: false, reason: "not-initialized" });
    t.equal((await textOf(`${base}/metrics`))[0], 200);
    joiner.signal("SIGHUP");
    t.equal(probe(`${base}/livez`), 0, "SIGHUP does not end it");
    t.equal(probe(`${base}/readyz`), 1);
    joiner.signal("SIGTERM");
    t.same(await joiner.ended, { code: 0, signal: null });
    t.equal(probe(`${base}/livez`), 1, "nobody listens");
    t.equal(probe("ftp://127.0.0.1/"), 1);
    t.equal(probe("http://"), 1);
  },
);

t.test("the health listener: four paths, GET, bounded connections", async (t) => {
  const flags = ["--health-port=0", "--storage=memory"];
  const server = new ServerProcess([...nodeFlags(join(directory.path, "health")), ...flags]);
  await server.ready();
  const port = Number(/ node=1 health=127\.0\.0\.1:(\d+)\n/.exec(server.output)?.[1]);
  t.ok(port > 0, server.output);
  const base = `http://127.0.0.1:${port}`;
  t.same(await textOf(`${base}/readyz`), [200, "ok"]);
  t.match(await textOf(`${base}/livez?verbose`), [200, /\[\+\]start ok\nok$/]);
  t.match(await textOf(`${base}/v1/cluster/health`), [200, /"ready":true/]);
  t.match(await textOf(`${base}/metrics`), [200, /svc_node_info\{node="1",name="/]);
  t.equal((await textOf(`${base}/`))[0], 404);
  t.equal((await textOf(`${base}/v1/cluster/membership`))[0], 404);
  const posted = await fetch(`${base}/livez`, { method: "POST", body: "x" });
  t.equal(posted.status, 405);
  t.equal(posted.headers.get("allow"), "GET");
  const idle: Socket[] = Array.from({ length: 80 }, () => connect(port, "127.0.0.1"));
  let closed = 0;
  for (const socket of idle) socket.on("error", () => undefined).on("close", () => (closed += 1));
  for (const socket of idle) socket.resume();
  await until("those beyond the bound are closed", () => closed >= 16);
  await until("and all that ask nothing", () => closed === 80);
  t.same(await textOf(`${base}/livez`), [200, "ok"]);
  t.same(await server.stop(), { code: 0, signal: null });
});

t.test("contract 9 after SIGTERM a node is unready and serves on for the delay", async (t) => {
  const flags = ["--health-port=0", "--storage=memory", "--shutdown-delay=3s"];
  const server = new ServerProcess([...nodeFlags(join(directory.path, "delay")), ...flags]);
  const { http } = await server.ready();
  const base = `http://${http}`;
  const set = (): Promise<[number, string]> =>
    textOf(`${base}/v1/kv/try-set`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key: "k", value: "AQ==" }),
    });
  t.match(await set(), [200, /"type":0/]);
  server.signal("SIGTERM");
  await until("unready", async () => (await textOf(`${base}/readyz`))[0] === 503);
  t.match(await textOf(`${base}/v1/cluster/health`), [503, /"reason":"shutting-down"/]);
  for (let at = 0; at < 10; at++) {
    t.match(await set(), [200, /"type":0/], "served");
    await sleep(100);
  }
  t.same(await server.ended, { code: 0, signal: null });
  const hasty = new ServerProcess([...nodeFlags(join(directory.path, "hasty")), ...flags]);
  await hasty.ready();
  hasty.signal("SIGTERM");
  await sleep(50);
  hasty.signal("SIGTERM");
  t.same(await hasty.ended, { code: 143, signal: null }, "a second signal ends it at once");
});

t.test("a fault is logged under the id that the answer names", async (t) => {
  const fault = join(import.meta.dirname, "fault-in-membership.js");
  const command = [process.execPath, "--import", fault, serverModules];
  const flags = [...nodeFlags(join(directory.path, "fault")), "--storage=memory"];
  for (const given of [null, "from-the-caller"]) {
    const server = new ServerProcess(flags, command);
    const { http } = await server.ready();
    const headers = given === null ? {} : { "x-request-id": given };
    const [status, body] = await textOf(`http://${http}/v1/cluster/membership`, { headers });
    t.equal(status, 500);
    const { detail } = JSON.parse(body) as { readonly detail: string };
    const id = /logged under (\S+)$/.exec(detail)?.[1] ?? "";
    if (given === null) t.match(id, /^[0-9a-f]{12}-[0-9a-z]+$/);
    else t.equal(id, given);
    t.not((await server.ended).code, 0);
    const line = server.log.split("\n").find((text) => text.startsWith("fatal: "));
    t.match(line, `"requestId":"${id}"`);
    t.match(line, "planted");
  }
});

t.test(
  "U4 P-131 data of a level that is not supported: exit code 1, nothing is touched",
  async (t) => {
    const path = join(directory.path, "later-level");
    const server = new ServerProcess(nodeFlags(path));
    await server.ready();
    await server.stop();
    const [revision = ""] = readdirSync(path).filter((name) => name !== "wal");
    const file = join(path, revision, "level.json");
    writeFileSync(file, '{"kind":"svc-level","version":1,"level":7,"program":"0.9.1"}\n');
    const times = (): string[] => {
      const names = readdirSync(path, { recursive: true }) as string[];
      return names.sort().map((name) => `${name} ${statSync(join(path, name)).mtimeMs}`);
    };
    const before = times();
    const refused = spawnSync(process.execPath, [serverMain, ...nodeFlags(path)], {
      encoding: "utf8",
      timeout: 60_000,
    });
    t.equal(refused.status, 1);
    const { levels } = PROGRAM;
    const range = levels.min === levels.max ? `${levels.min}` : `${levels.min} to ${levels.max}`;
    const words = `data is of level 7, this program supports ${range}: use version 0.9.1 or later`;
    t.ok(refused.stderr.includes(words), refused.stderr);
    t.strictSame(times(), before);
    t.match(readFileSync(file, "utf8"), /"level":7/);
  },
);
