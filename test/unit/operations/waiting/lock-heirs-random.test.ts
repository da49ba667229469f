/**
 * Heirs of a lock on the real host and machine of one node: random histories, a bounded part of
 * them. `SVC_HEIR_SEEDS` more, from `SVC_HEIR_SEED` (1) on.
 */
import t from "tap";
import { type HeirCounts, searchHeirs } from "../../../doubles/operations/heir-search.js";

t.setTimeout(300_000);

const SEEDS = 80;
const seeds = Number(process.env["SVC_HEIR_SEEDS"] ?? SEEDS);
const first = Number(process.env["SVC_HEIR_SEED"] ?? 1);

t.test("Q3 Q14 Q15 Q16 no history of heirs at a node has two holders or loses a grant", (t) => {
  const counts: HeirCounts = {};
  t.equal(searchHeirs(first, seeds, counts), null);
  t.comment(JSON.stringify(counts));
  const seen = (what: string): number => counts[what] ?? 0;
  t.ok(seen("told while the log hangs") >= 2 * seeds, "hand-overs in memory");
  t.ok(seen("set-heirs") >= seeds && seen("append-heirs") >= 2 * seeds, "lists that are written");
  t.ok(seen("released") >= 10 * seeds && seen("extended") >= seeds, "others");
  t.ok(Math.min(seen("crashes"), seen("moves"), seen("lists were cleared")) >= seeds, "ends");
  t.ok(Math.min(seen("forced"), seen("gave up")) >= seeds, "who is sent, and who goes");
  t.ok(seen("vanished") >= seeds / 10 && seen("late tries") >= seeds / 10, "who is late");
  t.ok(seen("kept who was told") >= 1, "and is told while lists are cleared");
  t.equal(seen("peaces"), seeds, "peace, in which all are served");
  t.end();
});
