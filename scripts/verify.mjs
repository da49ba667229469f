/** `npm run verify`: format, lint, types, tidy. Reads only. */
import { setup } from "./setup.mjs";
import { localBin, runSteps } from "./run.mjs";

await setup();
runSteps([
  ["format", localBin("prettier"), ["--check", "--log-level=warn", "."]],
  ["lint", localBin("eslint"), ["."]],
  ["types of the deterministic floors", localBin("tsc"), ["-p", "tsconfig.core.json"]],
  ["types", localBin("tsc"), ["-p", "tsconfig.json"]],
  ["tidy", process.execPath, ["dist/test/tidy/tidy.test.js", "--quiet"]],
]);
