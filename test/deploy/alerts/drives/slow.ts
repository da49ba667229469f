/** Disks that are slow, nodes that stand still, callers that ask for more than they may. */
import { writeFileSync } from "node:fs";
import { sleep } from "../../../process/cluster/server-process.js";
import type { Stage } from "../../runbooks/stage.js";
import { type Part, plainly } from "../drive.js";
import type { Field } from "../field.js";

const SLOW_DISK = new URL("../../runbooks/slow-disk.js", import.meta.url).href;
/** Longer than what an alert calls slow, shorter than what Prometheus waits for an answer. */
const STILL_MS = 700;
const MOVING_MS = 150;
const WRITES = 12;
const ALL = [1, 2, 3];

const rateFile = (stage: Stage): string => stage.path("rate");

async function limit({ stage }: Field, rate: number): Promise<void> {
  writeFileSync(rateFile(stage), String(rate));
  for (const id of ALL) stage.node(id).signal("SIGHUP");
  await stage.ready(...ALL);
}

const writes = (field: Field): Promise<unknown> =>
  Promise.all(Array.from({ length: WRITES }, (_, at) => field.set(1, `key ${at}`)));

export const CALLERS: Part = {
  name: "callers",
  flags: (_id, stage) => [
    "--initial-cluster-partitions=4",
    `--caller-rate-limit=@${rateFile(stage)}`,
    // Leaderships change while nodes stand still for less than a second.
    "--raft-start-election-timeout=200ms",
    "--raft-end-election-timeout=400ms",
    "--raft-heartbeat-interval=40ms",
    "--raft-peer-ping-interval=100ms",
  ],
  start: (field) => {
    writeFileSync(rateFile(field.stage), "0");
    return plainly(field);
  },
  drives: [
    {
      how: "one node after the other stands still for a moment (SIGSTOP, SIGCONT)",
      alerts: ["SvcLoopDelay", "SvcPeerSlow", "SvcLeaderChanges"],
      again: async ({ stage }) => {
        for (const id of ALL) {
          stage.node(id).signal("SIGSTOP");
          await sleep(STILL_MS);
          stage.node(id).signal("SIGCONT");
          await sleep(MOVING_MS);
        }
      },
      end: ({ stage }) => stage.ready(...ALL),
    },
    {
      how: "callers ask more than a limit that was just lowered",
      alerts: ["SvcRequestsFail", "SvcOverload 1"],
      begin: (field) => limit(field, 1),
      again: writes,
      end: (field) => limit(field, 0),
    },
  ],
};

/** Elections have the time that such disks take. */
export const DISKS: Part = {
  name: "disks",
  flags: () => ["--initial-cluster-partitions=4"],
  start: plainly,
  drives: [
    {
      how: "each write of the log of two nodes takes 1.1 s",
      alerts: ["SvcLogSyncStalls 3", "SvcLogSyncSlow 2", "SvcCommitSlow", "SvcRequestsSlow 1"],
      begin: async (field) => {
        for (const id of [2, 3]) await field.again(id, {}, [SLOW_DISK]);
      },
      again: writes,
      end: async (field) => {
        for (const id of [2, 3]) await field.again(id);
      },
    },
  ],
};
