/** Commands as the documents have them: the boxes of shell commands below a heading. */
import { readText } from "../../tidy/sources.js";

/** Everything below a heading, up to the next one of its depth or above. */
export function sectionOf(path: string, heading: string): string {
  const lines = readText(path).split("\n");
  const at = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading);
  if (at < 0) throw new Error(`${path} has no heading ${heading}`);
  const depth = lines[at]?.indexOf(" ") ?? 0;
  const isEnd = (line: string): boolean => /^#+ /.test(line) && line.indexOf(" ") <= depth;
  const end = lines.findIndex((line, number) => number > at && isEnd(line));
  return lines.slice(at + 1, end < 0 ? undefined : end).join("\n");
}

/** The boxes below a heading, in order; those inside of lists without their indent. */
export function boxesOf(path: string, heading: string): readonly string[] {
  const boxes = sectionOf(path, heading).matchAll(/^( *)```sh\n([^]*?)\n *```$/gm);
  return [...boxes].map(([, indent = "", text = ""]) =>
    text
      .split("\n")
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
      .join("\n"),
  );
}

/** Headings of one depth, as they stand. */
export function headingsOf(path: string, depth: number): readonly string[] {
  const marks = "#".repeat(depth);
  return [...readText(path).matchAll(new RegExp(`^${marks} (.+)$`, "gm"))].map(
    ([, heading = ""]) => heading,
  );
}
