/**
 * Makes the web console: one script, one style sheet, one picture and the page that names them, in dist/console, with the
 * compressed forms beside each and `files.json`, by which the server finds them.
 *
 * Owns dist/console. Invariants: 1. All but the page carry the digest of their content in the name: browsers keep them for
 * ever. 2. The list is written last, and what it does not name is removed after. 3. The same sources give the same bytes.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** All of it together, as a browser unpacks it. */
const BYTES_MAX = 60 * 1024;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
const PAGE = "index.html";
const DIGEST_CHARACTERS = 16;

function digestOf(content) {
  return createHash("sha256").update(content).digest("hex").slice(0, DIGEST_CHARACTERS);
}

/** Written aside and renamed: a reader never sees half a file. */
function place(path, content) {
  const aside = `${path}.${process.pid}.tmp`;
  writeFileSync(aside, content);
  renameSync(aside, path);
}

async function bundled(entry) {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: ["chrome105", "firefox105", "safari16"],
    charset: "utf8",
    legalComments: "none",
    logLevel: "silent",
  });
  return Buffer.from(outputFiles[0].contents);
}

/** A file with its digest in its name. */
function hashed(stem, ending, content) {
  return { name: `${stem}-${digestOf(content)}${ending}`, content, isFixed: true };
}

async function makeFiles(sources) {
  const script = hashed("console", ".js", await bundled(join(sources, "main.ts")));
  const style = hashed("console", ".css", await bundled(join(sources, "style.css")));
  const picture = hashed("icon", ".svg", readFileSync(join(sources, "icon.svg")));
  const named = { SCRIPT: script.name, STYLE: style.name, ICON: picture.name };
  const page = readFileSync(join(sources, PAGE), "utf8").replace(
    /\{\{(\w+)\}\}/g,
    (_all, name) => named[name],
  );
  return [{ name: PAGE, content: Buffer.from(page), isFixed: false }, script, style, picture];
}

/** Writes one file with its compressed forms; returns its line of the list. */
function put(folder, { name, content, isFixed }) {
  const size = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  place(join(folder, name), content);
  place(join(folder, `${name}.br`), brotliCompressSync(content, { params: size }));
  place(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
  const type = TYPES[extname(name)];
  return { name, type, digest: digestOf(content), isFixed, encodings: ["br", "gzip"] };
}

/** Builds the console when a source is newer than it. Returns how many were built: 0 or 1. */
export async function buildConsole({ root, isStale, filesBelow }) {
  const sources = join(root, "src", "console");
  const folder = join(root, "dist", "console");
  const list = join(folder, "files.json");
  const read = filesBelow(sources, [".ts", ".css", ".html", ".svg"]);
  const own = join(root, "scripts", "build-console.mjs");
  if (!isStale(list, [...read, own, join(root, "package-lock.json")])) return 0;
  const made = await makeFiles(sources);
  const bytes = made.reduce((sum, { content }) => sum + content.length, 0);
  if (bytes > BYTES_MAX) throw new Error(`the console has ${bytes} bytes, at most ${BYTES_MAX}`);
  mkdirSync(folder, { recursive: true });
  const files = made.map((file) => put(folder, file));
  place(list, `${JSON.stringify({ first: PAGE, files }, null, 2)}\n`);
  const kept = new Set([
    "files.json",
    ...files.flatMap(({ name }) => [name, `${name}.br`, `${name}.gz`]),
  ]);
  for (const name of readdirSync(folder)) if (!kept.has(name)) rmSync(join(folder, name));
  return 1;
}
