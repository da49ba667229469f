/**
 * Planted bugs of watches, each caught by a test of `test/unit/` that is run on a copy of the tree
 * with the bug, as those of the records are.
 */
import { type RecordBug, recordBug } from "../records.js";

const CATCH_UP = "host/watching/catch-up.test";
const CHANGED = "src/host/watching/changed-names.ts";
const COLLECTED = "host/watching/collected.test";
const EVENTS = "machine/events.test";
const MOVES = "host/watching/transitions.test";
const KEY_MOVES = "host/watching/moves.test";
const REVISIONS = "host/watching/revisions.test";
const EXPIRIES = "host/watching/expiries.test";
const EXPIRING = "src/host/watching/expiries.ts";
const SINGLE = "operations/watching/single.test";
const MANY = "operations/watching/many.test";
const HUB = "src/host/watching/hub.ts";
const FEED = "src/host/watching/feed.ts";
const TOLD = "src/host/watching/told.ts";
const SPEAKERS = "src/host/watching/speakers.ts";
const SCAN = "src/host/watching/scan.ts";
const LATE_ENDS = "host/watching/late-ends.test";

export const watchingBugs: readonly RecordBug[] = [
  recordBug(
    "P-186",
    "a watcher is told what was asked for, not what was decided",
    EVENTS,
    "W1 what a key is told of",
    [
      "src/machine/tapped.ts",
      "    if (effects.low === low && effects.high === high) continue;\n",
      "    if (effects.low === low && effects.high === high && lapsedLocks < 0) continue;\n",
    ],
    [
      "src/machine/events.ts",
      'if (outcome.kind !== "kv" || outcome.type !== KvType.set) return null;',
      'if (outcome.kind !== "kv") return null;',
    ],
  ),
  recordBug("P-187", "an entry is told of while it is applied", SINGLE, "W1 W2 W4 a key", [
    HUB,
    "    this.ports.timer.soon(() => this.pump());",
    "    this.pump();",
  ]),
  recordBug("P-186", "an image goes by without whoever watches", MOVES, "W6 P-186 an image", [
    HUB,
    "      else for (const watch of this.watchesOf(filter)) watch.fallBack(reason, strange);\n",
    '      else if (reason !== "image")\n' +
      "        for (const watch of this.watchesOf(filter)) watch.fallBack(reason, strange);\n",
  ]),
  recordBug(
    "P-188",
    "what is compared is compared by stamps alone",
    MANY,
    "W6 a prefix beyond memory",
    [
      SCAN,
      "  return isBehind(stamp, at) || isNewEnd(endedMs, at);",
      "  return isBehind(stamp, at);",
    ],
  ),
  recordBug(
    "P-188",
    "what is compared leaves out what was deleted",
    MANY,
    "W6 a prefix beyond memory",
    [
      SCAN,
      "isChanged(row, endedMs, at) ? keyEvent",
      "(isChanged(row, endedMs, at) && !row.deleted) ? keyEvent",
    ],
  ),
  recordBug(
    "P-186",
    "what happened since names were found is not among them",
    CATCH_UP,
    "W6 W13 whoever is compared",
    [
      CHANGED,
      "for (const { name } of batch?.events ?? []) this.note(batch?.partition ?? 0, name);",
      'if (batch === undefined) this.note(0, "");',
    ],
  ),
  recordBug(
    "P-186",
    "names that changed lately are taken for all that changed",
    CATCH_UP,
    "W6 whoever stands before",
    [
      CHANGED,
      "      if (isBehind(from, at) || from.leaseMs > at.leaseMs) return null;\n",
      "      if (isBehind(from, at) && from.leaseMs < 0) return null;\n",
    ],
  ),
  recordBug(
    "P-186",
    "a watch that is behind is told what another one at its place is compared with",
    CATCH_UP,
    "W6 W13 two watches",
    [
      "src/host/watching/watch.ts",
      "    if (this.place.number < this.filter.first) return -1;\n",
      "",
    ],
  ),
  recordBug("P-186", "revisions that are all gone are not missed", REVISIONS, "W8 all revisions", [
    "src/host/watching/revisions.ts",
    "this.isCut = row === null ? from >= 0 : !keepsAll(row, from);",
    "this.isCut = row !== null && !keepsAll(row, from);",
  ]),
  recordBug(
    "P-188",
    "who leads, and does not serve yet, forgets wishes",
    EXPIRIES,
    "W11 a leader that",
    [
      EXPIRING,
      "    for (const [partition, ends] of this.wishes) {\n" +
        "      const group = this.ports.group(partition);\n" +
        "      if (group?.isLeader() !== true) {",
      "    for (const [partition, ends] of this.wishes) {\n" +
        "      const group = this.ports.group(partition);\n" +
        "      if (group?.isServing() !== true) {",
    ],
  ),
  recordBug(
    "P-188",
    "a wish is over when a clock is proposed",
    EXPIRIES,
    "W11 a clock that is not",
    [
      EXPIRING,
      "if (this.wishLeftMs(group, endMs) <= 0) this.advance(group);",
      "if (this.wishLeftMs(group, endMs) <= 0 && ends.delete(endMs)) this.advance(group);",
    ],
  ),
  recordBug(
    "P-185",
    "all that others found to have changed is one message",
    CATCH_UP,
    "P-185 W13 what others found",
    [SCAN, "      if (sizeBytes >= WATCH_MESSAGE_BYTES) return;\n", ""],
  ),
  recordBug(
    "P-186",
    "who speaks for a name that others found is asked by its bytes",
    CATCH_UP,
    "W6 W13 W14 names that are not ASCII",
    [
      SCAN,
      "const isOurs = this.ports.speaksFor(partition, name);",
      "const isOurs = this.ports.speaksFor(partition, key);",
    ],
  ),
  recordBug(
    "P-188",
    "a deletion that was collected leaves no trace",
    COLLECTED,
    "W7 a deletion that was collected",
    [
      "src/machine/collect.ts",
      "    context.collectedKeysMs = Math.max(context.collectedKeysMs, aboveMs);\n",
      "    if (aboveMs < 0) context.collectedKeysMs = aboveMs;\n",
    ],
  ),
  recordBug(
    "P-186",
    "an image does not say what was collected",
    COLLECTED,
    "W7 P-186 an image says",
    ["src/machine/decision/context.ts", "record.collected?.keysMs ?? record.leaseMs,", "0,"],
  ),
  recordBug(
    "P-188",
    "a cursor that names a partition of before is not looked at there",
    COLLECTED,
    "W7 W14 keys that came",
    [
      "src/host/watching/watch.ts",
      "const isTold = !filter.isOfKeys || home.remembers(filter, before);",
      "const isTold = !filter.isOfKeys || strange.length > 0 || home.remembers(filter, before);",
    ],
    [
      "src/host/watching/watch.ts",
      "if (this.before !== null && filter.isOfKeys && !home.remembers(filter, this.before)) {",
      "if (this.before !== null && filter.isOfKeys && filter.watches.size === 0) {",
    ],
  ),
  recordBug(
    "P-186",
    "events of names that the scan has yet to read are told as well",
    MOVES,
    "frontier: between slices",
    [
      SCAN,
      "    return this.after !== null && textToByteKey(name) <= this.after;",
      "    return name.length > 0;",
    ],
  ),
  recordBug(
    "P-186",
    "an end that is found late is told to who was told of it elsewhere",
    LATE_ENDS,
    "W2 W5 an end that was told elsewhere",
    [TOLD, "if (event.endedMs !== null && event.endedMs <= goesOnMs) continue;", ""],
  ),
  recordBug(
    "P-188",
    "what is collected while the state is compared is not missed",
    "host/watching/collected.test",
    "W7 a deletion that is collected while",
    [
      "src/host/watching/watch.ts",
      "if (this.before !== null && filter.isOfKeys && !home.remembers(filter, this.before)) {",
      "if (this.before !== null && filter.isOfKeys && filter.watches.size === 0) {",
    ],
  ),
  recordBug("P-187", "SYNCED waits for nobody", MOVES, "W9 SYNCED waits", [
    HUB,
    "    this.levels.reach(filters, untilMs, (isLevel) => {\n      // Nobody",
    "    this.levels.reach([], untilMs, (isLevel) => {\n      // Nobody",
  ]),
  recordBug("P-187", "a mark overtakes the events before it", MOVES, "W10 P-187 a mark", [
    "src/host/watching/watch.ts",
    "    return this.historyOn() ?? this.scanOn() ?? this.mark();",
    "    if (this.wantsMark) return this.mark();\n" +
      "    return this.historyOn() ?? this.scanOn() ?? NOTHING;",
  ]),
  recordBug(
    "P-186",
    "a source that is late goes on to tell of keys that its target adopted",
    MOVES,
    "W14 P-186 what a late source",
    [
      SPEAKERS,
      "    if (newest !== null) return newest.target === partition;\n",
      "    if (newest !== null) return newest.target > 0;\n",
    ],
    [
      SPEAKERS,
      "return owner === null || owner.partitionId === partition;",
      "return owner === null || owner.partitionId > 0;",
    ],
  ),
  recordBug(
    "P-186",
    "a target that is late tells of keys that it gave away since",
    KEY_MOVES,
    "W14 a target that adopts late",
    [
      SPEAKERS,
      "if (interval === undefined || this.ports.knowsCut(keySpace, moveId)) return;",
      "if (interval === undefined) return;",
    ],
  ),
  recordBug("P-186", "leases of keys that left are kept", KEY_MOVES, "W2 W14 a key that left", [
    FEED,
    '    this.leases.drop(partition, "key");\n',
    "",
  ]),
  recordBug(
    "P-187",
    "a barrier goes by a map that is old",
    KEY_MOVES,
    "W9 W4 a node whose map is old",
    [
      HUB,
      "    return !this.ports.isClosing() && filters.some((filter) => this.feed.isInDoubt(filter));",
      "    return this.ports.isClosing() && filters.some((filter) => this.feed.isInDoubt(filter));",
    ],
  ),
  recordBug(
    "P-187",
    "what the map adds while a watch comes to stand is not waited for",
    KEY_MOVES,
    "W2 W5 W14 a start waits",
    [
      "src/host/watching/levels.ts",
      "if (openOf(filters, reached).size === 0) done(true);",
      "if (reached.size > 0) done(true);",
    ],
  ),
  recordBug(
    "P-187",
    "the map of the first watch of a node is taken for the newest",
    KEY_MOVES,
    "W2 W5 W14 a start waits",
    [
      HUB,
      "    this.mapVersion = version;\n    for (const filter of",
      "    const isFirst = this.mapVersion < 0;\n    this.mapVersion = version;\n    if (!isFirst) for (const filter of",
    ],
  ),
  recordBug(
    "P-187",
    "who compares while a key is frozen has come to the barrier",
    KEY_MOVES,
    "W9 what nobody has for now",
    [
      "src/host/watching/stream.ts",
      "      if (isMapNew || this.home.isInDoubt(living.map(({ filter }) => filter))) {",
      "      if (isMapNew) {",
    ],
  ),
  recordBug(
    "P-187",
    "a barrier waits for a partition that is gone",
    KEY_MOVES,
    "W9 a barrier over a partition",
    [
      HUB,
      "    const untilMs = this.nowMs() + LEVEL_MS;\n",
      "    const untilMs = this.nowMs() + LEVEL_MS * BEGIN_MS;\n",
    ],
  ),
  recordBug(
    "P-186",
    "what a partition told is told again when its names are elsewhere",
    KEY_MOVES,
    "W2 W14 what a partition did",
    [
      TOLD,
      "const isPast = !filter.partitions.has(batch.partition);",
      "const isPast = filter.partitions.size === 0;",
    ],
  ),
  recordBug(
    "P-186",
    "keys that came with an image are compared by stamps of other partitions",
    KEY_MOVES,
    "W6 W14 an image that brings",
    [
      HUB,
      'const isStrange = reason === "moved" || (isOfKeys && this.hasMoved());',
      'const isStrange = reason === "moved";',
    ],
  ),
  recordBug(
    "P-186",
    "a map that gives keys to who has them already tells nobody",
    KEY_MOVES,
    "W14 keys that the map gives",
    [
      FEED,
      "for (const partition of this.speakers.mapChanged()) this.regained(partition);",
      "this.speakers.mapChanged();",
    ],
  ),
  recordBug(
    "P-186",
    "a partition goes on to tell of keys that another one has",
    MOVES,
    "W14 a key that goes",
    [FEED, "      if (!filter.partitions.has(partition)) continue;\n", ""],
    [
      FEED,
      "    if (!filters.some((filter) => filter.partitions.has(group.partition))) return;\n",
      "",
    ],
    [TOLD, "const isPast = !filter.partitions.has(batch.partition);", "const isPast = false;"],
  ),
  recordBug(
    "P-185",
    "a lease more than are looked after is forgotten without a word",
    MOVES,
    "W16 a lease more",
    [FEED, "      this.ears.tooManyLeases(filter);\n", ""],
  ),
  recordBug(
    "P-186",
    "an extend moves the end of a lease for nobody who watches",
    SINGLE,
    "W11 an extend replaces",
    [FEED, "    if (applied.isLapse) return;\n", "    if (partition > 0) return;\n"],
  ),
  recordBug(
    "P-185",
    "what happened is forgotten with the last who watches",
    SINGLE,
    "W5 a cursor: exactly",
    [
      HUB,
      "    if (filter.watches.size === 0) filter.idleMs = this.nowMs();",
      "    if (filter.watches.size === 0) filter.idleMs = -Infinity;",
    ],
  ),
];
