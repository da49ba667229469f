/**
 * Assertions that stay on in production: a broken invariant is a bug, and a bug stops the node.
 *
 * Invariants: 1. An assertion never has a side effect. 2. A failed one throws AssertionError, which
 * nobody below the roof catches. 3. Operating failures (a full disk, bad input) are never
 * assertions; they are `Result` or outcomes.
 */

/** A broken invariant. The process must not go on after one. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
  readonly code = "assertion-failed";
}

/** Throws AssertionError unless `condition` holds. `message` says what must hold. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Returns `value` if it is neither null nor undefined, else throws AssertionError. */
export function present<T>(value: T | null | undefined, message: string): T {
  if (value === null || value === undefined) throw new AssertionError(message);
  return value;
}

/**
 * For the default branch of an exhaustive switch: the compiler proves that it cannot be reached.
 */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable case: ${String(value)}`);
}
