import { setup } from "./setup.mjs";
await setup();

// Runs Raft scenario files: `npm run golden -- DIR… [--rewrite]`; without a folder, the project's.
const { main } = await import("../dist/test/golden/run.js");
const args = process.argv.slice(2);
const own = new URL("../test/golden/scenarios", import.meta.url).pathname;
process.exitCode = main(args.some((arg) => !arg.startsWith("--")) ? args : [own, ...args]);
