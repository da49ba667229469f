/**
 * Three nodes under load from a lean driver in another process, which speaks to one of them: two of
 * three operations are forwarded. And one client alone, with its latency. What the servers did for
 * each operation is counted. Beside it the same on a three-node etcd, in turns round by round, where
 * etcd is installed. Both are warm by operations. Run: npm run perf -- load/cluster; only shapes whose
 * title has the text SVC_PERF_WORKS, after SVC_PERF_WARM operations of each.
 */
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { type Counts, counted } from "./counted.js";
import { type DriverReport, drive } from "./drive.js";
import { EtcdNodes, etcdVersion } from "./etcd-nodes.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";
import { LocalNodes } from "./local-nodes.js";

const ROUNDS = 3;
const WARM_OPERATIONS = Number(process.env["SVC_PERF_WARM"] ?? 10_000);
const WARM_WINDOWS_MAX = 10;
const seconds = phaseSeconds(4);

function driveAt(port: number, flags: readonly string[]): Promise<DriverReport> {
  // Warm by operations: none is let pass uncounted.
  return drive(`127.0.0.1:${port}`, seconds, ["--warmup-seconds", "0", ...flags]);
}

/** What the code of the servers, young at first, has to have done before the first figure. */
async function warm(ports: readonly number[], flags: readonly string[]): Promise<void> {
  let operations = 0;
  for (let window = 0; window < WARM_WINDOWS_MAX && operations < WARM_OPERATIONS; window++) {
    operations += (await driveAt(ports[window % ports.length] ?? 0, flags)).operations;
  }
}

interface Shape {
  readonly title: string;
  readonly flags: readonly string[];
  /** What etcd does for the same end; absent: nothing of it is like this. */
  readonly etcd?: readonly string[];
  /** What the ratio of the rates is meant to be at least. */
  readonly aim?: string;
}

function unary(kind: string, inflight: number, ...more: string[]): string[] {
  return ["--mode", "unary", "--kind", kind, "--inflight", String(inflight), ...more];
}

function streamed(kind: string, inflight: number, frame: number, ...more: string[]): string[] {
  return ["--kind", kind, "--inflight", String(inflight), "--frame", String(frame), ...more];
}

const ALL_SHAPES: readonly Shape[] = [
  {
    title: "set 100 B, 1 client, unary",
    flags: unary("set", 1),
    etcd: unary("etcd-put", 1),
    aim: "p50 at most etcd's",
  },
  {
    title: "set 100 B, 64 clients, unary",
    flags: unary("set", 64),
    etcd: unary("etcd-put", 64),
    aim: "1.5",
  },
  {
    title: "set 100 B, 256 clients, unary",
    flags: unary("set", 256),
    etcd: unary("etcd-put", 256),
    aim: "1.5",
  },
  { title: "set 100 B, 256 in flight, batched", flags: streamed("set", 256, 64) },
  {
    title: "lock + unlock, 64 clients, unary",
    flags: unary("lock", 64),
    etcd: unary("etcd-lock", 64),
    aim: "3",
  },
  { title: "lock + unlock, 256 in flight, batched", flags: streamed("lock", 256, 64) },
  {
    title: "next, one hot sequence, 64 clients, unary",
    flags: unary("next", 64, "--objects", "1"),
    etcd: unary("etcd-counter", 64, "--objects", "1"),
    aim: "50",
  },
  {
    title: "next, one hot sequence, 256 in flight, batched",
    flags: streamed("next", 256, 64, "--objects", "1"),
  },
  {
    title: "get (linearizable), 64 clients, unary",
    flags: unary("get", 64),
    etcd: unary("etcd-get", 64),
    aim: "1",
  },
  { title: "get (linearizable), 256 in flight, batched", flags: streamed("get", 256, 64) },
];

const wanted = process.env["SVC_PERF_WORKS"] ?? "";
const SHAPES = ALL_SHAPES.filter(({ title }) => title.includes(wanted));

type Figure = (report: DriverReport) => number;
const rate: Figure = (report) => report.operationsPerSecond;
const p50: Figure = (report) => report.latencyMs.p50;
const p99: Figure = (report) => report.latencyMs.p99;

function middle(reports: readonly DriverReport[], pick: Figure): number {
  return median(reports.map(pick));
}

