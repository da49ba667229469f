/** Planted bugs of watches that are joined of parts, as those of `watching.ts`. */
import { type RecordBug, recordBug } from "../records.js";

const JOINT = "host/joint-watching/joint.test";
const RANDOM = "host/joint-watching/joint-random.test";
const WATCH = "src/host/joint-watching/joint-watch.ts";
const ASKED = "src/host/joint-watching/asked-part.ts";
const TOLD = "src/host/joint-watching/told-parts.ts";

export const jointWatchingBugs: readonly RecordBug[] = [
  recordBug("P-186", "an answer of a part that is lost is skipped", RANDOM, "W2 W6 W14 P-186", [
    ASKED,
    "    this.failingMs ??= nowMs;\n",
    "    this.failingMs ??= nowMs;\n    this.serial++;\n",
  ]),
  recordBug("P-186", "a question that comes late ends the newer one", JOINT, "W2 W14 a question", [
    TOLD,
    "    this.giveBack();\n    this.askedMs = Infinity;\n",
    "    this.reply(NOTHING);\n    this.giveBack();\n    this.askedMs = Infinity;\n",
  ]),
  recordBug("P-186", "an answer of a part is told again", RANDOM, "W2 W6 W14 P-186", [
    TOLD,
    "    this.messages = [];\n    this.reply(this.answer);",
    "    this.messages = this.messages.slice(1);\n    this.reply(this.answer);",
  ]),
  recordBug("P-187", "a mark is ahead of a part", JOINT, "W4 W14 the present state", [
    WATCH,
    "    if (![...this.parts].every(({ isWhole }) => isWhole)) return false;\n" +
      "    return !this.isInState || [...this.all].every((each) => this.progress.has(each));",
    "    return this.parts.size > 0;",
  ]),
  recordBug("P-186", "the Reset of a part is not told", JOINT, "W7 W14 the Reset", [
    WATCH,
    "    if (reset) return this.reset();\n",
    "    if (reset) return;\n",
  ]),
  recordBug(
    "P-186",
    "a part that compares waits for nobody",
    JOINT,
    "W2 W14 P-186 keys that move",
    [
      WATCH,
      "    for (const part of comparing) for (const other of others)",
      "    for (const part of comparing.slice(1)) for (const other of others)",
    ],
  ),
  recordBug("P-187", "SYNCED waits for one part", JOINT, "W9 W14 SYNCED", [
    WATCH,
    "    return [...this.parts].every(({ syncedTo }) => syncedTo >= barrier);",
    "    return [...this.parts].some(({ syncedTo }) => syncedTo >= barrier);",
  ]),
  recordBug(
    "P-186",
    "a part whose node is gone begins from now on",
    JOINT,
    "W14 a node that is gone",
    [
      WATCH,
      "      cursor: goesOn ? this.progress.cursorOf(partitions) : null,\n",
      "      cursor: goesOn && this.isFresh ? this.progress.cursorOf(partitions) : null,\n",
    ],
  ),
  recordBug("P-186", "parts that begin once more begin at two times", RANDOM, "W2 W6 W14 P-186", [
    WATCH,
    "      if (this.request.cursor === null) this.progress.clear();\n",
    "",
  ]),
  recordBug("P-185", "a part takes as much as there is", JOINT, "W13 P-185 a caller", [
    TOLD,
    "    if (this.heldBytes >= WATCH_MESSAGE_BYTES) return true;\n",
    "",
  ]),
];
