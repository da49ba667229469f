/** Ways to run svc-cli in tests: as a process of its own, or many lines in one (batch.ts). */
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { sleep } from "../cluster/server-process.js";
import type { Schema } from "../../../src/cli/commands/schemas.js";

const here = dirname(fileURLToPath(import.meta.url));
/** The program as it is installed: the bundle beside the compiled tests. */
export const cliMain = join(here, "..", "..", "..", "bin", "svc-cli.js");

/** Longer than anything takes that a running one says (ms). */
const SAYS_WITHIN_MS = 30_000;

export interface Ran {
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Readonly<Record<string, string>>;

/** The environment without SVC_ variables, which would change what a test means. */
export function cleanEnvironment(more: Environment = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  return { ...Object.fromEntries(kept), ...more };
}

export function startCli(words: readonly string[], environment: Environment = {}): ChildProcess {
  return spawn(process.execPath, [cliMain, ...words], {
    stdio: ["pipe", "pipe", "pipe"],
    env: cleanEnvironment(environment),
  });
}

/** Waits for the end of `child`; a signal counts as 128 + its number. */
export function ending(child: ChildProcess): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((resolve) => {
    child.on("close", (code, signal) => {
      const exit = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      resolve({ exit, stdout, stderr });
    });
  });
}

/** A process that runs, and what it says meanwhile. */
export interface Running {
  readonly child: ChildProcess;
  readonly ran: Promise<Ran>;
  /** Waits until its output has `text`; throws when it has not for long. */
  says(text: RegExp): Promise<RegExpExecArray>;
}

export function listenedCli(words: readonly string[]): Running {
  const child = startCli(words);
  const ran = ending(child);
  let output = "";
  child.stdout?.on("data", (text: string) => (output += text));
  const says = async (text: RegExp): Promise<RegExpExecArray> => {
    const deadline = performance.now() + SAYS_WITHIN_MS;
    for (;;) {
      const found = text.exec(output);
      if (found !== null) return found;
      if (performance.now() > deadline) throw new Error(`never ${String(text)}: ${output}`);
      await sleep(10);
    }
  };
  return { child, ran, says };
}

/** Runs one process to its end with `input` on its stdin. */
export function runCli(
  words: readonly string[],
  environment: Environment = {},
  input = "",
): Promise<Ran> {
  const child = startCli(words, environment);
  child.stdin?.end(input);
  return ending(child);
}

export class Batch {
  private readonly child: ChildProcess;
  private readonly waiting = new Map<number, (ran: Ran) => void>();
  private next = 1;

  constructor() {
    this.child = spawn(process.execPath, [join(here, "batch.js")], {
      stdio: ["pipe", "pipe", "inherit"],
      env: cleanEnvironment(),
    });
    const reader = createInterface({ input: this.child.stdout as NodeJS.ReadableStream });
    reader.on("line", (line) => {
      const { id, ...ran } = JSON.parse(line) as Ran & { readonly id: number };
      this.waiting.get(id)?.(ran);
      this.waiting.delete(id);
    });
    this.child.on("close", () => {
      for (const resolve of this.waiting.values())
        resolve({ exit: -1, stdout: "", stderr: "gone" });
    });
  }

  run(words: readonly string[], environment: Environment = {}): Promise<Ran> {
    const id = this.next++;
    this.child.stdin?.write(`${JSON.stringify({ id, words, environment })}\n`);
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  close(): void {
    this.child.stdin?.end();
  }
}

function typesOf(value: unknown): readonly string[] {
  if (value === null) return ["null"];
  if (Array.isArray(value)) return ["array"];
  if (typeof value === "number")
    return Number.isInteger(value) ? ["integer", "number"] : ["number"];
  return [typeof value];
}

/** What of `value` does not fit `schema`, as paths; the part of JSON Schema that schemas.ts uses. */
export function misfits(schema: Schema, value: unknown, path = "$"): string[] {
  if (schema.anyOf !== undefined) {
    const tries = schema.anyOf.map((choice) => misfits(choice, value, path));
    return tries.some((found) => found.length === 0) ? [] : tries.flat();
  }
  const wanted = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  if (wanted.length > 0 && !typesOf(value).some((type) => wanted.includes(type))) {
    return [`${path} is ${typesOf(value).join()}, not ${wanted.join()}`];
  }
  if (Array.isArray(value)) {
    return value.flatMap((item, at) => misfits(schema.items ?? {}, item, `${path}[${at}]`));
  }
  if (schema.properties === undefined || typeof value !== "object" || value === null) return [];
  const members = value as Readonly<Record<string, unknown>>;
  const found: string[] = [];
  for (const name of schema.required ?? []) {
    if (!(name in members)) found.push(`${path}.${name} is missing`);
  }
  for (const [name, member] of Object.entries(members)) {
    const property = schema.properties[name];
    if (property === undefined) found.push(`${path}.${name} is not described`);
    else found.push(...misfits(property, member, `${path}.${name}`));
  }
  return found;
}
