/** Exit codes of svc-cli (contract 8.3), as data: docs/shell.md is held against this. */

export const EXIT_DONE = 0;
export const EXIT_REFUSED = 1;
export const EXIT_USAGE = 2;
export const EXIT_UNREACHABLE = 3;
export const EXIT_UNEXPECTED = 4;

export type ExitCode = 0 | 1 | 2 | 3 | 4;

export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT_DONE, "done"],
  [
    EXIT_REFUSED,
    "refused, or without effect: not found, not acquired, not set, not unlocked, not left, " +
      "InvalidInput, AlreadyExists, MaxValueExceeded, not-available-at-level, a refusing status or " +
      "backup outcome; " +
      "--cluster-status: something is wrong; --check: a check failed; --debug-bundle: a node is " +
      "missing",
  ],
  [EXIT_USAGE, "usage: unknown, missing or contradictory options, bad value, several operations"],
  [EXIT_UNREACHABLE, "could not connect, or timed out (MustRetry until the timeout included)"],
  [
    EXIT_UNEXPECTED,
    "unexpected: Errored, Aborted, not authenticated or authorised, an answer that leaves the outcome " +
      "of a lost try unknown, anything else",
  ],
];
