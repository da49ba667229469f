/**
 * A million keys with values of 100 bytes: time from start to ready after a clean stop and after
 * kill -9, and resident memory. Run: npm run perf -- restart
 */
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { printMachine, printTable, thousands } from "./report.js";

const KEYS = Number(process.env["SVC_PERF_KEYS"] ?? 1_000_000);
const KEYS_PER_CALL = 1000;
const CALLS_IN_FLIGHT = 4;

function flags(path: string): string[] {
  return [
    "--grpc-port=off",
    "--http-port=0",
    "--https-port=off",
    "--log-level=warn",
    `--storage-path=${path}`,
  ];
}

async function fill(address: string): Promise<void> {
  const value = Buffer.alloc(100, 120).toString("base64");
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < KEYS) {
      const first = next;
      next += KEYS_PER_CALL;
      const items = Array.from({ length: Math.min(KEYS_PER_CALL, KEYS - first) }, (_, at) => ({
        key: `space-${(first + at) % 1000}/key-${first + at}`,
        value,
      }));
      for (;;) {
        const answer = await fetch(`http://${address}/v1/kv/try-set-many`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ items }),
        });
        const body = (await answer.json()) as { items?: { type: number }[] };
        if (answer.status === 200 && body.items?.every((item) => item.type === 0) === true) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  };
  await Promise.all(Array.from({ length: CALLS_IN_FLIGHT }, worker));
}

async function timeToReady(
  path: string,
): Promise<{ server: ServerProcess; readyMs: number; rss: number }> {
  const begin = performance.now();
  const server = new ServerProcess(flags(path));
  const { http } = await server.ready();
  const readyMs = performance.now() - begin;
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const rss = Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
  return { server, readyMs, rss };
}

const directory = temporaryDirectory();
try {
  printMachine();
  const first = new ServerProcess(flags(directory.path));
  const { http } = await first.ready();
  const begin = performance.now();
  await fill(http);
  const fillSeconds = (performance.now() - begin) / 1000;
  const loaded = Number(
    /^process_resident_memory_bytes (\S+)$/m.exec(
      await (await fetch(`http://${http}/metrics`)).text(),
    )?.[1],
  );
  await first.stop();
  const clean = await timeToReady(directory.path);
  await clean.server.kill();
  const crashed = await timeToReady(directory.path);
  await crashed.server.stop();
  const mib = (bytes: number): string => (bytes / 1024 ** 2).toFixed(0);
  printTable(
    [`${thousands(KEYS)} keys of 100 bytes`, "figure"],
    [
      ["keys written per second (REST, many-call)", thousands(KEYS / fillSeconds)],
      ["resident after the load, MiB", mib(loaded)],
      ["start to ready after a clean stop, ms", clean.readyMs.toFixed(0)],
      ["resident then, MiB", mib(clean.rss)],
      ["start to ready after kill -9, ms", crashed.readyMs.toFixed(0)],
      ["resident then, MiB", mib(crashed.rss)],
    ],
  );
} finally {
  await endAll();
  directory.remove();
}
