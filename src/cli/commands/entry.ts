/**
 * Fills the members that most operations leave at their usual value, so that the tables show only
 * what differs.
 */
import type { CommandSpec } from "./command.js";

type Usual = "aliases" | "kind" | "valueName" | "required" | "optional" | "question" | "limited";

export type CommandEntry = Omit<CommandSpec, Usual> & Partial<Pick<CommandSpec, Usual>>;

/** `entry.valueName` given: the operation takes a text of that name. */
export function command(entry: CommandEntry): CommandSpec {
  return {
    aliases: [],
    kind: entry.valueName === undefined ? "none" : "text",
    valueName: "",
    required: [],
    optional: [],
    question: null,
    limited: true,
    ...entry,
  };
}
