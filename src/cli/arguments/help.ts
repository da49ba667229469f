/**
 * The texts of `--help`, of one topic, and the tables of docs/shell.md, all made from the tables of
 * commands.
 *
 * Invariants: 1. Nothing that a user can type is missing here; nothing is here that cannot be typed
 * (held by tests).
 */
import { HELP_COLUMNS, wrapText } from "../../base/help-text.js";
import { AREAS, type CommandSpec, type OptionSpec } from "../commands/command.js";
import {
  ALL_OPTIONS,
  BENCH_OPTIONS,
  CONNECTION_OPTIONS,
  INFORMATION_OPTIONS,
  LOCK_RUN_OPTIONS,
  findOption,
} from "../commands/options.js";
import { SHELL_COMMANDS, shellUsage } from "../commands/shell-table.js";
import { COMMANDS, findCommand } from "../commands/table.js";
import { EXIT_MEANINGS } from "../invocation/exit-codes.js";
import { didYouMean } from "./nearest.js";
import { WORDS } from "./parser.js";
import type { Schema } from "../commands/schemas.js";

const LEFT = 44;

/** `left` in its column, `right` beside it (below it when `left` is too long). */
function entryLines(left: string, right: string): string[] {
  const lines = wrapText(right, HELP_COLUMNS - LEFT - 2).map((line) => " ".repeat(LEFT + 2) + line);
  if (left.length > LEFT - 2) return [`  ${left}`, ...lines];
  return [`  ${left.padEnd(LEFT)}${(lines[0] ?? "").slice(LEFT + 2)}`, ...lines.slice(1)];
}

function valueForm(spec: {
  readonly valueName: string;
  readonly choices?: readonly string[];
}): string {
  if (spec.valueName === "") return "";
  const choices = spec.choices ?? [];
  return choices.length > 0 ? ` ${choices.join("|")}` : ` <${spec.valueName}>`;
}

/** "--lock <resource> --expires <ms> [--owner <owner>] …" */
export function commandUsage(spec: CommandSpec): string {
  const required = spec.required.map((name) => ` ${name}${valueFormOf(name)}`);
  return `${spec.name}${valueForm(spec)}${required.join("")}`;
}

function valueFormOf(name: string): string {
  const option = findOption(name);
  return option === null ? "" : valueForm(option);
}

function optionMeaning(spec: OptionSpec): string {
  const notes = [
    spec.defaultText === null ? "" : `default: ${spec.defaultText}`,
    spec.variable === null ? "" : spec.variable,
  ].filter((note) => note !== "");
  return notes.length === 0 ? spec.meaning : `${spec.meaning} [${notes.join("; ")}]`;
}

function optionLines(spec: OptionSpec): string[] {
  const names = [...spec.aliases, spec.name].join(", ");
  return entryLines(names + valueForm(spec), optionMeaning(spec));
}

const WORD_LINES: readonly (readonly [string, string])[] = [
  [
    "lock-run <resource> --expires <ms> -- <command…>",
    "run a command under a lock that is renewed while it runs (also: --lock … --exec)",
  ],
  [
    "elect <name> [-- <command…>]",
    "lead an election, with a command that runs only meanwhile or until a signal",
  ],
  ["bench sequences|locks|kv", "measure a service: throughput and a picture of the latencies"],
];

/** The whole help. */
export function helpText(version: string): string {
  const lines = [
    `svc-cli ${version}: sequences, fenced locks, key/value entries and administration of svc`,
    "",
    "Usage: svc-cli [options]                  interactive shell (also reads commands from a pipe)",
    "       svc-cli [options] --<operation>    one operation, then exit",
    "       svc-cli --help <topic>             everything about one operation, option or command",
    "",
    "Values follow as --name value or --name=value.",
    "",
    "Examples:",
    "  svc-cli --set config/color --value blue",
    "  svc-cli --next-sequence orders --format json",
    "  svc-cli lock-run nightly-report --expires 10000 -- ./report.sh",
    "  svc-cli -c https://10.0.0.7:8082 --ca-cert ca.pem --token-file token --cluster-members",
  ];
  for (const area of AREAS) {
    lines.push("", `${area}:`);
    for (const spec of COMMANDS.filter((candidate) => candidate.area === area)) {
      const names = spec.aliases.length === 0 ? "" : ` (also ${spec.aliases.join(", ")})`;
      lines.push(...entryLines(commandUsage(spec), spec.meaning + names));
    }
  }
  lines.push("", "Commands:");
  for (const [left, right] of WORD_LINES) lines.push(...entryLines(left, right));
  lines.push("", "Connection and output:");
  for (const spec of CONNECTION_OPTIONS) lines.push(...optionLines(spec));
  lines.push("", "About the program:");
  for (const spec of INFORMATION_OPTIONS) lines.push(...optionLines(spec));
  lines.push("", "Exit codes:");
  for (const [code, meaning] of EXIT_MEANINGS) {
    const [first, ...more] = wrapText(meaning, HELP_COLUMNS - 5);
    lines.push(`  ${code}  ${first ?? ""}`, ...more.map((line) => `     ${line}`));
  }
  return `${lines.join("\n")}\n`;
}

/** One line per member: "name  type". */
function documentLines(schema: Schema, indent: string): string[] {
  if (schema.anyOf !== undefined) {
    return schema.anyOf.flatMap((choice, at) => [
      ...(at === 0 ? [] : [`${indent}or:`]),
      ...documentLines(choice, indent),
    ]);
  }
  if (schema.type === "array") {
    return [`${indent}array of:`, ...documentLines(schema.items ?? {}, `${indent}  `)];
  }
  if (schema.type !== "object") return [`${indent}${typeText(schema)}`];
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const isNested = member.type === "array" || member.type === "object";
    const line = `${indent}${name}: ${typeText(member)}`;
    if (!isNested || name === "expires" || /^(last|created|updated)/.test(name)) return [line];
    return [line, ...documentLines(member.items ?? member, `${indent}  `)];
  });
}

