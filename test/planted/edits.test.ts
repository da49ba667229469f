/**
 * Every edit of every planted bug fits its source, without a run of anything: those of the core, of the
 * cluster's records, and of the whole node, caught or not yet.
 */
import t from "tap";
import {
  mutations as nodeMutations,
  openMutations as openNodeMutations,
} from "../sim/planted/mutations.js";
import { compileSource, type Edit, editedSources, plantedModules, sourceOf } from "./edits.js";
import { mutations as coreMutations } from "./mutations.js";
import { bugsOfRecords } from "./list/bugs.js";
import { heirBugs } from "./locks/heirs.js";

const all = [
  ...coreMutations,
  ...bugsOfRecords,
  ...heirBugs,
  ...nodeMutations,
  ...openNodeMutations,
];

/** Compiled text without the map of its source, which differs when only lines are moved. */
function codeOf(compiled: string): string {
  return compiled.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
}

t.test("P-168 every edit of a planted bug fits its source exactly once", (t) => {
  for (const planted of all) {
    t.doesNotThrow(() => editedSources(planted), planted.name);
  }
  t.end();
});

t.test("P-168 every planted source is another program than the real one", async (t) => {
  for (const planted of all) {
    for (const [path, code] of await plantedModules(planted)) {
      const file = path.replace(/\.js$/, ".ts");
      const real = await compileSource(file, sourceOf(file));
      t.not(codeOf(code), codeOf(real), `${planted.name}: ${file}`);
    }
  }
});

t.test("a bug that fits no longer, or twice, is an error", async (t) => {
  const file = "src/raft/state/log.ts";
  const planting = (...edits: Edit[]) => ({ name: "a sample", edits });
  for (const find of ["no such text in the source", "return"]) {
    const sample = planting({ file, find, replace: "" });
    t.throws(
      () => editedSources(sample),
      /^"a sample": \d+ places in src\/raft\/state\/log\.ts look like/,
    );
    await t.rejects(plantedModules(sample), /places in src\/raft\/state\/log\.ts/);
  }
  const once = { file, find: "export class ", replace: "class " };
  t.equal(editedSources(planting(once)).size, 1);
  t.throws(() => editedSources(planting(once, once)), /0 places/, "edits see those before them");
});
