/** The texts of `--help`, `--version` and the table of docs/flags.md, all from the flag table. */
import { HELP_COLUMNS, wrapText } from "../../base/help-text.js";
import { FLAGS, type Flag } from "./flag-table.js";

function defaultOf(flag: Flag): string {
  return flag.defaultInWords ?? flag.defaultText ?? "none";
}

function flagLines(flag: Flag): string[] {
  const value =
    flag.kind === "boolean"
      ? ""
      : flag.kind === "choice"
        ? ` ${flag.choices.join("|")}`
        : ` <${flag.kind}>`;
  const indent = " ".repeat(6);
  const description = `${flag.meaning} [default: ${defaultOf(flag)}; ${flag.variable}]`;
  return [
    `  ${flag.name}${value}`,
    ...wrapText(description, HELP_COLUMNS - indent.length).map((line) => indent + line),
  ];
}

export function helpText(version: string): string {
  const lines = [
    `svc-server ${version}: a clustered coordination service (sequences, fenced locks, key/value)`,
    "",
    "Usage: svc-server [flags]        --name value or --name=value; booleans also bare",
    "",
    "Durations take ms, s, m, h (a bare number is milliseconds); sizes take KiB, MiB, GiB (bytes).",
    "Each flag can also be given by its environment variable; the command line wins.",
    "",
    "Examples:",
    "  svc-server                                        one node on loopback, data under the XDG data home",
    "  svc-server --storage memory --https-port off      nothing on disk, gRPC only",
    "  svc-server --host 10.0.0.5 --auth-tokens-file tokens --tls-cert c.pem --tls-key k.pem \\",
    "    --peer-host 127.0.0.1 --peer-secret-file secret        clients from outside, no other nodes",
    "",
    "Other:",
    "  --help, --version      print and exit",
    "  --probe <url>          one GET, at most 2 s: exit code 0 for an answer of 2xx, else 1",
    "  --force-new-cluster <cluster id> [--yes]",
    "                         a majority is lost for good: make a cluster of one of this data directory,",
    "                         while no server runs; says first what is lost",
    "  --print-token-hash     read a token from standard input, print its hash for the token file",
  ];
  let area = "";
  for (const flag of FLAGS) {
    if (flag.area !== area) {
      area = flag.area;
      lines.push("", `${area}:`);
    }
    lines.push(...flagLines(flag));
  }
  lines.push(
    "",
    "Exit codes: 0 clean stop, 1 fatal fault (storage, broken invariant), 2 usage or refused start.",
  );
  return `${lines.join("\n")}\n`;
}

/** One row per flag, as it stands in docs/flags.md. */
export function flagTableMarkdown(): string {
  const rows = FLAGS.map(
    (flag) => `| ${flag.name} | ${flag.variable} | ${defaultOf(flag)} | ${flag.meaning} |`,
  );
  return ["| Flag | Variable | Default | Meaning |", "|---|---|---|---|", ...rows].join("\n");
}
