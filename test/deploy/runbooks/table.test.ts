/** No runbook without a test that carries it out, and no command in one that nobody runs. */
import t from "tap";
import { readText } from "../../tidy/sources.js";
import { boxesOf, headingsOf } from "./documented.js";
import { RUNBOOKS } from "./stage.js";
import { RUNBOOK_TESTS } from "./table.js";

const STORIES = "deploy/runbooks/runbooks.test.ts";

t.test("every runbook has its tests, which are there", (t) => {
  t.same(headingsOf(RUNBOOKS, 3), Object.keys(RUNBOOK_TESTS), "in the order of the document");
  for (const [heading, proofs] of Object.entries(RUNBOOK_TESTS)) {
    t.ok(proofs.length > 0, heading);
    for (const { file, name } of proofs) {
      t.ok(readText(`test/${file}`).includes(name), `${heading}: ${file} has "${name}"`);
    }
  }
  t.end();
});

t.test("what stands in the boxes of a runbook is run by the story of its name", (t) => {
  const stories = readText(`test/${STORIES}`);
  for (const heading of headingsOf(RUNBOOKS, 3)) {
    if (boxesOf(RUNBOOKS, heading).length === 0) continue;
    t.ok(stories.includes(`"${heading}"`), heading);
  }
  t.throws(() => boxesOf(RUNBOOKS, "no such heading"), /no heading/);
  t.end();
});
