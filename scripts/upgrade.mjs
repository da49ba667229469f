/**
 * `npm run upgrade [-- COMMIT]`: a rolling upgrade of three real nodes under load, from a program that is built from an earlier
 * commit to the present one. Without a commit: the last one whose program knows no level above the one before the present.
 *
 * The earlier sources lie in dist/earlier/ and are built once. Without the history (a shallow clone, an archive) it says that
 * it is skipped, and ends with 0; `npm test` then has the same story with a stand-in for the earlier program.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();

/** What is needed to build the server and the shell; tests are not. */
const SOURCES = ["src", "scripts", "proto", "asm", "package.json", "package-lock.json"];
const LEVELS = "src/base/levels.ts";

function git(...words) {
  const options = { cwd: root, encoding: "utf8", maxBuffer: 1 << 30 };
  const { status, stdout } = spawnSync("git", words, options);
  return status === 0 ? stdout.trim() : null;
}

/** The commit before the one that raised the level that programs know; null: the history does not go back so far. */
function beforeTheLevel() {
  const line = /^const LEVEL_MAX = \d+;$/m.exec(readFileSync(join(root, LEVELS), "utf8"))?.[0];
  const raised = git("log", "--reverse", "--format=%H", `-S${line}`, "--", LEVELS)?.split("\n")[0];
  return raised ? git("rev-parse", "--verify", "--quiet", `${raised}^`) : null;
}

/** What a lock says of all packages but this one. */
function packagesOf(lock) {
  const { packages } = JSON.parse(readFileSync(lock, "utf8"));
  return JSON.stringify({ ...packages, "": null });
}

function run(folder, program, ...words) {
  const { status } = spawnSync(program, words, { cwd: folder, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${status}`);
}

/** Builds the program of a commit; where its server begins. */
function built(commit) {
  const folder = join(root, "dist", "earlier", commit);
  const program = join(folder, "dist", "src", "server", "main.js");
  const stamp = join(folder, "built");
  if (existsSync(stamp)) return program;
  process.stdout.write(`building ${commit.slice(0, 12)} …\n`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const archive = `git archive ${commit} ${SOURCES.join(" ")} | tar -x -C '${folder}'`;
  run(root, "sh", "-c", archive);
  // With the same packages those of this folder's ancestor are found; else it needs its own.
  const isShared =
    packagesOf(join(folder, "package-lock.json")) === packagesOf(join(root, "package-lock.json"));
  if (!isShared) run(folder, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error");
  const script = `await (await import("./scripts/build.mjs")).build();`;
  run(folder, process.execPath, "--input-type=module", "-e", script);
  writeFileSync(stamp, "");
  return program;
}

const given = process.argv[2];
const commit =
  given === undefined
    ? beforeTheLevel()
    : git("rev-parse", "--verify", "--quiet", `${given}^{commit}`);
if (commit === null && given !== undefined) {
  process.stderr.write(`there is no commit ${given}\n`);
  process.exit(2);
}
if (commit === null) {
  process.stdout.write("skipped: this clone has no commit of the level before\n");
  process.exit(0);
}
const program = built(commit);
process.stdout.write(`from ${git("log", "-1", "--format=%h %cs %s", commit)}\n`);
const beganMs = performance.now();
const test = join(root, "dist", "test", "process", "cluster", "upgrading.test.js");
const { status } = spawnSync(process.execPath, ["--enable-source-maps", test], {
  cwd: root,
  env: { ...process.env, SVC_EARLIER_PROGRAM: program, TAP_TIMEOUT: "1200" },
  stdio: "inherit",
});
process.stdout.write(`${Math.round((performance.now() - beganMs) / 1000)} s\n`);
process.exit(status === 0 ? 0 : 1);
