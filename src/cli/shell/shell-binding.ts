/**
 * From the words of a shell line to the values of its operation.
 *
 * Invariants: 1. Every word is used or refused. 2. Options stand behind the values.
 */
import { ok, type Result } from "../../base/result.js";
import type { Positional, ShellCommand } from "../commands/command.js";
import { findOption } from "../commands/options.js";
import { findCommand } from "../commands/table.js";
import { parseOptions } from "../arguments/parser.js";
import { optionsOf } from "./shell-completion.js";
import { readValue, type OptionValue } from "../commands/values.js";

/** A shell command with its values, ready to be carried out. */
export interface Bound {
  readonly spec: ShellCommand;
  readonly values: Map<string, OptionValue>;
}

/** Gives the words of a line to the options of its operation. */
export function bind(spec: ShellCommand, given: readonly string[]): Result<Bound, "usage"> {
  const values = new Map<string, OptionValue>(Object.entries(spec.implied));
  const words = inFull(spec, given);
  const optionsAt = words.findIndex(
    (word) => word.startsWith("--") && findOption(word.split("=")[0] ?? "") !== null,
  );
  const loose = joinedRest(spec, optionsAt < 0 ? words : words.slice(0, optionsAt));
  const isMissing = ({ required, instead }: Positional): boolean =>
    required && (instead === null || !words.includes(instead));
  const least = spec.positionals.filter(isMissing).length;
  if (loose.length < least || loose.length > spec.positionals.length) {
    const what = loose.length < least ? "a value is missing" : "too many values";
    return { ok: false, code: "usage", message: what };
  }
  for (const [at, text] of loose.entries()) {
    const positional = spec.positionals[at];
    if (positional === undefined) continue;
    const value = bindOne(positional.option, positional.name, text);
    if (!value.ok) return value;
    values.set(positional.option, value.value);
  }
  if (spec.operation !== null && !values.has(spec.operation)) values.set(spec.operation, true);
  return optionsAt < 0 ? ok({ spec, values }) : bindOptions(spec, values, words.slice(optionsAt));
}

/**
 * The words with all that follows an option in the place of a value written out as options: `set k
 * --value-file f 5` is `set k --value-file f --expires 5`.
 */
function inFull(spec: ShellCommand, words: readonly string[]): readonly string[] {
  const place = spec.positionals.findIndex(
    ({ instead }, at) => instead !== null && words[at] === instead,
  );
  if (place < 0) return words;
  const written = words.slice(0, place + 2);
  let at = place + 2;
  for (const { option } of spec.positionals.slice(place + 1)) {
    const word = words[at];
    if (word === undefined || word.startsWith("--")) break;
    written.push(option, word);
    at += 1;
  }
  return [...written, ...words.slice(at)];
}

/** The words with those of a value that takes all that is left as one. */
function joinedRest({ positionals }: ShellCommand, words: readonly string[]): readonly string[] {
  const last = positionals.length - 1;
  if (positionals[last]?.takesRest !== true || words.length <= last + 1) return words;
  return [...words.slice(0, last), words.slice(last).join(" ")];
}

function bindOne(name: string, shown: string, text: string): Result<OptionValue, "usage"> {
  const option = findOption(name) ?? findCommand(name);
  if (option?.kind === "none") {
    if (text === shown) return ok(true);
    return { ok: false, code: "usage", message: `"${text}" is not ${shown}` };
  }
  const value = readValue(option ?? { kind: "text" }, text);
  if (value.ok) return value;
  return { ok: false, code: "usage", message: `${shown}: "${text}" is not ${value.message}` };
}

function bindOptions(
  spec: ShellCommand,
  values: Map<string, OptionValue>,
  words: readonly string[],
): Result<Bound, "usage"> {
  const parsed = parseOptions(words);
  if (!parsed.ok) return parsed;
  const allowed = optionsOf(spec);
  // What stands in the place of values was checked to come at most once.
  const own = spec.positionals.flatMap(({ option }) => (values.has(option) ? [] : [option]));
  const replaced = spec.positionals.some(({ option, instead }) => {
    return instead !== null && values.has(option) && parsed.value.has(instead);
  });
  if (replaced) return { ok: false, code: "usage", message: "too many values" };
  for (const [name, value] of parsed.value) {
    if (!allowed.includes(name) && !own.includes(name)) {
      return { ok: false, code: "usage", message: `${name} does not go with ${spec.words}` };
    }
    values.set(name, value);
  }
  return ok({ spec, values });
}
