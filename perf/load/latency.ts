/**
 * One client, one durable write at a time: its latency against the disk's own synchronous write
 * plus an empty round trip to the same server, all three in turns. Run: npm run perf -- latency
 *
 * A server that has just started runs code that is not compiled yet, and is measured as such first;
 * then it gets WARM_UP calls that do not count, and the same rounds are measured again.
 */
import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { Agent, request as httpRequest } from "node:http";
import { join } from "node:path";
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { median, printMachine, printTable } from "./report.js";

const ROUNDS = 7;
const CALLS = 400;
const WARM_UP = 5000;
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

async function timeOne(call: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await call();
  return performance.now() - begin;
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
  const diskWrite = async (at: number): Promise<void> => {
    await disk.write(block, 0, BLOCK_BYTES, at * BLOCK_BYTES);
  };
  const empty = (): Promise<void> => post(http, "/v1/benchmark/noop", "{}");
  const set = (at: number): Promise<void> =>
    post(http, "/v1/kv/try-set", `{"key":"k/${at}","value":"AAAA"}`);
  const measure = async (): Promise<string[]> => {
    const figures: Record<"busyDisk" | "disk" | "empty" | "write", number[]> = {
      busyDisk: [],
      disk: [],
      empty: [],
      write: [],
    };
    for (let round = 0; round < ROUNDS; round++) {
      for (let at = 0; at < CALLS; at++) {
        figures.busyDisk.push(await timeOne(() => diskWrite(at)));
      }
      // In turns, one of each: a disk that rests between two writes answers later than a busy one,
      // and so do sockets.
      for (let at = 0; at < CALLS; at++) {
        figures.empty.push(await timeOne(empty));
        figures.disk.push(await timeOne(() => diskWrite(at)));
        figures.write.push(await timeOne(() => set(at)));
      }
    }
    const bound = 2 * median(figures.disk) + median(figures.empty);
    return [
      median(figures.busyDisk).toFixed(3),
      median(figures.disk).toFixed(3),
      median(figures.empty).toFixed(3),
      median(figures.write).toFixed(3),
      (median(figures.write) / bound).toFixed(2),
    ];
  };
  const cold = await measure();
  for (let at = 0; at < WARM_UP; at++) {
    await empty();
    await set(at % CALLS);
  }
  const warm = await measure();
  await disk.close();
  rmSync(file);
  const names = [
    "O_DSYNC write of 4 KiB, back to back",
    "O_DSYNC write of 4 KiB, in turn with the others",
    "empty round trip",
    "durable set",
    "set / (2 x disk in turn + empty)",
  ];
  printTable(
    ["one client, one at a time, p50 ms", "just started", "warm"],
    names.map((name, at) => [name, cold[at] ?? "", warm[at] ?? ""]),
  );
  await server.stop();
} finally {
  agent.destroy();
  await endAll();
  directory.remove();
}
