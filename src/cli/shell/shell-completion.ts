/**
 * Tab completion of a shell line: commands, their options, names seen lately, files.
 *
 * Invariants: 1. It answers at once and from memory (files excepted): it never asks a server. 2.
 * Candidates complete the last word; a name with spaces is offered in quotes.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ShellCommand } from "../commands/command.js";
import { findOption } from "../commands/options.js";
import { SHELL_COMMANDS, findShellCommand } from "../commands/shell-table.js";
import { findCommand } from "../commands/table.js";
import type { SeenNames } from "./seen-names.js";
import { quoteWord, splitWords } from "../arguments/words.js";

const FILES_MAX = 100;

/** Options that may follow the words of `spec`. */
export function optionsOf(spec: ShellCommand): string[] {
  const command = spec.operation === null ? null : findCommand(spec.operation);
  if (command === null) return [];
  const taken = new Set([
    ...spec.positionals.map((positional) => positional.option),
    ...Object.keys(spec.implied),
    // They go with a process of its own.
    "--exec",
    "--raw",
    "--grace",
    "--owner",
  ]);
  const own = [...command.required, ...command.optional].filter((name) => !taken.has(name));
  return [...own, "--format", "--timeout"];
}

function filesLike(text: string): string[] {
  const directory = text.endsWith("/") ? text : dirname(text);
  const start = text.endsWith("/") ? "" : basename(text);
  try {
    return readdirSync(directory === "" ? "." : directory, { withFileTypes: true })
      .filter((entry) => entry.name.startsWith(start))
      .slice(0, FILES_MAX)
      .map((entry) => {
        const isPlain = !text.includes("/");
        return (
          (isPlain ? entry.name : join(directory, entry.name)) + (entry.isDirectory() ? "/" : "")
        );
      });
  } catch {
    return [];
  }
}

/** Next words of commands whose first words are `before`. */
function commandWords(before: readonly string[]): string[] {
  const next = SHELL_COMMANDS.map((spec) => spec.words.split(" "))
    .filter((words) => before.every((word, at) => words[at] === word))
    .map((words) => words[before.length])
    .filter((word) => word !== undefined);
  return [...new Set(next)];
}

function candidates(before: readonly string[], word: string, seen: SeenNames): string[] {
  const topics = before[0] === "help" ? before.slice(1) : before;
  const spec = findShellCommand(before);
  if (spec === null || before[0] === "help") return commandWords(topics);
  const given = before.slice(spec.words.split(" ").length);
  const last = before.at(-1) ?? "";
  const choices = findOption(last)?.choices ?? [];
  if (choices.length > 0) return [...choices];
  if (word.startsWith("-")) return optionsOf(spec).filter((name) => !before.includes(name));
  const positional = spec.positionals[given.length];
  switch (positional?.completes) {
    case "key":
    case "resource":
    case "sequence":
    case "backup":
      return [...seen.of(positional.completes)];
    case "file":
      return filesLike(word);
    default:
      return positional?.name === "dry-run" ? ["dry-run"] : [];
  }
}

/** What readline asks for: the candidates, and the part of the line that they replace. */
export function completeLine(line: string, seen: SeenNames): [string[], string] {
  const split = splitWords(line);
  if (!split.ok) return [[], line];
  const endsInSpace = /[ \t]$/.test(line) || line === "";
  const current = endsInSpace ? null : (split.value.at(-1) ?? null);
  const before = (current === null ? split.value : split.value.slice(0, -1)).map((w) => w.text);
  const word = current?.text ?? "";
  const hits = candidates(before, word, seen)
    .filter((candidate) => candidate.startsWith(word))
    .map((candidate) => (candidate.endsWith("/") ? candidate : `${quoteWord(candidate)} `));
  return [hits, current === null ? "" : line.slice(current.start)];
}
