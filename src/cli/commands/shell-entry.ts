/** Short forms in which the tables of shell commands are written. */
import type { Positional, ShellCommand } from "./command.js";

export function at(
  name: string,
  option: string,
  completes: Positional["completes"] = null,
  required = true,
  instead: string | null = null,
): Positional {
  return { name, option, completes, required, instead };
}

type Entry = Pick<ShellCommand, "words" | "operation" | "area" | "meaning"> & Partial<ShellCommand>;

export function shell(entry: Entry): ShellCommand {
  return { positionals: [], implied: {}, answer: "as-operation", examples: [], ...entry };
}
