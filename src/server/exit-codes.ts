/** Exit codes of the server program; 1 (fatal fault) belongs to `sys`. */

/** Stopped cleanly. */
export const EXIT_CLEAN = 0;
/** A usage error, or a start that was refused. */
export const EXIT_USAGE = 2;
