/** What an order of a lock's answers is searched for in, where all its grants are known. */
import t from "tap";
import {
  checkLinearizability,
  LINEARIZABILITY,
} from "../judge/checkers/clients/linearizability.js";
import { checkOneHolder } from "../judge/checkers/clients/one-holder.js";
import { checkTokensGrow } from "../judge/checkers/clients/tokens-grow.js";
import type { Attempt, LockOperation } from "../judge/history.js";
import { type Line, historyOf, lock } from "../judge/tests/hand-made.js";
import { neededAttempts } from "./waiting/needed-attempts.js";

const LOCK = "lock r";

interface Known {
  /** Tokens by owner. */
  readonly grants: Readonly<Record<string, readonly bigint[]>>;
  readonly handedOn?: readonly bigint[];
}

function needed(lines: readonly Line[], { grants, handedOn = [] }: Known): Attempt[] {
  return neededAttempts(historyOf(lines).attempts, {
    of: (name, owner) => new Set(name === LOCK ? grants[owner] : []),
    isHandedOn: (name, token) => name === LOCK && handedOn.includes(token),
  });
}

/** What is said of the whole history, or of what is needed of it. */
function judged(lines: readonly Line[], known: Known | null, stepsMax = 20_000): string {
  const { attempts, endMs } = historyOf(lines);
  const budget = { stepsMax, memoryMax: stepsMax };
  const history = { attempts: known === null ? attempts : needed(lines, known), endMs };
  const [verdict] = checkLinearizability(history, { ...LINEARIZABILITY, budget, minimum: {} });
  return verdict?.kind ?? "nothing";
}

/** Of attempts, by the order of their calls: the id, and what is named. */
function words(attempts: readonly Attempt[]): string[] {
  return attempts.map(({ id, operation }) => {
    const { kind, knownToken, fencingToken } = operation as LockOperation;
    return `${id} ${kind} ${knownToken ?? fencingToken ?? "-"}`;
  });
}

t.test("what has an answer stays, and of what has none the earliest for each grant", (t) => {
  const lines: Line[] = [
    [1, 0, "a", lock("try-lock", "a", "unknown")],
    [2, 0, "a", lock("try-lock", "a", "unknown")],
    [3, 4, "a", lock("try-lock", "a", "Busy")],
    [5, 6, "b", lock("try-lock", "b", "Locked 4")],
    [7, 0, "b", lock("try-lock", "b", "unknown")],
    [8, 0, "a", lock("try-unlock", "a", "unknown", 0, { fencingToken: "3" })],
    [9, 0, "a", lock("try-unlock", "a", "unknown")],
    [10, 0, "c", lock("try-lock", "c", "unknown")],
    [11, 12, "d", lock("get-lock", "", "Got 4 b 900")],
    [13, 0, "b", lock("try-extend", "b", "unknown")],
  ];
  t.same(words(needed(lines, { grants: { a: [3n, 5n], b: [4n] } })), [
    ...["0 try-lock 3", "0 try-lock 5", "2 try-lock -", "3 try-lock -"],
    ...["5 try-unlock 3", "6 try-unlock 5", "8 get-lock -", "9 try-extend -"],
  ]);
  t.end();
});

t.test("a grant that a later try was told of counts from the first one", (t) => {
  const lines: Line[] = [
    [1, 0, "a", lock("try-lock", "a", "unknown")],
    [2, 3, "d", lock("get-lock", "", "Got 0 a 999")],
    [4, 5, "a", lock("try-lock", "a", "Locked 0")],
  ];
  t.same(words(needed(lines, { grants: { a: [0n] } }))[0], "0 try-lock 0");
  t.equal(judged(lines, { grants: { a: [0n] } }), "pass");
  t.equal(judged(lines, { grants: {} }), "fail", "and only if it was one");
  t.end();
});

t.test("other locks, ephemeral ones and what is forced are left alone", (t) => {
  const ephemeral = lock("try-lock", "a", "unknown", 1000, { ephemeral: true });
  const plain = lock("try-unlock", "a", "unknown", 0, { fencingToken: "0" });
  const forced = { ...plain, operation: { ...plain.operation, isForced: true } as LockOperation };
  const lines: Line[] = [
    [1, 0, "a", ephemeral],
    [2, 0, "a", lock("try-lock", "a", "unknown", 1000, { resource: "other" })],
    [3, 0, "f", forced],
  ];
  t.same(words(needed(lines, { grants: { a: [0n] } })), ["0 try-lock -", "2 try-unlock 0"]);
  t.end();
});

t.test("a release that is repeated counts from its first try where it was handed on", (t) => {
  const first = lock("try-unlock", "a", "unknown", 0, { fencingToken: "0" });
  const again = lock("try-unlock", "a", "Unlocked 0", 0, { fencingToken: "0" });
  const lines: Line[] = [
    [1, 2, "a", lock("try-lock", "a", "Locked 0")],
    [3, 0, "a", first],
    [4, 5, "b", lock("try-lock", "b", "Locked 1")],
    [6, 7, "a", again],
  ];
  const grants = { a: [0n], b: [1n] };
  t.equal(judged(lines, { grants, handedOn: [0n] }), "pass");
  t.equal(judged(lines, { grants }), "fail", "nobody was told ahead: two would hold it");
  t.equal(judged(lines, { grants, handedOn: [1n] }), "fail", "another one was handed on");
  const early: Line[] = lines.map((line, at) => (at === 1 ? [5.5, 0, "a", first] : line));
  t.equal(judged(early, { grants, handedOn: [0n] }), "fail", "the first try came too late");
  t.end();
});

