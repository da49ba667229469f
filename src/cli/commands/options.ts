/**
 * Every option that is not itself an operation: connection, output, and the values that operations
 * take.
 *
 * Owns the table. Invariants: 1. An option name means the same for every operation that takes it.
 * 2. Names are unique over this table and the table of operations (held by a test).
 */
import type { OptionSpec, ValueKind } from "./command.js";

export const OPERATION_TIMEOUT_DEFAULT_S = 10;
export const ENDPOINT_DEFAULT = "http://127.0.0.1:8083";
/** What --check goes by. */
export const CHECK_DEFAULTS = {
  "--reads": 100,
  "--max-latency": 100,
  "--max-log-sync": 100,
  "--max-clock-difference": 500,
  "--min-free": 1024,
  "--min-certificate-days": 14,
  "--max-backup-age": 26,
} as const;

interface More {
  readonly aliases?: readonly string[];
  readonly choices?: readonly string[];
  readonly variable?: string;
  readonly defaultText?: string;
}

function option(
  name: string,
  kind: ValueKind,
  valueName: string,
  meaning: string,
  more: More = {},
): OptionSpec {
  return {
    name,
    kind,
    valueName,
    meaning,
    aliases: more.aliases ?? [],
    choices: more.choices ?? [],
    variable: more.variable ?? null,
    defaultText: more.defaultText ?? null,
  };
}

function checked(
  name: keyof typeof CHECK_DEFAULTS,
  valueName: string,
  meaning: string,
): OptionSpec {
  return option(name, "int32", valueName, meaning, { defaultText: `${CHECK_DEFAULTS[name]}` });
}

/** Options that every operation and the shell understand. */
export const CONNECTION_OPTIONS: readonly OptionSpec[] = [
  option(
    "--connection-source",
    "endpoints",
    "endpoints",
    "comma-separated endpoints, tried in order; without scheme: http://",
    { aliases: ["-c"], variable: "SVC_ENDPOINTS", defaultText: ENDPOINT_DEFAULT },
  ),
  option("--node", "endpoint", "endpoint", "send to this node only"),
  option("--format", "choice", "format", "output for people or one JSON document", {
    choices: ["console", "json"],
    variable: "SVC_FORMAT",
    defaultText: "console",
  }),
  option(
    "--insecure",
    "none",
    "",
    "do not verify the server certificate (automatic when every https endpoint is on loopback)",
  ),
  option("--ca-cert", "file", "file", "PEM file: CA that the server certificate must chain to"),
  option("--cert", "file", "file", "PEM file: client certificate, with --key"),
  option("--key", "file", "file", "PEM file: private key of --cert"),
  option(
    "--token",
    "secret",
    "token",
    "bearer token; the list of processes shows it for a moment: prefer --token-file or SVC_TOKEN",
    { variable: "SVC_TOKEN" },
  ),
  option("--token-file", "file", "file", "file that holds the bearer token"),
  option("--timeout", "seconds", "seconds", "longest time of the whole operation", {
    aliases: ["-t"],
    defaultText: "10; watches, elect, backups, restore, leave and debug bundle: no limit",
  }),
  option("--yes", "none", "", "answer every confirmation with yes", { aliases: ["-y"] }),
];

/** What the program prints about itself. */
export const INFORMATION_OPTIONS: readonly OptionSpec[] = [
  option("--help", "none", "", "this text, or that of one topic: --help lock, --lock --help", {
    aliases: ["-h"],
  }),
  option("--version", "none", "", "print the version"),
  option("--completion", "choice", "shell", "print a completion script", {
    choices: ["bash", "zsh", "fish"],
  }),
];

