/** Planted bugs of the replicated data: locks, sequences, keys, the table of changes, snapshots. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const bug = plantedIn("machine");

const locks: readonly Mutation[] = [
  bug(
    "P-057",
    "the token of a lock goes with its row",
    "one",
    [
      edit(
        "src/machine/locks/locks.ts",
        "  if (top >= context.tokenFloor) context.tokenFloor = top + 1n;\n",
        "",
      ),
    ],
    { operations: { lock: 10, unlock: 8 }, locks: 20, thinkMs: 30, faults: ["kill"] },
  ),
  bug("P-060", "an ended lease can be extended as long as nobody took the lock", "one", [
    edit(
      "src/machine/locks/locks.ts",
      "if (!isHeld(row, context.nowMs)) return refusal(LockType.doesNotExist);",
      "if (row === null || row.state === LockState.released) return refusal(LockType.doesNotExist);",
    ),
  ]),
  bug("P-060", "an extension is added to the old end of the lease", "one", [
    edit(
      "src/machine/locks/locks.ts",
      "const endMs = leaseEnd(context.nowMs, command.expiresMs);",
      "const endMs = leaseEnd(row.endMs, command.expiresMs);",
    ),
  ]),
  bug("P-069", "a repeat by the holder is a new grant", "one", [
    edit(
      "src/machine/locks/locks.ts",
      "    if (equalBytes(row.owner, command.owner)) return outcome(LockType.locked, row.token);\n    return refusal(LockType.busy);\n",
      "    if (!equalBytes(row.owner, command.owner)) return refusal(LockType.busy);\n",
    ),
  ]),
  bug("P-060", "a lock whose lease ended can be released by anybody who had it", "one", [
    edit(
      "src/machine/locks/locks.ts",
      "  if (row === null || row.state === LockState.released) return refusal(LockType.doesNotExist);\n  if (!equalBytes(row.owner, command.owner)) return refusal(LockType.invalidOwner);",
      "  if (row === null || row.state === LockState.released) return refusal(LockType.doesNotExist);\n  if (isHeld(row, context.nowMs) && !equalBytes(row.owner, command.owner)) return refusal(LockType.invalidOwner);",
    ),
  ]),
  bug("P-068", "ephemeral tokens begin again with each leader", "three", [
    edit(
      "src/machine/ephemeral.ts",
      "options.floor + BigInt(options.term - 1) * EPHEMERAL_TOKENS_PER_TERM;",
      "options.floor;",
    ),
  ]),
];

const sequences: readonly Mutation[] = [
  bug("P-077", "a keyed answer is remembered without what the open block had given", "one", [
    edit(
      "src/machine/sequences/sequences.ts",
      "rememberAllocation(context, name, row, key, before, command);",
      "rememberAllocation(context, name, row, key, row.currentValue, command);",
    ),
  ]),
  bug(
    "P-077",
    "what is remembered of an allocation ends with its sequence's next allocation",
    "one",
    [
      edit(
        "src/machine/sequences/idempotency.ts",
        "return entry === null || isOver(entry, context.nowMs) ? null : entry;",
        "return entry === null || entry.revision < row.revision ? null : entry;",
      ),
    ],
  ),
  bug("P-078", "the last block goes beyond the maximum", "one", [
    edit(
      "src/machine/sequences/sequences.ts",
      "const count = available < BigInt(wanted) ? Number(available) : wanted;",
      "const count = wanted;",
    ),
  ]),
  bug("P-079", "a refused keyed allocation is remembered", "one", [
    edit(
      "src/machine/sequences/sequences.ts",
      "  const before = allocationBase(row, command.cursor);\n  if (valuesAvailable(row, before) < BigInt(command.count)) {\n    return allocationRefusal(SequenceType.maxValueExceeded);\n  }\n  if (key !== null) rememberAllocation(context, name, row, key, before, command);\n",
      "  const before = allocationBase(row, command.cursor);\n  if (key !== null) rememberAllocation(context, name, row, key, before, command);\n  if (valuesAvailable(row, before) < BigInt(command.count)) {\n    return allocationRefusal(SequenceType.maxValueExceeded);\n  }\n",
    ),
  ]),
  bug("P-077", "an updated sequence keeps what it remembered, and its numbers", "one", [
    edit("src/machine/sequences/sequence-update.ts", "  row.life = context.nextLife++;\n", ""),
    edit(
      "src/machine/sequences/sequence-update.ts",
      "  row.firstOrdinal = 0;\n  row.nextOrdinal = 0;\n  row.entries = 0;\n",
      "",
    ),
  ]),
  bug("P-077", "a sequence made anew remembers the keys of the former", "one", [
    edit(
      "src/machine/sequences/sequences.ts",
      "life: context.nextLife++,",
      "life: context.nextLife,",
    ),
  ]),
];

const keys: readonly Mutation[] = [
  bug("P-058", "a tombstone is collected at once", "one", [
    edit(
      "src/machine/collect.ts",
      "!ended(leaseEnd(row.endMs, retentionMs), nowMs)",
      "!ended(row.endMs, nowMs)",
    ),
  ]),
  bug("P-060", "an ended key still exists for a condition", "one", [
    edit(
      "src/machine/kv/kv.ts",
      "if ((flags & KvFlag.ifNotExists) !== 0 && live) return false;",
      "if ((flags & KvFlag.ifNotExists) !== 0 && row !== null && !row.deleted) return false;",
    ),
  ]),
  bug("P-059", "a set without a lease keeps the lease of the old value", "one", [
    edit(
      "src/machine/kv/kv.ts",
      "endMs: command.expiresMs === 0 ? null : leaseEnd(nowMs, command.expiresMs),",
      "endMs: command.expiresMs === 0 ? isLive(row, nowMs) ? row.endMs : null : leaseEnd(nowMs, command.expiresMs),",
    ),
  ]),
  bug("P-060", "a key is extended from the old end of its lease", "one", [
    edit(
      "src/machine/kv/kv.ts",
      "const endMs = leaseEnd(nowMs, command.expiresMs);\n  rows.put",
      "const endMs = leaseEnd(row.endMs ?? nowMs, command.expiresMs);\n  rows.put",
    ),
  ]),
];

const tables: readonly Mutation[] = [
  bug("P-028", "the applied index is written one flush after the rows", "one", [
    edit(
      "src/machine/store/memtable.ts",
      "    for (const hook of this.hooks) {\n      const group = hook();\n      if (group !== null) groups.push(group);\n    }\n    const changes: StoreChange[] = [];\n    for (const entry of this.active.ordered()) {\n      changes.push({ key: entry.bytes(), value: entry.value });\n    }\n    this.immutable = this.active;\n    this.active = new RowTable(this.sorter);\n",
      "    const changes: StoreChange[] = [];\n    for (const entry of this.active.ordered()) {\n      changes.push({ key: entry.bytes(), value: entry.value });\n    }\n    this.immutable = this.active;\n    this.active = new RowTable(this.sorter);\n    for (const hook of this.hooks) {\n      const group = hook();\n      if (group !== null) groups.push(group);\n    }\n",
    ),
  ]),
  bug("P-119", "the read cache is not told what a flush has written", "one", [
    edit(
      "src/machine/store/memtable.ts",
      "    for (const entry of this.immutable.ordered()) this.cache.landed(entry.key, entry.value);\n",
      "",
    ),
  ]),
  bug("P-119", "a deleted row leaves no mark when it was written since the last flush", "one", [
    edit(
      "src/machine/store/row-table.ts",
      "if (entry === undefined || !entry.absentBelow) {",
      "if (entry === undefined) {",
    ),
  ]),
  bug("P-119", "a scan does not see the table that is being flushed", "one", [
    edit(
      "src/machine/store/memtable.ts",
      "    if (this.immutable !== null) merge.add(this.immutable.sortedRuns());\n",
      "",
    ),
  ]),
  bug("P-055", "a scan shows the stored row behind the mark of its deletion", "one", [
    edit(
      "src/machine/store/layer-merge.ts",
      "if (head !== null && head.key === key) {\n        going = visit(head.key, head.value);",
      "if (head !== null && head.key === key) {\n        going = visit(head.key, head.value ?? stored);",
    ),
  ]),
  bug("P-057", "the token floor is not in what a restart reads", "one", [
    edit("src/machine/decision/context.ts", "tokenFloor: record.tokenFloor,", "tokenFloor: 0n,"),
  ]),
  bug("P-062", "the lease clock is not in what a restart reads", "one", [
    edit("src/machine/decision/context.ts", "nowMs: record.leaseMs,", "nowMs: 0,"),
  ]),
  bug("P-029", "an encoded command lacks the cursor of the open block", "stranded", [
    edit(
      "src/machine/commands/sequence-commands.ts",
      "      optionalText(writer, command.key);\n      writeOptionalCursor(writer, command.cursor);\n",
      "      optionalText(writer, command.key);\n      writeOptionalCursor(writer, null);\n",
    ),
  ]),
];

const snapshots: readonly Mutation[] = [
  bug("P-057", "a snapshot lacks the token floor", "three", [
    edit(
      "src/machine/snapshot/format.ts",
      "    generation: 0,\n    lastGeneration: 0,",
      "    tokenFloor: 0n,\n    generation: 0,\n    lastGeneration: 0,",
    ),
  ]),
  bug("P-102", "a snapshot lacks the remembered allocations", "three", [
    edit(
      "src/machine/snapshot/source.ts",
      "      if (value !== null) {\n        const kind = key.charCodeAt(this.prefix.length);\n",
      "      const kind = key.charCodeAt(this.prefix.length);\n      if (value !== null && kind !== 33 && kind !== 34) {\n",
    ),
  ]),
  bug(
    "P-040",
    "rows that change while a snapshot is read go out as they are then",
    "three",
    [edit("src/machine/snapshot/source.ts", "    this.held.keep(key);\n", "")],
    {
      operations: { set: 10, "kv-delete": 4, get: 5 },
      keys: 60,
      thinkMs: 10,
      faults: ["away", "away", "kill-leader"],
    },
  ),
  bug("P-042", "after a snapshot is installed reads look at the rows of before", "three", [
    edit(
      "src/machine/machine.ts",
      "    this.groupRows = this.openRows(sink.dataBytes);\n    this.dataReads = new DataReads(this.groupRows, this.ownership);\n",
      "    this.groupRows = this.openRows(sink.dataBytes);\n",
    ),
  ]),
  bug("P-061", "an installed snapshot leaves the lease clock where it was", "three", [
    edit(
      "src/machine/machine.ts",
      "    this.context = this.contextOf(record);\n    this.moved = true;\n",
      "    this.context = this.contextOf({ ...record, leaseMs: this.context.nowMs });\n    this.moved = true;\n",
    ),
  ]),
  bug(
    "P-041",
    "rows of a snapshot that is arriving are swept away",
    "three",
    [
      edit(
        "src/machine/machine.ts",
        "    if (this.filling !== null) keep.push(this.filling.generation);\n",
        "",
      ),
    ],
    {
      operations: { set: 10, "kv-delete": 4, get: 5 },
      keys: 60,
      thinkMs: 10,
      faults: ["away", "away", "kill-leader"],
    },
  ),
];

export const machineBugs: readonly Mutation[] = [
  ...locks,
  ...sequences,
  ...keys,
  ...tables,
  ...snapshots,
];
