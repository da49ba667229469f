/** Contract 9 and 10.4: flags, variables, refused starts, exit codes, signals. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Test } from "tap";
import { VERSION } from "../../../src/base/generated/version.js";
import { ServerProcess, serverMain, sleep, temporaryDirectory } from "../cluster/server-process.js";
import { startNode } from "./node.js";
import { GrpcCaller, http1, post, type Reply } from "./wire.js";

interface Finished {
  readonly code: number | null;
  readonly output: string;
  readonly log: string;
}

/** Runs the program to its end, with SVC_ variables as given. */
function run(
  flags: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  input = "",
): Finished {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  const ended = spawnSync(process.execPath, [serverMain, ...flags], {
    env: { ...Object.fromEntries(kept), ...variables },
    input,
    timeout: 60_000,
    encoding: "utf8",
  });
  return { code: ended.status, output: ended.stdout, log: ended.stderr };
}

/** Sends 40 requests at once, again until one of them is refused; answers of all rounds. */
async function burst(send: (id: number) => Promise<Reply>): Promise<readonly Reply[]> {
  const all: Reply[] = [];
  while (!all.some((answer) => answer.status === 503) && all.length < 1000) {
    const first = all.length;
    all.push(...(await Promise.all(Array.from({ length: 40 }, (_, at) => send(first + at)))));
  }
  return all;
}

const SAFE = ["--storage=memory", "--grpc-port=0", "--https-port=0"];

