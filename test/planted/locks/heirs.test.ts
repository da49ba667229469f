/**
 * Planted bugs of heirs: those that few histories show are caught here, all of them when
 * `SVC_HISTORIES` says how many histories each may take.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import type * as Histories from "../../unit/machine/succession/histories.js";
import { type Planted, plantedModules } from "../edits.js";
import { heirBugs } from "./heirs.js";
import { growTree } from "../tree.js";

t.setTimeout(300_000);

const FOLDER = "test/unit/machine/succession";
/** Bugs that take more are left to the long form. */
const FEW = 5000;
const histories = Number(process.env["SVC_HISTORIES"] ?? FEW);

/** What the search says of the bug; null: nothing. */
async function searched(bug: Planted, count: number): Promise<Histories.Found> {
  const folder = mkdtempSync(join(tmpdir(), "svc-heirs-"));
  try {
    growTree(folder, [FOLDER], [], await plantedModules(bug));
    const module = pathToFileURL(join(folder, FOLDER, "histories.js")).href;
    const { newWorld, search } = (await import(module)) as typeof Histories;
    return search(newWorld(), 1, 0, count);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

t.test("P-168 planted bugs of heirs are caught", async (t) => {
  const tried = heirBugs.filter(({ within }) => within <= histories);
  t.ok(tried.length >= 10, "bugs that few histories show");
  for (const bug of tried) {
    const { number, violation } = await searched(bug, histories);
    t.not(violation, null, `${bug.name}: caught after ${number} histories`);
  }
});
