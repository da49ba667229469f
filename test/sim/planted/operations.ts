/** Planted bugs of the operations: forwarding, retries, who answers what. */
import { edit, plantedIn, type Mutation } from "./mutation.js";

const bug = plantedIn("operations");

export const operationBugs: readonly Mutation[] = [
  bug(
    "P-032",
    "a forwarded write that got lost is asked again",
    "five",
    [
      edit(
        "src/operations/forwarding/forwarder.ts",
        "if (!task.reading || deps.ports.clock.monotonicMs() >= task.deadlineMs) {",
        "if (deps.ports.clock.monotonicMs() >= task.deadlineMs) {",
      ),
    ],
    {
      operations: { set: 6, get: 10, next: 6, create: 1 },
      keys: 2,
      sequences: 1,
      faults: ["link-break", "lane-break", "kill-leader", "kill"],
    },
  ),
  bug(
    "P-032",
    "calls under way when a link broke are taken for unsent",
    "five",
    [
      edit(
        "src/operations/forwarding/calls.ts",
        'this.end(id, { status: unsent.has(id) ? "unsent" : "lost" });',
        'this.end(id, { status: unsent.size >= 0 ? "unsent" : "lost" });',
      ),
    ],
    {
      operations: { set: 6, get: 10, next: 6, create: 1 },
      keys: 2,
      sequences: 1,
      faults: ["link-break", "lane-break", "kill-leader", "kill"],
    },
  ),
  bug("P-032", "a write of unknown end is carried out again elsewhere", "three", [
    edit(
      "src/operations/dispatch.ts",
      "        if (moved || mayRepeat) return elsewhere(executed.partition, isUnowned);\n",
      "        if (retry) return elsewhere(executed.partition, isUnowned);\n",
    ),
  ]),
  bug("P-033", "answers to the calls of a former life are taken", "three", [
    edit("src/operations/forwarding/calls.ts", "    if (frame.epoch !== this.epoch) return;\n", ""),
  ]),
  bug("P-033", "a farewell counts whatever life of a node it is of", "watching", [
    edit(
      "src/operations/forwarding/calls.ts",
      "    if (frame.epoch !== this.epoch || frame.lastId <= peer.formerId) return;\n",
      "",
    ),
  ]),
  bug(
    "P-068",
    "an ephemeral lock is decided without proof of leadership",
    "stranded",
    [
      edit(
        "src/operations/serving/attempt.ts",
        "    this.confirm(() => {\n      const table = group.ephemeral;\n",
        "    this.serving.ports.timer.soon(() => {\n      const table = group.ephemeral;\n",
      ),
    ],
    { operations: { "ephemeral-lock": 10, unlock: 4, "get-lock": 4, extend: 2 }, locks: 1 },
  ),
  bug(
    "P-050",
    "a lock that is held is refused from memory",
    "stranded",
    [
      edit(
        "src/operations/locks.ts",
        "  const failed: Fail = (end, refusal, executed) => {\n",
        "  const seen = group.machine.reads.getLock(resource, group.committedLeaseMs());\n  if (request.durability === Durability.persistent && seen.owner !== null && seen.owner.join() !== request.owner.join()) {\n    contention.leave(resource);\n    return ports.timer.soon(() => done(tokenAnswer(attempt, LockType.busy, 0n)));\n  }\n  const failed: Fail = (end, refusal, executed) => {\n",
      ),
    ],
    { operations: { lock: 10, unlock: 6 }, locks: 1 },
  ),
  bug(
    "P-047",
    "a sequence is read without proof of leadership",
    "stranded",
    [
      edit(
        "src/operations/sequences.ts",
        "attempt.confirm(() => {",
        "serving.ports.timer.soon(() => {",
      ),
    ],
    { operations: { create: 1, next: 8, "get-sequence": 10 }, sequences: 1 },
  ),
  bug(
    "P-053",
    "a sequence shows what is reserved instead of what was handed out",
    "one",
    [
      edit(
        "src/host/sequences/blocks.ts",
        "if (entry.block !== null && entry.block.matches(record)) return entry.block.last;",
        "if (entry.block !== null && entry.block.matches(record)) return record.currentValue;",
      ),
    ],
    { operations: { create: 1, next: 8, "get-sequence": 10 }, sequences: 1 },
  ),
  bug("P-193", "dead rows cost a turn nothing", "tombs", [
    edit(
      "src/operations/kv/kv-gather.ts",
      "turn.visitsLeft -= page.visits;",
      "turn.visitsLeft -= page.items.length;",
    ),
  ]),
  bug(
    "P-193",
    "a read of several turns shows what was written meanwhile",
    "tombs",
    [
      edit(
        "src/operations/kv/kv-gather.ts",
        "const reads = this.view?.reads ?? source.reads;",
        "const { reads } = source;",
      ),
    ],
    { operations: { readers: 1, ends: 6, churn: 2 }, thinkMs: 10, clients: 16, faults: ["slow"] },
  ),
];