export async function starting(t: Test): Promise<void> {
  await t.test("9: what ends at once", async (t) => {
    t.match(run(["--version"]), { code: 0, output: `svc-server ${VERSION}\n` });
    t.match(run(["--help"]), { code: 0, output: /--grpc-port[\s\S]*SVC_GRPC_PORT/ });
    const hash = run(["--print-token-hash"], {}, "0123456789abcdef\n");
    t.match(hash, {
      code: 0,
      output: /^sha256:9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\n$/,
    });
    t.match(run(SAFE, { SVC_REQUEST_TIMEOUT: "1s" }), {
      code: 2,
      output: "",
      log: /--request-timeout/,
    });
  });

  await t.test(
    "10.3: certificate files that are none stop the start, naming the flag",
    async (t) => {
      const directory = temporaryDirectory();
      t.teardown(() => directory.remove());
      const junk = join(directory.path, "junk.pem");
      writeFileSync(junk, "junk\n");
      const authority = run([...SAFE, `--tls-client-ca=${junk}`, "--allow-insecure"]);
      t.match(authority, { code: 2, output: "", log: /--tls-client-ca.*junk\.pem/ });
      const pair = run([...SAFE, `--tls-cert=${junk}`, `--tls-key=${junk}`]);
      t.match(pair, { code: 2, output: "", log: /--tls-cert.*junk\.pem/ });
    },
  );

  await t.test(
    "10.4: listeners off loopback are refused, naming listener, address and flags",
    async (t) => {
      const peer = "--advertised-peer-endpoint=node1:8084";
      const off = (...flags: string[]) =>
        run(["--storage=memory", "--host=0.0.0.0", peer, ...flags]);
      const grpc = off("--grpc-port=0", "--https-port=off");
      t.match(grpc, {
        code: 2,
        output: "",
        log: /gRPC cleartext.*0\.0\.0\.0.*--auth-tokens-file.*--allow-insecure/,
      });
      const http = off("--grpc-port=off", "--https-port=off", "--http-port=0");
      t.match(http, {
        code: 2,
        log: /HTTP cleartext.*0\.0\.0\.0.*--auth-tokens-file.*--allow-insecure/,
      });
      const https = off("--grpc-port=off", "--https-port=0");
      t.match(https, {
        code: 2,
        log: /HTTPS.*0\.0\.0\.0.*--auth-tokens-file.*--tls-client-ca.*--allow-insecure/,
      });
      const wildcard = run(["--peer-host=0.0.0.0", ...SAFE]);
      t.match(wildcard, {
        code: 2,
        log: /--advertised-peer-endpoint.*--peer-host|--peer-host.*--advertised-peer-endpoint/,
      });
      const open = new ServerProcess([
        "--storage=memory",
        "--host=0.0.0.0",
        peer,
        "--grpc-port=0",
        "--https-port=0",
        "--peer-port=0",
        "--allow-insecure",
      ]);
      t.match((await open.addresses()).grpc, /^0\.0\.0\.0:/);
      t.match(open.log, /warn.*unencrypted/);
      t.same(await open.stop(), { code: 0, signal: null });
    },
  );

  await t.test("9: variables, off listeners, route hints", async (t) => {
    const variables = [
      "SVC_HTTP_PORT=0",
      "SVC_GRPC_PORT=off",
      "SVC_HTTPS_PORT=off",
      "SVC_STORAGE=memory",
      "SVC_RAFT_NODEID=7",
    ];
    const command = ["env", ...variables, process.execPath, serverMain];
    const server = new ServerProcess(
      ["--initial-cluster-partitions=2", "--disable-routing-hints"],
      command,
    );
    const addresses = await server.ready();
    t.match(addresses, { grpc: "off", https: "off" });
    t.match(
      server.output,
      /^svc-server \S+ listening grpc=off https=off http=127\.0\.0\.1:\d+ peer=\S+ node=7\n/,
    );
    const base = `http://${addresses.http}`;
    t.match((await http1(base, "/v1/cluster/routing")).body, {
      hashPoolSize: 2,
      localEndpoint: "",
    });
    t.match((await post(base, "/v1/kv/try-set", { key: "a" })).body, { type: 0, route: null });
    const many = (await post(base, "/v1/kv/try-get-many", { items: [{ key: "a" }] })).body;
    t.match(many, { routes: [], items: [{ type: 3, routeIndex: 0 }] });
    t.match((await http1(base, "/v1/cluster/membership")).body, { members: [{ nodeId: 7 }] });
    t.same(await server.stop(), { code: 0, signal: null });
  });

  await t.test("npm start hands on a signal that the terminal has sent already", async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const server = new ServerProcess([
      `--storage-path=${directory.path}`,
      ...SAFE.slice(1),
      "--http-port=0",
      "--welcome",
    ]);
    await server.ready();
    t.match(server.output, /Try, in another terminal/);
    server.signal("SIGINT");
    const deadline = performance.now() + 10_000;
    while (!/stopping/.test(server.log) && performance.now() < deadline) await sleep(0);
    server.signal("SIGINT");
    t.same(await server.ended, { code: 0, signal: null });
    t.match(server.log, /stopped/);
  });

  await t.test("9.5: a stop does not wait for peers that say nothing or half of it", async (t) => {
    const node = await startNode(t, "--shutdown-timeout=60s");
    const open = async (base: string, text: string) => {
      const { hostname, port } = new URL(base);
      const socket = connect(Number(port), hostname, () => socket.write(text));
      socket.on("error", () => undefined);
      t.teardown(() => socket.destroy());
      await new Promise((resolve) => socket.once("connect", resolve));
    };
    for (const base of [node.http, node.https, node.grpcUrl]) await open(base, "");
    const head = "POST /v1/kv/try-get HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    await open(node.http, `${head}content-length: 20\r\n\r\n{`);
    await post(node.http, "/v1/kv/try-get", { key: "a" });
    const ended = await Promise.race([node.server.stop(), sleep(25_000)]);
    t.same(ended, { code: 0, signal: null });
    t.notMatch(node.server.log, /fatal/);
  });

  await t.test("overload: 503 and MustRetry without effect, health is never refused", async (t) => {
    const node = await startNode(t, "--max-inflight-requests=1");
    const all = await burst((id) => post(node.http, "/v1/kv/try-set", { key: `o/${id}` }));
    const refused = all.filter((answer) => answer.status === 503);
    t.ok(refused.length > 0);
    for (const answer of refused.slice(0, 3)) {
      t.match(answer.body, {
        code: "overloaded",
        type: 101,
        revision: 0,
        status: 503,
        route: null,
        servedFrom: null,
      });
      t.ok(Number(answer.headers["retry-after"]) >= 1);
    }
    const live = (
      (await post(node.http, "/v1/kv/get-by-bucket", { prefixKey: "o" })).body["items"] as unknown[]
    ).length;
    t.equal(live, all.filter((answer) => answer.status === 200).length, "a refusal had no effect");
    const calls = Array.from({ length: 40 }, () =>
      node.grpc.call("Sequencer", "CreateSequence", { Name: "o", Increment: 1, Durability: 1 }),
    );
    const answers = await Promise.all([...calls, http1(node.http, "/v1/cluster/health")]);
    const types = answers
      .slice(0, -1)
      .map((answer) => ("fields" in answer ? answer.fields["Type"] : null));
    t.ok(
      types.includes(5) && types.every((type) => [0, 2, 5].includes(type as number)),
      "MustRetry, status OK",
    );
    t.equal((answers.at(-1) as { status: number }).status, 200);
    const numeric = await burst((id) =>
      post(node.http, "/v1/sequences/create", { name: `o${id}`, durability: 1 }),
    );
    const full = numeric.find((answer) => answer.status === 503);
    t.match(
      full?.body,
      { code: "overloaded", type: 5, sequence: null, revision: -1 },
      "3.3 in the numeric form",
    );
    t.same(await node.server.stop(), { code: 0, signal: null });
    const after = new GrpcCaller(node.grpcAddress);
    t.equal((await after.raw("/Locker/GetLock", Buffer.alloc(0))).code, 14);
    after.close();
  });
}
