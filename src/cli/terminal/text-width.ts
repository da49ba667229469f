/**
 * How many columns of a terminal a text takes, and text that is safe to print on one.
 *
 * Invariants: 1. A character takes 0, 1 or 2 columns; nothing here depends on a locale.
 */

/** Blocks of characters that take two columns (East Asian wide and full-width, emoji). */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x2329, 0x232a],
  [0x23e9, 0x23f3],
  [0x25fd, 0x25fe],
  [0x2614, 0x2615],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x17000, 0x18cff],
  [0x1b000, 0x1b2ff],
  [0x1f004, 0x1f004],
  [0x1f0cf, 0x1f0cf],
  [0x1f18e, 0x1f18e],
  [0x1f191, 0x1f19a],
  [0x1f200, 0x1f320],
  [0x1f32d, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f7e0, 0x1f7eb],
  [0x1f90c, 0x1f9ff],
  [0x1fa70, 0x1faff],
  [0x20000, 0x3fffd],
];

const NO_COLUMN = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}\ufe0f]$/u;

function characterColumns(character: string): number {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x300) return point < 0x20 || (point >= 0x7f && point < 0xa0) ? 0 : 1;
  if (NO_COLUMN.test(character)) return 0;
  return WIDE.some(([first, last]) => point >= first && point <= last) ? 2 : 1;
}

/** Columns that `text` takes on a terminal, without control sequences in it. */
export function textColumns(text: string): number {
  let columns = 0;
  for (const character of text) columns += characterColumns(character);
  return columns;
}

/** `text` filled up with spaces to `columns`. */
export function padColumns(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - textColumns(text)));
}

/** The longest beginning of `text` within `columns`, with "…" where something was cut. */
export function cutColumns(text: string, columns: number): string {
  if (textColumns(text) <= columns) return text;
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += characterColumns(character);
    if (used > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/**
 * `text` with control characters (tab excepted) written visibly: a stored value must not be able to
 * move the cursor, retitle the window or answer in the user's place.
 */
export function visibleText(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => {
      const point = character.charCodeAt(0);
      if (point === 0x0a) return "\\n";
      return `\\u${point.toString(16).padStart(4, "0")}`;
    },
  );
}
