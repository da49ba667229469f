/**
 * Makes a fresh clone ready: installs the locked packages when the lock changed, builds when sources changed.
 * Called first by every npm script; with nothing to do it returns in a fraction of a second.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build, root } from "./build.mjs";

const stampPath = join(root, "node_modules", ".svc-installed");

/** The folder that holds include/node/node.h, when this machine has Node's headers: the addon then needs no download. */
function headersPrefix() {
  for (const prefix of [dirname(dirname(process.execPath)), "/usr", "/usr/local"]) {
    if (existsSync(join(prefix, "include", "node", "node.h"))) return prefix;
  }
  return undefined;
}

function lockDigest() {
  const hash = createHash("sha256");
  hash.update(readFileSync(join(root, "package-lock.json")));
  hash.update(process.version);
  return hash.digest("hex");
}

function install() {
  const digest = lockDigest();
  if (existsSync(stampPath) && readFileSync(stampPath, "utf8") === digest) return;
  process.stderr.write("setup: installing packages (npm ci) …\n");
  const env = { ...process.env };
  const prefix = headersPrefix();
  if (prefix !== undefined && env.npm_config_nodedir === undefined) env.npm_config_nodedir = prefix;
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    env,
    stdio: ["ignore", 2, 2],
  });
  if (result.status !== 0) {
    process.stderr.write(
      "setup: npm ci failed. svc needs Node 20, npm, g++, make and python3 (node-lmdb is compiled from source).\n",
    );
    process.exit(1);
  }
  writeFileSync(stampPath, digest);
}

/** Installs and builds as needed; ends the process with code 1 when that fails. */
export async function setup({ forceBuild = false } = {}) {
  install();
  if (forceBuild) rmSync(join(root, "dist"), { recursive: true, force: true });
  try {
    const compiled = await build();
    if (compiled > 0) process.stderr.write(`setup: compiled ${compiled} file(s)\n`);
  } catch (error) {
    process.stderr.write(`setup: ${error.message}\n`);
    process.exit(1);
  }
}

if (process.argv[1] === join(root, "scripts", "setup.mjs")) {
  await setup({ forceBuild: process.argv.includes("--force-build") });
}
