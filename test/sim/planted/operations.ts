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
        "operations/errand",
        "if (!task.reading || roads.ports.clock.monotonicMs() >= task.deadlineMs) {",
        "if (roads.ports.clock.monotonicMs() >= task.deadlineMs) {",
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
        "operations/calls",
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
      "operations/dispatch",
      "        if (moved || mayRepeat) return elsewhere(executed.partition);\n",
      "        if (retry) return elsewhere(executed.partition);\n",
    ),
  ]),
  bug("P-033", "answers to the calls of a former life are taken", "three", [
    edit("operations/calls", "    if (frame.epoch !== this.epoch) return;\n", ""),
  ]),
  bug(
    "P-068",
    "an ephemeral lock is decided without proof of leadership",
    "stranded",
    [
      edit(
        "operations/locks",
        "function changeEphemeralLock(serving, group, command, deadlineMs, fail, done) {\n  serving.confirm(group, deadlineMs, fail, () => {\n",
        "function changeEphemeralLock(serving, group, command, deadlineMs, fail, done) {\n  serving.ports.timer.soon(() => {\n",
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
        "operations/locks",
        "  const failed = (end, refusal, executed) => {\n    contention.leave(resource);\n",
        "  const seen = group.machine.reads.getLock(resource, group.committedLeaseMs());\n  if (request.durability === Durability.persistent && seen.owner !== null && seen.owner.join() !== request.owner.join()) {\n    contention.leave(resource);\n    return ports.timer.soon(() => done(tokenAnswer(serving, group, LockType.busy, 0n)));\n  }\n  const failed = (end, refusal, executed) => {\n    contention.leave(resource);\n",
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
        "operations/sequences",
        "function getSequence(serving, group, name, deadlineMs, fail, done) {\n  serving.confirm(group, deadlineMs, fail, () => {\n",
        "function getSequence(serving, group, name, deadlineMs, fail, done) {\n  serving.ports.timer.soon(() => {\n",
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
        "host/blocks",
        "if (entry.block !== null && entry.block.matches(record)) return entry.block.last;",
        "if (entry.block !== null && entry.block.matches(record)) return record.currentValue;",
      ),
    ],
    { operations: { create: 1, next: 8, "get-sequence": 10 }, sequences: 1 },
  ),
];
