/** Planted bugs of the host: effects, proposals, reads, leases, flushes, snapshots, links. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const bug = plantedIn("host");

const order: readonly Mutation[] = [
  bug("P-044", "votes and acknowledgements leave before the write that they wait for", "three", [
    edit(
      "src/host/group/effects.ts",
      "      messages: effects.messagesAfterWrite,\n",
      "      messages: effects.messagesAfterWrite.filter(({ to }) => to === this.nodeId),\n",
    ),
    edit(
      "src/host/group/effects.ts",
      "    for (const message of effects.messages) this.deliver(message);\n",
      "    for (const message of effects.messagesAfterWrite) if (message.to !== this.nodeId) this.deliver(message);\n    for (const message of effects.messages) this.deliver(message);\n",
    ),
  ]),
  bug("P-003", "a vote alone is no reason to write", "three", [
    edit(
      "src/host/group/effects.ts",
      "const writes = effects.append !== null || (effects.mustSync && !hardStateWritten);",
      "const writes = effects.append !== null;",
    ),
  ]),
  bug("P-033", "a proposal is recognized by its index alone", "stranded", [
    edit(
      "src/host/requests/proposals.ts",
      "    if (entry.term === term) return entry;\n",
      "    if (entry.commands.length > 0 || entry.term === term) return entry;\n",
    ),
  ]),
  bug(
    "P-033",
    "callers who gave up shift the answers of the others",
    "one",
    [
      edit(
        "src/host/group/applier.ts",
        "    for (let at = 0; at < waiters.length; at++) {\n      const waiter = waiters[at];\n",
        "    const living = waiters.filter(({ done }) => done !== null);\n    for (let at = 0; at < living.length; at++) {\n      const waiter = living[at];\n",
      ),
    ],
    {
      operations: { set: 6, next: 6, create: 1, lock: 6, unlock: 3 },
      keys: 3,
      thinkMs: 10,
      requestTimeoutMs: 300,
      faults: ["disk-slow", "disk-hung"],
    },
  ),
  bug("P-147", "what was proposed when its deadline passed is called undone", "one", [
    edit(
      "src/host/requests/proposals.ts",
      "if (waiter.deadlineMs <= nowMs) this.answer(waiter, UNKNOWN);",
      'if (waiter.deadlineMs <= nowMs) this.answer(waiter, { status: "aborted" });',
    ),
  ]),
  bug("P-147", "what was proposed when leadership ended is called undone", "stranded", [
    edit(
      "src/host/requests/proposals.ts",
      "    for (const waiter of entry.waiters) this.answer(waiter, UNKNOWN);\n",
      '    for (const waiter of entry.waiters) this.answer(waiter, { status: "aborted" });\n',
    ),
  ]),
  bug("P-033", "a caller is answered again when leadership ends", "three", [
    edit(
      "src/host/requests/proposals.ts",
      "    this.completions.proposal(waiter.done, result);\n    waiter.done = null;\n",
      '    this.completions.proposal(waiter.done, result);\n    if (result.status !== "unknown") waiter.done = null;\n',
    ),
  ]),
  bug("P-043", "the cache keeps entries that a new leader has overwritten", "stranded", [
    edit(
      "src/host/replication/entry-cache.ts",
      "      else this.cut(this.head + entry.index - first.index);\n",
      "",
    ),
  ]),
  bug("P-043", "entries read from the log are sent whatever their term", "stranded", [
    edit(
      "src/host/replication/replication.ts",
      "    if (!isNext || entry.term !== termIn(span, entry.index)) break;\n",
      "    if (!isNext) break;\n",
    ),
  ]),
  bug("P-034", "the bytes of an applied proposal stay counted", "one", [
    edit(
      "src/host/requests/proposals.ts",
      "    if (entry.waiters.length > 0) this.withCommands--;\n    this.budget.give(entry.sizeBytes);\n    if (entry.term === term) return entry;\n",
      "    if (entry.waiters.length > 0) this.withCommands--;\n    if (entry.term === term) return entry;\n    this.budget.give(entry.sizeBytes);\n",
    ),
  ]),
];

const reads: readonly Mutation[] = [
  bug("P-045", "reads are answered without a round", "stranded", [
    edit(
      "src/host/requests/reads.ts",
      'if (core.requestRead(this.roundContext) !== "accepted") this.drop(this.roundContext);',
      "this.roundIndex = core.commitIndex;",
    ),
  ]),
];

const leases: readonly Mutation[] = [
  bug("P-061", "a new leader's lease clock begins at zero", "three", [
    edit(
      "src/host/group/leadership.ts",
      "this.lease.start(leaseMs, nowMs);",
      "this.lease.start(0, nowMs);",
    ),
  ]),
  bug("P-061", "the lease clock of a former leadership runs on while others lead", "stranded", [
    edit(
      "src/host/group/leaseclock.ts",
      "    this.baseMonotonicMs = monotonicMs;\n",
      "    if (this.baseMonotonicMs === 0) this.baseMonotonicMs = monotonicMs;\n",
    ),
  ]),
  bug("P-062", "the lease clock counts the time of the wall", "one", [
    edit(
      "src/host/group/leadership.ts",
      "this.lease.start(leaseMs, nowMs);",
      "this.lease.start(leaseMs, this.ports.clock.wallMs());",
    ),
    edit(
      "src/host/group/leadership.ts",
      "this.lease.nowMs(monotonicMs)",
      "this.lease.nowMs(this.ports.clock.wallMs())",
    ),
    edit(
      "src/host/group/leadership.ts",
      "this.lease.next(monotonicMs)",
      "this.lease.next(this.ports.clock.wallMs())",
    ),
  ]),
  bug("P-068", "ephemeral data of an earlier leadership comes back", "three", [
    edit(
      "src/host/group/leadership.ts",
      "    this.lease.stop();\n    this.table = null;\n",
      "    this.lease.stop();\n",
    ),
    edit(
      "src/host/group/leadership.ts",
      "this.table = inherited ?? this.emptyTable(term);",
      "this.table ??= inherited ?? this.emptyTable(term);",
    ),
  ]),
];

const blocks: readonly Mutation[] = [
  bug(
    "P-074",
    "values of a block are handed out without proof of leadership",
    "stranded",
    [
      edit(
        "src/host/sequences/rounds.ts",
        "this.group.read(latestDeadlineMs(batch), (result) => {",
        'const prove = this.group.isServing() ? (deadlineMs, then) => then({ status: "confirmed" }) : this.group.read.bind(this.group);\n      prove(latestDeadlineMs(batch), (result) => {',
      ),
    ],
    { operations: { create: 1, next: 10 }, sequences: 1, blockSize: 1000 },
  ),
  bug("P-074", "blocks outlive the leadership that reserved them", "members", [
    edit(
      "src/host/sequences/sequence-entry.ts",
      "    const dropped = [...this.byName.values()];\n    this.byName.clear();\n    for (const entry of dropped) {\n      entry.block = null;\n",
      "    const dropped = [...this.byName.values()];\n    for (const entry of dropped) {\n",
    ),
  ]),
  bug("P-075", "a block serves on while a keyed allocation jumps past it", "one", [
    edit(
      "src/host/sequences/block.ts",
      "return this.pins > 0 || this.doubtful;",
      "return this.doubtful;",
    ),
  ]),
  bug("P-074", "a block serves on although the end of its return is unknown", "one", [
    edit(
      "src/host/sequences/block.ts",
      "return this.pins > 0 || this.doubtful;",
      "return this.pins > 0;",
    ),
  ]),
];

const flushes: readonly Mutation[] = [
  bug("P-117", "the log's floor rises to what is applied, not to what is flushed", "one", [
    edit(
      "src/host/storage/flusher.ts",
      "      group.flushedIndex = moved.appliedIndex;\n      const spare = moved.appliedIndex - this.settings.compactKeepEntries;\n",
      "      group.flushedIndex = group.appliedIndex;\n      const spare = group.appliedIndex - this.settings.compactKeepEntries;\n",
    ),
  ]),
  bug("P-119", "a flush that failed loses its table", "one", [
    edit(
      "src/host/storage/flusher.ts",
      "      else this.park(result.message);\n",
      "      else {\n        this.memtable.dropImmutable();\n        this.immutable = null;\n        this.park(result.message);\n      }\n",
    ),
  ]),
  bug(
    "P-041",
    "the log is reset before the installed snapshot is durable",
    "three",
    [
      edit(
        "src/host/snapshots/snapshot-receiver.ts",
        "    this.deps.flushSoon(() => {\n      if (this.isClosed) return;\n      this.deps.log.resetGroup",
        "    ((then) => then())(() => {\n      this.deps.log.resetGroup",
      ),
    ],
    { faults: ["away", "away", "crash-inside", "power-loss"] },
  ),
  bug("P-041", "an install that a crash cut short is not brought to its end", "three", [
    edit(
      "src/host/snapshots/snapshot-recovery.ts",
      "if (index === 0 || (recovered !== null && recovered.floor.index >= index))",
      "if (index === 0 || recovered !== null)",
    ),
  ]),
];

const cluster: readonly Mutation[] = [
  bug("P-090", "a member that lost its disk is welcome as it is", "three", [
    edit(
      "src/host/cluster/peer-admission.ts",
      'return wanted !== "" && wanted !== storageId ? "storage-lost" : null;',
      "return null;",
    ),
  ]),
  bug(
    "P-162",
    "a stop leaves the last callers without an answer",
    "three",
    [edit("src/host/stopping.ts", "    for (const { replica } of groups) replica.endAll();\n", "")],
    { faults: ["graceful-stop", "disk-slow"] },
  ),
];

export const hostBugs: readonly Mutation[] = [
  ...order,
  ...reads,
  ...leases,
  ...blocks,
  ...flushes,
  ...cluster,
];