function row(title: string, reports: readonly DriverReport[]): string[] {
  const rates = reports.map(rate);
  return [
    title,
    thousands(median(rates)),
    `${thousands(Math.min(...rates))}-${thousands(Math.max(...rates))}`,
    middle(reports, p50).toFixed(2),
    middle(reports, p99).toFixed(2),
    JSON.stringify(reports[0]?.outcomes),
  ];
}

/** How both compare: the medians, and the ratios of each round, which saw the same machine. */
function ratioRow(
  { title, aim }: Shape,
  own: readonly DriverReport[],
  etcd: readonly DriverReport[],
): string[] {
  const ratios = own.map((report, round) => rate(report) / rate(etcd[round] as DriverReport));
  return [
    title,
    thousands(middle(own, rate)),
    thousands(middle(etcd, rate)),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`,
    aim ?? "",
    middle(own, p50).toFixed(2),
    middle(etcd, p50).toFixed(2),
  ];
}

/** What was counted for each operation, the median of the rounds. */
function countRow(title: string, of: string, all: readonly Counts[]): string[] {
  const middleOf = (pick: (counts: Counts) => number | null, digits: number): string => {
    const values = all.map(pick).filter((value) => value !== null);
    return values.length === 0 ? "" : median(values).toFixed(digits);
  };
  return [
    title,
    of,
    middleOf(({ processorUs }) => processorUs, 0),
    middleOf(({ systemCalls }) => systemCalls, 1),
    middleOf(({ turns }) => turns, 2),
    middleOf(({ frames }) => frames, 2),
    middleOf(({ durableWrites }) => durableWrites, 2),
  ];
}

printMachine();
const version = etcdVersion();
const nodes = await LocalNodes.start([]);
let etcd: EtcdNodes | null = null;
try {
  if (version !== null) etcd = await EtcdNodes.start();
  await sleep(1000);
  const rows: string[][] = [];
  const etcdRows: string[][] = [];
  const ratios: string[][] = [];
  const counts: string[][] = [];
  const operationsOf = ({ operations }: DriverReport): number => operations;
  for (const shape of SHAPES) {
    const reports: DriverReport[] = [];
    const besides: DriverReport[] = [];
    const ownCounts: Counts[] = [];
    const etcdCounts: Counts[] = [];
    await warm(
      nodes.ids.map((id) => nodes.portsOf(id).grpc),
      shape.flags,
    );
    if (etcd !== null && shape.etcd !== undefined) await warm([etcd.clientPort(1)], shape.etcd);
    for (let round = 0; round < ROUNDS; round++) {
      const id = (round % 3) + 1;
      const load = () => driveAt(nodes.portsOf(id).grpc, shape.flags);
      const [report, did] = await counted(nodes.pids, nodes, load, operationsOf);
      reports.push(report);
      ownCounts.push(did);
      if (etcd === null || shape.etcd === undefined) continue;
      const [port, flags] = [etcd.clientPort(id), shape.etcd];
      const beside = () => driveAt(port, flags);
      const [besideReport, etcdDid] = await counted(etcd.pids, null, beside, operationsOf);
      besides.push(besideReport);
      etcdCounts.push(etcdDid);
    }
    rows.push(row(shape.title, reports));
    counts.push(countRow(shape.title, "svc", ownCounts));
    if (besides.length === 0) continue;
    counts.push(countRow(shape.title, "etcd", etcdCounts));
    etcdRows.push(row(shape.title, besides));
    ratios.push(ratioRow(shape, reports, besides));
  }
  const figures = ["operations/s", "spread", "p50 ms", "p99 ms", "outcomes by type"];
  printTable(["three nodes", ...figures], rows);
  const what = ["processor us", "system calls", "loop turns", "frames", "durable writes"];
  printTable(["for each operation, three servers", "of", ...what], counts);
  console.log(`resident after the load: ${await nodes.residentMiB()}`);
  if (version === null) {
    console.log("SKIPPED: the comparison with etcd, which is not installed on this machine");
  } else {
    printTable([`three nodes of ${version}`, ...figures], etcdRows);
    const sides = ["svc/s", "etcd/s", "ratio", "of the rounds", "aim", "svc p50 ms", "etcd p50 ms"];
    printTable(["svc beside etcd", ...sides], ratios);
  }
  printMachine();
} finally {
  await etcd?.end();
  await nodes.end();
  await endAll();
}
