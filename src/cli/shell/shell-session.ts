/**
 * One session of the shell: a line in, its answer out. Terminal and pipe use the same.
 *
 * Owns the held locks and the names seen. Invariants: 1. A line is one command; what it prints ends
 * with an empty line. 2. A lock that the session was granted is in the list until it was released,
 * refused or replaced, and so is one that it may have been granted. 3. A failure is one line on
 * stderr and an exit code; it never ends the session.
 */
import { readFileSync } from "node:fs";
import type { ShellCommand } from "../commands/command.js";
import { SHELL_COMMANDS, findShellCommand, shellUsage } from "../commands/shell-table.js";
import { findCommand } from "../commands/table.js";
import { Clients, type Outcome } from "../invocation/context.js";
import { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, type ExitCode } from "../invocation/exit-codes.js";
import { CliError, describeFailure, failureText, usageError } from "../invocation/failures.js";
import { HeldLocks, type HeldLock } from "./held-locks.js";
import { nearest } from "../arguments/nearest.js";
import { carryOut, printOutcome } from "../run/one-shot.js";
import { newOwner } from "../lock-run/owners.js";
import { bind, type Bound } from "./shell-binding.js";
import { canAsk, choose } from "../run/prompts.js";
import { printLine } from "../terminal/screen.js";
import { SeenNames } from "./seen-names.js";
import type { Settings } from "../invocation/settings.js";
import { ShellElections } from "./shell-elections.js";
import { shellAnswer } from "./shell-answers.js";
import { shellHelpLines, shellTopicLines } from "./shell-help.js";
import { addOwner, durabilityIn, isGoneNow, noteAnswer, noteFailure } from "./shell-locks.js";
import { OptionValues, type OptionValue } from "../commands/values.js";
import { splitWords } from "../arguments/words.js";

const RUN_DEPTH_MAX = 8;
const RUN_FILE_MAX_BYTES = 16 * 1024 * 1024;

export interface LineOutcome {
  readonly exit: ExitCode;
  /** True after exit and quit. */
  readonly leave: boolean;
}

const STAY: LineOutcome = { exit: EXIT_DONE, leave: false };

export class ShellSession {
  readonly held = new HeldLocks();
  readonly seen = new SeenNames();
  readonly settings: Settings;
  private readonly clients: Clients;
  private readonly elections: ShellElections;
  private running: AbortController | null = null;

  constructor(settings: Settings) {
    this.settings = settings;
    this.clients = new Clients(settings);
    this.elections = new ShellElections(this.clients, this.held);
  }

  /** Ends the command that runs. False when none does. */
  interrupt(): boolean {
    if (this.running === null) return false;
    this.running.abort();
    return true;
  }

  /** Runs one line and prints its answer. */
  async runLine(line: string, depth = 0): Promise<LineOutcome> {
    if (line.trim() === "" || line.trimStart().startsWith("#")) return STAY;
    let result = STAY;
    try {
      result = await this.dispatch(line, depth);
    } catch (error) {
      const failure = describeFailure(error, this.settings.endpoints.join(","));
      process.stderr.write(failureText(failure, this.settings.format));
      result = { exit: failure.exit, leave: false };
    }
    if (!result.leave) process.stdout.write("\n");
    return result;
  }

  /** Releases one lock of the session; prints what it does. */
  async dispose(lock: HeldLock): Promise<ExitCode> {
    printLine(`Disposing ${lock.durability} lock ${lock.owner}...`);
    this.held.remove(lock);
    const spec = findShellCommand([lock.durability === "ephemeral" ? "eunlock" : "unlock"]);
    if (spec === null) return EXIT_DONE;
    try {
      const values = new Map<string, OptionValue>([["--unlock", lock.resource]]);
      addOwner(values, lock);
      if ((await this.elections.resignLock(lock)) === null) await this.carry({ spec, values });
      return EXIT_DONE;
    } catch (error) {
      if (isGoneNow(error)) return EXIT_DONE;
      const failure = describeFailure(error, this.settings.endpoints.join(","));
      const message = `${lock.resource} ends with its lease: ${failure.message}`;
      process.stderr.write(failureText({ ...failure, message }, this.settings.format));
      return failure.exit;
    }
  }

