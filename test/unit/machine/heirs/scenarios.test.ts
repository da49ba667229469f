/**
 * What apply makes of a lock with heirs, told byte for byte: in the term of the list, and one
 * scenario for each row of what happens to an orphaned one (Q15, F4).
 */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { formatScenario, parseScenario } from "../../../golden/scenario.js";
import { LockScenario } from "../../../doubles/machine/lock-scenario.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..", "..");
const FOLDER =
  process.env["SVC_LOCK_SCENARIOS"] ?? join(root, "test", "unit", "machine", "heirs", "scenarios");

t.test("Q14 Q15 Q16 F4 L12 scenarios of heirs", (t) => {
  const names = readdirSync(FOLDER).sort();
  t.ok(names.length >= 8, "they are there");
  for (const name of names) {
    const text = readFileSync(join(FOLDER, name), "utf8");
    const scenario = parseScenario(text);
    t.ok(scenario.blocks.length >= 5, `${name} has commands`);
    const locks = new LockScenario();
    const outputs = scenario.blocks.map(({ command }) => locks.run(command));
    t.equal(formatScenario(scenario, outputs), text, name);
  }
  t.end();
});
