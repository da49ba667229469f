/** `npm run cli -- ARGUMENTS`: sets up and runs svc-cli; without arguments its interactive shell. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();
const program = join(root, "dist", "bin", "svc-cli.js");
const cli = spawn(process.execPath, [program, ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => cli.kill(signal));
cli.on("exit", (code, signal) => process.exit(signal === null ? code : 1));