function typeText(schema: Schema): string {
  const properties = Object.keys(schema.properties ?? {});
  if (properties.join() === "n,l,c") return "timestamp {n, l, c}";
  const type = schema.type;
  return type === undefined || typeof type === "string" ? (type ?? "any") : type.join(" or ");
}

function commandTopic(spec: CommandSpec): string[] {
  const names = spec.aliases.length === 0 ? "" : ` (also ${spec.aliases.join(", ")})`;
  const lines = [
    `svc-cli ${commandUsage(spec)} [options]`,
    "",
    `${spec.area}: ${spec.meaning}${names}.`,
  ];
  const options = [...spec.required, ...spec.optional].map(findOption).filter((o) => o !== null);
  if (options.length > 0) lines.push("", "Options:", ...options.flatMap(optionLines));
  lines.push("", "Answers:", ...spec.answers.map((answer) => `  ${answer}`));
  lines.push("", "With --format json:", ...documentLines(spec.document, "  "));
  lines.push("", "Examples:", ...spec.examples.map((example) => `  ${example}`));
  const inShell = SHELL_COMMANDS.filter((candidate) => candidate.operation === spec.name);
  if (inShell.length > 0) {
    lines.push("", "In the shell:", ...inShell.map((candidate) => `  ${shellUsage(candidate)}`));
  }
  return lines;
}

function optionTopic(spec: OptionSpec): string[] {
  const lines = optionLines(spec);
  const users = COMMANDS.filter((command) =>
    [...command.required, ...command.optional].includes(spec.name),
  );
  if (users.length > 0) lines.push("", "Goes with:", ...users.map((user) => `  ${user.name}`));
  return lines;
}

const LOCK_RUN_TOPIC: readonly string[] = [
  "svc-cli lock-run <resource> --expires <ms> [options] -- <command…>",
  "",
  "Runs a command while holding a lock. The lock is renewed at a third of its lease. The command",
  "finds SVC_FENCING_TOKEN, SVC_LOCK_RESOURCE and SVC_LOCK_OWNER in its environment. Signals are",
  "passed on. When the lock is lost, the command gets SIGTERM before the lease can have ended, and",
  "SIGKILL after the grace time. The exit code is that of the command (128 + number for a signal).",
  "",
  "Options:",
];

const ELECT_TOPIC: readonly string[] = [
  "svc-cli elect <name> [options] [-- <command…>]",
  "",
  "Campaigns until it leads, in the order of asking, and runs a command while it does. The command",
  "finds SVC_ELECTION, SVC_ELECTION_VALUE, SVC_FENCING_TOKEN, SVC_LOCK_RESOURCE and SVC_LOCK_OWNER",
  "in its environment. When the leadership is lost, the command gets SIGTERM before anybody else",
  "can lead, and SIGKILL after the grace time. Without a command it leads until a signal.",
  "",
  "Options:",
];

const BENCH_TOPIC: readonly string[] = [
  "svc-cli bench sequences|locks|kv [options]",
  "",
  "Measures a service with the client library. sequences: next on one sequence; locks: acquire and",
  "release in turn, each counts; kv: durable sets. What it made is deleted afterwards. With --rate,",
  "latency counts from the moment at which an operation was planned, so that a stall of the service",
  "is seen by every operation that it delayed.",
  "",
  "Options:",
];

function wordTopic(topic: string): string[] | null {
  if (topic === "lock-run") {
    const names = ["--expires", "--owner", "--wait", "--note", "--durability"];
    const options = [...names.map(findOption), ...LOCK_RUN_OPTIONS].filter((o) => o !== null);
    return [
      ...LOCK_RUN_TOPIC,
      ...options.flatMap(optionLines),
      "",
      "Examples:",
      "  svc-cli lock-run nightly-report --expires 10000 -- ./report.sh",
      "  svc-cli lock-run deploy --expires 15000 --wait 60000 -- make deploy",
    ];
  }
  if (topic === "elect") {
    const names = ["--value", "--expires", "--wait", "--keep", "--grace", "--observe"];
    const options = names.map(findOption).filter((o) => o !== null);
    return [
      ...ELECT_TOPIC,
      ...options.flatMap(optionLines),
      "",
      "Examples:",
      "  svc-cli elect indexer --value host-7 -- ./index.sh",
      "  svc-cli elect indexer --keep --expires 5000",
      "  svc-cli elect indexer --observe",
    ];
  }
  if (topic !== "bench") return null;
  return [
    ...BENCH_TOPIC,
    ...BENCH_OPTIONS.flatMap(optionLines),
    "",
    "Examples:",
    "  svc-cli bench sequences --duration 5",
    "  svc-cli bench kv --connections 4 --rate 2000 --format json",
  ];
}

/**
 * Help about one thing: `lock`, `--lock`, `--expires`, `lock-run`, `bench`; null with a hint when
 * unknown.
 */
export function topicText(topic: string): { readonly found: boolean; readonly text: string } {
  const dashed = topic.startsWith("-") ? topic : `--${topic}`;
  const word = wordTopic(topic);
  const command = findCommand(dashed);
  const option = findOption(dashed);
  const lines =
    word ??
    (command !== null ? commandTopic(command) : option !== null ? optionTopic(option) : null);
  if (lines !== null) return { found: true, text: `${lines.join("\n")}\n` };
  const known = [...COMMANDS, ...ALL_OPTIONS].map((spec) => spec.name.slice(2));
  return {
    found: false,
    text: `no help on ${topic}${didYouMean(topic.replace(/^-+/, ""), [...known, ...WORDS])}`,
  };
}
