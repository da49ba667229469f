/** The layout of help texts, which svc-server and svc-cli share. Pure. */

/** Columns of a help text. */
export const HELP_COLUMNS = 100;

/** Breaks `text` between words into lines of at most `columns` characters; a longer word stands alone. */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
