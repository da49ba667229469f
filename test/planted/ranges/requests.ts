/**
 * Planted bugs of requests and reads that meet a range on its way, each caught by a test of
 * `test/unit/operations/` that is run on a copy of the tree with the bug.
 */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const MOVED = "operations/moved.test";
const SPANS = "operations/spans.test";

function moved(
  pitfall: string,
  name: string,
  file: string,
  test: string,
  ...edits: RecordBug["edits"]
): RecordBug {
  return { name, pitfall, edits, file, test };
}

export const movedRangeBugs: readonly RecordBug[] = [
  moved(
    "P-100",
    "keys are read while they are frozen, and after the cut",
    MOVED,
    "P-100 C12 at node 1",
    edit(
      "src/operations/kv/kv.ts",
      "    if (!group.machine.owns(request.key)) return attempt.unowned();\n    const nowMs",
      "    const nowMs",
    ),
  ),
  moved(
    "P-100",
    "a key is read that moved while the clock was committed",
    MOVED,
    "P-100 what is read is owned",
    edit(
      "src/operations/kv/kv.ts",
      "      if (!group.machine.owns(request.key)) return attempt.unowned();\n      answer(",
      "      answer(",
    ),
  ),
  moved(
    "P-100",
    "a half of a bucket is given for all of it",
    MOVED,
    "P-100 C12 at node 1",
    edit("src/operations/kv/kv-gather.ts", 'return this.end("unowned");', "void 0;"),
  ),
  moved(
    "P-100",
    "a caller is turned away because its key moves",
    MOVED,
    "a move that was given up",
    edit(
      "src/operations/journey.ts",
      "    this.pauses.next(this.usedVersion, again, (refusal) => this.mustRetry(refusal));",
      "    this.pauses.next(this.usedVersion, () => this.mustRetry(null), again);",
    ),
  ),
  moved(
    "P-162",
    "who waits for a move is forgotten by a stop",
    MOVED,
    "P-162 who waits for a move",
    edit(
      "src/operations/serving/move-waits.ts",
      '      if (this.waits.isClosing) over("shutting-down");\n      else if',
      "      if",
    ),
  ),
  moved(
    "P-109",
    "who waits for a newer map asks without a pause",
    MOVED,
    "C12 a move is waited for",
    edit(
      "src/operations/serving/move-waits.ts",
      "const PAUSE_MAX_MS = 40;",
      "const PAUSE_MAX_MS = 0;",
    ),
    edit("src/operations/serving/move-waits.ts", "const LOOK_MS = 5;", "const LOOK_MS = 0;"),
  ),
  moved(
    "P-109",
    "a partition is asked again and again, which the keys have left by the map of both",
    MOVED,
    "C12 P-109 who asks by an old map",
    edit(
      "src/operations/forwarding/forwarder.ts",
      "    if (this.hasBegun && this.isElsewhere) return task.unowned?.();\n",
      "",
    ),
  ),
  moved(
    "P-109",
    "an item that an old map sent with others is turned away",
    MOVED,
    "K11 C12 items of one call",
    edit(
      "src/operations/kv/kv-many.ts",
      "const type = mayTell ? this.unownedType : KvType.mustRetry;",
      "const type = mayTell ? KvType.mustRetry : this.unownedType;",
    ),
  ),
  moved(
    "P-108",
    "a node far behind takes ranges that it has not heard of for gone",
    "operations/ranges.test",
    "P-108 a node far behind",
    edit(
      "src/operations/cluster/key-ranges.ts",
      "!node.closing && isAware() && this.descriptors",
      "!node.closing && this.descriptors",
    ),
  ),
  moved(
    "P-100",
    "a freeze that is applied late is left as it is while keys are copied again",
    "host/ranges/mover-steps.test",
    "P-100 a freeze that is applied late",
    edit("src/host/ranges/range-mover.ts", "    this.mayBeFrozen = true;\n", ""),
  ),
  moved(
    "P-101",
    "the tiles of a scan are not looked at",
    SPANS,
    "K15 a scan shows every key once",
    edit(
      "src/operations/kv/kv-scan.ts",
      'if (page !== "too-large" && !isTiled(page.spaces, scan, after, page.next)) {',
      'if (page !== "too-large" && page.items.length < 0) {',
    ),
  ),
  moved(
    "P-101",
    "a part that was refused is taken for an empty one",
    SPANS,
    "P-101 a part that was refused",
    edit(
      "src/operations/serving/leader-parts.ts",
      "if (failure === null && parts.length === ends.length) {",
      "if (failure === null) {",
    ),
    edit(
      "src/operations/kv/span-tiles.ts",
      "  if (span === null) return true;\n",
      "  if (span === null || spaces.length >= 0) return true;\n",
    ),
  ),
  moved(
    "P-101",
    "a bucket of two ranges is read without a second round",
    SPANS,
    "K13 K16 no view of two instants",
    edit("src/operations/kv/span-read.ts", "        stands &&= isSame;\n", ""),
  ),
  moved(
    "P-051",
    "a lease that ends between the rounds is no change",
    SPANS,
    "K13 a lease that ends",
    edit(
      "src/operations/kv/span-watch.ts",
      "values?.stands !== false && group.leaseNowMs() < firstEndMs",
      "values?.stands !== false && firstEndMs >= 0",
    ),
  ),
  moved(
    "P-101",
    "a node that closes goes on with a scan by what it still knows",
    SPANS,
    "K15 a node that closes while it scans",
    edit(
      "src/operations/serving/leader-parts.ts",
      "if (node.closing) {",
      "if (node.closing && node.isOutside) {",
    ),
    // Whoever waits for a move is told of the stop by what it waits for, too.
    edit(
      "src/operations/serving/move-waits.ts",
      '      if (this.waits.isClosing) over("shutting-down");\n      else if',
      "      if",
    ),
  ),
  moved(
    "P-101",
    "who asks without tiles is given half of a moved range",
    SPANS,
    "K15 a node that has not heard",
    edit(
      "src/operations/executions.ts",
      'request.kind === "scan-part" && part.spaces.length > 0',
      'request.kind === "scan-part" && part.spaces.length < 0',
    ),
  ),
];
