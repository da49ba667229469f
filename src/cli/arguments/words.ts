/**
 * Splitting a line of the shell into words.
 *
 * Invariants: 1. '…' keeps everything, "…" and \ work as in sh; nothing else is special. 2. An
 * unclosed quote is an error of the line, never a guess.
 */
import { failure, ok, type Result } from "../../base/result.js";

export interface Word {
  readonly text: string;
  /** Where the word begins in the line. */
  readonly start: number;
}

/** The words of `line`. */
export function splitWords(line: string): Result<readonly Word[], "unclosed-quote"> {
  const words: Word[] = [];
  let text: string | null = null;
  let start = 0;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    if (quote === "" && (character === " " || character === "\t")) {
      if (text !== null) words.push({ text, start });
      text = null;
      continue;
    }
    if (text === null) {
      text = "";
      start = at;
    }
    if (character === quote) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
    else if (character === "\\" && quote !== "'" && at + 1 < line.length) {
      at++;
      text += line[at] as string;
    } else text += character;
  }
  if (quote !== "") return failure("unclosed-quote", `a ${quote} is not closed`);
  if (text !== null) words.push({ text, start });
  return ok(words);
}

/** `text` so that splitWords gives it back as one word. */
export function quoteWord(text: string): string {
  if (text !== "" && !/[\s"'\\]/.test(text)) return text;
  return text.includes("'") ? `"${text.replace(/["\\]/g, "\\$&")}"` : `'${text}'`;
}
