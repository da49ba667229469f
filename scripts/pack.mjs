/**
 * `npm run pack [-- FOLDER]`: two packages as npm takes them, in dist/package or FOLDER. `svc` holds the server, svc-cli
 * and the client; `svc-client` holds the client alone, with the three packages that it needs and nothing native.
 *
 * Owns what it stages below the folder. The versions of dependencies are those of this repository's manifest.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

const target = resolve(process.argv[2] ?? join(root, "dist", "package"));
const readJson = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));

function run(command, words, cwd) {
  const { status } = spawnSync(command, words, { cwd, stdio: ["ignore", 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}

function stage(name, manifest, files) {
  const folder = join(target, "staged", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [from, to] of files) cpSync(join(root, from), join(folder, to), { recursive: true });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return folder;
}

function pack(folder) {
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", target], folder);
}

function packWhole() {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _dev,
    ...manifest
  } = readJson("package.json");
  // These two count for the package that is installed into, never for one that is installed.
  const { overrides: _overrides, allowScripts: _allow, ...rest } = manifest;
  pack(
    stage(
      "svc",
      rest,
      rest.files.map((path) => [path, path]),
    ),
  );
}

async function packClient() {
  const whole = readJson("package.json");
  const manifest = readJson("packages/client/package.json");
  const versions = Object.keys(manifest.dependencies).map((name) => [
    name,
    whole.dependencies[name],
  ]);
  const { version, engines } = whole;
  const folder = stage(
    "svc-client",
    { ...manifest, version, engines, dependencies: Object.fromEntries(versions) },
    [
      ["dist/types", "types"],
      ["packages/client/README.md", "README.md"],
      ["docs/client.md", "docs/client.md"],
      ["LICENSE", "LICENSE"],
    ],
  );
  const { build } = await import("esbuild");
  await build({
    entryPoints: [join(root, "src", "client", "mod.ts")],
    outfile: join(folder, "index.js"),
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    // Programs share these with their other dependencies, and update them by themselves.
    packages: "external",
    logLevel: "warning",
  });
  pack(folder);
}

await setup();
run(process.execPath, [join(root, "scripts", "build-types.mjs")], root);
mkdirSync(target, { recursive: true });
packWhole();
await packClient();
