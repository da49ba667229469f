/**
 * How the calls that change key ranges may end, as the contract lists it (6.3), written a second
 * time.
 *
 * Plain data.
 */

/** "done": 200. "refused": nothing was changed, nor will be. "open": the map may still change. */
export type RangeEnd = readonly [status: string, end: "done" | "refused" | "open"];

const SWITCHING: readonly RangeEnd[] = [
  ["InvalidInput", "refused"],
  ["KeyRangeDisabled", "refused"],
  ["Indeterminate", "open"],
];

export const REGISTER_ENDS: readonly RangeEnd[] = [
  ["Seeded", "done"],
  ["AlreadySeeded", "done"],
  ...SWITCHING,
];
export const UNREGISTER_ENDS: readonly RangeEnd[] = [
  ["Removed", "done"],
  ["QuiesceWindowOpen", "refused"],
  ...SWITCHING,
];
export const SPLIT_ENDS: readonly RangeEnd[] = [
  ["Succeeded", "done"],
  ["NotLeader", "refused"],
  ["NoRange", "refused"],
  ["InvalidSplitKey", "refused"],
  ["BelowMinRangeSize", "refused"],
  ["ProbeIndeterminate", "refused"],
  ["PartitionCreationFailed", "refused"],
  ["UnsettledMovingIntents", "refused"],
  ["InvalidInput", "refused"],
  ["KeyRangeDisabled", "refused"],
  ["TransferFailed", "open"],
  ["QuiesceFailed", "open"],
  ["CutoverFailed", "open"],
  ["ConcurrentSplit", "open"],
  ["Indeterminate", "open"],
];
export const MERGE_ENDS: readonly RangeEnd[] = [
  ["Completed", "done"],
  ["NotLeader", "refused"],
  ["Indeterminate", "open"],
];
