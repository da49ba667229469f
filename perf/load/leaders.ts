/**
 * Whether a scrape each second of three nodes with 1,025 partitions costs a leader: elections and the delay of the event loop
 * with scrapes beside without, in turns of one run. Run: npm run perf -- load/leaders
 *
 * Invariants: 1. Elections are counted when nobody scrapes but the ends of a turn. 2. Those that end in a planned move of a
 * leadership are told apart: the balancer is on, as it is by itself.
 */
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
  temporaryDirectory,
} from "../../test/process/cluster/server-process.js";
import { phaseSeconds, printMachine, printTable } from "./report.js";

const TURNS = Number(process.env["SVC_PERF_ROUNDS"] ?? 3);
const EVERY_MS = 1000;
const SETTLE_MS = 10_000;
const PARTITIONS = 1024;
const seconds = phaseSeconds(20);

interface Figures {
  readonly elections: number;
  /** Leaderships that were moved, each by an election that is won. */
  readonly moves: number;
  /** Turns of the loop that came late by more than 100 ms. */
  readonly late: number;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const textOf = async (http: string): Promise<string> =>
  (await fetch(`http://${http}/metrics`)).text();

function sumOf(text: string, series: RegExp): number {
  const rows = [...text.matchAll(new RegExp(`^${series.source} (\\S+)$`, "gm"))];
  return rows.reduce((sum, [, value]) => sum + Number(value), 0);
}

async function figures(https: readonly string[]): Promise<Figures> {
  const texts = await Promise.all(https.map(textOf));
  const sum = (series: RegExp): number =>
    texts.reduce((total, text) => total + sumOf(text, series), 0);
  const delay = "svc_event_loop_delay_seconds";
  const inTime = sum(new RegExp(`${delay}_bucket\\{le="0\\.1"\\}`));
  return {
    elections: sum(/svc_elections_total\{.*\}/),
    moves: sum(/svc_leader_transfers_total\{.*result="moved"\}/),
    late: sum(new RegExp(`${delay}_count`)) - inTime,
  };
}

async function turn(https: readonly string[], scraped: boolean): Promise<Figures> {
  const before = await figures(https);
  const timer = scraped
    ? setInterval(() => void Promise.all(https.map(textOf)), EVERY_MS)
    : undefined;
  await wait(seconds * 1000);
  clearInterval(timer);
  const after = await figures(https);
  return {
    elections: after.elections - before.elections,
    moves: after.moves - before.moves,
    late: after.late - before.late,
  };
}

try {
  printMachine();
  const directory = temporaryDirectory();
  const peers = await freePorts(3);
  const nodes = peers.map((port, at) => {
    const own = [
      `--peer-port=${port}`,
      `--raft-nodeid=${at + 1}`,
      "--raft-heartbeat-interval=100ms",
    ];
    const founding = [
      `--initial-cluster=${foundersOf(peers)}`,
      `--initial-cluster-partitions=${PARTITIONS}`,
    ];
    return new ServerProcess(nodeFlags(`${directory.path}/${at}`, ...own, ...founding));
  });
  const addresses = await Promise.all(nodes.map((node) => node.ready()));
  const https = addresses.map(({ http }) => http);
  await wait(SETTLE_MS);
  const rows: string[][] = [];
  for (let at = 0; at < TURNS; at++) {
    const without = await turn(https, false);
    const scraped = await turn(https, true);
    const columns = [without, scraped].flatMap(({ elections, moves, late }) => [
      elections,
      moves,
      late,
    ]);
    rows.push([String(at + 1), ...columns.map(String)]);
  }
  printTable(
    [
      ...[`turn of ${seconds} s`, "elections without", "planned moves", "late by > 100 ms"],
      ...["elections with scrapes", "planned moves", "late by > 100 ms"],
    ],
    rows,
  );
  await endAll();
  directory.remove();
} finally {
  await endAll();
}
