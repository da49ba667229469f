/**
 * `npm run verify`: format, lint, types, tidy. Reads only. What it found of unchanged files it keeps below
 * node_modules/.cache; a fresh clone has nothing there and checks everything.
 */
import { setup } from "./setup.mjs";
import { cachePath, localBin, runSteps } from "./run.mjs";

function types(project) {
  const kept = ["--incremental", "--tsBuildInfoFile", cachePath(`${project}.tsbuildinfo`)];
  return ["-p", project, ...kept];
}

await setup();
runSteps([
  ["format", localBin("prettier"), ["--check", "--cache", "--log-level=warn", "."]],
  ["lint", localBin("eslint"), ["--cache", "--cache-location", cachePath("eslint/"), "."]],
  ["types of the deterministic floors", localBin("tsc"), types("tsconfig.core.json")],
  ["types", localBin("tsc"), types("tsconfig.json")],
  ["types of the console", localBin("tsc"), ["-p", "src/console"]],
  ["tidy", process.execPath, ["dist/test/tidy/tidy.test.js", "--quiet"]],
]);
