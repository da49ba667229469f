/**
 * `npm run drill`: every runbook of scripts/deploy/README.md, one after the other, as somebody would do it who has only the
 * documents: three nodes, one dies, one disk is lost, a majority, all of them, from a backup, and so on. Says how long each
 * took. What `npm test` does of it is one part a day.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();
const test = join(root, "dist", "test", "deploy", "runbooks", "runbooks.test.js");
const { status } = spawnSync(process.execPath, ["--enable-source-maps", test], {
  cwd: root,
  env: { ...process.env, SVC_RUNBOOKS: "all", TAP_TIMEOUT: "3600" },
  stdio: "inherit",
});
process.exit(status === 0 ? 0 : 1);
