#!/usr/bin/env node
/**
 * The program svc-server: command line in, one running node, signals, exit code.
 *
 * Owns the process. Invariants: 1. Nothing is opened before the configuration is whole. 2. A fault
 * that nobody handles ends the process with the fatal exit code; it never lives on in silence. 3.
 * The first SIGTERM or SIGINT stops gracefully, the second exits at once.
 */
import { readFileSync } from "node:fs";
import { EXIT_FATAL, processFatal } from "../sys.js";
import { startServer, type RunningServer } from "./assemble.js";
import { makeConfig } from "./config.js";
import { EXIT_CLEAN, EXIT_USAGE } from "./exit-codes.js";
import { readFlags } from "./flags.js";
import { helpText } from "./help.js";
import { makeLogger } from "./logs.js";
import { isTokenText, tokenDigestText } from "./tokens.js";
import { VERSION } from "./version.js";
import { welcomeText } from "./welcome.js";

function refuse(message: string, code = EXIT_USAGE): never {
  process.stderr.write(`svc-server: ${message}\n`);
  process.exit(code);
}

/** Reads a token from standard input and prints what belongs into a token file. */
function printTokenHash(): void {
  const token = readFileSync(0, "utf8").replace(/\r?\n$/, "");
  if (!isTokenText(token)) refuse("a token is 16 to 256 visible ASCII characters");
  process.stdout.write(`${tokenDigestText(token)}\n`);
}

/**
 * Signals within this time of the first are the same one, when `npm start` stands in between: the
 * terminal sends it to both processes, and the outer one passes it on (ms).
 */
const SAME_SIGNAL_MS = 500;

function onSignals(server: RunningServer, passedOn: boolean, reload: () => void): void {
  let stoppingSinceMs: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (stoppingSinceMs !== null) {
      if (passedOn && nowMs - stoppingSinceMs < SAME_SIGNAL_MS) return;
      process.exit(128 + (signal === "SIGINT" ? 2 : 15));
    }
    stoppingSinceMs = nowMs;
    server.stop(() => process.exit(EXIT_CLEAN));
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", reload);
}

async function main(argumentsList: readonly string[]): Promise<void> {
  if (argumentsList.includes("--help")) {
    process.stdout.write(helpText(VERSION));
    return;
  }
  if (argumentsList.includes("--version")) {
    process.stdout.write(`svc-server ${VERSION}\n`);
    return;
  }
  if (argumentsList.includes("--print-token-hash")) {
    printTokenHash();
    return;
  }
  const welcome = argumentsList.includes("--welcome");
  const raw = readFlags(
    argumentsList.filter((argument) => argument !== "--welcome"),
    process.env,
  );
  if (!raw.ok) refuse(raw.message);
  const config = makeConfig(raw.value, process.env);
  if (!config.ok) refuse(config.message);
  const logger = makeLogger(config.value.logLevel, config.value.logFormat, config.value.nodeName);
  const started = await startServer(config.value, logger);
  if (!started.ok) refuse(started.message, started.code === "storage" ? EXIT_FATAL : EXIT_USAGE);
  const server = started.value;
  onSignals(server, welcome, () => server.reloadTokens());
  process.stdout.write(`${server.listeningLine}\n`);
  if (welcome) process.stdout.write(welcomeText(server.addresses, config.value));
}

const fatal = processFatal(() => {});
process.on("uncaughtException", (error) => {
  fatal.fatal("uncaught exception", { error: String(error.stack ?? error) });
});
process.on("unhandledRejection", (reason) => {
  fatal.fatal("unhandled rejection", {
    error: reason instanceof Error ? String(reason.stack) : String(reason),
  });
});

await main(process.argv.slice(2));
