/**
 * `Result`: how lower floors report operating failures without exceptions.
 *
 * Invariants: 1. `ok` tells the two shapes apart. 2. `code` is one of a closed list that the
 * function documents.
 */

export interface Ok<T> {
  readonly ok: true;
  readonly value: T;
}

export interface Failure<Code extends string> {
  readonly ok: false;
  readonly code: Code;
  /** One sentence for an operator: what, where, and what to do. */
  readonly message: string;
}

export type Result<T, Code extends string = string> = Ok<T> | Failure<Code>;

export function ok<T>(value: T): Ok<T> {
  return { ok: true, value };
}

export function failure<Code extends string>(code: Code, message: string): Failure<Code> {
  return { ok: false, code, message };
}
