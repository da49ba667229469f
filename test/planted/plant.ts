/**
 * Plants a mutation and sees who notices: a copy of the compiled core in a folder of its own, with the
 * planted sources compiled, loaded beside the real one, and given to the explorer, the walks or a scenario.
 *
 * Invariants: 1. The real core is never touched. 2. Folders are removed at the end.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { explore } from "../unit/raft/explorer/explore.js";
import type { Library } from "../unit/raft/explorer/node.js";
import { plans } from "../unit/raft/explorer/plans.js";
import { walks } from "../unit/raft/explorer/walk.js";
import { checks } from "./checks.js";
import { plantedModules } from "./edits.js";
import type { Catcher, Mutation } from "./mutation.js";

const compiled = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const scenarios = join(compiled, "..", "test", "golden", "scenarios");

/** What became of a mutation: how far the catcher had to go, and what it said; null if nothing. */
export interface Catch {
  /** Steps walked, states explored, scenarios or checks run. */
  readonly effort: number;
  readonly said: string | null;
}

/** A copy of the core in `folder`, with the mutation. Rejects if an edit does not fit. */
async function mutate(mutation: Mutation, folder: string): Promise<void> {
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  cpSync(join(compiled, "src", "raft"), join(folder, "src", "raft"), { recursive: true });
  symlinkSync(join(compiled, "src", "base"), join(folder, "src", "base"));
  for (const [path, code] of await plantedModules(mutation))
    writeFileSync(join(folder, path), code);
}

function load(path: string): Promise<unknown> {
  return import(pathToFileURL(path).href);
}

async function libraryIn(folder: string): Promise<Library> {
  const raft = join(folder, "src", "raft");
  const core = (await load(join(raft, "core.js"))) as Pick<Library, "RaftCore">;
  const config = (await load(join(raft, "state", "config.js"))) as Pick<Library, "defaultConfig">;
  return { RaftCore: core.RaftCore, defaultConfig: config.defaultConfig };
}

async function runScenario(folder: string, scenario: string): Promise<Catch> {
  mkdirSync(join(folder, "test"));
  cpSync(join(compiled, "test", "golden"), join(folder, "test", "golden"), { recursive: true });
  const { checkFile } = (await load(join(folder, "test", "golden", "run.js"))) as {
    checkFile: (path: string, name: string) => { readonly failure: string | null };
  };
  const { failure } = checkFile(join(scenarios, scenario), scenario);
  return { effort: 1, said: failure };
}

const stepsPerWalk = 4000;

function searchByWalk(library: Library, catcher: Extract<Catcher, { by: "walk" }>): Catch {
  const { bias, maxSteps } = catcher;
  const { total, found } = walks(library, 1, maxSteps, stepsPerWalk, bias);
  return { effort: total.steps, said: found?.violation ?? null };
}

function searchByExploring(library: Library, catcher: Extract<Catcher, { by: "explorer" }>): Catch {
  const plan = plans.find(({ name }) => name === catcher.plan);
  if (plan === undefined) throw new Error(`there is no exploration "${catcher.plan}"`);
  const found = explore(library, { ...plan, maxStates: catcher.maxStates });
  return { effort: found.states, said: found.violation };
}

/** Lets a catcher look for anything wrong with a core. Scenarios need a folder of their own. */
export function search(library: Library, catcher: Exclude<Catcher, { by: "golden" }>): Catch {
  if (catcher.by === "walk") return searchByWalk(library, catcher);
  if (catcher.by === "explorer") return searchByExploring(library, catcher);
  return { effort: 1, said: checks[catcher.check](library) };
}

/** Plants the mutation and lets the catcher (its own, unless another is given) look for it. */
export async function plant(mutation: Mutation, catcher = mutation.catcher): Promise<Catch> {
  const folder = mkdtempSync(join(tmpdir(), "svc-planted-"));
  try {
    await mutate(mutation, folder);
    if (catcher.by === "golden") return await runScenario(folder, catcher.scenario);
    return search(await libraryIn(folder), catcher);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
