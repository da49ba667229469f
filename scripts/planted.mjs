import { spawnSync } from "node:child_process";
import { join, relative } from "node:path";
import { filesBelow, root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();

// Tries every planted bug, of which `npm test` tries a part: `npm run planted`. Takes about a quarter of an hour.
const files = [
  ...filesBelow(join(root, "test/planted"), [".test.ts"]),
  ...filesBelow(join(root, "test/sim/planted"), [".test.ts"]),
]
  .map((path) => join("dist", relative(root, path).replace(/\.ts$/, ".js")))
  .sort();
const env = { ...process.env, SVC_PLANTED: "all", TAP_TIMEOUT: "3600" };
for (const file of files) {
  process.stdout.write(`${file}\n`);
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", file], {
    cwd: root,
    env,
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}
