/**
 * Bundles svc-cli into dist/bin, so that one operation starts in a fraction of the time that hundreds of modules take.
 *
 * Owns dist/bin. What an invocation does not need stays in chunks (or packages) of its own that are loaded when used.
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

const sourceFolders = ["src/cli", "src/client", "src/proto", "src/api", "src/base"];
/** Needed seldom, or not to be bundled: found in node_modules when they are used. */
const packagesLeftOut = ["enquirer", "undici", "@grpc/proto-loader"];
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

function removeOldChunks(folder, now) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (now - statSync(path).mtimeMs > CHUNK_KEPT_MS) rmSync(path, { force: true });
  }
}

/** Bundles when a source is newer than the bundle. Returns how many files were bundled: 0 or 1. */
export async function bundleCli({ root, isStale, filesBelow }) {
  const folder = join(root, "dist", "bin");
  const entry = join(folder, "svc-cli.js");
  const sources = sourceFolders.flatMap((name) => filesBelow(join(root, name), [".ts", ".js"]));
  const others = ["package-lock.json", "scripts/build-cli.mjs"].map((name) => join(root, name));
  if (!isStale(entry, [...sources, ...others])) return 0;
  // What changes while esbuild reads must count as newer than the bundle.
  const started = new Date();
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [join(root, "src", "cli", "main.ts")],
    entryNames: "svc-cli",
    chunkNames: "chunk-[hash]",
    outdir: folder,
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "eof",
    external: packagesLeftOut,
    banner: { js: banner },
    logLevel: "silent",
  });
  mkdirSync(folder, { recursive: true });
  // The entry comes last: what it names is there.
  const isEntry = (file) => basename(file.path) === "svc-cli.js";
  const files = [...result.outputFiles].sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)));
  for (const file of files) place(file.path, file.contents, started);
  removeOldChunks(folder, started.getTime());
  return 1;
}
