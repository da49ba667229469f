/** The checker of read turns fires on a turn that looks at too many rows, and its meter counts them by itself (P-193). */
import t from "tap";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { NO_RUNS, encodeKvRow } from "../../../src/machine/kv/kv-row.js";
import { PageBuilder } from "../../../src/machine/kv/page-builder.js";
import { EVERY_KEY } from "../../../src/machine/ownership/ownership.js";
import { TURN_VISITS } from "../../../src/operations/admission/slices.js";
import { ReadTurns } from "../checkers/nodes/read-turns.js";
import { ReadMeter, metered } from "../../sim/world/readmeter.js";

function row(deleted: boolean, sizeBytes = 0): Uint8Array {
  const value = deleted ? null : new Uint8Array(sizeBytes);
  const both = { stamp: NO_STAMP, endMs: deleted ? 0 : null, kept: NO_RUNS };
  return encodeKvRow({ deleted, value, passing: false, revision: 1, ...both });
}

function turn(visits: number, largest: number): ReadTurns {
  const checker = new ReadTurns();
  checker.turn(1, 5, { visits, largest, dead: visits, waiting: 2 });
  return checker;
}

t.test("P-193 a turn of so many visits and one row passes, one more fails", (t) => {
  t.equal(turn(TURN_VISITS, 1).verdict().kind, "pass");
  t.equal(turn(TURN_VISITS + 40, 40).verdict().kind, "pass", "the last row may be large");
  const broken = turn(TURN_VISITS + 2, 1);
  t.ok(broken.isBroken);
  t.match(broken.verdict().violations[0], /node 1 makes 2002 visits at 5\.0 ms/);
  t.match(broken.verdict().seen, { "full turns": 1, "turns with several readers": 1 });
  t.end();
});

t.test("P-193 the meter counts rows that were looked at, whatever the page was told", (t) => {
  const meter = new ReadMeter();
  const { offer, pass } = Object.getOwnPropertyDescriptors(PageBuilder.prototype);
  const count = (): void => {
    const page = new PageBuilder(EVERY_KEY, 0, 2, 1 << 20, 10, false);
    t.ok(page.offer("a", row(true)));
    t.ok(page.offer("b", row(false, 3000)));
    t.ok(page.offer("c", row(false)));
    t.notOk(page.offer("d", row(false)), "the page is full");
  };
  metered(meter, count);
  const { visits, largest, dead } = meter;
  t.same({ visits, largest, dead }, { visits: 5, largest: 3, dead: 1 });
  const after = Object.getOwnPropertyDescriptors(PageBuilder.prototype);
  t.equal(after.offer.value, offer.value);
  t.equal(after.pass.value, pass.value);
  count();
  t.equal(meter.visits, 5, "nothing is counted outside of a run");
  t.end();
});
