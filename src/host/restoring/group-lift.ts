/**
 * Carries the lifting of a group (`machine/restoring/`) through, slice by slice, with its rows
 * flushed between them.
 *
 * Invariant: the record of the group is in the last flush: a group without it was not lifted.
 */
import type { PartitionId } from "../../base/ids.js";
import { failure, ok } from "../../base/result.js";
import type { GroupRecord } from "../../machine/commands/group-record.js";
import { RestoredGroup } from "../../machine/restoring/restored-group.js";
import type { RestoreOrder } from "../../machine/restoring/restored-rows.js";
import type { TimerPort } from "../../ports.js";
import type { RestoreDone } from "./restore-faults.js";
import type { RowFlush } from "./row-flush.js";

const ROWS_PER_TURN = 1024;

/**
 * Lifts one group; its machine is closed, and all that it applied is in the memtable or below.
 * `last`: called before the last flush.
 */
export function liftGroup(
  rows: RowFlush,
  { partition, record }: { readonly partition: PartitionId; readonly record: GroupRecord },
  order: RestoreOrder,
  timer: TimerPort,
  done: RestoreDone<RestoredGroup>,
  last: () => void = () => undefined,
): void {
  const group = new RestoredGroup(rows.memtable, partition, record, order);
  const slice = (): void => {
    const said = group.step(ROWS_PER_TURN);
    if (said === "overflow") {
      const what = `A floor of partition ${partition} would be larger than 2^62.`;
      return done(failure("IoError", what));
    }
    if (said === "done") {
      last();
      return rows.flush((flushed) => done(flushed.ok ? ok(group) : flushed));
    }
    if (!rows.isDue) return timer.soon(slice);
    rows.flush((flushed) => (flushed.ok ? timer.soon(slice) : done(flushed)));
  };
  slice();
}
