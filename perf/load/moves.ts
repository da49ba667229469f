/**
 * Planned moves under load: rolling restarts by SIGTERM with the leader balancer at one second, until leaderships have
 * moved often enough; how many calls of 64 callers on the other nodes were refused.
 * Run: npm run perf -- load/moves [moves, default 500]
 */
import { Rolling } from "../../test/process/cluster/rolling.js";
import { endAll, sleep } from "../../test/process/cluster/server-process.js";
import { printMachine, printTable, thousands } from "./report.js";

const CALLERS = 64;
const ROUNDS_MAX = 60;
const SETTLE_MS = 2500;

const wanted = Number(process.argv.at(2) ?? "500");
const rolling = new Rolling([
  "--initial-cluster-partitions=16",
  "--raft-leader-balancer-interval=1s",
]);
try {
  printMachine();
  await rolling.start();
  for (let at = 0; at < 8; at++) {
    const sequence = { Name: `sequence ${at}`, Increment: 1, Durability: 1 };
    await rolling.call("Sequencer", "CreateSequence", sequence, 0);
  }
  const before = await rolling.terms();
  rolling.load(CALLERS);
  let moves = 0;
  let stops = 0;
  for (; moves < wanted && stops < 3 * ROUNDS_MAX; stops++) {
    await rolling.restart((stops % 3) + 1);
    await sleep(SETTLE_MS);
    moves = (await rolling.terms()) - before;
  }
  await rolling.halt();
  const refused = [...rolling.refusals].map(([end, count]) => [end, thousands(count)]);
  printTable(
    ["what", "count"],
    [
      ["stops by SIGTERM", String(stops)],
      ["changes of leader", thousands(moves)],
      ["calls answered", thousands(rolling.answered)],
      ...(refused.length === 0 ? [["calls refused", "0"]] : refused),
    ],
  );
} finally {
  await rolling.end();
  await endAll();
}
