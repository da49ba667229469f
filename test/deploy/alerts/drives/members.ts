/** Nodes that are dead, and nodes that start again and again. */
import { sleep } from "../../../process/cluster/server-process.js";
import { type Part, plainly } from "../drive.js";

/** A start is seen by a scrape, each second. */
const SEEN_MS = 1500;

export const MEMBERS: Part = {
  name: "members",
  // Two replicas: some partitions have lost one of them, and with it their majority. What is dead for ten seconds is
  // replaced, and there is nobody who could do that.
  flags: () => [
    "--initial-cluster-partitions=6",
    "--raft-replication-factor=2",
    "--raft-placement-pass-interval=200ms",
    "--raft-dead-member-timeout=10s",
  ],
  start: plainly,
  drives: [
    {
      how: "a node is killed and started, until it has started more than three times",
      alerts: ["SvcRestarts 3"],
      again: async (field) => {
        await field.again(3);
        await sleep(SEEN_MS);
      },
    },
    {
      how: "a node is dead",
      alerts: [
        "SvcMemberDown 3",
        "SvcMemberAbsent",
        "SvcUnderReplicated",
        "SvcPartitionWithoutMajority",
        "SvcPlacementIdle",
      ],
      begin: ({ stage }) => stage.kill(3),
      end: (field) => field.again(3),
    },
    {
      how: "two of three nodes are dead",
      alerts: ["SvcNoQuorum", "SvcPartitionWithoutLeader", "SvcNodeUnready 1"],
      begin: ({ stage }) => stage.kill(2, 3),
      end: async ({ stage }) => {
        for (const id of [2, 3]) stage.start(id);
        await stage.ready(1, 2, 3);
      },
    },
  ],
};