  close(): Promise<void> {
    return this.clients.close();
  }

  private async dispatch(line: string, depth: number): Promise<LineOutcome> {
    const split = splitWords(line);
    if (!split.ok) throw usageError(split.message);
    const words = split.value.map((word) => word.text);
    const spec = findShellCommand(words);
    if (spec === null) return this.unknown(words);
    const rest = words.slice(spec.words.split(" ").length);
    if (spec.answer === "builtin") return this.builtin(spec, rest, depth);
    const bound = bind(spec, rest);
    if (!bound.ok) throw usageError(`${bound.message}; usage: ${shellUsage(spec)}`);
    await this.fillEndpoint(bound.value);
    return { exit: await this.answer(bound.value), leave: false };
  }

  private unknown(words: readonly string[]): LineOutcome {
    const word = words[0] ?? "";
    const isFamily = SHELL_COMMANDS.some((spec) => spec.words.startsWith(`${word} `));
    printLine(`unknown command: ${isFamily ? words.slice(0, 2).join(" ") : word}`);
    const known = SHELL_COMMANDS.map((spec) => spec.words);
    const near = nearest(words.slice(0, 2).join(" "), known) ?? nearest(word, known);
    if (process.stdout.isTTY && near !== null) printLine(`did you mean ${near}?`);
    return { exit: EXIT_USAGE, leave: false };
  }

  private async builtin(
    spec: ShellCommand,
    rest: readonly string[],
    depth: number,
  ): Promise<LineOutcome> {
    switch (spec.words) {
      case "exit":
      case "quit":
        return { exit: EXIT_DONE, leave: true };
      case "clear":
        if (process.stdout.isTTY) process.stdout.write("\x1b[2J\x1b[3J\x1b[H");
        return STAY;
      case "help": {
        const topic =
          rest.length === 0 ? { found: true, lines: shellHelpLines() } : shellTopicLines(rest);
        for (const line of topic.lines) printLine(line);
        return { exit: topic.found ? EXIT_DONE : EXIT_USAGE, leave: false };
      }
      case "elect":
      case "resign":
        return { exit: await this.election(spec, rest), leave: false };
      default:
        return this.runFile(rest, depth);
    }
  }

  private async election(spec: ShellCommand, rest: readonly string[]): Promise<ExitCode> {
    const [name, value = null] = rest;
    if (name === undefined || rest.length > spec.positionals.length) {
      throw usageError(`usage: ${shellUsage(spec)}`);
    }
    if (spec.words === "resign") {
      return (await this.elections.resign(name)) ? EXIT_DONE : EXIT_REFUSED;
    }
    await this.interruptible((signal) => this.elections.elect(name, value, signal));
    return EXIT_DONE;
  }

  /**
   * `run <file>`: stops at the first line that could not be carried out (exit code 2 and above).
   */
  private async runFile(rest: readonly string[], depth: number): Promise<LineOutcome> {
    const [path, extra] = rest;
    if (path === undefined || extra !== undefined) throw usageError("usage: run <file>");
    if (depth >= RUN_DEPTH_MAX) throw usageError(`run: more than ${RUN_DEPTH_MAX} files deep`);
    let worst: ExitCode = EXIT_DONE;
    for (const [at, line] of readCommands(path).entries()) {
      const result = await this.runLine(line, depth + 1);
      if (result.leave) return result;
      if (result.exit > worst) worst = result.exit;
      if (result.exit > EXIT_REFUSED) {
        throw new CliError(result.exit, "run-stopped", `${path}: stopped at line ${at + 1}`);
      }
    }
    return { exit: worst, leave: false };
  }

  /** `cluster leave` without an endpoint: the person chooses, nothing is guessed (P-151). */
  private async fillEndpoint({ spec, values }: Bound): Promise<void> {
    if (spec.operation !== "--cluster-leave" || values.has("--node")) return;
    if (values.has("--member")) return;
    const usage = usageError(`the node that shall leave is missing; usage: ${shellUsage(spec)}`);
    if (!canAsk()) throw usage;
    const node = await choose("Which node shall leave?", this.settings.endpoints);
    if (node === null) throw usage;
    values.set("--node", node);
  }

