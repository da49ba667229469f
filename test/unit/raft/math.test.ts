/**
 * The mathematics of the core against deliberately naive second versions (naive/), and the bugs
 * that the walks have found, each as a short case.
 */
import { strict as check } from "node:assert";
import fc from "fast-check";
import t from "tap";
import { Inflight } from "../../../src/raft/state/inflight.js";
import {
  changeMembership,
  emptyMembership,
  membershipFault,
} from "../../../src/raft/state/membership.js";
import { Progress } from "../../../src/raft/state/progress.js";
import {
  jointIndex,
  jointVote,
  majority,
  majorityIndex,
  majorityVote,
} from "../../../src/raft/state/quorum.js";
import { TermLog } from "../../../src/raft/state/termlog.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { possibleChanges } from "./explorer/events.js";
import { membershipOf, message } from "../../doubles/raft/fresh.js";
import { makeCore, runsOf, settle, spanOf } from "./group.js";
import { naiveIndex, naiveMajority, naiveVote } from "./naive/quorum.js";
import { NaiveTerms } from "./naive/terms.js";

const ids = fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { maxLength: 7 });

const memberships: fc.Arbitrary<Membership> = fc
  .record({ voters: ids, votersOutgoing: fc.oneof(fc.constant<number[]>([]), ids), learners: ids })
  .map(({ voters, votersOutgoing, learners }) => {
    const votes = (id: number): boolean => voters.includes(id) || votersOutgoing.includes(id);
    return {
      ...emptyMembership,
      voters,
      votersOutgoing,
      learners: learners.filter((id) => !votes(id)),
    };
  });

/** What each of the nodes 1 to 7 has reached; Infinity and 0 included. */
const reachedBy = fc.array(fc.oneof(fc.nat(6), fc.nat(6), fc.constant(Number.MAX_SAFE_INTEGER)), {
  minLength: 7,
  maxLength: 7,
});

t.test(
  "P-019 P-087 quorums: simple, joint, empty and with learners, against trying values",
  (t) => {
    fc.assert(
      fc.property(memberships, reachedBy, (membership, reached) => {
        const of = (id: number): number => reached[id - 1] ?? 0;
        check.equal(jointIndex(membership, of), naiveIndex(membership, of, reached));
        const half = { ...membership, votersOutgoing: [] };
        check.equal(majorityIndex(membership.voters, of), naiveIndex(half, of, reached));
        const better = (id: number): number => of(id) + 1;
        check.ok(
          jointIndex(membership, better) >= jointIndex(membership, of),
          "it never goes down",
        );
      }),
      { numRuns: 2000 },
    );
    const ballots = fc.array(fc.constantFrom(true, false, undefined), {
      minLength: 7,
      maxLength: 7,
    });
    fc.assert(
      fc.property(memberships, ballots, (membership, list) => {
        const ballot = (id: number): boolean | undefined => list[id - 1];
        check.equal(jointVote(membership, ballot), naiveVote(membership, ballot));
        const half = { ...membership, votersOutgoing: [] };
        check.equal(majorityVote(membership.voters, ballot), naiveVote(half, ballot));
      }),
      { numRuns: 2000 },
    );
    for (let count = 1; count < 20; count++) {
      const voters = Array.from({ length: count }, (_, at) => at + 1);
      for (let agree = 0; agree <= count; agree++) {
        check.equal(
          agree >= majority(count),
          naiveMajority(voters, (id) => id <= agree),
          `${agree}/${count}`,
        );
      }
    }
    t.pass("every case");
    t.end();
  },
);

