/**
 * `--watch`: one operation again and again, its newest answer on the whole screen of a terminal.
 *
 * Owns the screen until it ends. Invariants: 1. The screen is given back as it was found, whichever
 * way the process ends short of a kill. 2. A failure is shown and the next round tries again. 3.
 * Nothing is asked: questions were answered before.
 */
import type { CommandSpec } from "../commands/command.js";
import { RunContext, type Clients, type Outcome } from "../invocation/context.js";
import { describeFailure, failureText, usageError } from "../invocation/failures.js";
import { endEarly, hangUp } from "../invocation/hang-up.js";
import { screenLine } from "../terminal/screen.js";
import { loadOperation } from "./table.js";
import { cutColumns, visibleText } from "../terminal/text-width.js";
import type { OptionValues } from "../commands/values.js";

const STEP_MS = 2000;
const ENDED_BY_SIGTERM = 143;

/** Another screen, no cursor; and back. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
const LEAVE = "\x1b[?25h\x1b[?1049l";

function draw(lines: readonly string[], paint: Outcome["paint"]): void {
  const { rows = 24, columns = 80 } = process.stdout;
  const room = Math.max(2, rows) - 1;
  const shown = lines.slice(0, lines.length > room ? room - 1 : room);
  const hidden = lines.length - shown.length;
  const all = hidden === 0 ? shown : [...shown, `… ${hidden} more lines`];
  const text = all.map((line) => {
    const safe = cutColumns(visibleText(line), columns);
    return `${screenLine(safe, paint)}\x1b[K`;
  });
  process.stdout.write(`\x1b[H${text.join("\r\n")}\x1b[J`);
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
}

/** Gives the signals their meaning; the returned function takes it away again. */
function takeSignals(stop: AbortController): () => void {
  const handlers: readonly (readonly [NodeJS.Signals, () => void])[] = [
    ["SIGINT", () => stop.abort()],
    ["SIGTERM", () => endEarly(ENDED_BY_SIGTERM)],
    ["SIGHUP", () => void hangUp()],
  ];
  for (const [signal, handler] of handlers) process.on(signal, handler);
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

/**
 * Repeats the operation every two seconds until `signal` or Ctrl+C. Returns the last answer; throws
 * the last failure when there was never one.
 */
export async function watchOperation(
  command: CommandSpec,
  values: OptionValues,
  clients: Clients,
  signal: AbortSignal,
  limitMs: number | null,
): Promise<Outcome> {
  const { settings } = clients;
  const format = values.text("--format") ?? settings.format;
  if (!process.stdout.isTTY || format !== "console") {
    throw usageError("--watch needs a terminal and the console format");
  }
  const run = await loadOperation(command);
  const stop = new AbortController();
  const onAbort = (): void => stop.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  const leaveSignals = takeSignals(stop);
  const restore = (): void => void process.stdout.write(LEAVE);
  process.once("exit", restore);
  let last: Outcome | null = null;
  let failure: unknown = null;
  process.stdout.write(ENTER);
  try {
    while (!stop.signal.aborted) {
      const startedMs = performance.now();
      const head = `every ${STEP_MS / 1000} s, Ctrl+C ends; ${new Date().toTimeString().slice(0, 8)}`;
      try {
        last = await run(values, new RunContext(clients, stop.signal, limitMs, null, false));
        draw([head, "", ...last.lines], last.paint);
      } catch (error) {
        if (stop.signal.aborted) break;
        failure = error;
        const described = describeFailure(error, settings.endpoints.join(","));
        draw([head, "", failureText(described, "console").trimEnd()], undefined);
      }
      await pause(startedMs + STEP_MS - performance.now(), stop.signal);
    }
  } finally {
    process.off("exit", restore);
    restore();
    leaveSignals();
    signal.removeEventListener("abort", onAbort);
  }
  if (last === null) throw failure ?? usageError("--watch was ended before the first answer");
  return last;
}
