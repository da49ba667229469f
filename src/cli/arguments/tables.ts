/** The tables of docs/shell.md, made from the tables of commands. */
import { ALL_OPTIONS } from "../commands/options.js";
import { SHELL_COMMANDS, shellUsage } from "../commands/shell-table.js";
import { COMMANDS } from "../commands/table.js";
import { EXIT_MEANINGS } from "../invocation/exit-codes.js";
import { commandUsage } from "./help.js";

function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escaped).join(" | ")} |`;
  return [line(header), `|${"---|".repeat(header.length)}`, ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

/** One row per operation. */
export function operationsTable(): string {
  const rows = COMMANDS.map((spec) => [
    spec.area,
    code(commandUsage(spec)) + spec.aliases.map((alias) => `, ${code(alias)}`).join(""),
    spec.optional.map(code).join(" "),
    spec.meaning,
  ]);
  return table(["Area", "Operation", "Further options", "Meaning"], rows);
}

/** One row per option that is no operation. */
export function optionsTable(): string {
  const rows = ALL_OPTIONS.map((spec) => [
    code([...spec.aliases, spec.name].join(", ") + (spec.valueName && ` <${spec.valueName}>`)),
    spec.variable === null ? "" : code(spec.variable),
    spec.defaultText ?? "",
    spec.choices.length === 0 ? spec.meaning : `${spec.meaning} (${spec.choices.join(", ")})`,
  ]);
  return table(["Option", "Variable", "Default", "Meaning"], rows);
}

/** One row per command of the interactive shell. */
export function shellTable(): string {
  const rows = SHELL_COMMANDS.map((spec) => [spec.area, code(shellUsage(spec)), spec.meaning]);
  return table(["Area", "Command", "Meaning"], rows);
}

export function exitCodesTable(): string {
  return table(
    ["Exit code", "Meaning"],
    EXIT_MEANINGS.map(([number, meaning]) => [String(number), meaning]),
  );
}
