/** What former lives left of states: found in many groups within few ticks, deleted some rows at a time. */
import t from "tap";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../../src/host/snapshots/snapshot-limits.js";
import { FakeStore } from "../../../doubles/machine/fake-store.js";
import { Lane, Side } from "../../../doubles/host/snapshot-world.js";

const { sweepGroups } = DEFAULT_SNAPSHOT_SETTINGS;
const GROUPS = 1001;
const ROWS = 12;

function sideOf(groups: number, settings: { readonly sweepRows?: number } = {}): Side {
  const ids = Array.from({ length: groups }, (_, at) => at + 1);
  return new Side(new Lane(), 1, new FakeStore(), null, settings, ids);
}

t.test("a node of 1,001 groups rests a few seconds after its start, not after 1,001 ticks", (t) => {
  const side = sideOf(GROUPS);
  let ticks = 0;
  for (; side.snapshots.hasWork && ticks < GROUPS; ticks++) side.lane.step();
  t.equal(ticks, Math.ceil(GROUPS / sweepGroups));
  t.end();
});

t.test("rows of all groups together are what one tick deletes at most", (t) => {
  const side = sideOf(4, { sweepRows: ROWS + 3 });
  const deleted: number[] = [];
  for (const { machine } of side.groups.values()) {
    let left = ROWS;
    machine.sweep = (limit) => {
      const rows = Math.min(limit, left);
      left -= rows;
      deleted.push(rows);
      return rows;
    };
  }
  side.lane.step();
  t.strictSame(deleted, [ROWS, 0, 3], "one whole, and a part of the next");
  while (side.snapshots.hasWork) side.lane.step();
  t.equal(
    deleted.reduce((sum, rows) => sum + rows, 0),
    4 * ROWS,
  );
  t.end();
});
