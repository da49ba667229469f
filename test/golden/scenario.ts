/**
 * Scenario files: commands, each with the exact text that it must print. Reads them, compares,
 * writes them back.
 *
 * Texts are held as one character per byte (latin1), so that comparison and quoting are exact for
 * any bytes.
 * Invariants: 1. Reading and rewriting a file without any change of output gives the same bytes. 2.
 * Outputs are not trimmed.
 */

export interface Argument {
  readonly name: string;
  /** null for a bare word. */
  readonly values: readonly string[] | null;
}

export interface Command {
  readonly name: string;
  readonly args: readonly Argument[];
  readonly input: string;
}

export interface Block {
  readonly command: Command;
  /** Line of the command, from 1. */
  readonly line: number;
  /** Line where the expected output begins. */
  readonly outputLine: number;
  /** Everything from the end of the block before up to the (first) separator, verbatim. */
  readonly leading: string;
  readonly expected: string;
}

export interface Scenario {
  readonly blocks: readonly Block[];
  /** What follows the last block. */
  readonly trailing: string;
}

const separator = "----";

/** Splits a command line at blanks, but not within round brackets. */
function splitWords(line: string): string[] {
  const words: string[] = [];
  let word = "";
  let depth = 0;
  for (const character of line) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (depth <= 0 && (character === " " || character === "\t")) {
      if (word !== "") words.push(word);
      word = "";
    } else {
      word += character;
    }
  }
  if (word !== "") words.push(word);
  return words;
}

function parseArgument(word: string): Argument {
  const equals = word.indexOf("=");
  if (equals < 0) return { name: word, values: null };
  const name = word.slice(0, equals);
  const value = word.slice(equals + 1);
  if (!value.startsWith("(") || !value.endsWith(")")) return { name, values: [value] };
  const inner = value.slice(1, -1).trim();
  return { name, values: inner === "" ? [] : inner.split(",").map((item) => item.trim()) };
}

export function parseCommand(line: string, input: string): Command {
  const [name = "", ...words] = splitWords(line);
  return { name, args: words.map(parseArgument), input };
}

class Reader {
  private readonly lines: readonly string[];
  private at = 0;
  private readonly endsWithNewline: boolean;

  constructor(text: string) {
    this.endsWithNewline = text.endsWith("\n");
    this.lines = (this.endsWithNewline ? text.slice(0, -1) : text).split("\n");
    if (text === "") this.lines = [];
  }

  get done(): boolean {
    return this.at >= this.lines.length;
  }

  get lineNumber(): number {
    return this.at + 1;
  }

  get position(): number {
    return this.at;
  }

  peek(ahead = 0): string | undefined {
    return this.lines[this.at + ahead];
  }

  next(): string {
    const line = this.lines[this.at] ?? "";
    this.at++;
    return line;
  }

  /** The lines from `from` to here, each with its newline. */
  since(from: number): string {
    const text = this.lines
      .slice(from, this.at)
      .map((line) => `${line}\n`)
      .join("");
    return this.done && !this.endsWithNewline && text !== "" ? text.slice(0, -1) : text;
  }
}

/** The expected output behind the separator: up to a blank line, or between doubled separators. */
function readExpected(reader: Reader): string {
  let text = "";
  if (reader.peek() !== separator) {
    while (!reader.done && reader.peek() !== "") text += `${reader.next()}\n`;
    return text;
  }
  reader.next();
  while (!reader.done && !(reader.peek() === separator && reader.peek(1) === separator)) {
    text += `${reader.next()}\n`;
  }
  reader.next();
  reader.next();
  return text;
}

/** Reads a scenario; throws on text that is none. */
export function parseScenario(text: string): Scenario {
  const reader = new Reader(text);
  const blocks: Block[] = [];
  let from = 0;
  for (;;) {
    while (!reader.done && /^\s*(#.*)?$/.test(reader.peek() ?? "")) reader.next();
    if (reader.done) return { blocks, trailing: reader.since(from) };
    const line = reader.lineNumber;
    let commandLine = reader.next();
    while (commandLine.trimEnd().endsWith("\\")) {
      commandLine = `${commandLine.trimEnd().slice(0, -1)} ${reader.next()}`;
    }
    let input = "";
    while (!reader.done && reader.peek() !== separator) input += `${reader.next()}\n`;
    if (reader.done) throw new Error(`line ${line}: no ${separator} after the command`);
    const leading = reader.since(from);
    reader.next();
    const outputLine = reader.lineNumber;
    const expected = readExpected(reader);
    blocks.push({
      command: parseCommand(commandLine, input.trim()),
      line,
      outputLine,
      leading,
      expected,
    });
    from = reader.position;
  }
}

/** An output as it is compared: with a newline at its end unless it is empty. */
export function normalise(output: string): string {
  return output === "" || output.endsWith("\n") ? output : `${output}\n`;
}

/** The file with `outputs` in place of the expected ones. */
export function formatScenario(scenario: Scenario, outputs: readonly string[]): string {
  let text = "";
  scenario.blocks.forEach((block, at) => {
    const output = normalise(outputs[at] ?? block.expected);
    const wrapped = /(^|\n)\n/.test(output) || output.startsWith(`${separator}\n`);
    text += `${block.leading}${separator}\n`;
    text += wrapped ? `${separator}\n${output}${separator}\n${separator}\n` : output;
  });
  return text + scenario.trailing;
}
