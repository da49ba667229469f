/**
 * Merges of small neighbouring key ranges by hand (contract 6.3), on the leader of the meta
 * partition: one pass over a proved map, one merge after the other.
 *
 * Invariants: 1. Counts that are not known merge nothing; a pass that ends because they take too
 * long is not called complete. 2. `merges` counts cuts that were applied
 * before the deadline. 3. A merge that was given up ends as it began: the pass goes on.
 */
import { type RangeSizes as SizedMap, foldablePairs } from "../../control/ranges.js";
import type { BeginMoveCommand, RangeDescriptor } from "../../machine/commands/command.js";
import type { RangeRow } from "../../machine/meta/meta-rows.js";
import type { MergeRangesAnswer } from "../api/administration.js";
import type { RequestContext } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";
import { beginMove } from "./range-begin.js";
import { NOT_LEADING } from "./range-moves.js";
import { followMove, untilStill } from "./range-progress.js";
import type { RangeSizes } from "./range-sizes.js";

type MergeStatus = MergeRangesAnswer["status"];
type MergeDone = (answer: MergeRangesAnswer) => void;

/** Ranges whose sizes are asked for at the same time. */
const ASKED_MAX = 16;

/** One pass; `done` is called once. */
export function mergeRanges(
  serving: Serving,
  sizes: RangeSizes,
  context: RequestContext,
  done: MergeDone,
): void {
  new MergePass(serving, sizes, context, done).begin();
}

class MergePass {
  private readonly keys = new Map<RangeDescriptor, number | null>();
  private merges = 0;

  constructor(
    private readonly serving: Serving,
    private readonly sizes: RangeSizes,
    private readonly context: RequestContext,
    private readonly done: MergeDone,
  ) {}

  begin(): void {
    const { node, settings } = this.serving;
    const group = node.metaGroup();
    group.read(this.context.deadlineMs, (result) => {
      if (result.status !== "confirmed") return this.notLeading();
      const spaces = settings.rangeMergeMinSize > 0 ? this.spaces() : [];
      if (spaces.length === 0) return this.completed();
      this.count(spaces.flat(), () => {
        const isLate = this.serving.ports.clock.monotonicMs() >= this.context.deadlineMs;
        if (isLate && [...this.keys.values()].includes(null)) this.uncounted();
        else this.fold(this.pairs(spaces));
      });
    });
  }

  /** The ranges of every key space that has neighbours. */
  private spaces(): readonly (readonly RangeRow[])[] {
    const spaces = new Map<string, RangeRow[]>();
    for (const row of this.serving.node.metaGroup().machine.meta.allRanges()) {
      const rows = spaces.get(row.keySpace);
      if (rows === undefined) spaces.set(row.keySpace, [row]);
      else rows.push(row);
    }
    return [...spaces.values()].filter((rows) => rows.length > 1);
  }

  private count(rows: readonly RangeRow[], then: () => void): void {
    let next = 0;
    let open = 0;
    const more = (): void => {
      while (open < ASKED_MAX) {
        const row = rows[next++];
        if (row === undefined) break;
        open++;
        this.sizes.exact(row.keySpace, row.descriptor, this.context.deadlineMs, (keys) => {
          this.keys.set(row.descriptor, keys);
          open--;
          if (next >= rows.length && open === 0) then();
          else more();
        });
      }
    };
    more();
  }

  private pairs(spaces: readonly (readonly RangeRow[])[]): readonly BeginMoveCommand[] {
    const { node, settings } = this.serving;
    const group = node.metaGroup();
    if (node.closing) return [];
    const map: SizedMap = {
      nowLeaseMs: group.leaseNowMs(),
      dataPartitions: group.machine.meta.cluster()?.dataPartitions ?? 0,
      liveKeys: (_keySpace, range) => this.keys.get(range) ?? null,
    };
    return spaces.flatMap((rows) => foldablePairs(map, rows, settings.rangeMergeMinSize));
  }

  /** One after the other: in one key space the next one begins when the one before is over. */
  private fold([command, ...rest]: readonly BeginMoveCommand[]): void {
    if (command === undefined) return this.completed();
    const { serving } = this;
    const { deadlineMs } = this.context;
    untilStill(serving, command.keySpace, deadlineMs, (isStill) => {
      if (!isStill) return this.open();
      beginMove(serving, command, deadlineMs, (result) => {
        if (result.kind === "open") return this.open();
        if (result.kind === "not-at-level") return this.completed();
        if (result.kind === "not-leader") {
          return this.merges === 0 ? this.notLeading() : this.open();
        }
        // The map is another one by now, or has no room for it: it is for a later pass.
        if (result.kind === "refused") return this.fold(rest);
        followMove(serving, result.move, deadlineMs, (end) => {
          if (end.kind === "open") return this.open();
          if (end.kind === "cut") this.merges++;
          this.fold(rest);
        });
      });
    });
  }

  private end(success: boolean, status: MergeStatus, reason: string, leaderHint = ""): void {
    const determinate = status !== "Indeterminate";
    this.done({ success, status, determinate, merges: this.merges, leaderHint, reason });
  }

  private completed(): void {
    this.end(true, "Completed", "");
  }

  private open(): void {
    this.end(false, "Indeterminate", "Merges are under way; read the ranges again.");
  }

  private uncounted(): void {
    this.end(false, "Indeterminate", "The ranges could not be counted in time.");
  }

  private notLeading(): void {
    this.end(false, "NotLeader", NOT_LEADING, this.serving.leaders.metaEndpoint());
  }
}
