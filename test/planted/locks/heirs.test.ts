/**
 * Planted bugs of heirs: those that few histories or a small case show are caught here, all of them
 * when `SVC_HISTORIES` says how many histories each may take.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import type * as Histories from "../../unit/machine/succession/histories.js";
import type * as SmallCases from "../../unit/machine/succession/small-cases.js";
import { plantedModules } from "../edits.js";
import { type HeirBug, heirBugs } from "./heirs.js";
import { growTree } from "../tree.js";

t.setTimeout(300_000);

const FOLDER = "test/unit/machine/succession";
const RULES = "src/machine/locks/succession.js";
/** Bugs that take more are left to the long form. */
const FEW = 5000;
/** States of a small case. */
const STATES_MAX = 12_000;
const histories = Number(process.env["SVC_HISTORIES"] ?? FEW);

/** What its small case, if it has one, or the histories say of the bug; null: nothing. */
async function searched(bug: HeirBug, count: number): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), "svc-heirs-"));
  try {
    growTree(folder, [FOLDER], [RULES], await plantedModules(bug));
    const moduleOf = (name: string): string => pathToFileURL(join(folder, FOLDER, name)).href;
    const { newWorld, search } = (await import(moduleOf("histories.js"))) as typeof Histories;
    if (bug.small === undefined) return search(newWorld(), 1, 0, count).violation;
    const cases = (await import(moduleOf("small-cases.js"))) as typeof SmallCases;
    const plan = cases.SMALL_CASES.find(({ name }) => name === bug.small);
    if (plan === undefined) throw new Error(`there is no small case "${bug.small}"`);
    return cases.explore(newWorld(), plan, STATES_MAX).violation;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

t.test("P-168 planted bugs of heirs are caught", async (t) => {
  const isTried = ({ within, small }: HeirBug): boolean =>
    within <= histories || small !== undefined;
  const tried = heirBugs.filter(isTried);
  t.ok(tried.length >= 10, "bugs that few histories show");
  for (const bug of tried) t.not(await searched(bug, histories), null, bug.name);
});
