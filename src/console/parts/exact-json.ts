/**
 * JSON without loss: what a browser would round is kept as its digits.
 *
 * Invariants: 1. A whole number of more than 15 digits becomes a text, every other value what
 * JSON.parse makes of it. 2. Texts are not touched.
 */

/** A 64-bit number: exact, whichever of the two it is. */
export type Wide = number | string;

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG = /^-?\d{16,}$/;

export function parseExactly(text: string): unknown {
  return JSON.parse(text.replace(TOKENS, (token) => (LONG.test(token) ? `"${token}"` : token)));
}
