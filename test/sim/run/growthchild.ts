/** One size of a growth in a process of its own: see `main.ts`. */
import { measureGrowth } from "./growth.js";
import { growthLine } from "./growthtable.js";
import { sizesOf } from "../plan/options.js";

const [seed, size] = process.argv.slice(2);
for (const each of sizesOf(size ?? "")) {
  const options = { seed: Number(seed), ...each, idleMs: 20_000, loadMs: 10_000 };
  process.stdout.write(`${growthLine(measureGrowth(options))}\n`);
}
