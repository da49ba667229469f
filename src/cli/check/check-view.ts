/** Checks as a table for people, and as a document. */
import { tableLines, type JsonValue } from "../terminal/format.js";
import { verdictOf, type Check, type Verdict } from "./check-rules.js";

const WORDS: Readonly<Record<Verdict, string>> = {
  ok: "ok",
  warning: "WARNING",
  failed: "FAILED",
  unknown: "unknown",
};
const TITLES = ["Verdict", "Check", "Node", "Endpoint", "Found", "Wanted"];
const PLURALS: readonly (readonly [Verdict, string])[] = [
  ["failed", "failed"],
  ["warning", "beyond their limits"],
  ["unknown", "not known"],
];

export function checkLines(checks: readonly Check[], columns: number | null): string[] {
  const parts = PLURALS.flatMap(([verdict, words]) => {
    const count = checks.filter((check) => check.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${words}`];
  });
  const tail = parts.length === 0 ? "" : `, ${parts.join(", ")}`;
  const rows = checks.map(({ check, nodeId, endpoint, verdict, found, wanted }) => {
    return [
      WORDS[verdict],
      check,
      nodeId === null ? "-" : `${nodeId}`,
      endpoint ?? "-",
      found,
      wanted,
    ];
  });
  const head = `${WORDS[verdictOf(checks)]}: ${checks.length} checks${tail}`;
  return [head, "", ...tableLines(TITLES, rows, columns)];
}

const COLOURS: readonly (readonly [RegExp, string])[] = [
  [/^(?:Verdict: +)?FAILED(?=:? |$)/, "\x1b[31m"],
  [/^(?:Verdict: +)?(?:WARNING|unknown)(?=:? |$)/, "\x1b[33m"],
  [/^(?:Verdict: +)?ok(?=:? |$)/, "\x1b[32m"],
];
const PLAIN = "\x1b[0m";

/** One line of the view with colours. */
export function paintCheck(line: string): string {
  for (const [pattern, colour] of COLOURS) {
    if (pattern.test(line)) return line.replace(pattern, (word) => colour + word + PLAIN);
  }
  return line;
}

export function checkDocument(checks: readonly Check[]): JsonValue {
  return { verdict: verdictOf(checks), checks: checks.map((check) => ({ ...check })) };
}