/** Values of operations. */
const VALUE_OPTIONS: readonly OptionSpec[] = [
  option(
    "--value",
    "text",
    "value",
    "what to store, - reads its bytes from stdin; what a leader says",
  ),
  option("--value-file", "file", "file", "store the bytes of this file"),
  option("--expires", "milliseconds", "ms", "lease: how long the lock or the entry lives"),
  option("--flags", "int32", "n", "condition bits: 4 if exists, 8 if not, 16 value, 32 revision", {
    defaultText: "0; --compare-… set their own bit",
  }),
  option("--compare-value", "text", "value", "set only if the stored bytes equal this"),
  option("--compare-revision", "int64", "n", "set only if the latest revision equals this"),
  option("--revision", "int64", "n", "read exactly this revision", { defaultText: "-1, latest" }),
  option("--raw", "none", "", "the bytes of the value and nothing else"),
  option("--limit", "int32", "n", "at most so many items"),
  option("--keys-only", "none", "", "the keys without their values"),
  option("--durability", "choice", "class", "replicated and durable, or in the leader's memory", {
    choices: ["Persistent", "Ephemeral"],
    defaultText: "Persistent",
  }),
  option("--owner", "text", "owner", "who holds the lock; base64:… for bytes that are no text"),
  option("--wait", "milliseconds", "ms", "keep trying so long while somebody else holds it", {
    defaultText: "0",
  }),
  option("--note", "text", "text", "what others are shown of the grant; base64:… for other bytes"),
  option("--prefix", "text", "prefix", "only resources that begin so"),
  option("--held", "none", "", "only locks that somebody holds now"),
  option("--fencing-token", "int64", "n", "the one grant that is meant"),
  option("--reason", "text", "text", "why; it is kept with who did it"),
  option("--drop-waiters", "none", "", "abort whoever waits, and leave the lock free"),
  option("--initial-value", "int64", "n", "value at creation; the first next is one step above", {
    defaultText: "0",
  }),
  option("--increment", "int64", "n", "step between values", { defaultText: "1" }),
  option("--max-value", "int64", "n", "no allocation passes this value"),
  option("--remove-max-value", "none", "", "clear the bound"),
  option("--block-size", "int32", "n", "values reserved durably at a time; 1 never skips any"),
  option("--remove-block-size", "none", "", "use the server's block size again"),
  option("--current-value", "int64", "n", "continue after this value"),
  option("--count", "int32", "n", "how many values, or events of a watch", {
    defaultText: "1; a watch: without end",
  }),
  option("--initial", "none", "", "tell the present state first"),
  option("--cursor", "text", "cursor", "go on behind a batch of an earlier watch"),
  option("--for", "seconds", "s", "watch for so long"),
  option("--idempotency-key", "text", "key", "a repeat with the same key gives the same values"),
  option("--watch", "none", "", "repeat it every 2 seconds until Ctrl+C, on a terminal"),
  option(
    "--profile",
    "int32",
    "s",
    "with a profile of each processor over so many seconds, 1 to 60",
  ),
  checked("--reads", "n", "so many reads of each node are timed, one after the other"),
  checked("--max-latency", "ms", "99 of 100 reads end within this time"),
  checked("--max-log-sync", "ms", "99 of 100 durable writes of the log end within this time"),
  checked("--max-clock-difference", "ms", "how far a clock may be from the others"),
  checked("--min-free", "MiB", "so much is free on each volume"),
  checked("--min-certificate-days", "n", "a certificate ends no sooner"),
  checked("--max-backup-age", "hours", "the last backup is no older, where backups are configured"),
  option("--partition", "int32", "id", "the partition"),
  option("--member", "int32", "id", "a member whose process or disk is gone"),
  option("--level", "int32", "n", "what to raise to; 0 is one more than the present level", {
    defaultText: "0",
  }),
  option("--key-space", "text", "name", "only this key space"),
  option("--split-key", "text", "key", "where the right-hand range begins"),
  option("--parent-backup-id", "text", "id", "the backup that the new one continues"),
  option("--backup-gc-dry-run", "none", "", "only say what would go"),
  option("--target-dir", "text", "dir", "directory on the server, below its restore root"),
  option("--target-time-ms", "int64", "n", "restore up to this Unix time in milliseconds", {
    defaultText: "0, the end of the chain",
  }),
  option("--sequence-skip", "int64", "n", "move every sequence on by so many increments", {
    defaultText: "0, by none",
  }),
];

/** Options of `lock-run` and of `--lock … --exec`. */
export const LOCK_RUN_OPTIONS: readonly OptionSpec[] = [
  option(
    "--exec",
    "rest",
    "command…",
    "run this under the lock; everything after it belongs to it",
  ),
  option("--grace", "milliseconds", "ms", "between SIGTERM and SIGKILL when the lock is lost", {
    defaultText: "5000",
  }),
];

/** Options of `elect` alone. */
const ELECT_OPTIONS: readonly OptionSpec[] = [
  option("--observe", "none", "", "tell who leads, and do not campaign"),
  option("--keep", "none", "", "campaign again after the leadership was lost"),
];

/** Options of `bench`. */
export const BENCH_OPTIONS: readonly OptionSpec[] = [
  option("--connections", "int32", "n", "connections to the service", { defaultText: "1" }),
  option("--duration", "seconds", "seconds", "how long to measure", { defaultText: "10" }),
  option("--rate", "int32", "n", "operations per second to aim at; latency then counts from plan", {
    defaultText: "as fast as answers come",
  }),
  option("--inflight", "int32", "n", "operations waiting for an answer at a time", {
    defaultText: "64",
  }),
];

export const ALL_OPTIONS: readonly OptionSpec[] = [
  ...CONNECTION_OPTIONS,
  ...INFORMATION_OPTIONS,
  ...VALUE_OPTIONS,
  ...LOCK_RUN_OPTIONS,
  ...ELECT_OPTIONS,
  ...BENCH_OPTIONS,
];

const BY_NAME = new Map<string, OptionSpec>();
for (const spec of ALL_OPTIONS) {
  for (const name of [spec.name, ...spec.aliases]) BY_NAME.set(name, spec);
}

/** The option that `name` (or an alias of it) means, or null. */
export function findOption(name: string): OptionSpec | null {
  return BY_NAME.get(name) ?? null;
}
