#!/usr/bin/env node
/**
 * The program svc-server: its first moment.
 *
 * Invariants: 1. Signals are heard before anything else is even loaded. 2. What the program does is
 * in `program`.
 */
import { Signals } from "./signals.js";

const signals = new Signals();
const { run } = await import("./program.js");
await run(process.argv.slice(2), signals);
