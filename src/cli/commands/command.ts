/**
 * What an operation, an option and a shell command are, as data.
 *
 * Everything a user can type is described by values of these types; the parser, the help, the
 * completion scripts, the shell and the tables of docs/shell.md are all made from them: none can
 * drift apart.
 *
 * Invariants: 1. A description holds no code that talks to a server: `--help` loads nothing of the
 * network.
 */
import type { Schema } from "./schemas.js";

/** How the text of a value is read. "none": the option takes no value. */
export type ValueKind =
  | "none"
  | "text"
  /** A text that no message repeats. */
  | "secret"
  | "int32"
  | "int64"
  | "milliseconds"
  | "seconds"
  | "endpoint"
  | "endpoints"
  | "file"
  | "choice"
  | "rest";

export interface OptionSpec {
  /** With its dashes, "--expires". */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly kind: ValueKind;
  /** What stands between angle brackets; "" for options without a value. */
  readonly valueName: string;
  readonly choices: readonly string[];
  /** Environment variable that stands in for it, or null. */
  readonly variable: string | null;
  /** The default, in words; null when there is none. */
  readonly defaultText: string | null;
  readonly meaning: string;
}

export const AREAS = [
  "Key/value",
  "Locks",
  "Sequences",
  "Watching",
  "Membership",
  "Placement",
  "Key ranges",
  "Backup",
  "Diagnosis",
] as const;
export type Area = (typeof AREAS)[number];

/** The modules that carry operations out; each is loaded only when one of its operations runs. */
export type RunModule =
  | "kv"
  | "locks"
  | "lock-admin"
  | "sequences"
  | "watches"
  | "cluster"
  | "status"
  | "ranges"
  | "backups"
  | "bundle"
  | "check";

export interface CommandSpec {
  /** The option that selects the operation, "--get". */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly kind: ValueKind;
  readonly valueName: string;
  readonly area: Area;
  readonly meaning: string;
  readonly required: readonly string[];
  readonly optional: readonly string[];
  readonly examples: readonly string[];
  /** What the answer looks like to a person. */
  readonly answers: readonly string[];
  readonly module: RunModule;
  /** The question asked before it runs on a terminal; null = none. */
  readonly question: string | null;
  /** False: no time limit unless --timeout is given. */
  readonly limited: boolean;
  /** The document of --format json. */
  readonly document: Schema;
}

/** One value in the words of a shell command. */
export interface Positional {
  readonly name: string;
  /** The option of the operation that receives it. */
  readonly option: string;
  readonly required: boolean;
  /** An option that may stand in its place, with its value; null = none. */
  readonly instead: string | null;
  /** It is all words that are left, with a space between each two. */
  readonly takesRest?: true;
  /** Which of the names seen in the session complete it. */
  readonly completes: "key" | "resource" | "sequence" | "backup" | "file" | "command" | null;
}

/** How the shell words the answer where it differs from the one-shot form. */
export type ShellAnswer =
  "as-operation" | "kv" | "lock" | "session-lock" | "update-sequence" | "builtin";

export interface ShellCommand {
  /** One or two words. */
  readonly words: string;
  readonly positionals: readonly Positional[];
  /** The operation that it runs; null for what only the shell knows. */
  readonly operation: string | null;
  /** Option values that the words themselves imply. */
  readonly implied: Readonly<Record<string, string>>;
  readonly answer: ShellAnswer;
  readonly area: Area | "Shell";
  readonly meaning: string;
  readonly examples: readonly string[];
}
