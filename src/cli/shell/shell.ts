/**
 * The interactive shell, and the same commands from a pipe.
 *
 * Owns the session, the history and the terminal. Invariants: 1. Locks of the session are released
 * before it ends, whichever way it ends short of a kill. 2. A pipe sees no terminal codes, and its
 * exit code is that of the first line that did not succeed. 3. Ctrl+C while a command runs ends
 * that command only; a session from a pipe ends with it. 4. A terminal that is gone is never asked
 * anything: the session ends.
 */
import { createInterface } from "node:readline";
import { EXIT_DONE, type ExitCode } from "../invocation/exit-codes.js";
import { endEarly, hangUp, setLastWork, unlessEnding } from "../invocation/hang-up.js";
import { History, historyPath } from "./history.js";
import { LineReader } from "./line-reader.js";
import type { Environment, Settings } from "../invocation/settings.js";
import { findShellCommand } from "../commands/shell-table.js";
import { completeLine } from "./shell-completion.js";
import { ShellSession } from "./shell-session.js";
import { VERSION } from "../../base/generated/version.js";
import { splitWords } from "../arguments/words.js";

/** Names in so many of the newest lines of earlier sessions are offered for completion. */
const LINES_READ_FOR_NAMES = 300;
const PRELOAD_MS = 50;
const ENDED_BY_SIGINT = 130;
const ENDED_BY_SIGTERM = 143;

function banner(settings: Settings): string {
  return (
    `svc shell ${VERSION}\n` +
    `service: ${settings.endpoints.join(", ")}; "help" lists the commands, Tab completes\n\n`
  );
}

function namesFromHistory(session: ShellSession, lines: readonly string[]): void {
  for (const line of lines.slice(0, LINES_READ_FOR_NAMES).reverse()) {
    const split = splitWords(line);
    if (!split.ok) continue;
    const words = split.value.map((word) => word.text);
    const spec = findShellCommand(words);
    const kind = spec?.positionals[0]?.completes ?? null;
    const name = words[spec?.words.split(" ").length ?? 0];
    const isName =
      kind === "key" || kind === "resource" || kind === "sequence" || kind === "backup";
    if (isName && name !== undefined) session.seen.add(kind, name);
  }
}

/** Releases what is held. */
async function releaseAll(session: ShellSession): Promise<ExitCode> {
  let worst: ExitCode = EXIT_DONE;
  for (const lock of session.held.all()) {
    const exit = await session.dispose(lock);
    if (exit > worst) worst = exit;
  }
  return worst;
}

async function interactive(session: ShellSession, history: History): Promise<ExitCode> {
  const reader = new LineReader((line) => completeLine(line, session.seen));
  process.stdout.write(banner(session.settings));
  // The first command should not wait for code: it is loaded while the first line is typed.
  setTimeout(() => void import("../../client/mod.js"), PRELOAD_MS).unref();
  for (;;) {
    const prompt = session.held.prompt(performance.now());
    const input = await reader.read(prompt, history.newestFirst());
    if (input.kind === "gone") return hangUp();
    let leave = input.kind !== "line";
    if (input.kind === "line") {
      history.add(input.line);
      leave = (await session.runLine(input.line)).leave;
    }
    if (leave) return releaseAll(session);
  }
}

async function piped(session: ShellSession): Promise<ExitCode> {
  const reader = createInterface({ input: process.stdin, terminal: false });
  let first: ExitCode = EXIT_DONE;
  process.stdout.write(`svc shell ${VERSION}\n\n`);
  for await (const line of reader) {
    const result = await session.runLine(line);
    if (first === EXIT_DONE) first = result.exit;
    if (result.leave) break;
  }
  reader.close();
  const released = await releaseAll(session);
  return first === EXIT_DONE ? released : first;
}

/** Runs the shell until it is left. Returns the exit code. */
export async function runShell(settings: Settings, environment: Environment): Promise<ExitCode> {
  const session = new ShellSession(settings);
  const isInteractive = process.stdin.isTTY && process.stdout.isTTY;
  const onInterrupt = (): void => {
    session.interrupt();
    if (!isInteractive) endEarly(ENDED_BY_SIGINT);
  };
  const onTerminate = (): void => endEarly(ENDED_BY_SIGTERM);
  const onHangUp = (): void => void hangUp();
  setLastWork(() => {
    session.interrupt();
    return releaseAll(session);
  });
  process.on("SIGINT", onInterrupt);
  process.on("SIGTERM", onTerminate);
  process.on("SIGHUP", onHangUp);
  try {
    if (!isInteractive) return await piped(session);
    const history = new History(historyPath(environment));
    namesFromHistory(session, history.newestFirst());
    const exit = await interactive(session, history);
    history.trim();
    return exit;
  } finally {
    await unlessEnding();
    setLastWork(null);
    process.off("SIGINT", onInterrupt);
    process.off("SIGTERM", onTerminate);
    process.off("SIGHUP", onHangUp);
    await session.close();
  }
}
