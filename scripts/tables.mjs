/**
 * Rewrites the tables in docs/ that are made from the program's own tables: those between `<!-- table: NAME -->` and
 * `<!-- /table -->`. `npm run fix` runs it; tests hold what is written there against the program.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./build.mjs";

const compiled = (path) => import(pathToFileURL(join(root, "dist", "src", path)));

/** Returns `text` with each table of `tables` in its place; a table without a place is an error. */
function withTables(path, text, tables) {
  let result = text;
  for (const [name, lines] of Object.entries(tables)) {
    const place = new RegExp(`(<!-- table: ${name} -->\n)[^]*?(<!-- /table -->)`);
    if (!place.test(result)) throw new Error(`${path}: no place for the table ${name}`);
    result = result.replace(place, (_all, from, to) => `${from}${lines}\n${to}`);
  }
  return result;
}

export async function writeTables() {
  const shell = await compiled("cli/arguments/tables.js");
  const server = await compiled("server/flags/help.js");
  const documents = {
    "docs/flags.md": { flags: server.flagTableMarkdown() },
    "docs/shell.md": {
      operations: shell.operationsTable(),
      options: shell.optionsTable(),
      commands: shell.shellTable(),
      "exit-codes": shell.exitCodesTable(),
    },
  };
  for (const [name, tables] of Object.entries(documents)) {
    const path = join(root, name);
    const before = readFileSync(path, "utf8");
    const after = withTables(name, before, tables);
    if (after !== before) writeFileSync(path, after);
  }
}
