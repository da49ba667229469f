/** The shell commands on entries, locks and sequences, as data. */
import type { Positional, ShellCommand } from "./command.js";
import { at, shell } from "./shell-entry.js";

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
    positionals: [
      key("--set"),
      at("value", "--value", null, true, "--value-file"),
      at("ms", "--expires", null, false),
    ],
    operation: "--set",
    answer: "kv",
    area: "Key/value",
    meaning: "store a value (or --value-file <file>), for ms milliseconds if given",
    examples: [
      "set config/color blue",
      "set site/logo --value-file logo.png",
      'set greeting "hello world" 60000',
    ],
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
  shell({
    words: "locks",
    positionals: [at("prefix", "--prefix", "resource", false)],
    operation: "--list-locks",
    area: "Locks",
    meaning: "list locks, with who holds them",
    examples: ["locks", "locks jobs/ --held"],
  }),
  shell({
    words: "force-unlock",
    positionals: [
      resource("--force-unlock"),
      at("token", "--fencing-token"),
      { ...at("reason…", "--reason"), takesRest: true },
    ],
    operation: "--force-unlock",
    area: "Locks",
    meaning: "end one grant of a lock, whoever has it",
    examples: ["force-unlock jobs/1 7 host-7 hangs"],
  }),
  shell({
    words: "lock-audit",
    positionals: [at("prefix", "--prefix", "resource", false)],
    operation: "--lock-audit",
    area: "Locks",
    meaning: "list who released which locks by force",
  }),
  shell({
    words: "elect",
    positionals: [at("name", ""), at("value", "", null, false)],
    operation: null,
    answer: "builtin",
    area: "Locks",
    meaning: "wait until this session leads an election; it resigns when you leave",
    examples: ["elect indexer", "elect indexer host-7"],
  }),
  shell({
    words: "resign",
    positionals: [at("name", "")],
    operation: null,
    answer: "builtin",
    area: "Locks",
    meaning: "end a leadership of this session",
  }),
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

const WATCHED = [
  ["key", "key", "key"],
  ["prefix", "prefix", "key"],
  ["bucket", "bucket", "key"],
  ["lock", "resource", "resource"],
  ["locks", "prefix", "resource"],
  ["sequence", "name", "sequence"],
] as const;
const WATCHES: readonly ShellCommand[] = WATCHED.map(([what, name, completes]) =>
  shell({
    words: `watch ${what}`,
    positionals: [at(name, `--watch-${what}`, completes)],
    operation: `--watch-${what}`,
    area: "Watching",
    meaning: `tell what changes, until Ctrl+C`,
    examples: [`watch ${what} jobs`, `watch ${what} jobs --initial --count 3`],
  }),
);

export const SHELL_DATA_COMMANDS: readonly ShellCommand[] = [
  ...KV,
  ...LOCKS,
  ...SEQUENCES,
  ...WATCHES,
];
