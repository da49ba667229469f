/**
 * The command line, read against the tables: which operation, with which values.
 *
 * Invariants (P-151): 1. An unknown, repeated, missing or contradictory option is refused; none is
 * ignored. 2. At most one operation. 3. What follows `--` or `--exec` is never read.
 */
import { failure, ok, type Result } from "../../base/result.js";
import type { CommandSpec, OptionSpec } from "../commands/command.js";
import { ALL_OPTIONS, BENCH_OPTIONS, CONNECTION_OPTIONS, findOption } from "../commands/options.js";
import { COMMANDS, findCommand } from "../commands/table.js";
import { didYouMean } from "./nearest.js";
import { makeSettings, type Environment, type Settings } from "../invocation/settings.js";
import { OptionValues, readValue, type OptionValue } from "../commands/values.js";

export const WORDS = ["lock-run", "elect", "bench"] as const;
export const BENCH_KINDS = ["sequences", "locks", "kv"] as const;

export type Invocation =
  | { readonly kind: "help"; readonly topic: string | null }
  | { readonly kind: "version" }
  | { readonly kind: "completion"; readonly shell: string }
  | { readonly kind: "shell"; readonly settings: Settings }
  | {
      readonly kind: "operation";
      readonly command: CommandSpec;
      readonly values: OptionValues;
      readonly settings: Settings;
    }
  | {
      readonly kind: "lock-run";
      readonly resource: string;
      readonly words: readonly string[];
      readonly values: OptionValues;
      readonly settings: Settings;
    }
  | {
      readonly kind: "elect";
      readonly name: string;
      readonly words: readonly string[];
      readonly values: OptionValues;
      readonly settings: Settings;
    }
  | {
      readonly kind: "bench";
      readonly subject: string;
      readonly values: OptionValues;
      readonly settings: Settings;
    };

export type ParseResult = Result<Invocation, "usage">;

interface Scan {
  readonly values: Map<string, OptionValue>;
  command: CommandSpec | null;
  /** "lock-run", "elect", "bench", and what follows them. */
  readonly words: string[];
  /** The command after `--` or --exec. */
  rest: readonly string[] | null;
}

function usage<T>(message: string): Result<T, "usage"> {
  return failure("usage", `${message}; see --help`);
}

function knownNames(): string[] {
  const specs: readonly { readonly name: string; readonly aliases: readonly string[] }[] = [
    ...COMMANDS,
    ...ALL_OPTIONS,
  ];
  return specs.flatMap((spec) => [spec.name, ...spec.aliases]);
}

/** The value of `spec` for `name`: behind "=", or the next argument unless that is an option. */
function takeValue(
  spec: OptionSpec | CommandSpec,
  name: string,
  inline: string | null,
  next: string | undefined,
): Result<OptionValue, "usage"> {
  if (spec.kind === "none") {
    return inline === null ? ok(true) : usage(`${name} takes no value`);
  }
  const text = inline ?? next;
  if (text === undefined || (inline === null && /^-[^\d]/.test(text))) {
    const isShown = text !== undefined && spec.kind !== "secret";
    const hint = !isShown ? "" : ` (a value that begins with -: ${name}=${text})`;
    return usage(`${name} needs a value: ${name} <${spec.valueName}>${hint}`);
  }
  const value = readValue(spec, text);
  if (value.ok) return value;
  const shown = spec.kind === "secret" ? "the value" : `"${text}"`;
  return usage(`${name}: ${shown} is not ${value.message}`);
}

/** Reads one option at `at`; the result says how many arguments it took. */
function scanOption(
  scan: Scan,
  argumentsList: readonly string[],
  at: number,
): Result<number, "usage"> {
  const argument = argumentsList[at] as string;
  const equals = argument.startsWith("--") ? argument.indexOf("=") : -1;
  const name = equals < 0 ? argument : argument.slice(0, equals);
  const inline = equals < 0 ? null : argument.slice(equals + 1);
  const command = findCommand(name);
  const spec = command ?? findOption(name);
  if (spec === null) return usage(`unknown option ${name}${didYouMean(name, knownNames())}`);
  if (command !== null && scan.command !== null) {
    return usage(`one operation at a time: ${scan.command.name} and ${name} were given`);
  }
  if (spec.kind === "rest") {
    const rest = argumentsList.slice(at + 1);
    scan.rest = rest[0] === "--" ? rest.slice(1) : rest;
    scan.values.set(spec.name, true);
    return ok(argumentsList.length - at);
  }
  if (scan.values.has(spec.name)) return usage(`${spec.name} is given twice`);
  const value = takeValue(spec, name, inline, argumentsList[at + 1]);
  if (!value.ok) return value;
  if (command !== null) scan.command = command;
  scan.values.set(spec.name, value.value);
  return ok(spec.kind === "none" || inline !== null ? 1 : 2);
}

