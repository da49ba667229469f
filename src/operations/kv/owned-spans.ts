/**
 * What a group owns of the keys that a read is about.
 *
 * Pure. To be asked in the turn in which the rows are looked at.
 */
import type { RangeQuery } from "../../machine/decision/reading.js";
import { rangeSpan } from "../../machine/kv/pages.js";
import type { Ownership } from "../../machine/ownership/ownership.js";
import { textToByteKey } from "../../machine/store/keys.js";

/** The group owns every key of the bucket that the query is about, above `after`. */
export function ownsSpan(
  ownership: Ownership,
  query: RangeQuery,
  after: Uint8Array | null,
): boolean {
  if (ownership.isWhole) return true;
  const span = rangeSpan(query, after);
  if (span === null || span.first >= span.last) return true;
  const [only, more] = ownership.spans(textToByteKey(query.bucket), span.first, span.last);
  return more === undefined && only?.first === span.first && only.last === span.last;
}
