/**
 * The commands of the interactive shell, as data.
 *
 * Owns the table. Invariants: 1. Each one names the operation it runs, or is "builtin". 2. Its
 * words are unique, and no one-word command is the first word of a two-word one.
 */
import type { ShellCommand } from "./command.js";
import { SHELL_DATA_COMMANDS } from "./shell-data.js";
import { at, shell } from "./shell-entry.js";

const ADMINISTRATION: readonly ShellCommand[] = [
  shell({
    words: "cluster status",
    operation: "--cluster-status",
    area: "Membership",
    meaning: "the whole cluster at a glance",
    examples: ["cluster status", "cluster status --watch"],
  }),
  shell({
    words: "cluster members",
    operation: "--cluster-members",
    area: "Membership",
    meaning: "list the members of the cluster",
  }),
  shell({
    words: "cluster placement",
    operation: "--cluster-placement",
    area: "Placement",
    meaning: "where each partition has its replicas",
  }),
  shell({
    words: "cluster leave",
    positionals: [at("endpoint", "--node", null, false)],
    operation: "--cluster-leave",
    area: "Membership",
    meaning: "remove a node from the roster",
    examples: ["cluster leave http://10.0.0.7:8083", "cluster leave --member 3"],
  }),
  shell({
    words: "cluster finalize",
    operation: "--cluster-finalize",
    area: "Membership",
    meaning: "raise the level of the cluster after an upgrade of all members",
    examples: ["cluster finalize", "cluster finalize --level 2"],
  }),
  shell({
    words: "ranges",
    positionals: [at("ks", "--key-space", null, false)],
    operation: "--ranges",
    area: "Key ranges",
    meaning: "list key spaces with their ranges, and what moves",
  }),
  shell({
    words: "backup full",
    operation: "--backup-full",
    area: "Backup",
    meaning: "back up every partition",
  }),
  shell({
    words: "backup coordinated",
    operation: "--backup-coordinated",
    area: "Backup",
    meaning: "back up every partition at one instant",
  }),
  shell({
    words: "backup incremental",
    positionals: [at("id", "--parent-backup-id", "backup")],
    operation: "--backup-incremental",
    area: "Backup",
    meaning: "back up what changed since a parent",
  }),
  shell({
    words: "backup chain",
    positionals: [at("id", "--backup-chain", "backup")],
    operation: "--backup-chain",
    area: "Backup",
    meaning: "the backups that a restore would read",
  }),
  shell({
    words: "backup gc",
    positionals: [at("dry-run", "--backup-gc-dry-run", null, false)],
    operation: "--backup-gc",
    area: "Backup",
    meaning: "remove what retention lets go",
  }),
  shell({
    words: "list backups",
    operation: "--list-backups",
    area: "Backup",
    meaning: "list the catalog",
  }),
  shell({
    words: "check",
    operation: "--check",
    area: "Diagnosis",
    meaning: "hold every node against limits",
    examples: ["check", "check --max-latency 20"],
  }),
  shell({
    words: "debug bundle",
    positionals: [at("file", "--debug-bundle", "file")],
    operation: "--debug-bundle",
    area: "Diagnosis",
    meaning: "write into one file what there is to find out what is wrong",
    examples: ["debug bundle svc-debug.tar.gz", "debug bundle svc-debug.tar.gz --profile 10"],
  }),
];

const BUILTINS: readonly ShellCommand[] = [
  shell({
    words: "help",
    positionals: [at("command", "", "command", false)],
    operation: null,
    answer: "builtin",
    area: "Shell",
    meaning: "this list, or one command in full",
  }),
  shell({
    words: "clear",
    operation: null,
    answer: "builtin",
    area: "Shell",
    meaning: "clear the screen",
  }),
  shell({
    words: "run",
    positionals: [at("file", "", "file")],
    operation: null,
    answer: "builtin",
    area: "Shell",
    meaning: "run a file of commands, stopping at the first error",
  }),
  shell({
    words: "exit",
    operation: null,
    answer: "builtin",
    area: "Shell",
    meaning: "release the locks of this session and leave",
  }),
  shell({
    words: "quit",
    operation: null,
    answer: "builtin",
    area: "Shell",
    meaning: "the same as exit",
  }),
];

export const SHELL_COMMANDS: readonly ShellCommand[] = [
  ...SHELL_DATA_COMMANDS,
  ...ADMINISTRATION,
  ...BUILTINS,
];

/** The command that `words` begins with: two words are tried first. */
export function findShellCommand(words: readonly string[]): ShellCommand | null {
  const two = words.slice(0, 2).join(" ");
  const one = words[0] ?? "";
  return (
    SHELL_COMMANDS.find((spec) => spec.words === two && words.length >= 2) ??
    SHELL_COMMANDS.find((spec) => spec.words === one) ??
    null
  );
}

/** "set <key> <value> [ms]" */
export function shellUsage(spec: ShellCommand): string {
  const values = spec.positionals.map(({ name, required }) =>
    required ? `<${name}>` : `[${name}]`,
  );
  return [spec.words, ...values].join(" ");
}
