/** Planted bugs of watches that are joined of parts, and of barriers where maps differ, as those of `watching.ts`. */
import { type RecordBug, recordBug } from "../records.js";

const JOINT = "host/joint-watching/joint.test";
const RANDOM = "host/joint-watching/joint-random.test";
const MOVES = "host/watching/moves.test";
const MAPS = "host/joint-watching/joint-maps.test";
const BARRIERS = "src/host/joint-watching/barriers.ts";
const WATCH = "src/host/joint-watching/joint-watch.ts";
const ASKED = "src/host/joint-watching/asked-part.ts";
const TOLD = "src/host/joint-watching/told-parts.ts";

export const jointWatchingBugs: readonly RecordBug[] = [
  recordBug(
    "P-186",
    "an answer of a part that is lost is skipped",
    RANDOM,
    "W2 W4 W6 W9 W14 P-186",
    [
      ASKED,
      "    this.failingMs ??= nowMs;\n",
      "    this.failingMs ??= nowMs;\n    this.serial++;\n",
    ],
  ),
  recordBug("P-186", "a question that comes late ends the newer one", JOINT, "W2 W14 a question", [
    TOLD,
    "    this.giveBack();\n    this.askedMs = Infinity;\n",
    "    this.reply(NOTHING);\n    this.giveBack();\n    this.askedMs = Infinity;\n",
  ]),
  recordBug("P-186", "an answer of a part is told again", RANDOM, "W2 W4 W6 W9 W14 P-186", [
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
    BARRIERS,
    "    return Math.min(...[...this.home.parts]",
    "    return Math.max(...[...this.home.parts]",
  ]),
  recordBug("P-187", "a joint barrier is passed by any maps", MAPS, "W9 W14 a barrier is not", [
    BARRIERS,
    "    if (this.isOneMap) this.passed =",
    "    this.passed =",
  ]),
  recordBug("P-187", "a joint watch begins by any maps", MAPS, "W4 W14 a start is not", [
    WATCH,
    "    if (stand && this.isFresh && !this.barriers.isOneMap) {",
    "    if (stand && this.isOver) {",
  ]),
  recordBug("P-187", "a barrier is passed by a later map", MOVES, "W9 a barrier that was found", [
    "src/host/watching/stream.ts",
    "      const isMapNew = mapVersion !== sync.mapVersion;",
    "      const isMapNew = mapVersion < sync.mapVersion;",
  ]),
  recordBug(
    "P-187",
    "a target that is ahead of the map does not make it old",
    MOVES,
    "W9 a map is old where a target",
    [
      "src/host/watching/speakers.ts",
      "    if (this.ahead.some((each) => isOf(each, kind, name))) return true;\n",
      "",
    ],
  ),
  recordBug("P-187", "a part may go by an older map", MAPS, "W4 W14 nor by one", [
    BARRIERS,
    "mapVersion === this.mapVersion",
    "mapVersion <= this.mapVersion",
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
  recordBug(
    "P-186",
    "parts that begin once more begin at two times",
    RANDOM,
    "W2 W4 W6 W9 W14 P-186",
    [WATCH, "    if (this.request.cursor === null) this.progress.clear();\n", ""],
  ),
  recordBug("P-185", "a part takes as much as there is", JOINT, "W13 P-185 a caller", [
    TOLD,
    "    if (this.heldBytes >= WATCH_MESSAGE_BYTES) return true;\n",
    "",
  ]),
];
