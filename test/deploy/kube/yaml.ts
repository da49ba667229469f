/**
 * Reads the YAML of our manifests: block maps and lists, plain and quoted scalars, empty flow collections, comments. What it
 * does not know is an error, so that no manifest means something else to a cluster than to the tests.
 */
export type Yaml = string | number | boolean | null | readonly Yaml[] | YamlMap;
export interface YamlMap {
  readonly [key: string]: Yaml;
}

interface Line {
  readonly indent: number;
  readonly text: string;
  readonly number: number;
}

function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (const [at, raw] of text.split("\n").entries()) {
    const trimmed = raw.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    if (raw.includes("\t")) throw new Error(`line ${at + 1}: a tab`);
    lines.push({ indent: raw.length - raw.trimStart().length, text: trimmed, number: at + 1 });
  }
  return lines;
}

function scalar(text: string, number: number): Yaml {
  if (text === "{}") return {};
  if (text === "[]") return [];
  if (text === "null" || text === "~" || text === "") return null;
  if (text === "true" || text === "false") return text === "true";
  if (/^"(?:[^"\\]|\\["\\n])*"$/.test(text)) return JSON.parse(text) as string;
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  if (/^-?(?:0|[1-9]\d*)$/.test(text)) return Number(text);
  if (/^["'[\]{}&*!|>%@`]/.test(text) || / #|: /.test(text)) {
    throw new Error(`line ${number}: ${text} is not read here`);
  }
  return text;
}

const MEMBER = /^([\w./-]+):(?: (.*))?$/;

class Reader {
  private at = 0;

  constructor(private readonly lines: Line[]) {}

  whole(): Yaml {
    const value = this.block(this.lines[0]?.indent ?? 0);
    const rest = this.lines[this.at];
    if (rest !== undefined) throw new Error(`line ${rest.number}: ${rest.text} is out of place`);
    return value;
  }

  private block(indent: number): Yaml {
    return this.lines[this.at]?.text.startsWith("- ") === true
      ? this.list(indent)
      : this.map(indent);
  }

  private list(indent: number): Yaml[] {
    const items: Yaml[] = [];
    for (let line = this.lines[this.at]; line?.indent === indent; line = this.lines[this.at]) {
      if (!line.text.startsWith("- ")) break;
      const text = line.text.slice(2);
      if (MEMBER.test(text) && !/^["']/.test(text)) {
        // The first member of a map: as if it stood in a line of its own.
        this.lines[this.at] = { ...line, indent: indent + 2, text };
        items.push(this.map(indent + 2));
      } else {
        this.at++;
        items.push(scalar(text, line.number));
      }
    }
    return items;
  }

  private map(indent: number): YamlMap {
    const members: Record<string, Yaml> = {};
    for (let line = this.lines[this.at]; line?.indent === indent; line = this.lines[this.at]) {
      const [, key, rest] = MEMBER.exec(line.text) ?? [];
      if (key === undefined) {
        if (line.text.startsWith("- ")) break;
        throw new Error(`line ${line.number}: ${line.text} is no member`);
      }
      if (key in members) throw new Error(`line ${line.number}: ${key} comes twice`);
      this.at++;
      members[key] = rest === undefined ? this.below(indent) : scalar(rest, line.number);
    }
    return members;
  }

  /** What belongs to a key that ends its line; lists may stand at the same depth. */
  private below(indent: number): Yaml {
    const next = this.lines[this.at];
    if (next === undefined) return null;
    if (next.indent > indent) return this.block(next.indent);
    return next.indent === indent && next.text.startsWith("- ") ? this.list(indent) : null;
  }
}

/** The documents of a text. */
export function readYaml(text: string): readonly Yaml[] {
  return text
    .split(/^---$/m)
    .map(linesOf)
    .filter((lines) => lines.length > 0)
    .map((lines) => new Reader(lines).whole());
}
