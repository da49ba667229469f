/**
 * Loaded into a server process before its own program: makes its wall clock jump on SIGUSR2, by up
 * to an hour forth or back. The monotonic clock stays as it is, as after a step of the system clock.
 *
 * Invariant: 1. Nothing but Date.now is changed, which is all that the server asks for wall time.
 */
const STEPS_MS = [3_600_000, -3_600_000, 5000, -5000, -1_800_000, 600_000] as const;
const real = Date.now.bind(Date);
let offsetMs = 0;
let jumps = 0;

Date.now = () => real() + offsetMs;
process.on("SIGUSR2", () => {
  offsetMs += STEPS_MS[jumps++ % STEPS_MS.length] as number;
  process.stderr.write(`wall clock: ${String(offsetMs)} ms off\n`);
});
