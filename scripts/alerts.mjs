/**
 * `npm run alerts`: every alert of scripts/deploy/monitoring/rules.yaml is made to fire in a real Prometheus over real nodes, and to
 * end. It takes minutes; what `npm test` does of it is one part a day. Without Prometheus it says that it was skipped.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();
const test = join(root, "dist", "test", "deploy", "alerts", "alerts.test.js");
const { status } = spawnSync(process.execPath, ["--enable-source-maps", test], {
  cwd: root,
  env: { ...process.env, SVC_ALERTS: "all", TAP_TIMEOUT: "3600" },
  stdio: "inherit",
});
process.exit(status === 0 ? 0 : 1);
