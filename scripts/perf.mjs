/** `npm run perf [-- NAMES]`: runs the measurements of perf/ one after another; names select by part of the path. */
import { join, relative } from "node:path";
import { filesBelow, root } from "./build.mjs";
import { run } from "./run.mjs";
import { setup } from "./setup.mjs";

await setup();
const wanted = process.argv.slice(2);
// Programs only: the shared pieces beside them print nothing of their own.
const parts = new Set([
  "bench.ts",
  "collect-garbage.ts",
  "counted.ts",
  "report.ts",
  "etcd-calls.ts",
  "etcd-items.ts",
  "etcd-nodes.ts",
  "drive.ts",
  "fanout-driver.ts",
  "grpc-driver.ts",
  "grpc-items.ts",
  "hold-driver.ts",
  "lean-http2.ts",
  "local-nodes.ts",
  "processor.ts",
  "grpc-options.ts",
  "grpc-tally.ts",
  "watch-items.ts",
  "watch-streams.ts",
]);
const programs = filesBelow(join(root, "perf"), [".ts"])
  .filter((path) => !path.endsWith(".d.ts") && !parts.has(path.split("/").pop()))
  .map((path) => join("dist", relative(root, path)).replace(/\.ts$/, ".js"))
  .filter((path) => wanted.length === 0 || wanted.some((word) => path.includes(word)))
  .sort();
let status = 0;
for (const program of programs) {
  process.stdout.write(`\n== ${program.replace(/^dist\//, "").replace(/\.js$/, "")}\n`);
  if (run(process.execPath, ["--expose-gc", program]) !== 0) status = 1;
}
process.exit(status);
