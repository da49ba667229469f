/**
 * What 1,000 idle groups (SVC_PERF_PARTITIONS) on three nodes cost: processor time, frames and bytes
 * between nodes, while nobody asks for anything, a scrape neither: that counts rows of all groups.
 * Young nodes take more, as V8 compiles then. Run: npm run perf -- load/idle
 */
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { phaseSeconds, printMachine, printTable } from "./report.js";
import { LocalNodes } from "./local-nodes.js";
import { processorMs } from "./processor.js";

const PARTITIONS = Number(process.env["SVC_PERF_PARTITIONS"] ?? 1000);
const SETTLE_SECONDS = 60;
/** After a scrape, until its rows are counted. */
const COUNT_SECONDS = 10;

printMachine();
const nodes = await LocalNodes.start([`--initial-cluster-partitions=${PARTITIONS}`]);
try {
  await sleep(SETTLE_SECONDS * 1000);
  const seconds = phaseSeconds(30);
  const before = await Promise.all(nodes.ids.map((id) => nodes.metrics(id)));
  await sleep(COUNT_SECONDS * 1000);
  const beforeMs = nodes.pids.map((pid) => processorMs([pid]));
  await sleep(seconds * 1000);
  const usedMs = nodes.pids.map((pid, at) => processorMs([pid]) - (beforeMs[at] ?? 0));
  const rows: string[][] = [];
  for (const [at, id] of nodes.ids.entries()) {
    const after = await nodes.metrics(id);
    const grown = (name: string): number => (after.get(name) ?? 0) - (before[at]?.get(name) ?? 0);
    rows.push([
      `node ${id}`,
      String(after.get("svc_partitions_asleep") ?? 0),
      ((usedMs[at] ?? 0) / seconds / 10).toFixed(1),
      (grown("svc_peer_sent_frames_total") / (seconds + COUNT_SECONDS)).toFixed(1),
      (grown("svc_peer_sent_bytes_total") / (seconds + COUNT_SECONDS)).toFixed(0),
      ((after.get("process_resident_memory_bytes") ?? 0) / 1024 ** 2).toFixed(0),
    ]);
  }
  const header = ["idle", "groups asleep", "CPU %", "frames/s", "bytes/s", "resident MiB"];
  printTable(header, rows);
} finally {
  await nodes.end();
  await endAll();
}
