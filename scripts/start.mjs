/** `npm start`: sets up, then runs one real node with its data under the XDG data home (or --storage-path). */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

await setup();
const server = spawn(
  process.execPath,
  [join(root, "dist", "bin", "svc-server.js"), "--welcome", ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit" },
);
// A terminal sends its signals to both processes; the server ends by itself and this one passes on how.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => server.kill(signal));
server.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
