/** How a planted bug of backups is written down: one file, texts and what takes their place. */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

export function backup(
  pitfall: string,
  name: string,
  [file, test]: readonly [file: string, test: string],
  path: string,
  ...changes: readonly string[]
): RecordBug {
  const edits: RecordBug["edits"][number][] = [];
  for (let at = 0; at < changes.length; at += 2) {
    const [from = "", to = ""] = changes.slice(at, at + 2);
    edits.push(edit(`src/${path}.ts`, from, to));
  }
  return { name, pitfall, edits, file, test };
}
