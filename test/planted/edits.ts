/**
 * Planted bugs are edits of the TypeScript sources. A planted source is compiled as the build compiles it, and takes the
 * place of its module in a copy of the compiled tree.
 *
 * Invariants: 1. Sources are read, never written. 2. The text of an edit stands exactly once in its source (as the edits
 * before it left it); an edit that fits no longer, or twice, is an error, so that no bug goes stale in silence.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** One exact replacement in a source. */
export interface Edit {
  /** Path of the source from the root of the repository: `src/raft/state/log.ts`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** What is planted: a name for messages, and the edits in their order. */
export interface Planted {
  readonly name: string;
  readonly edits: readonly Edit[];
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

export function edit(file: string, find: string, replace: string): Edit {
  return { file, find, replace };
}

/** The text of a source as it is. `file`: from the root of the repository. */
export function sourceOf(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

/** The changed text of each edited source, by its path. Throws if an edit does not fit exactly once. */
export function editedSources({ name, edits }: Planted): Map<string, string> {
  const edited = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const parts = (edited.get(file) ?? sourceOf(file)).split(find);
    if (parts.length !== 2) {
      throw new Error(`"${name}": ${parts.length - 1} places in ${file} look like ${find}`);
    }
    edited.set(file, parts.join(replace));
  }
  return edited;
}

/** The JavaScript of a source, made as the build makes it. */
export async function compileSource(file: string, text: string): Promise<string> {
  const script = pathToFileURL(join(root, "scripts", "compile.mjs")).href;
  const { compile } = (await import(script)) as {
    compile: (path: string, text: string) => Promise<string>;
  };
  return compile(join(root, file), text);
}

/** The compiled modules with the bug, by their path below `dist/`. Rejects if an edit does not fit. */
export async function plantedModules(planted: Planted): Promise<Map<string, string>> {
  const modules = new Map<string, string>();
  for (const [file, text] of editedSources(planted)) {
    modules.set(file.replace(/\.ts$/, ".js"), await compileSource(file, text));
  }
  return modules;
}
