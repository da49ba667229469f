/**
 * Completion scripts for bash, zsh and fish, written from the tables.
 *
 * Invariants: 1. A script calls nothing but the shell itself: completion is instant and works
 * without a server.
 */
import { ALL_OPTIONS } from "../commands/options.js";
import { COMMANDS } from "../commands/table.js";
import { BENCH_KINDS, WORDS } from "./parser.js";

interface Entry {
  readonly names: readonly string[];
  readonly meaning: string;
  readonly takesValue: boolean;
  readonly takesFile: boolean;
  readonly choices: readonly string[];
}

function entries(): Entry[] {
  const operations = COMMANDS.map((spec) => ({
    names: [spec.name, ...spec.aliases],
    meaning: spec.meaning,
    takesValue: spec.kind !== "none",
    takesFile: false,
    choices: [],
  }));
  const options = ALL_OPTIONS.map((spec) => ({
    names: [spec.name, ...spec.aliases],
    meaning: spec.meaning,
    takesValue: spec.kind !== "none" && spec.kind !== "rest",
    takesFile: spec.kind === "file",
    choices: spec.choices,
  }));
  return [...operations, ...options];
}

/** The bash command that offers `choices` for the word at the cursor. */
function words(choices: readonly string[]): string {
  return `COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$word"))`;
}

function bash(): string {
  const all = entries();
  const cases = all
    .filter((entry) => entry.takesValue)
    .map((entry) => {
      const names = entry.names.join("|");
      if (entry.choices.length > 0) {
        return `    ${names}) ${words(entry.choices)}; return;;`;
      }
      if (entry.takesFile) return `    ${names}) COMPREPLY=($(compgen -f -- "$word")); return;;`;
      return `    ${names}) return;;`;
    });
  const names = all.flatMap((entry) => entry.names);
  return [
    "# bash completion of svc-cli: source this file, or place it in bash_completion.d",
    "_svc_cli() {",
    '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
    "  COMPREPLY=()",
    '  case "$before" in',
    `    bench) ${words(BENCH_KINDS)}; return;;`,
    ...cases,
    "  esac",
    `  ${words([...WORDS, ...names])}`,
    "}",
    "complete -F _svc_cli svc-cli",
    "",
  ].join("\n");
}

/** Text inside single quotes of a zsh or fish script. */
function quoted(text: string): string {
  return text.replaceAll("'", "’").replaceAll("\\", "");
}

function zsh(): string {
  const specs = entries().flatMap((entry) =>
    entry.names.map((name) => {
      const meaning = quoted(entry.meaning).replaceAll(/[[\]:]/g, " ");
      const value = !entry.takesValue
        ? ""
        : entry.choices.length > 0
          ? `:value:(${entry.choices.join(" ")})`
          : entry.takesFile
            ? ":file:_files"
            : ":value:";
      return `    '${name}[${meaning}]${value}' \\`;
    }),
  );
  return [
    "#compdef svc-cli",
    "# zsh completion of svc-cli: place it as _svc-cli in a directory of $fpath",
    "_svc_cli() {",
    "  _arguments -s \\",
    ...specs,
    `    '1:command:(${WORDS.join(" ")})' \\`,
    `    '2:value:(${BENCH_KINDS.join(" ")})'`,
    "}",
    'if [ "$funcstack[1]" = "_svc-cli" ]; then _svc_cli "$@"; else compdef _svc_cli svc-cli; fi',
    "",
  ].join("\n");
}

function fish(): string {
  const lines = entries().flatMap((entry) => {
    const names = entry.names.map((name) =>
      name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
    );
    const value = !entry.takesValue
      ? ""
      : entry.choices.length > 0
        ? ` -x -a '${entry.choices.join(" ")}'`
        : entry.takesFile
          ? " -r -F"
          : " -x";
    return [`complete -c svc-cli -f ${names.join(" ")}${value} -d '${quoted(entry.meaning)}'`];
  });
  return [
    "# fish completion of svc-cli: place it as completions/svc-cli.fish",
    "complete -c svc-cli -f",
    `complete -c svc-cli -n __fish_use_subcommand -a '${WORDS.join(" ")}'`,
    `complete -c svc-cli -n '__fish_seen_subcommand_from bench' -a '${BENCH_KINDS.join(" ")}'`,
    ...lines,
    "",
  ].join("\n");
}

/** The completion script for `shell`: bash, zsh or fish. */
export function completionScript(shell: string): string {
  if (shell === "zsh") return zsh();
  return shell === "fish" ? fish() : bash();
}
