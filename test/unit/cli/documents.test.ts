/** The lines of svc-cli in the documents: each is one that the program takes, by the tables of its options. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { parse } from "../../../src/cli/arguments/parser.js";
import { splitWords } from "../../../src/cli/arguments/words.js";
import { root } from "../../tidy/sources.js";

/** Of the blocks of a document, the lines that begin with `program`, without what is said behind them. */
function linesOf(path: string, program: string): string[] {
  const text = readFileSync(join(root, path), "utf8");
  const blocks = [...text.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].map(([, block = ""]) => block);
  const lines = blocks.flatMap((block) => block.replaceAll("\\\n", " ").split("\n"));
  return lines
    .map((line) => line.replace(/\s+# .*$/, "").trim())
    .filter((line) => line === program || line.startsWith(`${program} `));
}

/** What the shell makes of a line: words up to what ends a command. */
function wordsOf(line: string): readonly string[] | null {
  const command = line.replace(/ (?:&&|\|\|?|;|>) .*$/, "");
  const words = splitWords(command);
  return words.ok ? words.value.slice(1).map(({ text }) => text) : null;
}

t.test("8.2 every line of svc-cli that a document shows is one that it takes", (t) => {
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  const lines = ["README.md", ...pages.map((name) => `docs/${name}`)].flatMap((path) =>
    linesOf(path, "svc-cli").map((line) => ({ path, line })),
  );
  for (const { path, line } of lines) {
    const words = wordsOf(line);
    if (words === null) t.fail(`${path}: ${line} does not end`);
    else {
      const taken = parse(words, {});
      t.ok(taken.ok, `${path}: ${line}${taken.ok ? "" : `: ${taken.message}`}`);
    }
  }
  for (const page of ["locks", "watches", "elections", "shell", "backups"]) {
    t.ok(
      lines.some(({ path }) => path === `docs/${page}.md`),
      `docs/${page}.md has some`,
    );
  }
  t.notOk(parse(wordsOf("svc-cli --watch-lokc nightly") ?? [], {}).ok, "another one is refused");
  t.end();
});
