/**
 * From the words of a shell line to the values of its operation.
 *
 * Invariants: 1. Every word is used or refused. 2. Options stand behind the values.
 */
import { ok, type Result } from "../base/result.js";
import type { ShellCommand } from "./commands/command.js";
import { findOption } from "./commands/options.js";
import { findCommand } from "./commands/table.js";
import { parseOptions } from "./parser.js";
import { optionsOf } from "./shell-completion.js";
import { readValue, type OptionValue } from "./values.js";

/** A shell command with its values, ready to be carried out. */
export interface Bound {
  readonly spec: ShellCommand;
  readonly values: Map<string, OptionValue>;
}

/** Gives the words of a line to the options of its operation. */
export function bind(spec: ShellCommand, words: readonly string[]): Result<Bound, "usage"> {
  const values = new Map<string, OptionValue>(Object.entries(spec.implied));
  const optionsAt = words.findIndex(
    (word) => word.startsWith("--") && findOption(word.split("=")[0] ?? "") !== null,
  );
  const loose = optionsAt < 0 ? words : words.slice(0, optionsAt);
  const least = spec.positionals.filter((positional) => positional.required).length;
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
  for (const [name, value] of parsed.value) {
    if (!allowed.includes(name)) {
      return { ok: false, code: "usage", message: `${name} does not go with ${spec.words}` };
    }
    values.set(name, value);
  }
  return ok({ spec, values });
}