function scanAll(argumentsList: readonly string[]): Result<Scan, "usage"> {
  const scan: Scan = { values: new Map(), command: null, words: [], rest: null };
  for (let at = 0; at < argumentsList.length;) {
    const argument = argumentsList[at] as string;
    if (argument === "--") {
      scan.rest = argumentsList.slice(at + 1);
      break;
    }
    if (argument.startsWith("-") && argument !== "-") {
      const taken = scanOption(scan, argumentsList, at);
      if (!taken.ok) return taken;
      at += taken.value;
      continue;
    }
    scan.words.push(argument);
    const word = scan.words[0];
    if ((word === "lock-run" || word === "elect") && scan.words.length === 3) {
      return usage(`put -- before the command of ${word}: -- ${argument} …`);
    }
    at += 1;
  }
  return ok(scan);
}

/**
 * Help and its relatives win over everything else, so that `--lock --help` works without a
 * resource.
 */
function readInformation(argumentsList: readonly string[]): Invocation | null {
  const end = argumentsList.findIndex((word) => word === "--" || word === "--exec");
  const own = end < 0 ? argumentsList : argumentsList.slice(0, end);
  const at = own.findIndex((word) => word === "--help" || word === "-h");
  const inline = own.find((word) => word.startsWith("--help="));
  if (at >= 0 || inline !== undefined) {
    const next = own[at + 1];
    if (inline !== undefined) return { kind: "help", topic: inline.slice("--help=".length) };
    if (next !== undefined) return { kind: "help", topic: next };
    const others = own.filter((word, index) => index !== at && !/^(-c|--node)$/.test(word));
    const operation = others.find((word) => findCommand(word) !== null);
    return { kind: "help", topic: operation ?? others[0] ?? null };
  }
  return own.includes("--version") ? { kind: "version" } : null;
}

const CONTRADICTIONS: readonly (readonly [string, string])[] = [
  ["--max-value", "--remove-max-value"],
  ["--block-size", "--remove-block-size"],
  ["--token", "--token-file"],
  ["--value", "--value-file"],
];

/** Checks that what was given belongs together; `subject` names it in messages. */
function checkOptions(
  scan: Scan,
  subject: string,
  required: readonly string[],
  optional: readonly string[],
): Result<null, "usage"> {
  const connection = CONNECTION_OPTIONS.map((spec) => spec.name);
  const allowed = new Set([...connection, ...required, ...optional]);
  for (const name of scan.values.keys()) {
    if (name !== subject && !allowed.has(name)) return usage(`${name} does not go with ${subject}`);
  }
  for (const name of required) {
    if (scan.values.has(name)) continue;
    return usage(`${subject} needs ${name} <${findOption(name)?.valueName ?? ""}>`);
  }
  if (subject === "--set" && !scan.values.has("--value") && !scan.values.has("--value-file")) {
    return usage("--set needs --value <value> or --value-file <file>");
  }
  for (const [one, other] of CONTRADICTIONS) {
    if (scan.values.has(one) && scan.values.has(other)) return usage(`${one} contradicts ${other}`);
  }
  return ok(null);
}

const LOCK_RUN_REQUIRED = ["--expires"];
const LOCK_RUN_OPTIONAL = ["--owner", "--wait", "--note", "--durability", "--grace"];

function makeLockRun(scan: Scan, resource: string, settings: Settings): ParseResult {
  const words = scan.rest ?? [];
  if (words.length === 0) return usage("a command is missing: lock-run <resource> … -- <command>");
  const values = new OptionValues(scan.values);
  return ok({ kind: "lock-run", resource, words, values, settings });
}

const ELECT_OPTIONAL = ["--value", "--expires", "--wait", "--grace", "--keep", "--observe"];

function makeElect(scan: Scan, name: string | undefined, settings: Settings): ParseResult {
  if (name === undefined) return usage("elect needs the name of an election");
  const checked = checkOptions(scan, "elect", [], ELECT_OPTIONAL);
  if (!checked.ok) return checked;
  const words = scan.rest ?? [];
  if (scan.rest !== null && words.length === 0) return usage("a command is missing after --");
  if (words.length === 0 && scan.values.has("--grace")) return usage("--grace goes with a command");
  if (scan.values.has("--observe")) {
    const other = ELECT_OPTIONAL.find((one) => one !== "--observe" && scan.values.has(one));
    if (other !== undefined) return usage(`--observe contradicts ${other}`);
    if (words.length > 0) return usage("--observe contradicts a command");
  }
  return ok({ kind: "elect", name, words, values: new OptionValues(scan.values), settings });
}

