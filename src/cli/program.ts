/**
 * What svc-cli does, from the command line to the exit code. The process around it is main.ts.
 *
 * Invariants: 1. Only what the invocation needs is loaded: help and completion load no network
 * code. 2. Every failure is one line on stderr and an exit code of the contract.
 */
import { EXIT_DONE, EXIT_UNEXPECTED, EXIT_USAGE } from "./invocation/exit-codes.js";
import { parse, type Invocation } from "./arguments/parser.js";
import {
  guessFormat,
  type Environment,
  type Format,
  type Settings,
} from "./invocation/settings.js";
import { VERSION } from "../base/generated/version.js";

function usageText(message: string, format: Format): string {
  if (format === "console") return `error: ${message}\n`;
  return `${JSON.stringify({ error: { code: "usage", message, endpoint: null } })}\n`;
}

/** Runs what talks to the service; every failure becomes one line on stderr and an exit code. */
async function online(settings: Settings, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const { describeFailure, failureText } = await import("./invocation/failures.js");
    const failure = describeFailure(error, settings.endpoints.join(","));
    process.stderr.write(failureText(failure, settings.format));
    return failure.exit;
  }
}

async function information(invocation: Invocation): Promise<number> {
  switch (invocation.kind) {
    case "version":
      process.stdout.write(`svc-cli ${VERSION}\n`);
      return EXIT_DONE;
    case "completion": {
      const { completionScript } = await import("./arguments/completion.js");
      process.stdout.write(completionScript(invocation.shell));
      return EXIT_DONE;
    }
    case "help": {
      const { helpText, topicText } = await import("./arguments/help.js");
      if (invocation.topic === null) {
        process.stdout.write(helpText(VERSION));
        return EXIT_DONE;
      }
      const topic = topicText(invocation.topic);
      if (topic.found) process.stdout.write(topic.text);
      else process.stderr.write(`error: ${topic.text}\n`);
      return topic.found ? EXIT_DONE : EXIT_USAGE;
    }
    default:
      return EXIT_UNEXPECTED;
  }
}

async function dispatch(invocation: Invocation, environment: Environment): Promise<number> {
  switch (invocation.kind) {
    case "operation": {
      const { command, values, settings } = invocation;
      return online(settings, async () => {
        const [{ runOneShot }, { Clients }] = await Promise.all([
          import("./run/one-shot.js"),
          import("./invocation/context.js"),
        ]);
        return runOneShot(command, values, new Clients(settings));
      });
    }
    case "lock-run":
      return online(invocation.settings, async () => {
        const { runUnderLock } = await import("./lock-run/lock-run.js");
        return runUnderLock(invocation);
      });
    case "elect":
      return online(invocation.settings, async () => {
        const { runElected } = await import("./lock-run/elect.js");
        return runElected(invocation);
      });
    case "bench":
      return online(invocation.settings, async () => {
        const { runBench } = await import("./bench/bench.js");
        return runBench(invocation.subject, invocation.values, invocation.settings);
      });
    case "shell":
      return online(invocation.settings, async () => {
        const { runShell } = await import("./shell/shell.js");
        return runShell(invocation.settings, environment);
      });
    case "help":
    case "version":
    case "completion":
      return information(invocation);
  }
}

/** Runs one command line (without the program's name) and returns the exit code. */
export async function runProgram(
  argumentsList: readonly string[],
  environment: Environment,
): Promise<number> {
  const parsed = parse(argumentsList, environment);
  if (parsed.ok) return dispatch(parsed.value, environment);
  const format = guessFormat(argumentsList, environment);
  process.stderr.write(usageText(parsed.message, format));
  return EXIT_USAGE;
}
