/**
 * Reading the arguments of a command: node lists, numbers, truth values, options.
 */
import { CommandError } from "./environment.js";
import type { Command } from "./scenario.js";

export function parseNumber(text: string): number {
  if (!/^[0-9]+$/.test(text)) throw new CommandError(`not a number: ${text}`);
  return Number(text);
}

/** A truth value in any of the spellings that the model's language takes. */
export function parseTruth(text: string): boolean {
  if (["1", "t", "T", "TRUE", "true", "True"].includes(text)) return true;
  if (["0", "f", "F", "FALSE", "false", "False"].includes(text)) return false;
  throw new CommandError(`strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`);
}

/** The bare words of a command. */
export function bareWords(command: Command): string[] {
  return command.args.filter(({ values }) => values === null).map(({ name }) => name);
}

/** The bare words as node numbers. */
export function nodeNumbers(command: Command): number[] {
  return bareWords(command).map(parseNumber);
}

/** The bare word at `at`, as a number. */
export function numberAt(command: Command, at: number): number {
  const word = bareWords(command)[at];
  if (word === undefined) throw new CommandError(`${command.name}: argument ${at + 1} is missing`);
  return parseNumber(word);
}

/** The values of an option; null if it is absent. */
export function optionValues(command: Command, name: string): readonly string[] | null {
  return command.args.find((arg) => arg.name === name && arg.values !== null)?.values ?? null;
}

/** The single value of an option; null if it is absent. */
export function option(command: Command, name: string): string | null {
  return optionValues(command, name)?.[0] ?? null;
}

/** The number given for an option that must be there. */
export function numberOption(command: Command, name: string): number {
  const value = option(command, name);
  if (value === null) throw new CommandError(`${command.name}: ${name}= is missing`);
  return parseNumber(value);
}

/** Fails on options that the command does not know. */
export function allowOptions(command: Command, names: readonly string[]): void {
  for (const { name, values } of command.args) {
    if (values !== null && !names.includes(name)) {
      throw new CommandError(`${command.name}: unknown option ${name}`);
    }
  }
}
