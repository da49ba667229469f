/** Planted bugs of the log on disk. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const bug = plantedIn("disk");
/** Callbacks in the very same turn, as if nothing had to be waited for. */
const AT_ONCE = "((ignored, then) => then({ ok: true, value: null }))";

export const diskBugs: readonly Mutation[] = [
  bug("P-111", "a record is acknowledged by the write that was in flight before it", "one", [
    edit("src/disk/log/batches.ts", "this.growing ?? this.flying;", "this.flying ?? this.growing;"),
  ]),
  bug("P-111", "a record is acknowledged when its write is issued", "one", [
    edit(
      "src/disk/log/batches.ts",
      "    const startedMs = this.ports.clock.monotonicMs();\n",
      "    const startedMs = this.ports.clock.monotonicMs();\n    for (const done of batch.done.splice(0)) this.ports.timers.soon(done);\n",
    ),
  ]),
  bug("P-112", "the directory is not synced after a segment was made", "one", [
    edit(
      "src/disk/log/segments.ts",
      "files.syncDirectory(directory, (synced) => {",
      `${AT_ONCE}(directory, (synced) => {`,
    ),
  ]),
  bug("P-110", "a write that failed counts as done", "one", [
    edit(
      "src/disk/log/batches.ts",
      "      if (!result.ok) {\n",
      '      if (!result.ok && result.code !== "failed") {\n',
    ),
  ]),
  bug(
    "P-113",
    "damage behind the last whole record is taken for a torn tail",
    "three",
    [edit("src/disk/log/tail.ts", "if (durable > end) return", "if (durable > windowEnd) return")],
    { faults: ["bit-flip", "stray-write", "kill"] },
  ),
  bug(
    "P-113",
    "a segment that ends before its successor says is believed",
    "three",
    [
      edit(
        "src/disk/log/recovery.ts",
        "if (link.endOffset === before.endOffset && link.checksum === before.checksum) return null;",
        "if (link.endOffset >= before.endOffset) return null;",
      ),
    ],
    { faults: ["bit-flip", "stray-write", "kill"] },
  ),
  bug(
    "P-114",
    "the checksum of a record that is read back is not compared",
    "three",
    [
      edit(
        "src/disk/log/framecheck.ts",
        "  if (checksum !== view.getUint32(frame.checksumAt, true)) return null;\n",
        "",
      ),
    ],
    { faults: ["bit-flip", "kill", "isolate"] },
  ),
  bug(
    "P-117",
    "a segment goes before the write that emptied it is durable",
    "one",
    [edit("src/disk/log/segments.ts", " || oldest.emptiedBy > completed ||", " ||")],
    { faults: ["kill", "power-loss", "disk-slow"] },
  ),
  bug("P-115", "entries behind an overwritten one come back", "stranded", [
    edit(
      "src/disk/log/groupindex.ts",
      '    assert(index > this.floor.index && segment > 0, "an entry lies above the floor");\n    this.voidFrom(index);\n',
      '    assert(index > this.floor.index && segment > 0, "an entry lies above the floor");\n    const at = index - this.base;\n    if (at >= 0 && at < this.count) {\n      this.release(this.head + at);\n      this.fill(this.head + at, term, kind, segment, offset, payloadBytes);\n      return true;\n    }\n',
    ),
  ]),
  bug("P-044", "the commit index is written ahead of the entries that it covers", "three", [
    edit(
      "src/disk/log/appender.ts",
      "const commit = early ? first.index - 1 : hardState.commit;",
      "const { commit } = hardState;",
    ),
  ]),
  bug("P-117", "the newest state record pins no segment", "one", [
    edit(
      "src/disk/log/groupindex.ts",
      "    if (this.stateSegment !== 0) this.ledger.remove(this, this.stateSegment, STATE_BYTES);\n    this.stateSegment = segment;\n    this.ledger.add(this, segment, STATE_BYTES);\n",
      "    this.stateSegment = segment;\n",
    ),
  ]),
  bug(
    "P-110",
    "what a killed process left is not synced at the next start",
    "one",
    [
      edit(
        "src/disk/log/recovery.ts",
        "files.sync(last.file, (synced) => {",
        `${AT_ONCE}(last.file, (synced) => {`,
      ),
    ],
    { faults: ["kill", "power-loss"] },
  ),
  bug("P-043", "entries are read back before their write is done", "three", [
    edit(
      "src/disk/log/reader.ts",
      "if (place === null || !this.appender.isDurable(place)) break;",
      "if (place === null) break;",
    ),
  ]),
  bug("P-027", "the floor's term is that of the last entry after a restart", "three", [
    edit(
      "src/disk/log/groupindex.ts",
      "    this.floor = floor;\n    if (this.count === 0)",
      "    this.floor = { index: floor.index, term: this.count > 0 ? this.term(this.head) : floor.term };\n    if (this.count === 0)",
    ),
  ]),
];
