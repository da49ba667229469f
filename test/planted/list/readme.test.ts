/** The table of README.md has every planted bug of the records, in order: seen in a second, so that it is seen at once. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { bugsOfRecords as bugs } from "./bugs.js";
import type { RecordBug } from "../records.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..");

t.test("the table has every planted bug of records and hosting, in order", (t) => {
  const heading = "| Planted bug of the records | Pitfall | Caught by |\n|---|---|---|\n";
  const text = readFileSync(join(root, "test", "planted", "README.md"), "utf8");
  const rows = text.slice(text.indexOf(heading) + heading.length).split("\n");
  const rowOf = ({ name, pitfall, file, test }: RecordBug): string =>
    `| ${name} | ${pitfall} | ${file}: ${test} |`;
  t.strictSame(rows.slice(0, bugs.length), bugs.map(rowOf));
  t.notOk(rows[bugs.length]?.startsWith("|"));
  t.end();
});
