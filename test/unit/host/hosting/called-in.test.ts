/** Replicas that were called in place of a leaving node's, when it stays after all. */
import t from "tap";
import { PLACEMENT_ITEMS_MAX } from "../../../../src/base/limits.js";
import { mapVersion, membershipVersion } from "../../../../src/base/ids.js";
import { CalledIn } from "../../../../src/host/cluster/called-in.js";
import type { MetaProposal, MetaResult } from "../../../../src/host/cluster/meta-proposals.js";
import type { ClusterRecord, PartitionRecord } from "../../../../src/machine/commands/command.js";
import type { MetaReads } from "../../../../src/machine/meta/meta-reads.js";
import { placed } from "../../../doubles/control/placement-view.js";

const UNKNOWN: MetaResult = { status: "unknown" };

/** A node that left and stays: its records, and what it proposes. */
class Stayer {
  version = 5;
  records: readonly PartitionRecord[] = [];
  asked: string[] = [];
  ends: (() => void)[] = [];
  readonly calledIn: CalledIn;

  constructor(nodeId = 1) {
    const cluster = (): Partial<ClusterRecord> => {
      const membership = membershipVersion(this.version);
      return { mapVersion: mapVersion(1), membershipVersion: membership };
    };
    const reads = { cluster, partitions: () => this.records };
    const proposeOnMeta = (
      command: MetaProposal,
      _deadlineMs: number,
      done: (result: MetaResult) => void,
    ): void => {
      const items = command.kind === "change-replicas" ? command.items : [];
      this.asked.push(
        items
          .map(({ partitionId, change }) => `${partitionId} ${change.kind} ${change.nodeId}`)
          .join(),
      );
      this.ends.push(() => done(UNKNOWN));
    };
    const metaReads = (): MetaReads => reads as unknown as MetaReads;
    this.calledIn = new CalledIn({ nodeId, metaReads, proposeOnMeta }, 6);
  }

  /** What it asked for in one step, and whether it was the last. */
  step(): string {
    this.asked = [];
    const isDone = this.calledIn.step(0);
    return `${this.asked.join("; ")}${isDone ? "done" : ""}`;
  }

  end(): void {
    for (const end of this.ends.splice(0)) end();
  }
}

t.test("P-094 P-096 cancels are given until the records show them, and nothing else is", (t) => {
  const stayer = new Stayer();
  stayer.records = [placed(1, "1, 2, 3 learner for 1"), placed(2, "1, 2, 4 learner for 2")];
  t.equal(stayer.step(), "", "the role is not back here: more may be ordered");
  stayer.version = 6;
  stayer.records = [...stayer.records, placed(3, "1, 2, 4 learner for 1"), placed(4, "1, 2")];
  t.equal(stayer.step(), "1 cancel 3,3 cancel 4");
  t.equal(stayer.step(), "", "one order at a time");
  stayer.end();
  t.equal(stayer.step(), "1 cancel 3,3 cancel 4", "whose end is not known is given again");
  stayer.end();
  const later = placed(4, "1, 2, 5 learner for 1");
  stayer.records = [placed(1, "1, 2, 3 removing"), placed(3, "1, 2, 4 learner for 1"), later];
  t.equal(stayer.step(), "3 cancel 4", "what came since is left alone");
  stayer.end();
  stayer.records = [placed(3, "1 removing, 2, 4"), later];
  t.equal(stayer.step(), "done", "what has moved stays moved");
  t.end();
});

t.test("P-096 many at a time, and none where nothing was called in", (t) => {
  const stayer = new Stayer();
  stayer.version = 7;
  const count = PLACEMENT_ITEMS_MAX + 6;
  const all = Array.from({ length: count }, (_, at) => placed(at + 1, "1, 2, 3 learner for 1"));
  stayer.records = all;
  t.equal(stayer.step().split(",").length, PLACEMENT_ITEMS_MAX);
  stayer.end();
  stayer.records = all.slice(PLACEMENT_ITEMS_MAX);
  t.equal(stayer.step().split(",").length, 6);
  stayer.end();
  stayer.records = [];
  t.equal(stayer.step(), "done");
  const nobody = new Stayer(3);
  nobody.version = 6;
  nobody.records = [placed(1, "1, 2, 3 learner for 1")];
  t.equal(nobody.step(), "done", "another one's");
  t.end();
});
