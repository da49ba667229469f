/**
 * Every planted bug of the cluster's records, and of hosting by them, is caught by the test that is named for it, and by no accident: without a
 * bug the same files pass in the same kind of copy.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { plantedModules } from "./edits.js";
import { bugsOfRecords as bugs } from "./list/bugs.js";
import { planted as parts } from "./part.js";
import { growTree } from "./tree.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
/** A run of one file that takes longer does not end at all (ms). */
const RUN_MAX_MS = 120_000;
/** Random sequences per run: enough for every bug. */
const SEEDS = "60";
/** Moments at which a node dies: enough, too, and so many that one falls where a replica is gone. */
const DEATHS = "40";

/** Text files are no part of a tree. */
const SCENARIOS = join(root, "test", "unit", "machine", "heirs", "scenarios");

const tried = parts.of(bugs);

t.setTimeout(parts.isAll ? 3_600_000 : 560_000);
t.comment(parts.text);

/** The names of the tests of a file that fail in a tree with these modules. */
async function failing(file: string, modules: ReadonlyMap<string, string>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-planted-"));
  try {
    const path = `test/unit/${file}.js`;
    const helpers = ["test/doubles", "test/golden", "test/judge", "test/unit/grpc", "perf/micro"];
    const folders = ["src", ...helpers];
    growTree(folder, folders, [path], modules);
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const few = { SVC_PLACEMENT_SEEDS: SEEDS, SVC_HOSTING_DEATHS: DEATHS };
    const env = { ...process.env, ...few, SVC_LOCK_SCENARIOS: SCENARIOS };
    const said = await new Promise<string>((resolve) => {
      execFile(
        process.execPath,
        [join(folder, path)],
        { env, timeout: RUN_MAX_MS, maxBuffer: 64 * 1024 * 1024 },
        (_error, stdout) => resolve(stdout),
      );
    });
    // A file that cannot be loaded shows nothing, neither with a bug nor without.
    if (!/^(not )?ok \d/m.test(said)) throw new Error(`${path} ran no test`);
    return [...said.matchAll(/^not ok \d+ - (.*?)(?: # time=.*)?$/gm)].map(([, name = ""]) => name);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

t.test("P-168 every planted bug of records and hosting is caught by its test", async (t) => {
  for (const bug of tried) {
    const failed = await failing(bug.file, await plantedModules(bug));
    t.ok(
      failed.some((name) => name.startsWith(bug.test)),
      `${bug.pitfall} ${bug.name}: ${failed.join("; ")}`,
    );
  }
});

t.test("without a bug the same tests pass", async (t) => {
  for (const file of new Set(tried.map((bug) => bug.file))) {
    t.strictSame(await failing(file, new Map()), [], file);
  }
});
