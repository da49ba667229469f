/** The help of the interactive shell, from the table of its commands. */
import { AREAS } from "../commands/command.js";
import { SHELL_COMMANDS, findShellCommand, shellUsage } from "../commands/shell-table.js";
import { findCommand } from "../commands/table.js";
import { didYouMean } from "../arguments/nearest.js";
import { optionsOf } from "./shell-completion.js";

const LEFT = 52;
const COLUMNS_DEFAULT = 120;

/** Usage and meaning side by side, or below each other where they do not fit. */
function listLine(usage: string, meaning: string): string[] {
  const columns = process.stdout.columns || COLUMNS_DEFAULT;
  if (usage.length >= LEFT || LEFT + 2 + meaning.length > columns) {
    return [`  ${usage}`, `      ${meaning}`];
  }
  return [`  ${usage.padEnd(LEFT)}${meaning}`];
}

/** All commands, grouped. */
export function shellHelpLines(): string[] {
  const lines: string[] = [];
  for (const area of [...AREAS, "Shell"] as const) {
    lines.push(...(lines.length === 0 ? [] : [""]), `${area}:`);
    for (const spec of SHELL_COMMANDS.filter((candidate) => candidate.area === area)) {
      lines.push(...listLine(shellUsage(spec), spec.meaning));
    }
  }
  lines.push(
    "",
    "Words with spaces go in quotes. Tab completes, the arrows walk through earlier lines, Ctrl+C",
    "clears the line, Ctrl+D leaves. A line that begins with # is a comment, one that begins with",
    "a space is not remembered.",
  );
  return lines;
}

/** Help on one command; null with a hint when there is none of that name. */
export function shellTopicLines(words: readonly string[]): {
  readonly found: boolean;
  readonly lines: readonly string[];
} {
  const name = words.join(" ");
  const spec = findShellCommand(words);
  if (spec === null) {
    const family = SHELL_COMMANDS.filter((candidate) => candidate.words.startsWith(`${name} `));
    if (family.length > 0) {
      const lines = family.flatMap((member) => listLine(shellUsage(member), member.meaning));
      return { found: true, lines };
    }
    const near = didYouMean(
      name,
      SHELL_COMMANDS.map((candidate) => candidate.words),
    );
    return { found: false, lines: [`no help on ${name}${near}`] };
  }
  const lines = [shellUsage(spec), `  ${spec.meaning}`];
  const options = optionsOf(spec);
  if (options.length > 0) lines.push(`  options: ${options.join(" ")}`);
  const answers = spec.operation === null ? [] : (findCommand(spec.operation)?.answers ?? []);
  if (spec.answer === "as-operation" && answers.length > 0) {
    lines.push("  answers:", ...answers.map((answer) => `    ${answer}`));
  }
  if (spec.examples.length > 0) {
    lines.push("  examples:", ...spec.examples.map((example) => `    ${example}`));
  }
  return { found: true, lines };
}
