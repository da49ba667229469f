/**
 * Who uses what src/ exports, by name: what nobody imports is not exported, and what only tests
 * import is counted, so that src/ does not grow for their sake.
 *
 * A value that is needed in its own file only is not exported either; a type may be, for the
 * signatures of that file. An import of a whole module (`* as`, `import()`) uses all of its names;
 * a re-export passes the question on to whoever imports the name from there.
 */
import { codeOnly, resolveImport } from "./sources.js";

/** What programs of others import: its exports are used by them. */
const DOORS: ReadonlySet<string> = new Set(["src/client/mod.ts"]);

/** Files by path, with what they are written in. */
export type Texts = ReadonlyMap<string, string>;

interface Exported {
  readonly name: string;
  readonly isType: boolean;
}

interface Used {
  readonly by: string;
  readonly from: string;
  /** As the module of `from` calls it; null = all of its names. */
  readonly name: string | null;
  /** What `by` calls it for others, when it passes it on. */
  readonly passedOnAs?: string | undefined;
}

/** `a, type b as c` as pairs of the name there and the name here. */
function namesOf(list: string): [string, string][] {
  const items = list.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "").split(",");
  return items
    .map((item) => item.trim().replace(/^type\s+/, ""))
    .filter((item) => item !== "")
    .map((item) => {
      const [there = "", here = there] = item.split(/\s+as\s+/);
      return [there, here];
    });
}

/** The names that a text declares and exports. */
function exportsOf(text: string): Exported[] {
  const declared =
    /^export (?:abstract )?(?:async )?(class|function\*?|const|let|interface|type|enum) ([A-Za-z_$][\w$]*)/gm;
  const found = [...text.matchAll(declared)].map(([, word = "", name = ""]): Exported => ({
    name,
    isType: /^(?:interface|type)$/.test(word),
  }));
  for (const match of text.matchAll(/^export (type )?\{([^}]*)\}(?: from "[^"]+")?;/gm)) {
    const isType = match[1] !== undefined;
    found.push(...namesOf(match[2] as string).map(([, name]) => ({ name, isType })));
  }
  return found;
}

/** What a text takes from files of the repository. */
function usesOf(by: string, text: string): Used[] {
  const used: Used[] = [];
  const whole = /\bimport\(\s*"(\.[^"]+)"|\*(?: as \w+)? from "(\.[^"]+)"/g;
  for (const match of text.matchAll(whole)) {
    const passesOn = match[0].startsWith("* from");
    const from = resolveImport(by, (match[1] ?? match[2]) as string);
    used.push({ by, from, name: null, passedOnAs: passesOn ? "*" : undefined });
  }
  const named = /\b(import|export)(?: type)? \{([^}]*)\} from\s+"(\.[^"]+)"/g;
  for (const [, word, list = "", target = ""] of text.matchAll(named)) {
    for (const [name, here] of namesOf(list)) {
      const passedOnAs = word === "export" ? here : undefined;
      used.push({ by, from: resolveImport(by, target), name, passedOnAs });
    }
  }
  return used;
}

export interface Unused {
  /** Imported by nobody. */
  readonly dead: readonly string[];
  /** Imported by files outside of src/ alone. */
  readonly testOnly: readonly string[];
}

/** The exports of src/ that src/ itself does not import. `texts`: all files that may import. */
export function unusedExports(texts: Texts): Unused {
  const users = new Map<string, Used[]>();
  for (const [path, text] of texts) {
    for (const use of usesOf(path, text))
      users.set(use.from, [...(users.get(use.from) ?? []), use]);
  }
  /** Files that really use the name, whichever way it reached them. */
  const reach = (path: string, name: string, seen: ReadonlySet<string>): string[] => {
    if (DOORS.has(path)) return [path];
    if (seen.has(path)) return [];
    return (users.get(path) ?? []).flatMap(({ by, name: taken, passedOnAs }) => {
      if (taken !== null && taken !== name) return [];
      if (passedOnAs === undefined) return [by];
      return reach(by, passedOnAs === "*" ? name : passedOnAs, new Set([...seen, path]));
    });
  };
  const dead: string[] = [];
  const testOnly: string[] = [];
  for (const [path, text] of texts) {
    if (!path.startsWith("src/") || path.includes("/generated/")) continue;
    const code = codeOnly(text);
    for (const { name, isType } of exportsOf(text)) {
      const by = reach(path, name, new Set());
      // A type that another export mentions belongs to it.
      const mentions = code.match(new RegExp(`(?<![\\w$])${name}(?![\\w$])`, "g"))?.length ?? 0;
      if (by.length === 0 && isType && mentions > 1) continue;
      if (by.length === 0) dead.push(`${path}: ${name}`);
      else if (!by.some((user) => user.startsWith("src/"))) testOnly.push(`${path}: ${name}`);
    }
  }
  return { dead, testOnly };
}
