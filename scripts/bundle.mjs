/**
 * Bundles the two programs into dist/bin, so that an operation, or a node that comes back, starts in a fraction of the time
 * that hundreds of modules take.
 *
 * Owns dist/bin. What a start does not need stays in chunks (or packages) of its own that are loaded when used.
 */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";

/**
 * What is bundled: `left` stays a package that is found in node_modules when it is used, for it is needed seldom, or is not to be
 * bundled (compiled parts, threads of its own).
 */
const BUNDLES = [
  {
    name: "svc-cli",
    entry: "src/cli/main.ts",
    sources: ["src/cli", "src/client", "src/proto", "src/api", "src/base"],
    left: ["enquirer", "undici", "@grpc/proto-loader"],
    // Nobody reads traces of it, and one operation ends before a parser has read more.
    shape: { minifyWhitespace: true, minifySyntax: true },
  },
  {
    name: "svc-server",
    entry: "src/server/main.ts",
    sources: ["src", "asm"],
    left: ["node-lmdb", "pino", "@grpc/proto-loader", "reflect-metadata", "@peculiar/x509"],
    // Traces in the log of a server name functions, and lines of the sources where Node is told to map them.
    shape: { sourcemap: "linked" },
  },
];
/** A running shell may still load chunks of an earlier build. */
const CHUNK_KEPT_MS = 24 * 60 * 60 * 1000;

/** CommonJS packages inside an ES module ask for Node's own modules with `require`. */
const banner = [
  'import { createRequire as svcCreateRequire } from "node:module";',
  "const require = svcCreateRequire(import.meta.url);",
].join("");

/** Written aside and renamed: a reader never sees half a file. */
function place(path, contents, time) {
  const aside = `${path}.${process.pid}.tmp`;
  writeFileSync(aside, contents);
  utimesSync(aside, time, time);
  chmodSync(aside, 0o755);
  renameSync(aside, path);
}

/**
 * What a comment may have beyond ASCII doubles what the source of a bundle takes in memory for as long as the program runs; what
 * matters to the program is escaped already.
 */
function asciiOf(text) {
  return text.replace(
    /[^\x00-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function removeOldChunks(folder, now) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (now - statSync(path).mtimeMs > CHUNK_KEPT_MS) rmSync(path, { force: true });
  }
}

/** Bundles one program when a source is newer than it. Returns how many files were bundled: 0 or 1. */
async function bundle({ name, entry, sources, left, shape }, { root, isStale, filesBelow }) {
  const folder = join(root, "dist", "bin");
  const program = join(folder, `${name}.js`);
  const read = sources.flatMap((source) => filesBelow(join(root, source), [".ts", ".js"]));
  const others = ["package-lock.json", "scripts/bundle.mjs"].map((path) => join(root, path));
  if (!isStale(program, [...read, ...others])) return 0;
  // What changes while esbuild reads must count as newer than the bundle.
  const started = new Date();
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [join(root, entry)],
    entryNames: name,
    chunkNames: "chunk-[hash]",
    outdir: folder,
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    legalComments: "eof",
    external: left,
    banner: { js: banner },
    logLevel: "silent",
    ...shape,
  });
  mkdirSync(folder, { recursive: true });
  // The entry comes last: what it names is there.
  const isEntry = (file) => basename(file.path) === `${name}.js`;
  const files = [...result.outputFiles].sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)));
  for (const file of files) {
    const isCode = file.path.endsWith(".js");
    place(file.path, isCode ? asciiOf(file.text) : file.contents, started);
  }
  removeOldChunks(folder, started.getTime());
  return 1;
}

/** Bundles what is stale; returns how many programs that were. */
export async function bundleAll(build) {
  let count = 0;
  for (const one of BUNDLES) count += await bundle(one, build);
  return count;
}
