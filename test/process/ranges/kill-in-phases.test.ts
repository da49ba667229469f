/**
 * kill -9 of each node that takes part in a move of keys, in each of its phases, on one cluster of real processes under
 * load. A part of the table each day; SVC_RANGE_PHASES=all plays it whole.
 */
import t from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { allPass, verdictText } from "../../judge/checkers/verdict.js";
import { RangeSpaces } from "../chaos/range-clients.js";
import { endAll } from "../cluster/server-process.js";
import { PARTS, PHASE_FLAGS, Phases, cellText } from "./phases.js";
import { RangedRun } from "./ranged-run.js";

const parts = new PartOfDay("SVC_RANGE_PHASES", PARTS.length);
const cells = parts.of(PARTS).flat();

t.setTimeout(parts.isAll ? 900_000 : 400_000);
t.teardown(endAll);

/** One key space to the end. */
const ERA_MS = 3_600_000;
/** A third of the phases may be over before anybody looks. */
const SEEN_LEAST = 0.6;

t.test(
  "P-094 P-100 a move of keys survives the death of each node in it, in each phase",
  async (t) => {
    t.comment(parts.text);
    const spaces = new RangeSpaces(ERA_MS, 1, true);
    const say = (text: string): void => t.comment(text);
    const run = await RangedRun.start({ seed: 57, flags: PHASE_FLAGS, spaces, say });
    t.teardown(() => run.end());
    const [space] = spaces.of() as [string];
    const phases = new Phases(run, space, say);
    await phases.fill();
    run.work(6);
    let seen = 0;
    for (const cell of cells) {
      const beganMs = performance.now();
      const isSeen = await phases.play(cell);
      if (isSeen) seen++;
      t.comment(`${isSeen ? "seen" : "not seen in time"}: ${cellText(cell)}`);
      t.comment(`${Math.round(performance.now() - beganMs)} ms`);
    }
    t.ok(seen >= cells.length * SEEN_LEAST, `${seen} of ${cells.length} cells were seen`);
    const verdicts = await run.judge();
    for (const verdict of verdicts) t.equal(verdict.kind, "pass", verdictText(verdict));
    t.ok(allPass(verdicts));
    t.same(await run.differences(`${space}/k`), [], "every node shows the same");
  },
);
