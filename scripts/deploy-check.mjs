/**
 * `npm run deploy-check`: builds the image and runs it as scripts/deploy/README.md says, on this machine. It takes minutes, so it is
 * no part of `npm test`; without buildah and podman it says that it was skipped.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setup } from "./setup.mjs";
import { root } from "./build.mjs";

await setup();
const check = join(root, "dist", "test", "deploy", "built-image.js");
process.exit(spawnSync(process.execPath, [check], { stdio: "inherit" }).status ?? 1);
