/**
 * Compiles the project: AssemblyScript to WASM, .proto files to codecs, TypeScript to JavaScript in dist/,
 * the two programs to bundles, the web console to the files that a browser loads.
 *
 * Owns dist/ and the generated files named in `generators`. Every step is incremental by modification time,
 * so that a second call with nothing changed does next to nothing. Types are not checked here (`npm run verify` does).
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { buildConsole } from "./build-console.mjs";
import { bundleAll } from "./bundle.mjs";
import { compile } from "./compile.mjs";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const sourceFolders = ["src", "test", "perf"];

/** All files below `folder` whose name ends in one of `endings`. */
export function filesBelow(folder, endings) {
  const found = [];
  const walk = (directory) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (endings.some((ending) => entry.name.endsWith(ending))) found.push(path);
    }
  };
  if (existsSync(folder)) walk(folder);
  return found;
}

function modifiedMs(path) {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function isStale(output, inputs) {
  const built = modifiedMs(output);
  return built === 0 || inputs.some((input) => modifiedMs(input) > built);
}

/** Generators make source files that the TypeScript step then compiles; each returns whether it is stale. */
function generators() {
  const list = [];
  for (const name of ["asm", "proto", "version"]) {
    const script = join(root, "scripts", `build-${name}.mjs`);
    if (existsSync(script)) list.push(script);
  }
  return list;
}

async function compileTypeScript() {
  const stale = [];
  for (const folder of sourceFolders) {
    // What is left of a source that was moved or deleted: nobody should run it by mistake.
    const orphans = new Set(filesBelow(join(root, "dist", folder), [".js"]));
    for (const path of filesBelow(join(root, folder), [".ts", ".js"])) {
      if (path.endsWith(".d.ts")) continue;
      const output = join(root, "dist", relative(root, path)).replace(/\.ts$/, ".js");
      orphans.delete(output);
      if (isStale(output, [path])) stale.push({ path, output });
    }
    for (const path of orphans) rmSync(path, { force: true });
  }
  if (stale.length === 0) return 0;
  const failures = [];
  await Promise.all(
    stale.map(async ({ path, output }) => {
      try {
        const code = await compile(path, readFileSync(path, "utf8"));
        mkdirSync(dirname(output), { recursive: true });
        // Write aside and rename: a reader never sees half a module.
        const aside = `${output}.${process.pid}.tmp`;
        writeFileSync(aside, code);
        renameSync(aside, output);
      } catch (error) {
        failures.push(`${relative(root, path)}: ${error.message}`);
      }
    }),
  );
  if (failures.length > 0) throw new Error(`TypeScript does not compile:\n${failures.join("\n")}`);
  return stale.length;
}

/** Builds what changed. Returns how many files were compiled. */
export async function build() {
  for (const script of generators()) {
    const generator = await import(script);
    await generator.generate({ root, isStale, filesBelow });
  }
  const compiled = await compileTypeScript();
  const tools = { root, isStale, filesBelow };
  return compiled + (await bundleAll(tools)) + (await buildConsole(tools));
}
