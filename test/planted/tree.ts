/**
 * A copy of folders of the compiled tree in a folder of its own, in which planted modules take the place of real ones.
 *
 * Invariant: the real code is never touched: files are linked, and a planted one is replaced, not written through.
 */
import { copyFileSync, linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** `dist/`. */
const compiled = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** A hard link costs nothing; on another file system the file is copied. */
function linkFile(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}

function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const item of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, item.name);
    const target = join(to, item.name);
    if (item.isDirectory()) linkTree(source, target);
    else if (!item.name.endsWith(".test.js")) linkFile(source, target);
  }
}

/**
 * Fills `folder` with these folders of `dist/` (no tests), these files of it, and `modules` by their path below
 * `dist/`.
 */
export function growTree(
  folder: string,
  folders: readonly string[],
  files: readonly string[],
  modules: ReadonlyMap<string, string>,
): void {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  for (const name of folders) linkTree(join(compiled, name), join(folder, name));
  for (const name of files) linkFile(join(compiled, name), join(folder, name));
  for (const [path, code] of modules) {
    rmSync(join(folder, path));
    writeFileSync(join(folder, path), code);
  }
}
