/**
 * The checkers of heirs: each fires on what breaks its property, passes what keeps it, and is vacuous
 * on too little.
 */
import t from "tap";
import {
  ListForward,
  type Outcome,
  ROWS_SEEN,
  type SeenRow,
} from "../../checkers/heirs/list-forward.js";
import {
  type Deed,
  NaiveRow,
  ORPHAN_ROWS,
  type OrphanRow,
  type SeenAsk,
  type SeenHeir,
  type When,
} from "../../checkers/heirs/naive-row.js";
import { OrphanBounded, type OrphanLook } from "../../checkers/heirs/orphan-bounded.js";
import { type OnItsWay, type SeenStep, StepByText } from "../../checkers/heirs/step-by-text.js";
import { type Line, historyOf, lock } from "../hand-made.js";

const LOCK = "lock r";
const HORIZON_MS = 2000;

function ask(owner: string, attempt = 1n, leaseMs = 1000): SeenAsk {
  return { owner, waitId: 7n, attempt, leaseMs };
}

function tries(owner: string, attempt = 1n): Deed {
  return { kind: "try", ...ask(owner, attempt) };
}

const unlock = (owner: string, token: bigint | null): Deed => ({ kind: "unlock", owner, token });
const extend = (owner: string, token: bigint | null): Deed => {
  return { kind: "extend", owner, token, leaseMs: 1000 };
};
const named = (token: bigint, kept: number, ...owners: readonly string[]): Deed => {
  const added = owners.map((owner) => ask(owner));
  return { kind: "set", token, kept, added, horizonMs: HORIZON_MS };
};
const append = (token: bigint, ...owners: readonly string[]): Deed => {
  const added = owners.map((owner) => ask(owner));
  return { kind: "append", token, added, horizonMs: HORIZON_MS };
};

/** One command, its term and lease time. */
type Act = readonly [term: number, leaseMs: number, deed: Deed];

/** "a" holds with token 0; "b", "c" and "d" follow with 1, 2 and 3, until 3000. */
const LISTED: readonly Act[] = [
  [1, 0, tries("a")],
  [1, 0, named(0n, 0, "b", "c", "d")],
];

function played(acts: readonly Act[], hit?: (row: OrphanRow) => void): NaiveRow {
  const row = new NaiveRow(hit);
  for (const [term, leaseMs, deed] of acts) row.take(deed, { term, leaseMs, floor: 0n });
  return row;
}

/** What comes of the last of the commands. */
function dueOf(...acts: readonly Act[]): string {
  const last = acts.at(-1) as Act;
  const due = played(acts.slice(0, -1)).take(last[2], {
    term: last[0],
    leaseMs: last[1],
    floor: 0n,
  });
  return due.token === null ? due.end : `${due.end} ${due.token}`;
}

const lineOf = (row: NaiveRow): string => row.line.map(({ token, owner }) => owner + token).join();

t.test("the naive row: the table of lists, in their term and behind it", (t) => {
  t.equal(lineOf(played(LISTED)), "a0,b1,c2,d3");
  t.equal(dueOf(...LISTED, [1, 10, unlock("a", 0n)]), "unlocked 0");
  t.equal(lineOf(played([...LISTED, [1, 10, unlock("a", 0n)]])), "b1,c2,d3");
  t.equal(dueOf(...LISTED, [1, 10, unlock("b", 1n)]), "invalid owner", "not its turn");
  t.equal(dueOf(...LISTED, [1, 1000, tries("c")]), "busy", "the lease is over, b is next");
  t.equal(dueOf(...LISTED, [1, 1000, tries("b")]), "locked 1");
  t.equal(dueOf(...LISTED, [1, 999, extend("b", 1n)]), "invalid owner", "L5 Q13 held by another");
  t.equal(dueOf(...LISTED, [1, 1000, extend("b", 1n)]), "not held", "L6 the lease is over");
  t.equal(dueOf([1, 0, tries("a")], [1, 999, extend("a", 7n)]), "invalid owner", "Q13");
  t.equal(dueOf([1, 0, tries("a")], [1, 1000, extend("a", 7n)]), "not held", "without heirs");
  t.equal(dueOf(...LISTED, [1, 10, append(3n, "e")]), "written");
  t.equal(dueOf(...LISTED, [1, 10, append(2n, "e")]), "stale");
  const rewritten = played([...LISTED, [1, 10, named(0n, 1, "e")]]);
  t.equal(lineOf(rewritten), "a0,b1,e4", "tokens of those who were dropped are gone");
  const forced = played([...LISTED, [1, 10, { kind: "force", token: 0n }]]);
  t.equal(forced.isHeld, false, "in its term the list is void");

  const orphaned = (leaseMs: number, deed: Deed): string => dueOf(...LISTED, [2, leaseMs, deed]);
  t.equal(orphaned(10, tries("x")), "busy");
  t.equal(orphaned(2999, tries("x")), "busy");
  t.equal(orphaned(3000, tries("x")), "locked 4", "above all that was named");
  t.equal(orphaned(10, tries("a")), "must retry");
  t.equal(orphaned(10, tries("a", 2n)), "locked 0");
  t.equal(orphaned(10, extend("c", 2n)), "extended 2");
  t.equal(orphaned(10, unlock("b", null)), "must retry");
  t.equal(orphaned(2000, extend("b", 1n)), "extended 1", "it may have been told since");
  t.equal(orphaned(2000, extend("a", 0n)), "not held");
  t.equal(orphaned(2000, extend("b", 2n)), "invalid owner", "of a list that stands");
  t.equal(orphaned(10, named(0n, 0, "x")), "stale");
  t.equal(lineOf(played([...LISTED, [2, 10, tries("c", 2n)]])), "a0,b1");
  const presumed = played([...LISTED, [2, 10, unlock("b", 1n)]]);
  t.equal(lineOf(presumed), "c2,d3");
  t.equal(presumed.endMs, 3000, "to the end of the list");
  t.equal(dueOf(...LISTED, [2, 10, unlock("b", 1n)], [2, 20, extend("a", 0n)]), "invalid owner");
  t.end();
});

