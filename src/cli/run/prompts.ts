/**
 * Questions to the person at the terminal: yes or no, one of several, a secret.
 *
 * Enquirer is loaded only when something is asked. Invariants: 1. Questions go to stderr: stdout
 * belongs to the answer. 2. Nobody else reads stdin while a question is open. 3. Ctrl+C, Escape and
 * a terminal that goes away mean no answer.
 */
import { stdinIsGone, whenStdinGone } from "../invocation/hang-up.js";

/** One question; null when it was cancelled. */
async function ask(question: Record<string, unknown>): Promise<unknown> {
  const { default: enquirer } = await import("enquirer");
  if (stdinIsGone()) return null;
  try {
    const answered = enquirer.prompt<{ readonly answer: unknown }>({
      name: "answer",
      type: "input",
      message: "",
      ...question,
      stdout: process.stderr,
    });
    const answers = await Promise.race([answered, whenStdinGone()]);
    return answers?.answer ?? null;
  } catch {
    // Enquirer rejects with an empty text when the question is cancelled.
    return null;
  }
}

/** True only for a yes. */
export async function confirm(message: string): Promise<boolean> {
  return (await ask({ type: "confirm", message, initial: false })) === true;
}

/** One of `choices`, or null. */
export async function choose(message: string, choices: readonly string[]): Promise<string | null> {
  const answer = await ask({ type: "select", message, choices: [...choices] });
  return typeof answer === "string" ? answer : null;
}

/** A secret that is not shown while it is typed, or null. */
export async function secret(message: string): Promise<string | null> {
  const answer = await ask({ type: "password", message });
  return typeof answer === "string" && answer !== "" ? answer : null;
}

/** Questions are asked only where somebody can see and answer them. */
export function canAsk(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}
