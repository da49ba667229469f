/**
 * `npm run chaos -- --minutes M --seed S [--nodes N] [--factor F] [--clients C] [--no-ranges]`: sets up, then runs a cluster of real processes under
 * faults and judges what its clients saw. Ends with 0 only when every checker passes.
 */
import { setup } from "./setup.mjs";

await setup();
const { main } = await import("../dist/test/process/chaos/chaos.js");
process.exitCode = await main(process.argv.slice(2));