function makeWord(scan: Scan, settings: Settings): ParseResult {
  const [word, subject, extra] = scan.words as [string, ...string[]];
  if (!(WORDS as readonly string[]).includes(word)) {
    if (findCommand(`--${word}`) !== null) {
      return usage(`unknown command: ${word}; operations are options: --${word}`);
    }
    const names = COMMANDS.map((spec) => spec.name);
    const near = didYouMean(word, WORDS) || didYouMean(`--${word}`, names);
    return usage(`unknown command: ${word}${near}`);
  }
  if (scan.command !== null) return usage(`${scan.command.name} does not go with ${word}`);
  if (extra !== undefined) return usage(`unexpected argument: ${extra}`);
  if (word === "bench") {
    const kinds: readonly string[] = BENCH_KINDS;
    if (subject === undefined || !kinds.includes(subject)) {
      const near = subject === undefined ? "" : didYouMean(subject, kinds);
      return usage(`bench needs one of ${kinds.join(", ")}${near}`);
    }
    const options = BENCH_OPTIONS.map((spec) => spec.name);
    const checked = checkOptions(scan, "bench", [], options);
    if (!checked.ok) return checked;
    if (scan.rest !== null) return usage("bench takes no command");
    const values = new OptionValues(scan.values);
    return ok({ kind: "bench", subject, values, settings });
  }
  if (word === "elect") return makeElect(scan, subject, settings);
  if (subject === undefined) return usage("lock-run needs a resource");
  const optional = [...LOCK_RUN_OPTIONAL, "--exec"];
  const checked = checkOptions(scan, "lock-run", LOCK_RUN_REQUIRED, optional);
  return checked.ok ? makeLockRun(scan, subject, settings) : checked;
}

function makeOperation(scan: Scan, command: CommandSpec, settings: Settings): ParseResult {
  const checked = checkOptions(scan, command.name, command.required, command.optional);
  if (!checked.ok) return checked;
  const values = new OptionValues(scan.values);
  if (scan.values.has("--exec")) {
    return makeLockRun(scan, values.requiredText("--lock"), settings);
  }
  if (scan.rest !== null) return usage(`${command.name} takes no command after --`);
  if (scan.values.has("--raw") && settings.format === "json") {
    return usage("--raw contradicts --format json");
  }
  if (scan.values.has("--grace")) return usage("--grace goes with --exec");
  if (command.name === "--cluster-leave" && !scan.values.has("--member")) {
    // P-151: the wrong node must not leave: nothing is guessed or taken from the environment.
    const isOne = settings.isNamed && settings.endpoints.length === 1;
    if (!isOne)
      return usage(
        "--cluster-leave needs the one node that shall leave: --node <endpoint>, or --member <id>",
      );
  }
  return ok({ kind: "operation", command, values, settings });
}

/** Reads a command line (without the program's name). */
export function parse(argumentsList: readonly string[], environment: Environment): ParseResult {
  const information = readInformation(argumentsList);
  if (information !== null) return ok(information);
  const scanned = scanAll(argumentsList);
  if (!scanned.ok) return scanned;
  const scan = scanned.value;
  const shell = scan.values.get("--completion");
  if (typeof shell === "string") return ok({ kind: "completion", shell });
  const settings = makeSettings(new OptionValues(scan.values), environment);
  if (!settings.ok) return usage(settings.message);
  const isWord = scan.words.length > 0;
  if (isWord && scan.command === null) return makeWord(scan, settings.value);
  if (isWord) return usage(`unexpected argument: ${String(scan.words[0])}`);
  if (scan.command !== null) return makeOperation(scan, scan.command, settings.value);
  const checked = checkOptions(scan, "the shell", [], []);
  if (!checked.ok) return checked;
  if (scan.rest !== null) return usage("a command after -- goes with lock-run or elect");
  return ok({ kind: "shell", settings: settings.value });
}

/** Reads option words of a shell line ("--revision 3") for one operation. */
export function parseOptions(
  words: readonly string[],
): Result<ReadonlyMap<string, OptionValue>, "usage"> {
  const scanned = scanAll(words);
  if (!scanned.ok) return scanned;
  const { values, command, words: loose, rest } = scanned.value;
  if (command !== null) return usage(`${command.name} is not an option of a shell command`);
  if (loose.length > 0 || rest !== null) return usage(`unexpected argument: ${loose[0] ?? "--"}`);
  return ok(values);
}