t.test("a forced release counts from that of the holder where it was handed on", (t) => {
  const released: Line = [3, 0, "a", lock("try-unlock", "a", "unknown")];
  const unlocked = lock("try-unlock", "a", "Unlocked 0", 0, { fencingToken: "0" });
  const operation: LockOperation = { ...(unlocked.operation as LockOperation), isForced: true };
  const lines: Line[] = [
    [1, 2, "a", lock("try-lock", "a", "Locked 0")],
    released,
    [4, 5, "b", lock("try-lock", "b", "Locked 1")],
    [6, 7, "f", { ...unlocked, operation }],
  ];
  const grants = { a: [0n], b: [1n] };
  const known = { grants, handedOn: [0n] };
  t.equal(judged(lines, known), "pass");
  const history = { ...historyOf(lines), attempts: needed(lines, known) };
  t.not(checkTokensGrow(history, 0).kind, "fail", "what is told of it comes late");
  t.equal(judged(lines, { grants }), "fail", "nobody was told ahead");
  const withheld = lines.filter((line) => line !== released);
  t.equal(judged(withheld, known), "fail", "its holder never released it");
  const refused = lock("try-unlock", "a", "InvalidOwner");
  t.equal(
    judged([...lines.slice(0, 1), [3, 8, "a", refused], ...lines.slice(2)], known),
    "pass",
    "its holder was heard, and told that another one is it",
  );
  t.end();
});

t.test("who releases believes no longer, whatever the service may have given back", (t) => {
  const back = lock("try-unlock", "a", "unknown");
  const lines: Line[] = [
    [1, 0, "a", lock("try-lock", "a", "unknown")],
    [
      1.1,
      0,
      "a~",
      { ...back, operation: { ...back.operation, isGiveBack: true } as LockOperation },
    ],
    [2, 3, "a", lock("try-lock", "a", "Locked 0")],
    [4, 0, "a", lock("try-unlock", "a", "unknown")],
    [5, 6, "b", lock("try-lock", "b", "Locked 1")],
  ];
  const known = { grants: { a: [0n], b: [1n] } };
  const options = { minimum: 0, drift: 0 };
  const judgedHolders = (of: readonly Line[]): string =>
    checkOneHolder({ ...historyOf(of), attempts: needed(of, known) }, options).kind;
  t.not(judgedHolders(lines), "fail");
  t.equal(judgedHolders(lines.filter((_line, at) => at !== 3)), "fail", "it did not release");
  t.end();
});

t.test("P-176 grants that nobody was told of have one order, that of their tokens", (t) => {
  const count = 9;
  const grants: Record<string, readonly bigint[]> = {};
  const lines: Line[] = [];
  for (let at = 0; at < count; at++) {
    grants[`w${at}`] = [BigInt(at)];
    lines.push([1 + at, 0, `w${at}`, lock("try-lock", `w${at}`, "unknown")]);
    lines.push([100 + at, 0, `w${at}`, lock("try-unlock", `w${at}`, "unknown")]);
  }
  const last = `w${count - 1}`;
  lines.sort(([one], [other]) => one - other);
  const seen = (token: number, owner: string): Line[] => [
    ...lines,
    [200, 201, "d", lock("get-lock", "", `Got ${token} ${owner} 900`)],
    [300, 301, "d", lock("get-lock", "", `Got ${token - 2} w${count - 3} 900`)],
  ];
  const right = [...seen(count - 1, last).slice(0, -1)];
  t.equal(judged(right, { grants }), "pass");
  t.equal(judged(seen(count - 1, last), { grants }), "fail", "a former one is seen later");
  t.equal(judged(seen(count - 1, last), null), "undecided", "all orders are tried without");
  t.equal(judged(seen(count - 1, "w3"), { grants }), "fail", "the token of another one");
  t.end();
});

t.test("Q15 who is presumed to hold a lock is shown for longer than its lease", (t) => {
  const extended = lock("try-extend", "a", "unknown", 3000, { fencingToken: "0" });
  const taken: Line = [1, 2, "a", lock("try-lock", "a", "Locked 0")];
  const seen: Line = [5, 6, "d", lock("get-lock", "", "Got 0 a 2999")];
  t.equal(judged([taken, [3, 0, "leader", extended], seen], { grants: { a: [0n] } }), "pass");
  t.equal(judged([taken, seen], { grants: { a: [0n] } }), "fail", "nothing was presumed");
  const tooLong: Line = [5, 6, "d", lock("get-lock", "", "Got 0 a 3002")];
  t.equal(
    judged([taken, [3, 0, "leader", extended], tooLong], { grants: { a: [0n] } }),
    "fail",
    "longer than the list is good for",
  );
  t.end();
});

t.test(
  "Q15 of a grant that was handed on meanwhile a reader is told what is left as he hears it",
  (t) => {
    const lines: Line[] = [
      [1, 2, "a", lock("try-lock", "a", "Locked 0")],
      [1, 5, "b", lock("try-lock", "b", "Locked 1")],
      [2, 80, "d", lock("get-lock", "", "Got 0 a 925")],
      [3, 79, "a", lock("try-unlock", "a", "Unlocked 0", 0, { fencingToken: "0" })],
    ];
    const grants = { a: [0n], b: [1n] };
    t.equal(judged(lines, { grants, handedOn: [0n] }), "pass");
    t.equal(judged(lines, { grants }), "fail", "one that was not");
    const late: Line = [90, 91, "d", lock("get-lock", "", "Got 0 a 925")];
    t.equal(judged([...lines, late], { grants, handedOn: [0n] }), "fail", "who asks later");
    const long: Line = [2, 80, "d", lock("get-lock", "", "Got 0 a 1002")];
    t.equal(judged([...lines, long], { grants, handedOn: [0n] }), "fail", "more than its lease");
    t.end();
  },
);
