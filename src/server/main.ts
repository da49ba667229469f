#!/usr/bin/env node
/**
 * The program svc-server: its first moment.
 *
 * Invariants: 1. Signals are heard before anything else is even loaded. 2. What the program does is
 * in `program`; a process that a server makes to restore a backup does that and nothing else.
 */
import { Signals } from "./signals.js";

if (process.argv[2] === "--restore-child") {
  const { runRestoreChild } = await import("./restoring/restore-child.js");
  runRestoreChild();
} else {
  const signals = new Signals();
  const { run } = await import("./program.js");
  await run(process.argv.slice(2), signals);
}
