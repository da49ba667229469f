/**
 * The configurations that a search has been in, and those that they make superfluous: what can be done after some
 * operations without an answer were given a place can also be done with fewer of them placed.
 *
 * Invariant: a configuration is superfluous only when one was visited that is alike but for having placed no operation
 * without an answer that this one has not, and no more of them since the last answer.
 */

interface Entry {
  readonly used: Uint32Array;
  readonly inGap: number;
}

/** Entries that are kept for one configuration; more are visited without being remembered. */
const ENTRIES_MAX = 32;

function isWithin(small: Uint32Array, large: Uint32Array): boolean {
  for (let at = 0; at < small.length; at++) {
    if (((small[at] as number) & ~(large[at] as number)) !== 0) return false;
  }
  return true;
}

export class Visited {
  private readonly entries = new Map<string, Entry[]>();
  /** Entries ever added. */
  size = 0;

  /** True when it has to be looked at: `used` without an answer are placed, `inGap` of them since the last answer. */
  enter(name: string, used: Uint32Array, inGap: number): boolean {
    const known = this.entries.get(name);
    if (known === undefined) {
      this.entries.set(name, [{ used, inGap }]);
      this.size++;
      return true;
    }
    for (const entry of known) {
      if (entry.inGap <= inGap && isWithin(entry.used, used)) return false;
    }
    if (known.length < ENTRIES_MAX) {
      known.push({ used, inGap });
      this.size++;
    }
    return true;
  }
}
