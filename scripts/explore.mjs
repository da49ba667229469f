import { setup } from "./setup.mjs";
await setup();

// Explores the Raft core, then walks: `npm run explore -- [--steps N] [--seed S] [--depth D]`.
const { main } = await import("../dist/test/unit/raft/explorer/main.js");
process.exitCode = main(process.argv.slice(2));
