/**
 * Who saw a planted bug first, in a few words for a table: a checker, an assertion, a refused start.
 */

const LENGTH_MAX = 90;

function shortened(text: string): string {
  const line = (text.split("\n")[0] as string)
    .replace(/[0-9a-f]{16}/g, "#")
    .replace(/\b\d[\d.]*\b/g, "#");
  return line.length <= LENGTH_MAX ? line : `${line.slice(0, LENGTH_MAX - 1)}…`;
}

/** `violation`: as the judge gives it. */
export function witnessOf(violation: string): string {
  const line = violation.split("\n")[0] as string;
  const refusal = /^node \d+ refuses to start: (?:the )?(?:log|node): ([a-z-]+):/.exec(line);
  if (refusal !== null) return `start refused: ${refusal[1] ?? ""}`;
  const assertion = /^AssertionError: (.*)$/.exec(line);
  if (assertion !== null) return `assertion: ${shortened(assertion[1] ?? "")}`;
  const fatal = /^node \d+ met a fatal fault: ([^{:]*)/.exec(line);
  if (fatal !== null) return `fatal fault: ${shortened(fatal[1] ?? "").trim()}`;
  if (line.startsWith("the healed cluster does not come to rest")) {
    return `peace: ${shortened(line.replace(/^.* ms: /, ""))}`;
  }
  const checker = /^([a-z ,-]+): /.exec(line);
  return checker === null ? shortened(line) : `checker: ${checker[1] ?? ""}`;
}
