/** Loaded before the server (`--import`): the time of day is an hour ahead. */
const AHEAD_MS = 3_600_000;
const real = Date.now;

Date.now = () => real() + AHEAD_MS;
