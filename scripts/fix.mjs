/** `npm run fix`: writes the tables of docs/, formats, and repairs what a machine can. */
import { setup } from "./setup.mjs";
import { cachePath, localBin, runSteps } from "./run.mjs";
import { writeTables } from "./tables.mjs";

await setup();
await writeTables();
runSteps([
  ["format", localBin("prettier"), ["--write", "--cache", "--log-level=warn", "."]],
  ["lint", localBin("eslint"), ["--fix", "--cache", "--cache-location", cachePath("eslint/"), "."]],
]);
