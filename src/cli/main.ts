#!/usr/bin/env node
/**
 * The program svc-cli.
 *
 * Owns the process. Invariants: 1. What was written reaches its reader before the process ends
 * (P-161). 2. A reader or a terminal that went away (EPIPE, EIO) ends the process quietly. 3. A
 * broken invariant or a forgotten rejection is reported and never ends with exit code 0.
 */
import "./invocation/process-title.js";
import { EXIT_DONE, EXIT_UNEXPECTED } from "./invocation/exit-codes.js";
import {
  endEarly,
  exitProcess,
  hangUp,
  hasLastWork,
  isHangUpError,
  unlessEnding,
} from "./invocation/hang-up.js";
import { runProgram } from "./program.js";

/** Waits until everything written to `stream` was handed over. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableLength === 0) resolve();
    else stream.write("", () => resolve());
  });
}

async function leave(code: number): Promise<void> {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  await unlessEnding();
  exitProcess(code);
}

function unexpected(error: unknown): void {
  if (isHangUpError(error)) {
    void hangUp();
    return;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`error: ${text}\n`);
  void leave(EXIT_UNEXPECTED);
}

function outputFailed(name: string, error: NodeJS.ErrnoException): void {
  if (isHangUpError(error)) {
    void hangUp();
    return;
  }
  if (error.code !== "EPIPE" && name === "stdout") {
    process.stderr.write(`error: stdout: ${error.message}\n`);
  }
  // Whoever reads only the first lines has what it wants; a session had more to do.
  const isEnough = error.code === "EPIPE" && name === "stdout" && !hasLastWork();
  endEarly(isEnough ? EXIT_DONE : EXIT_UNEXPECTED);
}

process.stdout.on("error", (error) => outputFailed("stdout", error));
process.stderr.on("error", (error) => outputFailed("stderr", error));
process.on("uncaughtException", unexpected);
process.on("unhandledRejection", unexpected);

await leave(await runProgram(process.argv.slice(2), process.env));
