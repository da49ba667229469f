/**
 * How large answers are, and how large they may become.
 *
 * Invariant: looking at an answer costs nothing where answers are small anyway.
 */
import { LARGE_ANSWER_CHARACTERS } from "../../base/limits.js";
import type { DataAnswer, DataRequestKind } from "../../operations/api/requests.js";

/** From this size on an answer is held and encoded with care (bytes). */
export const LARGE_ANSWER_BYTES = LARGE_ANSWER_CHARACTERS;
/** What an item of a list takes beside its key and value (bytes). */
const ITEM_BYTES = 64;

/** Bytes of the values and keys in `answer`, roughly what it will take; 0 for small kinds. */
export function answerSizeBytes(answer: DataAnswer): number {
  switch (answer.kind) {
    case "kv":
      return answer.value?.length ?? 0;
    case "kv-many":
    case "kv-page": {
      let sizeBytes = 0;
      for (const { key, value } of answer.items) {
        sizeBytes += ITEM_BYTES + key.length + (value?.length ?? 0);
      }
      return sizeBytes;
    }
    case "lock-page":
    case "lock-audit": {
      let sizeBytes = 0;
      for (const { resource, owner } of answer.items) {
        sizeBytes += ITEM_BYTES + resource.length + (owner?.length ?? 0);
      }
      return sizeBytes;
    }
    default:
      return 0;
  }
}

/** What an answer of the kind may hold: nothing to speak of, one value, or many. */
export type AnswerExtent = "small" | "value" | "list";

export function answerExtent(kind: DataRequestKind): AnswerExtent {
  switch (kind) {
    case "kv-get":
      return "value";
    case "kv-get-many":
    case "kv-bucket":
    case "kv-range":
    case "kv-scan-all":
    case "kv-scan-local":
    case "list-locks":
    case "list-lock-audit":
      return "list";
    default:
      return "small";
  }
}
