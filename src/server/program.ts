/**
 * What the program svc-server does: command line in, one running node, exit code.
 *
 * Owns the process. Invariants: 1. Nothing is opened before the configuration is whole. 2. A fault
 * that nobody handles ends the process with the fatal exit code; it never lives on in silence.
 */
import { readFileSync } from "node:fs";
import { EXIT_FATAL, processFatal } from "../sys.js";
import { startServer } from "./assemble.js";
import type { LoggerPort } from "../ports.js";
import { collectFirst } from "./first-collection.js";
import { type ServerConfig, makeConfig } from "./flags/config.js";
import { EXIT_CLEAN, EXIT_USAGE } from "./flags/exit-codes.js";
import { readFlags } from "./flags/flags.js";
import { type ForceOrder, forceMistake, forcedFlags } from "./flags/force-flags.js";
import { helpText } from "./flags/help.js";
import { makeLogger } from "./logs.js";
import { LogLines } from "./metrics/log-lines.js";
import { probe } from "./probe.js";
import type { Signals } from "./signals.js";
import { isTokenText, tokenDigestText } from "./security/tokens.js";
import { VERSION } from "../base/generated/version.js";
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

async function probeOnce(url: string): Promise<void> {
  const failure = await probe(url);
  if (failure === null) process.exit(EXIT_CLEAN);
  refuse(`--probe: ${failure}`, EXIT_FATAL);
}

/** The whole program, from its arguments on. `signals` are heard already. */
export async function run(argumentsList: readonly string[], signals: Signals): Promise<void> {
  watchFaults();
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
  const at = argumentsList.findIndex((argument) => /^--probe(=|$)/.test(argument));
  if (at >= 0) {
    const inline = (argumentsList[at] as string).slice("--probe=".length);
    return probeOnce(inline === "" ? (argumentsList[at + 1] ?? "") : inline);
  }
  const welcome = argumentsList.includes("--welcome");
  const forced = forcedFlags(argumentsList.filter((argument) => argument !== "--welcome"));
  if (!forced.ok) refuse(forced.message);
  const raw = readFlags(forced.value.rest, process.env);
  if (!raw.ok) refuse(raw.message);
  const config = makeConfig(raw.value, process.env);
  if (!config.ok) refuse(config.message);
  const lines = new LogLines();
  const { logLevel, logFormat, nodeName } = config.value;
  const logger = makeLogger(logLevel, logFormat, nodeName, lines);
  for (const warning of raw.value.warnings) logger.log("warn", warning);
  if (forced.value.order !== null) return force(config.value, forced.value.order, logger);
  const started = await startServer(config.value, logger, lines);
  if (!started.ok) refuse(started.message, started.code === "storage" ? EXIT_FATAL : EXIT_USAGE);
  const server = started.value;
  signals.attach(server, welcome);
  collectFirst();
  process.stdout.write(`${server.listeningLine}\n`);
  if (welcome) process.stdout.write(welcomeText(server.addresses, config.value));
}

/** Makes a new cluster of a directory, and ends the process. */
async function force(config: ServerConfig, order: ForceOrder, logger: LoggerPort): Promise<never> {
  const mistake = forceMistake(config);
  if (mistake !== null) refuse(mistake);
  const { forceNewCluster, systemConsole } = await import("./forcing/force-cluster.js");
  const done = await forceNewCluster(config, order, logger, systemConsole);
  if (!done.ok) refuse(`--force-new-cluster: ${done.message}`, EXIT_FATAL);
  process.exit(EXIT_CLEAN);
}

function watchFaults(): void {
  const fatal = processFatal(() => {});
  process.on("uncaughtException", (error) => {
    fatal.fatal("uncaught exception", { error: String(error.stack ?? error) });
  });
  process.on("unhandledRejection", (reason) => {
    fatal.fatal("unhandled rejection", {
      error: reason instanceof Error ? String(reason.stack) : String(reason),
    });
  });
}
