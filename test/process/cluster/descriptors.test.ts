/**
 * A real server whose limit of open files is small, under clients that take all the connections they can get.
 */
import { connect, type Socket } from "node:net";
import t from "tap";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  serverMain,
  temporaryDirectory,
} from "./server-process.js";

t.setTimeout(300_000);
t.teardown(endAll);

const MIB = 1024 * 1024;

/** Connections that say nothing; those that the server closes are gone. */
async function idleConnections(address: string, count: number): Promise<Set<Socket>> {
  const [host, port] = address.split(":") as [string, string];
  const open = new Set<Socket>();
  const settled: Promise<void>[] = [];
  for (let made = 0; made < count; made++) {
    const socket = connect(Number(port), host);
    open.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => open.delete(socket));
    socket.resume();
    settled.push(
      new Promise((resolve) => {
        socket.once("connect", resolve);
        socket.once("close", () => resolve());
      }),
    );
  }
  await Promise.all(settled);
  return open;
}

t.test("P-199 idle connections do not take the log its descriptors", async (t) => {
  const directory = temporaryDirectory();
  t.teardown(() => directory.remove());
  const limited = ["sh", "-c", 'ulimit -n 200 && exec "$0" "$@"', process.execPath, serverMain];
  const server = new ServerProcess(
    nodeFlags(directory.path, "--initial-cluster-partitions=1"),
    limited,
  );
  const { http, grpc } = await server.ready();
  t.match(server.log, /limit of open files/, "the operator is told");
  const set = async (key: string): Promise<number> => {
    const value = Buffer.alloc(MIB, 1).toString("base64");
    const answer = await fetch(`http://${http}/v1/kv/try-set`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key, value }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  t.equal(await set("first"), 200, "this client has its connection");
  const idle = await idleConnections(grpc, 260);
  const statuses = new Set<number>();
  // More than one segment of the log, so that the next one must be made meanwhile.
  for (let number = 0; number < 140; number++) statuses.add(await set(`key-${number % 8}`));
  t.same([...statuses], [200], "every write is taken");
  t.ok(idle.size < 200, `the server keeps ${idle.size} of 260 idle connections`);
  const metrics = await (await fetch(`http://${http}/metrics`)).text();
  const refused = /^svc_connections_refused_total\{reason="limit"\} (\d+)$/m.exec(metrics)?.[1];
  t.ok(Number(refused) >= 60, "and counts the others");
  for (const socket of idle) socket.destroy();
  t.equal((await server.stop()).code, 0);
});
