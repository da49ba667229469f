/**
 * One client, one durable write at a time: its latency against the disk's own synchronous write plus an empty round
 * trip to the same server, all three in turns. Run: npm run perf -- latency
 */
import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { Agent, request as httpRequest } from "node:http";
import { join } from "node:path";
import { ServerProcess, endAll, temporaryDirectory } from "../../test/cluster/server-process.js";
import { median, printMachine, printTable } from "./report.js";

const ROUNDS = 7;
const CALLS = 400;
const BLOCK_BYTES = 4096;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function post(address: string, path: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const [host, port] = address.split(":");
    const call = httpRequest(
      { host, port, path, method: "POST", agent, headers: { "content-type": "application/json" } },
      (response) => {
        response.resume();
        response.on("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`${path}: HTTP ${String(response.statusCode)}`));
        });
      },
    );
    call.on("error", reject);
    call.end(body);
  });
}

async function timeCalls(call: (at: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < CALLS; at++) {
    const begin = performance.now();
    await call(at);
    times.push(performance.now() - begin);
  }
  return median(times);
}

const directory = temporaryDirectory();
try {
  printMachine();
  const server = new ServerProcess([
    "--grpc-port=off",
    "--http-port=0",
    "--https-port=off",
    "--benchmark-routes",
    "--log-level=warn",
    `--storage-path=${join(directory.path, "data")}`,
  ]);
  const { http } = await server.ready();
  const file = join(directory.path, "probe");
  closeSync(openSync(file, "w"));
  const filler = openSync(file, "r+");
  for (let at = 0; at < CALLS; at++)
    writeSync(filler, Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, at * BLOCK_BYTES);
  closeSync(filler);
  const disk = await open(file, constants.O_RDWR | constants.O_DSYNC);
  const block = Buffer.alloc(BLOCK_BYTES, 7);
  const figures = { disk: [] as number[], empty: [] as number[], write: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    figures.disk.push(
      await timeCalls(async (at) => {
        await disk.write(block, 0, BLOCK_BYTES, at * BLOCK_BYTES);
      }),
    );
    figures.empty.push(await timeCalls(() => post(http, "/v1/benchmark/noop", "{}")));
    figures.write.push(
      await timeCalls((at) => post(http, "/v1/kv/try-set", `{"key":"k/${at}","value":"AAAA"}`)),
    );
  }
  await disk.close();
  rmSync(file);
  const [diskMs, emptyMs, writeMs] = [figures.disk, figures.empty, figures.write].map(median) as [
    number,
    number,
    number,
  ];
  printTable(
    ["one client", "p50 ms"],
    [
      ["O_DSYNC write of 4 KiB", diskMs.toFixed(3)],
      ["empty round trip", emptyMs.toFixed(3)],
      ["durable set", writeMs.toFixed(3)],
      ["set / (2 x disk + empty)", (writeMs / (2 * diskMs + emptyMs)).toFixed(2)],
    ],
  );
  await server.stop();
} finally {
  agent.destroy();
  await endAll();
  directory.remove();
}
