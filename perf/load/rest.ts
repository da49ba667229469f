/**
 * `next` over REST against a no-op route of the same server on the same port, cleartext and TLS, 64
 * connections. Interleaved rounds; the ratio of the medians is the figure. Beside it processor time
 * of a request, of the server and of this process, which loads it. Run: npm run perf -- load/rest
 */
import autocannon from "autocannon";
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { processorMs } from "./processor.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const CONNECTIONS = 64;
const ROUNDS = 5;

interface Sample {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly serverUs: number;
  readonly driverUs: number;
}

async function load(url: string, body: string, pid: number): Promise<Sample> {
  const [serverMs, driverMs] = [processorMs([pid]), processorMs([process.pid])];
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: phaseSeconds(4),
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`${url}: ${result.errors} errors, ${result.non2xx} answers outside 2xx`);
  }
  return {
    rate: result.requests.total / result.duration,
    p50: result.latency.p50,
    p99: result.latency.p99,
    serverUs: ((processorMs([pid]) - serverMs) * 1000) / result.requests.total,
    driverUs: ((processorMs([process.pid]) - driverMs) * 1000) / result.requests.total,
  };
}

async function metric(address: string, name: string): Promise<number> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(" ")[1] ?? Number.NaN);
}

const directory = temporaryDirectory();
try {
  printMachine();
  const server = new ServerProcess([
    "--grpc-port=off",
    "--http-port=0",
    "--https-port=0",
    "--benchmark-routes",
    "--log-level=warn",
    `--storage-path=${directory.path}`,
  ]);
  const addresses = await server.ready();
  const create = await fetch(`http://${addresses.http}/v1/sequences/create`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"name":"load"}',
  });
  if (create.status !== 200) throw new Error(`create: HTTP ${create.status}`);
  const body = '{"name":"load"}';
  const pid = server.child.pid ?? 0;
  const rows: string[][] = [];
  for (const base of [`http://${addresses.http}`, `https://${addresses.https}`]) {
    const noop: Sample[] = [];
    const next: Sample[] = [];
    await load(`${base}/v1/benchmark/noop`, body, pid);
    for (let round = 0; round < ROUNDS; round++) {
      noop.push(await load(`${base}/v1/benchmark/noop`, body, pid));
      next.push(await load(`${base}/v1/sequences/next`, body, pid));
    }
    const of = (samples: Sample[], pick: (sample: Sample) => number): number =>
      median(samples.map(pick));
    const ratio = of(next, (sample) => sample.rate) / of(noop, (sample) => sample.rate);
    for (const [name, samples] of [
      ["no-op", noop],
      ["next", next],
    ] as const) {
      rows.push([
        `${base.split(":")[0] ?? ""} ${name}`,
        thousands(of(samples, (sample) => sample.rate)),
        of(samples, (sample) => sample.p50).toFixed(1),
        of(samples, (sample) => sample.p99).toFixed(1),
        of(samples, (sample) => sample.serverUs).toFixed(0),
        of(samples, (sample) => sample.driverUs).toFixed(0),
        name === "next" ? `${(ratio * 100).toFixed(0)} %` : "",
      ]);
    }
  }
  const header = ["route", "requests/s", "p50 ms", "p99 ms", "server us", "driver us", "of no-op"];
  printTable(header, rows);
  const lag = await metric(addresses.http, "svc_event_loop_lag_p99_seconds");
  console.log(`event loop lag p99 over the run: ${(lag * 1000).toFixed(1)} ms`);
  await server.stop();
} finally {
  await endAll();
  directory.remove();
}
