/**
 * Lines as they go to a person: safe, and coloured where colours are wanted.
 *
 * Invariants: 1. Answers may hold anything that was ever stored: on a terminal control characters
 * are made visible, and only then is the line coloured. 2. No codes go to a pipe, nor where
 * NO_COLOR is set or the terminal is a dumb one.
 */
import { visibleText } from "./text-width.js";

function hasColours(): boolean {
  const { NO_COLOR, TERM } = process.env;
  return process.stdout.isTTY && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

/** A line that was made safe, with its colours. */
export function screenLine(line: string, paint: ((line: string) => string) | undefined): string {
  return paint !== undefined && hasColours() ? paint(line) : line;
}

export function printLine(line: string, paint?: (line: string) => string): void {
  const safe = process.stdout.isTTY ? visibleText(line) : line;
  process.stdout.write(`${screenLine(safe, paint)}\n`);
}
