/**
 * `npm run image -- [--stage] [--tag NAME] [-- WORDS OF THE BUILDER]`: the image of svc, built by buildah, podman or docker,
 * whichever is there. With `--stage` only what it is made of is put together, in dist/image/context.
 *
 * Owns dist/image. Invariants: 1. What goes in is in the repository, and of that only what the build needs: nothing that lies
 * around beside it can get into an image. 2. The version, the commit and the levels stand on the image.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "dist", "image");
export const context = join(target, "context");
/** Files and folders that the build needs. */
const WANTED = [
  ".npmrc",
  "CHANGELOG.md",
  "LICENSE",
  "asm/",
  "package-lock.json",
  "package.json",
  "proto/",
  "scripts/",
  "src/",
  "tsconfig.json",
];
/** What of these it does not. */
const UNWANTED = ["scripts/deploy/"];
const BUILDERS = ["buildah", "podman", "docker"];

function git(...words) {
  const { status, stdout, stderr } = spawnSync("git", words, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${words[0]}: ${stderr.trim()}`);
  return stdout;
}

/** Names of all files that go in, sorted. */
export function imageFiles() {
  const isIn = (path) => (entry) => (entry.endsWith("/") ? path.startsWith(entry) : path === entry);
  return git("ls-files", "-z")
    .split("\0")
    .filter((path) => WANTED.some(isIn(path)) && !UNWANTED.some(isIn(path)))
    .sort();
}

/** Copies them into an empty folder. */
export function stage() {
  rmSync(context, { recursive: true, force: true });
  for (const path of imageFiles()) {
    mkdirSync(dirname(join(context, path)), { recursive: true });
    cpSync(join(root, path), join(context, path));
  }
  return context;
}

/** What stands on the image. */
export function labels() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const levels = readFileSync(join(root, "src", "base", "levels.ts"), "utf8");
  const number = (name) => new RegExp(`const ${name} = (\\d+);`).exec(levels)?.[1];
  const isChanged = git("status", "--porcelain", "--untracked-files=no") !== "";
  const revision = `${git("rev-parse", "HEAD").trim()}${isChanged ? "-changed" : ""}`;
  return {
    VERSION: version,
    REVISION: revision,
    LEVELS: `${number("LEVEL_MIN")}-${number("LEVEL_MAX")}`,
  };
}

/** The words that build it, without the program's name. */
export function buildWords(builder, tag, more) {
  const args = Object.entries(labels()).flatMap(([name, value]) => [
    "--build-arg",
    `${name}=${value}`,
  ]);
  // The other format has no health check.
  const format = builder === "docker" ? [] : ["--format", "docker"];
  const file = join(root, "scripts", "deploy", "image", "Containerfile");
  return ["build", ...format, "--file", file, "--tag", tag, ...args, ...more, stage()];
}

function main(words) {
  const own = words.includes("--") ? words.slice(0, words.indexOf("--")) : words;
  const more = words.includes("--") ? words.slice(words.indexOf("--") + 1) : [];
  if (own.includes("--stage")) {
    process.stdout.write(`${stage()}\n`);
    return 0;
  }
  const { VERSION } = labels();
  const tag = own.includes("--tag") ? own[own.indexOf("--tag") + 1] : `svc:${VERSION}`;
  const found = (name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error === undefined;
  const builder = BUILDERS.find(found);
  if (builder === undefined) {
    process.stderr.write(`image: none of ${BUILDERS.join(", ")} is installed\n`);
    return 1;
  }
  return spawnSync(builder, buildWords(builder, tag, more), { stdio: "inherit" }).status ?? 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit(main(process.argv.slice(2)));
