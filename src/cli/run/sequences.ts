/**
 * Sequences, carried out.
 *
 * Invariants: 1. A refusal of the service is an outcome with the name of its type; a doubt about
 * the effect is an error. 2. Every allocation carries an idempotency key from the start; when its
 * outcome is unknown the failure names the key, so that a repeat by hand takes no other values.
 */
import { randomUUID } from "node:crypto";
import {
  AlreadyExistsError,
  InvalidInputError,
  MaxValueExceededError,
  NotFoundError,
  SvcError,
  SvcRangeError,
  type SequenceInfo,
  type SequenceRange,
} from "../../client/mod.js";
import {
  INVALID_INPUT_REMARK,
  outcome,
  type Outcome,
  type RunContext,
  type RunTable,
} from "../invocation/context.js";
import { doubt, noteKey } from "../invocation/failures.js";
import type { JsonValue } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";

export function sequenceDocument(info: SequenceInfo): JsonValue {
  return {
    name: info.name,
    currentValue: info.currentValue,
    initialValue: info.initialValue,
    increment: info.increment,
    maxValue: info.maxValue,
    blockSize: info.blockSize,
    incarnation: info.incarnation,
    revision: info.revision,
    durability: "Persistent",
    createdAt: { ...info.createdAt },
    updatedAt: { ...info.updatedAt },
  };
}

function sequenceLine(word: string, info: SequenceInfo): string {
  return (
    `r${info.revision} ${word} ${info.name} current ${info.currentValue} ` +
    `increment ${info.increment} max ${info.maxValue ?? "-"} ` +
    `block ${info.blockSize ?? "default"} incarnation ${info.incarnation}`
  );
}

/** The response type that a refusal stands for; null when `error` is none. */
function refusalType(error: unknown): string | null {
  if (!(error instanceof SvcError)) return null;
  // After a lost answer the refusal may echo an earlier try: that is a doubt, not a refusal.
  if (error.outcome !== "none") return null;
  if (error instanceof InvalidInputError || error instanceof SvcRangeError) return "InvalidInput";
  if (error instanceof NotFoundError) return "NotFound";
  if (error instanceof AlreadyExistsError) return "AlreadyExists";
  return error instanceof MaxValueExceededError ? "MaxValueExceeded" : null;
}

function refused(error: unknown, line: string, name: string): Outcome {
  const type = refusalType(error);
  if (type === null) throw error;
  const remark = type === "InvalidInput" ? INVALID_INPUT_REMARK : null;
  return outcome(false, [`${line}: ${type}`], { name, type }, remark);
}

async function create(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--create-sequence");
  const client = await context.client();
  try {
    const info = await client.sequences.create(
      name,
      {
        initialValue: values.int64("--initial-value") ?? 0n,
        increment: values.int64("--increment") ?? 1n,
        maxValue: values.int64("--max-value"),
        blockSize: values.number("--block-size"),
      },
      context.calling(),
    );
    return outcome(true, [sequenceLine("created", info)], sequenceDocument(info));
  } catch (error) {
    return refused(error, "not created", name);
  }
}

async function update(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--update-sequence");
  const client = await context.client();
  const maxValue = values.flag("--remove-max-value") ? null : values.int64("--max-value");
  const blockSize = values.flag("--remove-block-size") ? null : values.number("--block-size");
  try {
    const info = await client.sequences.update(
      name,
      {
        currentValue: values.int64("--current-value") ?? undefined,
        increment: values.int64("--increment") ?? undefined,
        initialValue: values.int64("--initial-value") ?? undefined,
        ...(maxValue !== null || values.flag("--remove-max-value") ? { maxValue } : {}),
        ...(blockSize !== null || values.flag("--remove-block-size") ? { blockSize } : {}),
      },
      context.calling(),
    );
    return outcome(true, [sequenceLine("updated", info)], sequenceDocument(info));
  } catch (error) {
    return refused(error, "not updated", name);
  }
}

async function get(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--get-sequence");
  const client = await context.client();
  try {
    const info = await client.sequences.get(name, context.calling());
    if (info === null) return outcome(false, ["not found"], null);
    return outcome(true, [sequenceLine("get", info)], sequenceDocument(info));
  } catch (error) {
    if (refusalType(error) !== "InvalidInput") throw error;
    return outcome(false, ["not found"], null, INVALID_INPUT_REMARK);
  }
}

function allocated(range: SequenceRange, line: string): Outcome {
  return outcome(true, [line], {
    name: range.name,
    start: range.start,
    end: range.end,
    count: range.count,
    revision: range.revision,
  });
}

/** Runs an allocation under the key that was given, or a random one. */
async function allocating(
  name: string,
  values: OptionValues,
  action: (idempotencyKey: string) => Promise<Outcome>,
): Promise<Outcome> {
  const given = values.text("--idempotency-key") ?? "";
  const key = given.trim() === "" ? randomUUID() : given;
  try {
    return await action(key);
  } catch (error) {
    noteKey(error, key);
    return refused(error, "not allocated", name);
  }
}

function next(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--next-sequence");
  return allocating(name, values, async (idempotencyKey) => {
    const client = await context.client();
    const calling = { ...context.calling(), idempotencyKey };
    const range = await client.sequences.nextRange(name, calling);
    return allocated(range, `r${range.revision} next ${range.name} ${range.start}`);
  });
}

function reserve(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--reserve-sequence");
  return allocating(name, values, async (idempotencyKey) => {
    const client = await context.client();
    const calling = { ...context.calling(), idempotencyKey };
    const range = await client.sequences.reserve(name, values.number("--count") ?? 1, calling);
    const rest = range.count === 1 ? "" : `..${range.end} count ${range.count}`;
    const line = `r${range.revision} reserved ${range.name} ${range.start}${rest}`;
    return allocated(range, line);
  });
}

async function remove(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--delete-sequence");
  const client = await context.client();
  try {
    const { deleted, doubtful } = await client.sequences.delete(name, context.calling());
    if (!deleted && doubtful) {
      throw doubt(
        `${name}: not there now; an earlier try whose answer was lost may have deleted it`,
      );
    }
    return outcome(deleted, [deleted ? "deleted" : "not found"], { name, deleted });
  } catch (error) {
    const type = refusalType(error);
    if (type === null) throw error;
    return outcome(false, ["not found"], { name, deleted: false }, `${type}: nothing was deleted`);
  }
}

export const SEQUENCES_RUN: RunTable = {
  "--create-sequence": create,
  "--update-sequence": update,
  "--get-sequence": get,
  "--next-sequence": next,
  "--reserve-sequence": reserve,
  "--delete-sequence": remove,
};
