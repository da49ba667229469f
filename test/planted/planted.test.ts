/**
 * Every planted bug is caught, within the bounds of its catcher; the real core passes the very same
 * searches; and the table of README.md tells the truth.
 */
import t from "tap";
import { defaultConfig } from "../../src/raft/state/config.js";
import { RaftCore } from "../../src/raft/core.js";
import type { Catcher } from "./mutation.js";
import { mutations } from "./mutations.js";
import { plant, search } from "./plant.js";
import { rowOf, writtenRows } from "./table.js";

t.setTimeout(300_000);

/** Exact: no bug leaves the list unseen. */
const BUGS = 47;

/** The same search, as far as it had to go for the bug. Scenarios have a test of their own. */
function searchOfTheRealCore(catcher: Catcher, effort: number): string | null {
  const library = { RaftCore, defaultConfig };
  switch (catcher.by) {
    case "walk":
      return search(library, { ...catcher, maxSteps: effort }).said;
    case "explorer":
      return search(library, { ...catcher, maxStates: effort }).said;
    case "check":
      return search(library, catcher).said;
    case "golden":
      return null;
  }
}

t.test("P-168 every planted bug is caught, and the real core is not", async (t) => {
  t.equal(mutations.length, BUGS, "bugs, each of which is caught");
  for (const mutation of mutations) {
    const { effort, said } = await plant(mutation);
    t.not(said, null, `${mutation.pitfall} ${mutation.name}: caught after ${effort}`);
    t.equal(searchOfTheRealCore(mutation.catcher, effort), null, "and only the bug is");
  }
});

t.test("the table has every planted bug, in order", (t) => {
  t.strictSame(writtenRows(), mutations.map(rowOf));
  t.equal(new Set(mutations.map(({ name }) => name)).size, mutations.length, "names are different");
  t.end();
});