  private async answer(bound: Bound): Promise<ExitCode> {
    const { spec, values } = bound;
    this.noteNames(spec, values);
    if (spec.answer === "session-lock") return this.answerForHeld(bound);
    // Known before it is sent: what may have been granted can be released.
    if (spec.answer === "lock") values.set("--owner", newOwner());
    if (spec.answer === "update-sequence") {
      printLine("waiting until no node can allocate from the old incarnation...");
    }
    const startedMs = performance.now();
    const result = await this.carryNoting(bound, null);
    if (result === null) return EXIT_REFUSED;
    this.print(spec, values, result, Math.round(performance.now() - startedMs));
    return result.exit;
  }

  /**
   * Commands on a lock of the session. `unlock` also releases what may be held beside the grant.
   */
  private async answerForHeld({ spec, values }: Bound): Promise<ExitCode> {
    const resource = String(values.get(spec.operation ?? ""));
    const known = this.held.find(resource, durabilityIn(values));
    const startedMs = performance.now();
    let shown: Outcome | null = null;
    for (const lock of spec.operation === "--unlock" ? known : known.slice(0, 1)) {
      const own = new Map(values);
      addOwner(own, lock);
      const result = await this.carryNoting({ spec, values: own }, lock);
      if (result === null) return EXIT_REFUSED;
      if (shown === null || result.exit === EXIT_DONE) shown = result;
    }
    if (shown === null) {
      printLine("not acquired");
      return EXIT_REFUSED;
    }
    this.print(spec, values, shown, Math.round(performance.now() - startedMs));
    return shown.exit;
  }

  /** Carries a command out and keeps the list of held locks true, whatever comes of it. */
  private async carryNoting(bound: Bound, lock: HeldLock | null): Promise<Outcome | null> {
    const { spec, values } = bound;
    const isAboutLock = spec.answer === "lock" || spec.answer === "session-lock";
    const line = { spec, values, lock, startedMs: performance.now() };
    try {
      const result = await this.carry(bound);
      if (isAboutLock && result !== null) noteAnswer(this.held, line, result);
      return result;
    } catch (error) {
      if (isAboutLock) noteFailure(this.held, line, error);
      throw error;
    }
  }

  private print(
    spec: ShellCommand,
    values: ReadonlyMap<string, OptionValue>,
    result: Outcome,
    elapsedMs: number,
  ): void {
    const format = values.get("--format") === "json" ? "json" : this.settings.format;
    const settings: Settings = { ...this.settings, format };
    const worded = shellAnswer(spec, result, elapsedMs);
    if (format === "json" || worded === null) printOutcome(result, settings);
    else printOutcome({ ...result, lines: [worded] }, settings);
    // Lines without a time of their own get it on a terminal only: pipes see the exact form.
    const isTimed = worded !== null && worded.endsWith("ms");
    if (process.stdout.isTTY && format === "console" && !isTimed) printLine(`(${elapsedMs} ms)`);
  }

  /** Carries an operation out with this session's clients, and the options of its line. */
  private async carry({ spec, values }: Bound): Promise<Outcome | null> {
    const command = findCommand(spec.operation ?? "");
    if (command === null) throw usageError(`${spec.words} cannot be run`);
    const given = new OptionValues(values);
    return this.interruptible((signal) => carryOut(command, given, this.clients, signal, true));
  }

  /** Does what `interrupt` ends. */
  private async interruptible<Value>(
    work: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const controller = new AbortController();
    this.running = controller;
    try {
      return await work(controller.signal);
    } finally {
      this.running = null;
    }
  }

  private noteNames(spec: ShellCommand, values: ReadonlyMap<string, OptionValue>): void {
    for (const { option, completes } of spec.positionals) {
      const value = values.get(option);
      if (completes === null || completes === "file" || completes === "command") continue;
      if (typeof value === "string") this.seen.add(completes, value);
    }
  }
}

function readCommands(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`cannot read ${path}: ${error instanceof Error ? error.message : ""}`);
  }
  if (text.length > RUN_FILE_MAX_BYTES) throw usageError(`${path} is too large to run`);
  return text.split(/\r?\n/);
}
