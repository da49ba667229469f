import { setup } from "./setup.mjs";
await setup();

// Freezes what this release writes, once: `npm run compat-freeze`.
const { main } = await import("../dist/test/compat/freeze.js");
process.exitCode = await main();