t.test("each row of the table of orphaned lists is told", (t) => {
  const acts: readonly (readonly [OrphanRow, ...Act[]])[] = [
    ["the base extends or releases", [2, 10, unlock("a", 0n)]],
    ["an heir extends or releases", [2, 10, extend("c", 2n)]],
    ["the base asks again", [2, 10, tries("a", 2n)]],
    ["the first heir asks again", [2, 10, tries("b", 2n)]],
    ["a later heir asks again", [2, 10, tries("c", 2n)]],
    ["the base asks, and not again", [2, 10, tries("a")]],
    ["others ask", [2, 10, tries("x")]],
    ["a list is written", [2, 10, append(3n, "x")]],
    ["the base is released by force", [2, 10, { kind: "force", token: 0n }]],
    ["an heir names no token", [2, 10, unlock("b", null)]],
    ["one that is done comes late", [2, 10, extend("b", 1n)], [2, 20, unlock("a", 0n)]],
    ["the list ends by time", [2, 3000, tries("x")]],
  ];
  t.same(
    acts.map(([row]) => row),
    ORPHAN_ROWS,
  );
  for (const [row, ...then] of acts) {
    const hits: OrphanRow[] = [];
    played([...LISTED, ...then], (hit) => hits.push(hit));
    t.equal(hits.at(-1), row);
  }
  t.equal(ROWS_SEEN.length, ORPHAN_ROWS.length);
  t.end();
});

const heir = (token: bigint, owner: string): SeenHeir => ({ ...ask(owner), token });
const ROW: SeenRow = {
  ...{ isHeld: true, base: heir(0n, "a"), endMs: 1000 },
  ...{ heirs: [heir(1n, "b"), heir(2n, "c"), heir(3n, "d")], listTerm: 1, untilMs: 3000, top: 3n },
};

