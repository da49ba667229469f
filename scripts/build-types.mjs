/**
 * Writes the declarations of the client library to dist/types, for programs that import the package.
 *
 * Owns dist/types. What is marked @internal is left out, and so is every file that the public surface does not
 * reach. What is left names no package and nothing of Node: it compiles wherever a program is compiled.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { filesBelow, root } from "./build.mjs";

const target = join(root, "dist", "types");
const entry = join(target, "client", "mod.d.ts");
/** Disposable handles are younger than the library that most programs compile with. */
const LIBRARIES = '/// <reference lib="esnext.disposable" />\n';

function specifiersIn(text) {
  return [...text.matchAll(/(?:from|import\() ?"([^"]+)"/g)].map((found) => found[1]);
}

/** The files that `first` imports, with itself. Throws when one of them names what is not the library's. */
function reachable(first) {
  const found = new Set([first]);
  for (const path of found) {
    const text = readFileSync(path, "utf8");
    const code = text.replace(/\/\*[\s\S]*?\*\//g, "");
    const foreign = /\b(?:Buffer|NodeJS)\b/.exec(code)?.[0];
    if (foreign !== undefined) throw new Error(`${relative(root, path)} names ${foreign}`);
    for (const specifier of specifiersIn(code)) {
      if (!specifier.startsWith(".")) throw new Error(`${relative(root, path)} names ${specifier}`);
      found.add(join(dirname(path), specifier.replace(/\.js$/, ".d.ts")));
    }
  }
  return found;
}

rmSync(target, { recursive: true, force: true });

const folder = mkdtempSync(join(tmpdir(), "svc-types-"));
const project = join(folder, "tsconfig.json");
writeFileSync(
  project,
  JSON.stringify({
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
      rootDir: join(root, "src"),
      outDir: target,
      typeRoots: [join(root, "node_modules", "@types")],
    },
    include: [],
    files: [join(root, "src", "client", "mod.ts")],
  }),
);
const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
const { status } = spawnSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" });
rmSync(folder, { recursive: true, force: true });
if (status !== 0) process.exit(status ?? 1);

const kept = reachable(entry);
for (const path of filesBelow(target, [".d.ts"])) if (!kept.has(path)) rmSync(path);
writeFileSync(entry, LIBRARIES + readFileSync(entry, "utf8"));
