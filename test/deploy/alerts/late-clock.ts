/** Loaded before the server (`--import`): the time of day is 27 hours behind, until somebody sets the clock (SIGUSR2). */
let behindMs = 27 * 3_600_000;
const real = Date.now;

Date.now = () => real() - behindMs;
process.on("SIGUSR2", () => {
  behindMs = 0;
});
