/**
 * One operation from question to exit code, for the command line and for the shell.
 *
 * Invariants: 1. With --format json exactly one document goes to stdout, or none and an error to
 * stderr. 2. A question is asked only on a terminal, and a no means that nothing was sent. 3. A
 * missing token is asked for once, and only when the service certainly did nothing before.
 */
import { AccessError } from "../../client/values/errors.js";
import type { CommandSpec } from "../commands/command.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "../commands/options.js";
import { RunContext, type Clients, type Outcome } from "../invocation/context.js";
import { EXIT_REFUSED, type ExitCode } from "../invocation/exit-codes.js";
import { jsonText } from "../terminal/format.js";
import { canAsk, confirm, secret } from "./prompts.js";
import { loadOperation } from "./table.js";
import { printLine } from "../terminal/screen.js";
import type { Settings } from "../invocation/settings.js";
import type { OptionValues } from "../commands/values.js";

/** The time limit of an operation (ms); null = none. Waiting for a lock comes on top. */
function limitOf(command: CommandSpec, values: OptionValues, settings: Settings): number | null {
  const seconds = values.number("--timeout");
  if (seconds !== null) return Math.ceil(seconds * 1000);
  if (settings.timeoutMs !== null) return settings.timeoutMs;
  if (!command.limited) return null;
  return OPERATION_TIMEOUT_DEFAULT_S * 1000 + (values.number("--wait") ?? 0);
}

/** Who leaves, in the words of the command line. */
function leaverOf(values: OptionValues, settings: Settings): string {
  const member = values.number("--member");
  return member === null ? (settings.endpoints[0] ?? "") : `member ${member}, for good,`;
}

/** The question of the operation with its names filled in; null when it is not to be asked. */
function questionOf(command: CommandSpec, values: OptionValues, settings: Settings): string | null {
  if (command.question === null || settings.yes || !canAsk()) return null;
  if (values.flag("--backup-gc-dry-run")) return null;
  return command.question
    .replace("{value}", values.text(command.name) ?? "")
    .replace("{leaver}", leaverOf(values, settings));
}

/** Carries the operation out. Null: the person at the terminal said no. */
export async function carryOut(
  command: CommandSpec,
  values: OptionValues,
  clients: Clients,
  signal: AbortSignal,
  isShell: boolean,
): Promise<Outcome | null> {
  const { settings } = clients;
  const question = questionOf(command, values, settings);
  if (question !== null && !(await confirm(question))) return null;
  if (values.flag("--watch")) {
    const { watchOperation } = await import("./watch.js");
    return watchOperation(command, values, clients, signal, limitOf(command, values, settings));
  }
  const run = await loadOperation(command);
  const limitMs = limitOf(command, values, settings);
  const attempt = (): Promise<Outcome> =>
    clients.whileWaiting(limitMs, (progress) => {
      return run(values, new RunContext(clients, signal, limitMs, progress, isShell));
    });
  try {
    return await attempt();
  } catch (error) {
    if (!(await askedForToken(error, clients))) throw error;
    return attempt();
  }
}

/** True when the service wants a token, somebody could be asked for it, and gave one. */
async function askedForToken(error: unknown, clients: Clients): Promise<boolean> {
  // An earlier try may have been done all the same: to repeat it is for the person to decide.
  const isUnauthenticated =
    error instanceof AccessError && error.code === "unauthenticated" && error.outcome === "none";
  if (!isUnauthenticated || !canAsk()) return false;
  const token = await secret("The service asks for a token:");
  if (token === null) return false;
  await clients.useToken(token);
  return true;
}

/** Prints an outcome in the format of the settings. */
export function printOutcome(result: Outcome, settings: Settings): void {
  if (result.isPrinted === true) return;
  if (settings.format === "json") printLine(jsonText(result.document));
  else for (const line of result.lines) printLine(line, result.paint);
  if (result.remark !== null && settings.format === "console") {
    process.stderr.write(`note: ${result.remark}\n`);
  }
}

/** One operation of the command line. */
export async function runOneShot(
  command: CommandSpec,
  values: OptionValues,
  clients: Clients,
): Promise<ExitCode> {
  const result = await carryOut(command, values, clients, new AbortController().signal, false);
  if (result === null) {
    process.stderr.write("note: cancelled, nothing was done\n");
    return EXIT_REFUSED;
  }
  printOutcome(result, clients.settings);
  return result.exit;
}
