/** Administrative calls are counted by how they ended. */
import t from "tap";
import type { CallName } from "../../../src/api/calls.js";
import { CallTally } from "../../../src/operations/admission/call-tally.js";
import type { Administration } from "../../../src/operations/api/administration.js";
import { Bench } from "../../doubles/operations/fixture.js";
import { view } from "../../doubles/operations/administration.js";

function shown(tally: CallTally): readonly (readonly [string, string, object, number])[] {
  return [...tally.all()].map(({ api, operation, outcomes, durations }) => {
    return [api, operation, Object.fromEntries(outcomes), durations.sum];
  });
}

t.test("3.8 each end has its word, and its time", (t) => {
  let nowMs = 0;
  const ends: unknown[] = [];
  const answers: readonly unknown[] = [
    { answer: { outcome: "Committed" } },
    { answer: { outcome: "NoLeader" } },
    { answer: { status: "Refused", success: false } },
    { answer: { members: [] } },
    { refused: "overloaded" },
    { notAtLevel: true },
    { refusal: { outcome: "NotConfigured" } },
    { refusal: { outcome: null } },
  ];
  let next = 0;
  const call = (_request: unknown, _context: unknown, done: (end: unknown) => void): void => {
    nowMs += 30;
    done(answers[next++]);
  };
  const calls = new Proxy({}, { get: () => call }) as Administration;
  const tally = new CallTally(() => nowMs);
  const counted = tally.counted(calls) as unknown as Record<CallName, typeof call>;
  const names: readonly CallName[] = [
    "cluster.leave",
    "cluster.leave",
    "cluster.setReplicationFactor",
    "cluster.membership",
    "backups.list",
    "cluster.finalize",
    "backups.full",
    "backups.full",
  ];
  for (const name of names) counted[name]({}, {}, (end) => void ends.push(end));
  t.same(ends, answers, "and nobody hears anything else");
  t.same(shown(tally), [
    ["cluster", "leave", { Committed: 1, NoLeader: 1 }, 60],
    ["cluster", "set-replication-factor", { Refused: 1 }, 30],
    ["cluster", "membership", { Success: 1 }, 30],
    ["backups", "list", { Refused: 1 }, 30],
    ["cluster", "finalize", { NotAtLevel: 1 }, 30],
    ["backups", "full", { NotConfigured: 1, InvalidInput: 1 }, 60],
  ]);
  const [leave] = tally.all();
  t.equal(leave?.durations.counts[8], 2, "up to 50 ms");
  t.end();
});

t.test("the calls of a node are counted", (t) => {
  const bench = new Bench();
  view(bench.operations, "cluster.membership", {});
  view(bench.operations, "ranges.list", { keySpace: "" });
  t.same(
    shown(bench.operations.callTally).map(([api, operation, outcomes]) => [
      api,
      operation,
      outcomes,
    ]),
    [
      ["cluster", "membership", { Success: 1 }],
      ["ranges", "list", { Success: 1 }],
    ],
  );
  t.end();
});