t.test("P-087 memberships: any chain of changes keeps every voter set sane", (t) => {
  const picks = fc.array(fc.nat(1000), { maxLength: 12 });
  fc.assert(
    fc.property(picks, fc.boolean(), (list, gentle) => {
      let membership = membershipOf([1, 2, 3]);
      for (const pick of list) {
        const possible = possibleChanges(membership, [1, 2, 3, 4, 5], gentle);
        const change = possible[pick % Math.max(1, possible.length)];
        if (change === undefined) continue;
        const result = changeMembership(membership, change);
        if (!result.ok) continue;
        check.equal(membershipFault(result.membership), null);
        const joint = result.membership.votersOutgoing.length > 0;
        const before = new Set(membership.voters);
        const moved = result.membership.voters.filter((id) => !before.has(id)).length;
        const kept = result.membership.voters.length - moved;
        const changed = moved + membership.voters.length - kept;
        check.ok(
          joint || membership.votersOutgoing.length > 0 || changed <= 1,
          "one voter at a time",
        );
        if (joint) check.deepEqual(result.membership.votersOutgoing, membership.voters);
        membership = result.membership;
      }
    }),
    { numRuns: 500 },
  );
  t.pass("every case");
  t.end();
});

type TermOp =
  | { readonly kind: "append"; readonly raise: number; readonly count: number }
  | { readonly kind: "cut" | "compact"; readonly at: number }
  | { readonly kind: "restart"; readonly ahead: number; readonly raise: number };

const termOps: fc.Arbitrary<TermOp[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("append" as const),
        raise: fc.nat(2),
        count: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("cut" as const, "compact" as const),
        at: fc.nat(40),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant("restart" as const),
        ahead: fc.nat(5),
        raise: fc.nat(2),
      }),
    },
  ),
  { maxLength: 25 },
);

function within(low: number, high: number, pick: number): number {
  return low + (pick % (high - low + 1));
}

function perform(log: TermLog, naive: NaiveTerms, op: TermOp): void {
  const term = Math.max(1, naive.lastTerm);
  if (op.kind === "append") {
    const first = naive.last + 1;
    log.append(term + op.raise, op.count);
    naive.append(
      spanOf(
        first,
        Array.from({ length: op.count }, () => term + op.raise),
      ),
    );
  } else if (op.kind === "restart") {
    const index = naive.last + op.ahead;
    log.restart(index, term + op.raise);
    naive.restart(index, term + op.raise);
  } else {
    const at = within(naive.floor, naive.last, op.at);
    log[op.kind](at);
    naive[op.kind](at);
  }
}

t.test("P-026 P-027 terms as runs equal terms as a list", (t) => {
  fc.assert(
    fc.property(
      termOps,
      fc.nat(60),
      fc.nat(12),
      fc.array(fc.nat(3), { maxLength: 8 }),
      (ops, pick, term, raises) => {
        const log = new TermLog(0, 0, [], 0);
        const naive = new NaiveTerms(0, 0);
        for (const op of ops) {
          perform(log, naive, op);
          log.assertRuns();
        }
        check.deepEqual(
          [log.floorIndex, log.floorTerm, log.lastIndex, log.lastTerm],
          [naive.floor, naive.floorTerm, naive.last, naive.lastTerm],
        );
        for (let index = 0; index <= naive.last + 2; index++) {
          const known = naive.termOf(index);
          check.equal(log.termOf(index), known, `term at ${index}`);
          const { kind } = log.lookup(index);
          check.equal(
            kind,
            known !== undefined ? "known" : index < naive.floor ? "compacted" : "beyond",
          );
          if (known === undefined) continue;
          // Below the floor nothing is known: the naive search goes on to what it takes for term 0.
          const hint = Math.max(naive.lastNotAbove(index, term), naive.floor - 1, 0);
          check.equal(log.lastNotAbove(index, term), hint, `not above ${term} from ${index}`);
        }
        if (naive.last === naive.floor) return;
        const first = within(naive.floor + 1, naive.last, pick);
        check.deepEqual(log.runs(first, naive.last), naive.runs(first, naive.last));
        const again = new TermLog(naive.floor, naive.floorTerm, naive.runs(), naive.last);
        check.deepEqual(again, log, "restored from its runs it is the same");
        let theirTerm = naive.termOf(first) ?? 1;
        const theirs = raises.map((raise) => (theirTerm += raise));
        if (theirs.length === 0) return;
        const conflict = log.firstConflict(runsOf(theirs, first - 1), first + theirs.length - 1);
        check.equal(conflict, naive.firstConflict(first, theirs), "the first conflict");
      },
    ),
    { numRuns: 1000 },
  );
  t.pass("every case");
  t.end();
});

