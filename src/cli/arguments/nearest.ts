/**
 * "Did you mean": the known word nearest to a mistyped one.
 *
 * Invariants: 1. Only words of the given list are suggested, and only when they are near.
 */

/**
 * Number of edits that turn `a` into `b`, a swap of neighbours counting once (optimal string
 * alignment).
 */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      let best = Math.min(
        (previous[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (previous[column - 1] as number) + change,
      );
      const swapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) best = Math.min(best, (older[column - 2] as number) + 1);
      current.push(best);
    }
    older = previous;
    previous = current;
  }
  return previous[b.length] as number;
}

/**
 * The word of `known` nearest to `word`, or null when none is near. `word` longer than 64 is never
 * near.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  if (word.length > 64) return null;
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** " (did you mean …?)", or "" when nothing is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === null ? "" : ` (did you mean ${near}?)`;
}