t.test("9 Q15 Q16 a lock moves along its list", (t) => {
  type Told = readonly [...Act, Outcome["end"], bigint];
  const judge = (told: readonly Told[], row: SeenRow | null = null): string => {
    const checker = new ListForward({ commands: 3 });
    for (const [term, leaseMs, deed, end, token] of told) {
      checker.applied(LOCK, { term, leaseMs, floor: 0n }, deed, { end, token });
    }
    if (row !== null) checker.row(LOCK, { term: 2, leaseMs: 10, floor: 0n }, row);
    return checker.verdict().kind;
  };
  const listed: readonly Told[] = [
    [1, 0, tries("a"), "locked", 0n],
    [1, 0, named(0n, 0, "b", "c", "d"), "written", 0n],
  ];
  const after = (...told: readonly Told[]): string => judge([...listed, ...told]);
  t.equal(judge(listed), "vacuous");
  t.equal(after([1, 10, unlock("a", 0n), "unlocked", 0n]), "pass");
  t.equal(after([2, 10, tries("x"), "busy", 0n]), "pass");
  t.equal(after([2, 10, tries("x"), "locked", 4n]), "fail", "an outsider before its end");
  t.equal(after([2, 10, tries("b", 2n), "locked", 1n]), "fail", "an heir at once");
  t.equal(after([2, 10, tries("a"), "locked", 0n]), "fail", "the base, and not again");
  t.equal(after([2, 3000, tries("x"), "locked", 1n]), "fail", "a token that was named");
  t.equal(after([2, 3000, tries("x"), "locked", 9n]), "fail", "behind a gap");
  t.equal(after([2, 10, append(3n, "x"), "written", 0n]), "fail", "a list of another term");
  const back: readonly Told[] = [
    [2, 10, extend("c", 2n), "extended", 2n],
    [2, 20, extend("a", 0n), "extended", 0n],
  ];
  t.equal(after(...back), "fail", "the base moves back");

  const rows = (row: Partial<SeenRow>, ...told: readonly Told[]): string =>
    judge([...listed, [1, 5, tries("x"), "busy", 0n], ...told], { ...ROW, ...row });
  t.equal(rows({}), "pass");
  t.equal(rows({ heirs: ROW.heirs.slice(1) }), "fail", "an heir is lost");
  t.equal(rows({ untilMs: 2999 }), "fail", "the end of the list");
  t.equal(rows({ base: heir(1n, "a") }), "fail", "another token");
  t.equal(rows({ heirs: [heir(1n, "b"), heir(2n, "c"), heir(2n, "d")] }), "fail", "a token twice");
  const again: Told = [2, 10, tries("a", 2n), "locked", 0n];
  t.equal(rows({ endMs: 1010, base: { ...heir(0n, "a"), attempt: 2n } }, again), "pass");
  t.equal(rows({ endMs: 1010, heirs: [] }, again), "fail", "heirs are dropped as the base is back");
  const dropped = new ListForward({ commands: 2 });
  const at = (leaseMs: number, floor: bigint): When => ({ term: 1, leaseMs, floor });
  dropped.applied(LOCK, at(0, 5n), tries("a"), { end: "locked", token: 5n });
  dropped.row(LOCK, at(9000, 6n), null);
  dropped.applied(LOCK, at(9000, 8n), tries("b"), { end: "locked", token: 8n });
  t.equal(dropped.verdict().kind, "pass", "above the floor, when its row was dropped");
  t.end();
});

t.test("9 lists that outlived their terms are counted once in each", (t) => {
  const checker = new ListForward({ "orphaned lists": 2 });
  for (const [term, leaseMs, deed] of LISTED) {
    const end = deed.kind === "try" ? "locked" : "written";
    checker.applied(LOCK, { term, leaseMs, floor: 0n }, deed, { end, token: 0n });
  }
  t.notOk(checker.look(LOCK, { term: 1, leaseMs: 10 }));
  t.ok(checker.look(LOCK, { term: 2, leaseMs: 10 }));
  t.ok(checker.look(LOCK, { term: 2, leaseMs: 20 }));
  t.equal(checker.verdict().kind, "vacuous");
  t.ok(checker.look(LOCK, { term: 3, leaseMs: 20 }));
  t.notOk(checker.look(LOCK, { term: 3, leaseMs: 3000 }));
  t.equal(checker.verdict().kind, "pass");
  t.end();
});