/** What a leader has sent and what came back, kept in full. */
class NaiveWindow {
  sent: { readonly last: number; readonly bytes: number }[] = [];

  get bytes(): number {
    return this.sent.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  full(maxCount: number, maxBytes: number): boolean {
    return this.sent.length >= maxCount || this.bytes >= maxBytes;
  }
}

t.test(
  "P-025 P-026 P-035 progress: next, match and window against a list of what was sent",
  (t) => {
    const moves = fc.array(
      fc.record({
        kind: fc.constantFrom("send", "send", "acknowledge", "refuse", "probe", "beat"),
        count: fc.integer({ min: 1, max: 3 }),
        bytes: fc.nat(5),
        at: fc.nat(40),
        hint: fc.nat(40),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(
        moves,
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 12 }),
        (list, maxCount, maxBytes) => {
          const peer = new Progress(2, false, 1, true, new Inflight(maxCount, maxBytes));
          const window = new NaiveWindow();
          let match = 0;
          let end = 0;
          for (const { kind, count, bytes, at, hint } of list) {
            if (kind === "send" && !peer.paused && !peer.inflight.full) {
              if (peer.state === "replicate")
                window.sent.push({ last: peer.next + count - 1, bytes });
              end = Math.max(end, peer.next + count - 1);
              peer.sent(count, bytes);
            } else if (kind === "acknowledge") {
              const index = Math.min(at, end);
              check.equal(peer.acknowledge(index), index > match, "news or not");
              match = Math.max(match, index);
              if (peer.state === "probe" && index === match) peer.becomeReplicate();
              else if (peer.state === "replicate") peer.inflight.freeUpTo(index);
              window.sent = window.sent.filter(({ last }) => last > index);
            } else if (kind === "refuse") {
              const before = { next: peer.next, state: peer.state };
              const taken = peer.refuse(at, hint);
              const stale = before.state === "replicate" ? at <= match : before.next - 1 !== at;
              check.equal(taken, !stale, "a stale refusal is ignored");
              check.ok(
                peer.next <= before.next && (taken || peer.next === before.next),
                "only next, only down",
              );
              if (taken && peer.state === "replicate") peer.becomeProbe();
              if (taken) window.sent = [];
            } else if (kind === "probe") {
              if (peer.state === "replicate") peer.becomeProbe();
              window.sent = [];
            } else if (kind === "beat") peer.flowPaused = false;
            check.equal(peer.match, match, "match rises only by what arrived");
            check.ok(peer.next > match, "next is beyond match");
            if (peer.state !== "replicate") continue;
            check.equal(peer.inflight.count, window.sent.length, "as many on their way");
            check.equal(peer.inflight.sizeBytes, window.bytes, "as many bytes");
            check.equal(peer.inflight.full, window.full(maxCount, maxBytes), "full or not");
          }
        },
      ),
      { numRuns: 1000 },
    );
    t.pass("every case");
    t.end();
  },
);

t.test("P-028 a batch that a snapshot overtook gives its budget back", (t) => {
  const core = makeCore({ terms: [1, 1, 1] }, { maxCommittedBytesPerTake: 17 });
  core.step(message("append", { term: 1, index: 3, logTerm: 1, commit: 2 }));
  const { committed } = core.takeEffects();
  t.strictSame(committed, { first: 1, last: 1 }, "one entry uses the budget up");
  const snapshot = { index: 9, term: 1, membership: membershipOf([1, 2, 3]) };
  core.step(message("snapshot", { term: 1, snapshot }));
  settle(core);
  t.equal(core.appliedIndex, 9, "the snapshot is installed, what was handed out before is moot");
  core.step(
    message("append", { term: 1, index: 9, logTerm: 1, commit: 10, entries: spanOf(10, [1]) }),
  );
  settle(core);
  t.equal(core.appliedIndex, 10, "what follows is handed out");
  t.end();
});
