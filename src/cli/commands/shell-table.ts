/**
 * The commands of the interactive shell, as data.
 *
 * Owns the table. Invariants: 1. Each one names the operation it runs, or is "builtin". 2. Its words are unique, and no
 * one-word command is the first word of a two-word one.
 */
import type { Positional, ShellCommand } from "./command.js";

function at(
  name: string,
  option: string,
  completes: Positional["completes"] = null,
  required = true,
): Positional {
  return { name, option, completes, required };
}

type Entry = Pick<ShellCommand, "words" | "operation" | "area" | "meaning"> & Partial<ShellCommand>;

function shell(entry: Entry): ShellCommand {
  return { positionals: [], implied: {}, answer: "as-operation", examples: [], ...entry };
}

const MS = at("ms", "--expires");
const EPHEMERAL = { "--durability": "Ephemeral" } as const;

function key(operation: string): Positional {
  return at("key", operation, "key");
}

function resource(operation: string): Positional {
  return at("resource", operation, "resource");
}

function sequence(operation: string): Positional {
  return at("name", operation, "sequence");
}

const KV: readonly ShellCommand[] = [
  shell({
    words: "get",
    positionals: [key("--get")],
    operation: "--get",
    answer: "kv",
    area: "Key/value",
    meaning: "read a value",
    examples: ["get config/color"],
  }),
  shell({
    words: "set",
    positionals: [key("--set"), at("value", "--value"), at("ms", "--expires", null, false)],
    operation: "--set",
    answer: "kv",
    area: "Key/value",
    meaning: "store a value, for ms milliseconds if given",
    examples: ["set config/color blue", 'set greeting "hello world" 60000'],
  }),
  shell({
    words: "delete",
    positionals: [key("--delete")],
    operation: "--delete",
    answer: "kv",
    area: "Key/value",
    meaning: "delete an entry",
  }),
  shell({
    words: "exists",
    positionals: [key("--get")],
    operation: "--get",
    answer: "kv",
    area: "Key/value",
    meaning: "whether a key has an entry",
  }),
  shell({
    words: "extend",
    positionals: [key("--extend"), MS],
    operation: "--extend",
    answer: "kv",
    area: "Key/value",
    meaning: "give an entry a new expiry",
  }),
  shell({
    words: "get-by-bucket",
    positionals: [at("bucket", "--get-by-bucket", "key")],
    operation: "--get-by-bucket",
    area: "Key/value",
    meaning: "read all entries of a bucket",
  }),
  shell({
    words: "scan-by-prefix",
    positionals: [at("prefix", "--scan-by-prefix", "key")],
    operation: "--scan-by-prefix",
    area: "Key/value",
    meaning: "read all entries whose key begins so",
  }),
];

/** The persistent form and, with a leading e, the ephemeral one. */
function lockPair(
  words: string,
  operation: string,
  withLease: boolean,
  answer: ShellCommand["answer"],
  meaning: string,
): readonly ShellCommand[] {
  const positionals = withLease ? [resource(operation), MS] : [resource(operation)];
  const base = { positionals, operation, answer, area: "Locks" } as const;
  return [
    shell({ ...base, words, meaning }),
    shell({
      ...base,
      words: `e${words}`,
      meaning: `${meaning} (ephemeral lock)`,
      implied: EPHEMERAL,
    }),
  ];
}

const LOCKS: readonly ShellCommand[] = [
  ...lockPair("lock", "--lock", true, "lock", "acquire a lock; it is released when you leave"),
  ...lockPair(
    "extend-lock",
    "--extend-lock",
    true,
    "session-lock",
    "give a lock of this session a new lease",
  ),
  ...lockPair("unlock", "--unlock", false, "session-lock", "release a lock of this session"),
  ...lockPair("get-lock", "--get-lock", false, "as-operation", "who holds a lock"),
];

const INCREMENT = at("inc", "--increment", null, false);
const MAX = at("max", "--max-value", null, false);
const BLOCK = at("block", "--block-size", null, false);
const KEY = at("key", "--idempotency-key", null, false);

const SEQUENCES: readonly ShellCommand[] = [
  shell({
    words: "create-sequence",
    positionals: [
      sequence("--create-sequence"),
      at("init", "--initial-value", null, false),
      INCREMENT,
      MAX,
      BLOCK,
    ],
    operation: "--create-sequence",
    area: "Sequences",
    meaning: "create a sequence",
    examples: ["create-sequence orders", "create-sequence invoices 1000 10"],
  }),
  shell({
    words: "update-sequence",
    positionals: [
      sequence("--update-sequence"),
      at("current", "--current-value"),
      INCREMENT,
      MAX,
      BLOCK,
    ],
    operation: "--update-sequence",
    answer: "update-sequence",
    area: "Sequences",
    meaning: "continue a sequence elsewhere, as a new incarnation",
  }),
  shell({
    words: "get-sequence",
    positionals: [sequence("--get-sequence")],
    operation: "--get-sequence",
    area: "Sequences",
    meaning: "read a sequence without taking a value",
  }),
  shell({
    words: "next-sequence",
    positionals: [sequence("--next-sequence"), KEY],
    operation: "--next-sequence",
    area: "Sequences",
    meaning: "take the next value",
  }),
  shell({
    words: "reserve-sequence",
    positionals: [sequence("--reserve-sequence"), at("count", "--count"), KEY],
    operation: "--reserve-sequence",
    area: "Sequences",
    meaning: "take a contiguous range of values",
  }),
  shell({
    words: "delete-sequence",
    positionals: [sequence("--delete-sequence")],
    operation: "--delete-sequence",
    area: "Sequences",
    meaning: "delete a sequence",
  }),
];

const ADMINISTRATION: readonly ShellCommand[] = [
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
  }),
  shell({
    words: "ranges",
    positionals: [at("ks", "--key-space", null, false)],
    operation: "--ranges",
    area: "Key ranges",
    meaning: "list key spaces and their ranges",
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
  ...KV,
  ...LOCKS,
  ...SEQUENCES,
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
