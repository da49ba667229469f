/**
 * Runs many command lines of svc-cli in one process, so that hundreds of them cost one start. Reads requests
 * `{id, words, environment}` and writes answers `{id, exit, stdout, stderr}`, one JSON object a line.
 *
 * The program itself is not changed: what each line writes is told apart by its asynchronous context.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createInterface } from "node:readline";
import { runProgram } from "../../../src/cli/program.js";

interface Captured {
  stdout: string;
  stderr: string;
}

interface Request {
  readonly id: number;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const captured = new AsyncLocalStorage<Captured>();
const answer = process.stdout.write.bind(process.stdout);

function capture(stream: NodeJS.WriteStream, member: keyof Captured): void {
  stream.write = ((text: string | Uint8Array): boolean => {
    const store = captured.getStore();
    if (store !== undefined) store[member] += String(text);
    return true;
  }) as typeof stream.write;
}

capture(process.stdout, "stdout");
capture(process.stderr, "stderr");

async function run(request: Request): Promise<void> {
  const output: Captured = { stdout: "", stderr: "" };
  const exit = await captured.run(output, () => runProgram(request.words, request.environment));
  answer(`${JSON.stringify({ id: request.id, exit, ...output })}\n`);
}

const reader = createInterface({ input: process.stdin });
reader.on("line", (line) => void run(JSON.parse(line) as Request));
reader.on("close", () => process.exit(0));
