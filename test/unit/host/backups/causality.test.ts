/** Writers that go from group to group while a coordinated cut is made: what one knew is in it, too. */
import t from "tap";
import type { ProposalResult } from "../../../../src/host/group/group.js";
import { CUT_PAUSE_MAX_MS } from "../../../../src/base/limits.js";
import { TakingCluster } from "../../../doubles/backup/taking-world.js";
import { setCommand } from "../../../doubles/host/world.js";

interface Written {
  readonly partition: number;
  readonly index: number;
}

/** Writes to one partition after the other, each when the one before is answered. */
class Walker {
  readonly written: Written[] = [];
  longestMs = 0;
  private isFree = true;

  constructor(
    private readonly cluster: TakingCluster,
    private at: number,
  ) {}

  /** Goes on, once the write before is answered. */
  next(): void {
    const { cluster } = this;
    if (!this.isFree) return;
    const partition = 1 + (this.at++ % 3);
    const id = cluster.serverOf(partition);
    if (id === null) return;
    this.isFree = false;
    const beganMs = cluster.nowMs;
    const deadlineMs = beganMs + 10_000;
    const key = `w-${this.at}`;
    const group = cluster.groupAt(id, partition);
    group.propose(setCommand(key), 100, deadlineMs, (result: ProposalResult) => {
      this.longestMs = Math.max(this.longestMs, cluster.nowMs - beganMs);
      this.isFree = true;
      if (result.status === "applied") this.written.push({ partition, index: result.index });
    });
  }
}

t.test("P-134 whatever was known when something in the cut was written is in the cut", (t) => {
  for (let seed = 0; seed < 3; seed++) {
    const settings = { initialPartitions: 3, leaderBalanceEveryMs: 200 };
    const cluster = new TakingCluster(3, 0, settings).ready();
    cluster.pass(3000);
    for (const id of [1, 2, 3]) cluster.world(id).wallMs += (id - 1) * 700 * (seed % 4);
    const walkers = [0, 1, 2, 3].map((at) => new Walker(cluster, at));
    const walk = (untilMs: number, until: () => boolean): void => {
      while (cluster.nowMs < untilMs && !until()) {
        for (const walker of walkers) walker.next();
        cluster.pass(1, 1);
      }
    };
    walk(cluster.nowMs + 50 + seed * 7, () => false);
    const keeper = cluster.serverOf(0) ?? 0;
    const asked = cluster.ask(keeper, { kind: "coordinated" });
    walk(cluster.nowMs + 20_000, () => asked.end !== null);
    walk(cluster.nowMs + 200, () => false);
    const ends = new Map(
      asked.manifest.partitionRanges.map((range) => [range.partition, range.toIndex]),
    );
    const isIn = ({ partition, index }: Written): boolean => index <= (ends.get(partition) ?? 0);
    let straddling = 0;
    for (const { written, longestMs } of walkers) {
      const firstOut = written.findIndex((write) => !isIn(write));
      t.notOk(
        firstOut >= 0 && written.slice(firstOut).some(isIn),
        "nothing is in behind one that is out",
      );
      if (firstOut > 0) straddling++;
      t.ok(longestMs < CUT_PAUSE_MAX_MS + 500, `no writer waited for ${longestMs} ms`);
    }
    t.ok(straddling > 0, "the cut went through the writes of somebody");
    const { pauses } = cluster.node(keeper).facts().backups;
    t.ok(pauses.sum < CUT_PAUSE_MAX_MS / 1000, "one pause, and a short one");
    cluster.verified(asked.manifest.backupId);
  }
  t.end();
});
