/** Exit codes of the server program; 1 (fatal fault) belongs to `sys`. */

/** Stopped cleanly. */
export const EXIT_CLEAN = 0;
/**
 * A usage error: a flag, or a directory that is in use or somebody else's. A start refused because
 * of what the storage holds is a fatal fault.
 */
export const EXIT_USAGE = 2;
