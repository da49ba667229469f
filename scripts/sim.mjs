import { setup } from "./setup.mjs";
await setup();

// Runs whole clusters in one thread on a simulated world: `npm run sim -- --seed N [--ticks T] [--profile P]`.
const { main } = await import("../dist/test/sim/run/main.js");
process.exitCode = await main(process.argv.slice(2));
