/**
 * Key ranges, carried out.
 *
 * Invariants: 1. Register and unregister reach every endpoint of -c, because the routing flag
 * belongs to the node. 2. Split and merge ask endpoint after endpoint, and only while the answer is
 * NotLeader: any other answer, also one that leaves the outcome open, ends the search.
 */
import type { MergeResult, SplitResult, SvcClient } from "../../client/mod.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { EXIT_UNREACHABLE } from "../invocation/exit-codes.js";
import { CliError, describeFailure } from "../invocation/failures.js";
import type { JsonValue } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";
import { whileMoving } from "./range-progress.js";
import { rangesLines } from "./range-text.js";

async function ranges(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const keySpace = values.text("--key-space") ?? "";
  const answer = await client.ranges.list(keySpace, context.calling());
  return outcome(true, rangesLines(answer, context.columns), answer);
}

interface NodeAnswer {
  readonly success: boolean;
  readonly line: string;
  readonly document: JsonValue;
}

/**
 * Asks every endpoint at the same time. One that cannot be reached makes the exit code 3, and the
 * message says what the others answered.
 */
async function everywhere(
  context: RunContext,
  ask: (client: SvcClient, endpoint: string) => Promise<NodeAnswer>,
): Promise<Outcome> {
  const answers: NodeAnswer[] = [];
  const failures: { readonly endpoint: string; readonly error: unknown }[] = [];
  const settled = await Promise.allSettled(
    context.endpoints.map(async (endpoint) => ask(await context.clientOf(endpoint), endpoint)),
  );
  for (const [at, result] of settled.entries()) {
    if (result.status === "fulfilled") answers.push(result.value);
    else failures.push({ endpoint: context.endpoints[at] ?? "", error: result.reason });
  }
  const lines = answers.map((answer) => answer.line);
  const first = failures[0];
  if (first !== undefined) {
    if (answers.length === 0 && failures.length === 1) throw first.error;
    const { exit, code, message } = describeFailure(first.error, first.endpoint);
    const done = lines.length === 0 ? "" : ` — answered: ${lines.join(" | ")}`;
    throw new CliError(
      exit === 1 ? EXIT_UNREACHABLE : exit,
      code,
      `${first.endpoint}: ${message}${done}`,
    );
  }
  return outcome(
    answers.every((answer) => answer.success),
    lines,
    answers.map((answer) => answer.document),
  );
}

function nodeLine(
  word: string,
  endpoint: string,
  answer: {
    readonly success: boolean;
    readonly status: string;
    readonly routingMode: string;
    readonly descriptorCount: number;
    readonly reason: string;
  },
): string {
  if (!answer.success) return `Refused: ${endpoint} — status ${answer.status} — ${answer.reason}`;
  const ranges = `${answer.descriptorCount} range(s)`;
  return `${word}: ${endpoint} — status ${answer.status}, routed by ${answer.routingMode}, ${ranges}`;
}

function register(values: OptionValues, context: RunContext): Promise<Outcome> {
  const keySpace = values.requiredText("--register-key-range");
  return everywhere(context, async (client, endpoint) => {
    const answer = await client.ranges.register(keySpace, context.calling());
    const { seeded, ...members } = answer;
    return {
      success: answer.success,
      line: nodeLine(seeded ? "Seeded" : "Registered", endpoint, answer),
      document: { endpoint, seeded, ...members },
    };
  });
}

function unregister(values: OptionValues, context: RunContext): Promise<Outcome> {
  const keySpace = values.requiredText("--unregister-key-range");
  const everyNode = (): Promise<Outcome> =>
    everywhere(context, async (client, endpoint) => {
      const answer = await client.ranges.unregister(keySpace, context.calling());
      return {
        success: answer.success,
        line: nodeLine("Removed", endpoint, answer),
        document: { endpoint, ...answer },
      };
    });
  return whileMoving(context, "unregister", keySpace, everyNode);
}

/**
 * Asks until a status other than NotLeader. Only a node that certainly did nothing is passed over:
 * after an unknown outcome a second try elsewhere could split twice.
 */
async function untilLeader<T extends { readonly status: string }>(
  context: RunContext,
  ask: (client: SvcClient, among: number) => Promise<T>,
): Promise<T> {
  let refusal: T | null = null;
  let failure: unknown = null;
  for (const [at, endpoint] of context.endpoints.entries()) {
    try {
      const answer = await ask(await context.clientOf(endpoint), context.endpoints.length - at);
      if (answer.status !== "NotLeader") return answer;
      refusal = answer;
    } catch (error) {
      const isWithoutEffect =
        error instanceof Error && "outcome" in error && error.outcome === "none";
      if (!isWithoutEffect) throw error;
      failure = error;
    }
  }
  if (refusal !== null) return refusal;
  throw failure;
}

function openLines(answer: SplitResult | MergeResult): string[] {
  const lines: string[] = [];
  if (!answer.determinate) lines.push("Outcome open: read --ranges again.");
  if (!answer.success && answer.leaderHint !== "") lines.push(`Try --node ${answer.leaderHint}.`);
  return lines;
}

async function split(values: OptionValues, context: RunContext): Promise<Outcome> {
  const keySpace = values.requiredText("--split-range");
  const splitKey = values.requiredText("--split-key");
  const answer = await whileMoving(context, "split", keySpace, () =>
    untilLeader(context, (client, among) =>
      client.ranges.split(keySpace, splitKey, context.calling(among)),
    ),
  );
  const line = answer.success
    ? `Split: ${keySpace} at ${splitKey} — partition ${answer.newPartitionId} at generation ` +
      `${answer.newGeneration}.`
    : `Not split: status ${answer.status} — ${answer.reason}`;
  return outcome(answer.success, [line, ...openLines(answer)], answer);
}

async function merge(_values: OptionValues, context: RunContext): Promise<Outcome> {
  const answer = await whileMoving(context, "merge", "", () =>
    untilLeader(context, (client, among) => client.ranges.merge(context.calling(among))),
  );
  let line = `No merge pass ran: status ${answer.status} — ${answer.reason}`;
  if (answer.success) {
    line =
      answer.merges > 0
        ? `Merge pass complete: folded ${answer.merges} adjacent pair(s).`
        : "Merge pass complete: no adjacent ranges were small enough to fold.";
  }
  return outcome(answer.success, [line, ...openLines(answer)], answer);
}

export const RANGES_RUN: RunTable = {
  "--ranges": ranges,
  "--register-key-range": register,
  "--unregister-key-range": unregister,
  "--split-range": split,
  "--merge-ranges": merge,
};
