/** `npm run fix`: formats and repairs what can be repaired by machine. Writes. */
import { setup } from "./setup.mjs";
import { cachePath, localBin, runSteps } from "./run.mjs";

await setup();
runSteps([
  ["format", localBin("prettier"), ["--write", "--cache", "--log-level=warn", "."]],
  ["lint", localBin("eslint"), ["--fix", "--cache", "--cache-location", cachePath("eslint/"), "."]],
]);
