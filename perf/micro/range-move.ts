/**
 * A split of a large range between three nodes in one process, in processor time: what the copy costs all nodes together,
 * how much more than the rows goes over, and what counting the range costs, in its slices.
 *
 * Disk and wires are false, so that nothing waits: figures are of the nodes' own work.
 *
 * Run: node dist/perf/micro/range-move.js [--tiny] (SVC_PERF_KEYS: keys of the range, 100000)
 */
import { pathToFileURL } from "node:url";
import { partitionId } from "../../src/base/ids.js";
import { LiveCount } from "../../src/machine/kv/live-count.js";
import type { Machine } from "../../src/machine/machine.js";
import { RowKind, textToByteKey } from "../../src/machine/store/keys.js";
import { RangingCluster } from "../../test/doubles/host/ranging.js";

const SPACE = "room";
const VALUE = "v".repeat(100);
/** Visits of one slice, as nodes count. */
const SLICE_VISITS = 1000;
const FILLED_AT_ONCE = 500;

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

export interface MoveFigures {
  readonly keys: number;
  /** Of all nodes, from the begin to the last row purged (ms). */
  readonly splitMs: number;
  readonly movedKeys: number;
  /** Of what was imported, and of these rows where they lay, names included. */
  readonly movedBytes: number;
  readonly rowBytes: number;
  readonly countMs: number;
  /** Of one slice (ms). */
  readonly sliceMs: number;
}

function keyAt(at: number): string {
  return `${SPACE}/${String(at).padStart(6, "0")}`;
}

export function measuredMove(keys: number): MoveFigures {
  const cluster = new RangingCluster(3, { leaderBalanceEveryMs: 0 });
  cluster.ready();
  cluster.register(SPACE);
  for (let from = 0; from < keys; from += FILLED_AT_ONCE) {
    const count = Math.min(FILLED_AT_ONCE, keys - from);
    cluster.fill(
      Array.from({ length: count }, (_, at) => keyAt(from + at)),
      () => VALUE,
    );
  }
  const { countMs, sliceMs } = counted(cluster, keys);
  const rowBytes = rowBytesFrom(cluster, keyAt(keys >> 1));
  const before = processorMs();
  if (cluster.split(keyAt(keys >> 1)) !== "done") throw new Error("the split begins");
  if (!cluster.comeToRest(600_000)) throw new Error("the split ends");
  const splitMs = processorMs() - before;
  if (cluster.records.ranges(SPACE).length !== 2) throw new Error("the range is split");
  const facts = [...cluster.nodes.values()].map((node) => node.facts().ranges);
  const movedKeys = facts.reduce((sum, each) => sum + each.movedKeys, 0);
  const movedBytes = facts.reduce((sum, each) => sum + each.movedBytes, 0);
  return { keys, splitMs, movedKeys, movedBytes, rowBytes, countMs, sliceMs };
}

/** Where the range lies before it is split. */
function rowsOf(cluster: RangingCluster): Machine["groupRows"] {
  const home = cluster.home(SPACE);
  const group = cluster.node(cluster.serverOf(home) ?? 0).group(partitionId(home));
  if (group === null) throw new Error("the range is led");
  return group.machine["groupRows"];
}

function rowBytesFrom(cluster: RangingCluster, key: string): number {
  const first = textToByteKey(key);
  let sizeBytes = 0;
  rowsOf(cluster).scan(RowKind.value, "", null, (name, row) => {
    if (name >= first) sizeBytes += name.length + row.length;
    return true;
  });
  return sizeBytes;
}

/** The whole range, as its leader counts it. */
function counted(cluster: RangingCluster, keys: number): Pick<MoveFigures, "countMs" | "sliceMs"> {
  const rows = rowsOf(cluster);
  const times: number[] = [];
  const tally = new LiveCount({ keySpace: textToByteKey(SPACE), startKey: null, endKey: null });
  while (!tally.isDone) {
    const before = processorMs();
    tally.slice(rows, 0, SLICE_VISITS);
    times.push(processorMs() - before);
  }
  if (tally.count !== keys) throw new Error(`${tally.count} keys are counted`);
  return { countMs: times.reduce((sum, each) => sum + each, 0), sliceMs: median(times) };
}

function print({ keys, splitMs, movedKeys, movedBytes, rowBytes, countMs, sliceMs }: MoveFigures) {
  const perKey = (1000 * splitMs) / movedKeys;
  const lines = [
    `split of ${keys} keys of ${VALUE.length} B: ${splitMs.toFixed(0)} ms of all three nodes`,
    `of a key that moved: ${perKey.toFixed(1)} µs; bytes of imports: ${(movedBytes / rowBytes).toFixed(2)} x the rows`,
    `count of ${keys} keys: ${countMs.toFixed(0)} ms, a slice ${sliceMs.toFixed(2)} ms`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

const started = process.argv[1];
if (started !== undefined && pathToFileURL(started).href === import.meta.url) {
  const isTiny = process.argv.includes("--tiny");
  print(measuredMove(isTiny ? 400 : Number(process.env["SVC_PERF_KEYS"] ?? 100_000)));
}
