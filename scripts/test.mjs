/**
 * `npm test [-- --all | --quick] [FILES]`: sets up, runs the compiled test files with tap, says which took longest, and
 * ends with the plain line `N passed, N failed`. Without arguments all of test/ runs, of the lives of real clusters one
 * third each day (`--all`: all of them); with arguments only the files whose path contains one; with
 * `--quick` what a developer needs while typing: no real processes, no simulated worlds, no fuzzing and no planted bugs.
 * A failed assertion is shown with its difference.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join, relative } from "node:path";
import { filesBelow, root } from "./build.mjs";
import { localBin } from "./run.mjs";
import { setup } from "./setup.mjs";

await setup();
/** Folders that `--quick` leaves out: each takes minutes. */
const SLOW = /^dist\/test\/(?:console|deploy|process|sim|fuzz|planted)\//;
/** Lives of real clusters: most of an hour of waiting for elections, drains and disks. One part of them a day. */
const LIVES =
  /^dist\/test\/(?:deploy|process\/(?:backups|cli|client|cluster|net|placement|ranges|server))\//;
const LIVES_PARTS = 3;
const DAY_MS = 86_400_000;
/** One more than the build machine has cores: tests of real processes wait more than they work. */
const JOBS = 3;
/** Lines of one failure that are shown. */
const DIFFERENCE_LINES_MAX = 80;
const LONGEST_SHOWN = 10;

const flags = process.argv.slice(2).filter((argument) => argument.startsWith("--"));
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const unknown = flags.filter((flag) => flag !== "--quick" && flag !== "--all");
if (unknown.length > 0) {
  process.stderr.write(
    `unknown: ${unknown.join(" ")}; npm test [-- --all | --quick] [PART OF A PATH ...]\n`,
  );
  process.exit(2);
}
const quick = flags.includes("--quick");
const part = Math.floor(Date.now() / DAY_MS) % LIVES_PARTS;
const isWhole = quick || wanted.length > 0 || flags.includes("--all");
let lives = 0;

/** Neighbours, which are alike, are in different parts. */
function isToday(path) {
  return isWhole || !LIVES.test(path) || lives++ % LIVES_PARTS === part;
}

const sources = filesBelow(join(root, "test"), [".test.ts"]).map((path) => relative(root, path));
const files = sources
  .map((path) => join("dist", path.replace(/\.ts$/, ".js")))
  .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(part)))
  .filter((path) => !quick || !SLOW.test(path))
  .sort()
  .filter(isToday);
if (files.length === 0) {
  process.stderr.write(`no test file matches ${wanted.join(" ")}\n`);
  process.exit(2);
}

if (!isWhole) {
  process.stdout.write(`part ${part + 1} of ${LIVES_PARTS} of the lives of clusters; --all: all\n`);
}
// The files are compiled: no test loads what compiles them again, as those of a fresh installation would, in a thread
// that each import waits for. A run that finds it must drop it has loaded it already.
const WITHOUT_COMPILER = "--plugin=!@tapjs/typescript";
const built = join(root, "node_modules/@tapjs/test/test-built/dist/esm/index.js");
if (readFileSync(built, "utf8").includes("@tapjs/typescript")) {
  spawnSync(localBin("tap"), ["build", WITHOUT_COMPILER], { cwd: root, stdio: "ignore" });
}
const tap = spawn(
  localBin("tap"),
  [
    "run",
    WITHOUT_COMPILER,
    `--jobs=${JOBS}`,
    "--timeout=600",
    "--disable-coverage",
    "--allow-empty-coverage",
    "--reporter=tap",
    "--node-arg=--enable-source-maps",
    ...files,
  ],
  { cwd: root, stdio: ["ignore", "pipe", "inherit"] },
);

// The stream nests: an assertion is an (indented) "ok" or "not ok" line without a child plan of its own. Counting files
// and their assertions would count twice, so only lines that are not followed by a subtest's closing are leaves.
let passed = 0;
let failed = 0;
let skipped = 0;
const depthHasChild = [];
const failedFiles = [];
const durations = [];
let differenceLines = 0;
for await (const line of createInterface({ input: tap.stdout })) {
  const match = /^( *)(not ok|ok) \d+(.*)$/.exec(line);
  if (match === null) {
    // What tap says of the assertion that failed last: the difference and where it stands.
    if (differenceLines > 0) {
      process.stdout.write(`    ${line.trimEnd()}\n`);
      differenceLines = /^ *\.\.\.$/.test(line) ? 0 : differenceLines - 1;
    }
    continue;
  }
  differenceLines = 0;
  const depth = match[1].length / 4;
  const isParent = depthHasChild[depth + 1] === true;
  depthHasChild.length = depth + 1;
  depthHasChild[depth] = true;
  const good = match[2] === "ok";
  if (depth === 0) {
    const seconds = Number(/# time=([\d.]+)ms/.exec(match[3])?.[1] ?? 0) / 1000;
    const name = match[3]
      .replace(/^ - /, "")
      .replace(/ (#.*|\{)$/, "")
      .replace(/ # .*$/, "");
    const took = seconds >= 1 ? ` (${seconds.toFixed(0)} s)` : "";
    process.stdout.write(`${good ? "  ok  " : "FAILED"} ${name}${took}\n`);
    durations.push({ name, seconds });
    if (!good) failedFiles.push(match[3]);
  }
  if (/# SKIP/i.test(match[3])) {
    skipped += 1;
    process.stdout.write(`  skipped: ${match[3].replace(/^ - /, "")}\n`);
  } else if (!isParent || !good) {
    if (good) passed += 1;
    else if (!isParent) {
      failed += 1;
      process.stdout.write(`  FAILED: ${match[3].replace(/^ - /, "")}\n`);
      differenceLines = DIFFERENCE_LINES_MAX;
    }
  }
}
const code = await new Promise((resolve) => {
  if (tap.exitCode !== null) resolve(tap.exitCode);
  else tap.on("exit", (value) => resolve(value ?? 1));
});
// A file that crashed outside any assertion still counts as a failure.
if (code !== 0 && failed === 0) failed = Math.max(1, failedFiles.length);
const longest = durations.sort((a, b) => b.seconds - a.seconds).slice(0, LONGEST_SHOWN);
process.stdout.write("longest:\n");
for (const { name, seconds } of longest) {
  process.stdout.write(`  ${seconds.toFixed(1).padStart(6)} s  ${name}\n`);
}
if (skipped > 0) process.stdout.write(`${skipped} skipped\n`);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed > 0 ? 1 : 0);