t.test("8 Q14 Q16 steps follow a committed list", (t) => {
  const step: SeenStep = {
    ...{ lock: LOCK, node: 1, term: 1, atMs: 50, leaseNowMs: 500, row: ROW },
    ...{ position: 0n, token: 1n, to: ask("b"), onItsWay: [], isDeposed: false },
  };
  const way = (deed: Deed, proposedMs = 40, isOfStep = false): OnItsWay => {
    return { deed, proposedMs, isOfStep };
  };
  const own = way(unlock("a", 0n), 50);
  const judge = (more: Partial<SeenStep>, then: OnItsWay | null = own): string => {
    const checker = new StepByText({ steps: 1 });
    checker.stepped({ ...step, ...more });
    if (then !== null) checker.proposed(LOCK, 1, { ...then });
    return checker.verdict().kind;
  };
  t.equal(new StepByText({ steps: 1 }).verdict().kind, "vacuous");
  t.equal(judge({}), "pass");
  t.equal(judge({ onItsWay: [{ ...own }] }, null), "pass", "its release may be proposed before");
  t.equal(judge({}, null), "fail", "upon no release");
  t.equal(judge({}, way(unlock("a", 0n), 60)), "fail", "or a later one");
  t.equal(judge({}, way(unlock("a", null), 50)), "fail", "or one that names no grant");
  t.equal(judge({ token: 4n }), "fail", "no list that is applied names it");
  t.equal(judge({ term: 2 }), "fail", "a list of another term");
  t.equal(judge({ token: 2n, to: ask("c") }), "fail", "past one that left");
  t.equal(judge({ position: 1n }), "fail", "past one that was told");
  t.equal(judge({ to: ask("b", 2n) }), "fail", "another try");
  t.equal(judge({ leaseNowMs: 1901 }), "pass");
  t.equal(judge({ leaseNowMs: 1902 }), "fail", "its lease outlives the list");
  const disturbed: readonly (readonly [string, Deed])[] = [
    ["a rewrite", named(0n, 0, "x")],
    ["a forced release", { kind: "force", token: 0n }],
    ["another release of the same grant", unlock("a", 0n)],
    ["a release that names none", unlock("a", null)],
    ["a try of who is named", tries("c", 2n)],
  ];
  for (const [what, deed] of disturbed) {
    t.equal(judge({ onItsWay: [way(deed)] }), "fail", `${what} is on its way`);
  }
  const harmless = [append(3n, "x"), extend("a", 0n), tries("x")];
  t.equal(judge({ onItsWay: harmless.map((deed) => way(deed)) }), "pass");
  t.equal(judge({ onItsWay: [way(unlock("z", -1n), 40, true)] }), "pass", "of a step before");
  t.end();
});

t.test("8 leaders that stepped while another led, and the second step behind the first", (t) => {
  const checker = new StepByText({ "leaders that stepped while another led": 1, steps: 2 });
  const onItsWay: OnItsWay[] = [];
  const turn = (atMs: number, from: SeenHeir, to: SeenHeir): void => {
    const at = { lock: LOCK, node: 1, term: 1, atMs, leaseNowMs: atMs, row: ROW };
    checker.look(atMs);
    const own = { deed: unlock(from.owner, from.token), proposedMs: atMs, isOfStep: false };
    const told = { position: from.token, token: to.token, to };
    checker.stepped({ ...at, ...told, onItsWay: [...onItsWay], isDeposed: true });
    checker.proposed(LOCK, 1, own);
    onItsWay.push(own);
  };
  turn(10, heir(0n, "a"), heir(1n, "b"));
  turn(20, heir(1n, "b"), heir(2n, "c"));
  const { kind, seen } = checker.verdict();
  t.equal(kind, "pass");
  t.equal(seen["leaders that stepped while another led"], 1);
  t.equal(seen["steps while another leads"], 2);
  t.end();
});

t.test("8 a release is answered when it is durable", (t) => {
  const judge = (lines: readonly Line[], atMs: number): string => {
    const checker = new StepByText({ "unlocks answered": 1 });
    checker.released(LOCK, 3n, atMs);
    checker.judge(historyOf(lines));
    return checker.verdict().kind;
  };
  const answered: Line = [10, 20, "a", lock("try-unlock", "a", "Unlocked 3")];
  t.equal(judge([answered], 15), "pass");
  t.equal(judge([answered], 25), "fail");
  t.equal(judge([], 15), "vacuous");
  t.equal(judge([[10, 20, "a", lock("try-unlock", "a", "Unlocked 4")]], 15), "fail", "another one");
  t.end();
});

t.test("12 Q15 what an orphaned list holds up ends", (t) => {
  const back: OrphanLook = {
    ...{ lock: LOCK, node: 1, term: 2, atMs: 0, isAble: true, isOrphaned: true },
    ...{ isFirstBack: true, isTried: false },
  };
  const judge = (looks: readonly Partial<OrphanLook>[], lines: readonly Line[] = []): string => {
    const checker = new OrphanBounded({ "looks at orphaned lists": 1 });
    looks.forEach((look, at) => checker.look({ ...back, atMs: at * 100, ...look }));
    checker.judge(historyOf(lines));
    return checker.verdict().kind;
  };
  t.equal(judge([]), "vacuous");
  t.equal(judge([{}, {}, {}, {}]), "pass", "it takes a moment");
  t.equal(judge([{}, {}, {}, {}, {}]), "fail", "nobody tries it");
  for (const excuse of [{ isTried: true }, { isFirstBack: false }, { isAble: false }]) {
    t.equal(judge([{}, {}, excuse, {}, {}, {}]), "pass", Object.keys(excuse).join());
  }
  t.equal(judge([{ isOrphaned: false }]), "vacuous");
  t.end();
});
