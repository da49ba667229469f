/**
 * The checkers of waiting: each fires on what breaks its property, passes what keeps it, and is vacuous
 * on too little.
 */
import t from "tap";
import { checkOneHolder } from "../checkers/clients/one-holder.js";
import { checkTokensGrow } from "../checkers/clients/tokens-grow.js";
import { type AbortedWait, checkAborted } from "../checkers/waits/aborted-for-cause.js";
import { Fifo } from "../checkers/waits/fifo.js";
import { HeldTimes } from "../checkers/waits/held-times.js";
import { type GoneWait, checkGone } from "../checkers/waits/gone-holds-nothing.js";
import { checkHolderFirst } from "../checkers/waits/holder-first.js";
import { type SeenGrant, checkLeaseFromGrant } from "../checkers/waits/lease-from-grant.js";
import { checkNeverFree } from "../checkers/waits/never-free.js";
import { NilCost, type QuietGroup } from "../checkers/waits/nil-cost.js";
import { NoLostWakeUp, type WaitLook } from "../checkers/waits/no-lost-wake-up.js";
import { SeenQueue } from "../checkers/waits/seen-queues.js";
import { WaitEndsOnce } from "../checkers/waits/wait-ends-once.js";
import type { LockOperation, LockResult } from "../operation.js";
import { type Line, type Made, historyOf, lock } from "./hand-made.js";

function queueOf(node = 1, term = 1): SeenQueue {
  return new SeenQueue("lock r", 1, node, term);
}

/** A try-lock that waits, and its answer with what was told of the wait. */
function wait(
  owner: string,
  answer: string,
  waitMs: number,
  waitedMs = 0,
  leaseLeftMs = 1000,
): Made {
  const { operation, result } = lock("try-lock", owner, answer);
  const waiting = { ...(operation as LockOperation), waitMs };
  if (typeof result === "string") return { operation: waiting, result };
  return { operation: waiting, result: { ...(result as LockResult), waitedMs, leaseLeftMs } };
}

const oneTerm = (): number => 1;

t.test("Q2 Q8 the naive queue: turns, places that are kept, and what is open", (t) => {
  const queue = queueOf();
  const a = queue.asked("a", 0);
  const b = queue.asked("b", 10);
  t.equal(queue.asked("a", 20).place, a.place, "an owner has one place");
  t.same(queue.before(b.place), [a.place]);
  t.equal(queue.living, 2);
  queue.gone(b, true, 100);
  t.equal(queue.passedOver(queue.asked("c", 110).place), 1);
  const back = queue.asked("b", 1500);
  t.equal(back.place, b.place, "it is taken again within its time");
  t.ok(back.place.hasReturned);
  queue.gone(back, true, 2000);
  t.ok(queue.asked("b", 4000).place.isOpen, "at the edge of its time nobody knows");
  const [stretch] = queue.stretches;
  t.same(stretch, { fromMs: 0, toMs: Infinity }, "somebody waited all the time");
  queue.reset(5000);
  t.equal(stretch?.toMs, 5000);
  t.end();
});

t.test("2 waiters are granted in their order (Q2)", (t) => {
  const judge = (act: (fifo: Fifo, queue: SeenQueue) => void): string => {
    const fifo = new Fifo({ grants: 1 });
    act(fifo, queueOf());
    return fifo.verdict().kind;
  };
  t.equal(
    judge(() => undefined),
    "vacuous",
  );
  const inOrder = judge((fifo, queue) => {
    const a = queue.asked("a", 0);
    queue.asked("b", 1);
    fifo.tried(a.place, 2)(1n, true);
  });
  t.equal(inOrder, "pass");
  const overtaken = (isFresh: boolean, isLeft = false): string =>
    judge((fifo, queue) => {
      const a = queue.asked("a", 0);
      const b = queue.asked("b", 1);
      if (isLeft) queue.gone(a, true, 2);
      fifo.tried(b.place, 3)(1n, isFresh);
      if (!isFresh) fifo.tried(a.place, 3)(2n, true);
    });
  t.equal(overtaken(true), "fail", "the last come is granted first");
  t.equal(overtaken(false), "pass", "who holds it already overtakes nobody");
  t.equal(overtaken(true, true), "pass", "a place without a request is passed over");
  const named = (isBack: boolean): string =>
    judge((fifo, queue) => {
      const a = queue.asked("a", 0);
      const b = queue.asked("b", 1);
      if (isBack) {
        queue.gone(a, true, 2);
        queue.asked("a", 3);
      }
      fifo.tried(b.place, 4, true)(1n, true);
    });
  t.equal(named(false), "fail", "an heir comes before who waits longer");
  t.equal(named(true), "pass", "unless that one came back meanwhile");
  const cancelled = judge((fifo, queue) => {
    const a = queue.asked("a", 0);
    queue.gone(a, false, 1);
    fifo.tried(a.place, 2)(1n, true);
  });
  t.equal(cancelled, "fail", "who was cancelled is tried");
  const carried = (told: readonly string[]): string =>
    judge((fifo, queue) => {
      const a = queue.asked("a", 0);
      queue.asked("b", 1);
      queue.asked("c", 2);
      queue.gone(queue.asked("d", 3), true, 3);
      fifo.carried("lock r", told, queue.standing);
      fifo.tried(a.place, 4)(1n, true);
    });
  t.equal(carried(["a", "b", "c", "d"]), "pass", "who is away goes along");
  t.equal(carried(["a", "c", "b"]), "fail", "Q11 another order is carried over");
  t.equal(carried(["a", "b"]), "fail", "Q11 somebody is left behind");
  const returning = (first: string): string =>
    judge((fifo, queue) => {
      for (const owner of ["a", "b"]) queue.carriedOver(owner, 0);
      const b = queue.asked("b", 10);
      const a = queue.asked("a", 11);
      fifo.tried((first === "a" ? a : b).place, 12)(1n, true);
    });
  t.equal(returning("a"), "pass", "Q11 who comes back has its turn");
  t.equal(returning("b"), "fail", "Q11 whatever the order in which they come");
  t.end();
});

t.test("3 a lock that is waited for is never free (Q3)", (t) => {
  const queue = queueOf();
  queue.gone(queue.asked("a", 10), false, 100);
  const judge = (lines: readonly Line[], term: number | null = 1): string => {
    const isNew = (owner: string): boolean => owner.startsWith("n");
    const minimum = { "newcomers refused": 1 };
    return checkNeverFree(historyOf(lines), [queue], () => term, isNew, minimum).kind;
  };
  const refused: Line = [20, 30, "n", lock("try-lock", "n1", "Busy")];
  t.equal(judge([refused]), "pass");
  t.equal(judge([]), "vacuous");
  t.equal(judge([refused, [40, 50, "n", lock("try-lock", "n2", "Locked 5")]]), "fail", "overtaken");
  t.equal(
    judge([refused, [40, 50, "n", lock("get-lock", "", "LockDoesNotExist")]]),
    "fail",
    "free",
  );
  const late: Line = [90, 110, "n", lock("try-lock", "n2", "Locked 5")];
  t.equal(judge([refused, late]), "pass", "nobody waited in the end");
  const other = [refused, [40, 50, "n", lock("try-lock", "n2", "Locked 5")]] as const;
  t.equal(judge(other, 2), "vacuous", "another leader decided");
  t.end();
});

t.test("4 a wait ends once, and in its time (Q5)", (t) => {
  const judge = (lines: readonly Line[], ends = 1): string => {
    const checker = new WaitEndsOnce(0.05, { "granted at a leader": 1 });
    const request = queueOf().asked("a", 0);
    for (let count = 0; count < ends; count++) checker.ended(request, "granted", 10);
    checker.judge(historyOf(lines));
    return checker.verdict().kind;
  };
  t.equal(judge([]), "pass");
  t.equal(judge([], 0), "vacuous");
  t.equal(judge([], 2), "fail", "it ends twice");
  t.equal(judge([[0, 1001, "a", wait("a", "Busy", 1000, 1000)]]), "pass");
  t.equal(judge([[0, 900, "a", wait("a", "Busy", 1000, 1000)]]), "fail", "before its time");
  t.equal(judge([[0, 1001, "a", wait("a", "Busy", 1000, 900)]]), "fail", "WaitedMs is too short");
  t.end();
});

t.test("4 a wait is aborted for a cause (Q5)", (t) => {
  const judge = (waits: readonly Partial<AbortedWait>[], asks = 1, sentMs = 500): string => {
    const wait = { lock: "lock r", owner: "a", askedMs: 0, toldMs: 100, isExplained: false };
    const aborted = waits.map((each) => ({ ...wait, ...each }));
    const dropped = [{ lock: "lock r", sentMs, toldMs: 600 }];
    const minimum = { "aborted, of one request": 1 };
    return checkAborted(aborted, dropped, () => asks === 1, minimum).kind;
  };
  t.equal(judge([]), "vacuous");
  t.equal(judge([{ isExplained: true }]), "pass");
  t.equal(judge([{}]), "fail", "nobody had it end");
  t.equal(judge([{}], 2), "vacuous", "a later try may have");
  t.equal(judge([{}], 1, 50), "pass", "all who waited were sent away");
  t.equal(judge([{ lock: "lock s" }], 1, 50), "fail", "from another lock");
  t.equal(judge([{ askedMs: 601, toldMs: 700 }]), "fail", "it came after that");
  t.end();
});

t.test("5 P-183 no wake-up of a waiter is lost", (t) => {
  const judge = (looks: readonly Partial<WaitLook>[]): string => {
    const checker = new NoLostWakeUp({ "looks at waiters": 1 });
    const queue = queueOf();
    queue.asked("a", 0);
    const lost = { isAble: true, isFree: true, isBound: false, isTried: false };
    looks.forEach((look, at) => checker.look(queue, { atMs: at * 100, ...lost, ...look }));
    return checker.verdict().kind;
  };
  t.equal(judge([]), "vacuous");
  t.equal(judge([{}, {}, {}]), "pass", "it takes a moment");
  t.equal(judge([{}, {}, {}, {}]), "fail", "free, and nobody is tried");
  for (const excuse of [
    { isTried: true },
    { isFree: false },
    { isAble: false },
    { isBound: true },
  ]) {
    t.equal(judge([{}, {}, excuse, {}, {}]), "pass", Object.keys(excuse).join());
  }
  t.end();
});

t.test("6 P-182 who is gone holds nothing (Q9)", (t) => {
  const gone = (how: GoneWait["how"], more: Partial<GoneWait> = {}): GoneWait => {
    const at = { partition: 1, askedMs: 0, goneMs: 100, how, isAtLeader: true };
    return { lock: "lock r", owner: "a", ...at, ...more };
  };
  const judge = (
    wait: GoneWait,
    readMs: number,
    isOpen = false,
    term: number | null = 1,
    presumed: string | null = null,
    held: { proposedMs: number; appliedMs: number } | null = null,
  ): string => {
    const isPresumed = (name: string, owner: string, atMs: number): boolean =>
      `${name} ${owner}` === `lock r ${presumed}` && atMs >= 2600;
    const heirs = presumed === null ? null : { isPresumed, heldBy: () => held };
    const lines: Line[] = [[readMs, readMs + 1, "b", lock("get-lock", "", "Got 3 a 100")]];
    const minimum = { "cancelled waits": 1 };
    const waits = [wait, gone("cancelled", { owner: "z" })];
    return checkGone(
      historyOf(lines),
      waits,
      () => isOpen,
      () => term,
      heirs,
      minimum,
    ).kind;
  };
  t.equal(judge(gone("cancelled"), 101), "fail", "a cancelled one holds it");
  t.equal(judge(gone("cancelled"), 101, false, 1, "z"), "pass", "an heir gives it back");
  t.equal(judge(gone("cancelled"), 2700, false, 1, "z"), "fail", "an heir that keeps it");
  t.equal(judge(gone("cancelled"), 2700, false, 1, "a"), "pass", "Q15 to the end of the list");
  const early = gone("cancelled", { goneMs: -100 });
  t.equal(judge(early, 2500, false, 1, "a"), "fail", "before the list made it the holder");
  t.equal(judge(gone("cancelled"), 90), "pass", "before the answer");
  t.equal(judge(gone("cancelled"), 101, true), "pass", "it asked again");
  t.equal(judge(gone("closed"), 200), "pass", "it takes a commit to give it back");
  t.equal(judge(gone("closed"), 3000), "fail", "it is not given back");
  t.equal(
    judge(gone("closed", { isAtLeader: false }), 3000),
    "pass",
    "word may be lost on its way",
  );
  t.equal(judge(gone("closed"), 3000, false, null), "pass", "the next leader knows nothing of it");
  const late = gone("closed");
  const onItsWay = { proposedMs: 90, appliedMs: 3000 };
  t.equal(judge(late, 3100, false, 1, "z", onItsWay), "pass", "it was on its way when it went");
  t.equal(judge(late, 5600, false, 1, "z", onItsWay), "fail", "and is not given back");
  const begun = { proposedMs: 110, appliedMs: 3000 };
  t.equal(judge(late, 3100, false, 1, "z", begun), "fail", "it began when it was gone");
  const none = checkGone(historyOf([]), [], () => false, oneTerm, null, { "cancelled waits": 1 });
  t.equal(none.kind, "vacuous");
  t.end();
});

t.test("10 P-184 a waited lease begins with its grant (Q6, T4)", (t) => {
  const grant = (token: bigint, owner: string, atMs: number): SeenGrant => {
    const times = { leaseMs: 1000, proposedMs: atMs - 5, decidedMs: atMs };
    return { lock: "lock r", partition: 1, owner, token, ...times };
  };
  let term: number | null = 1;
  const judge = (lines: readonly Line[], grants: readonly SeenGrant[]): string =>
    checkLeaseFromGrant(historyOf(lines), grants, 0, () => term, { "waited grants": 1 }).kind;
  const told: Line = [0, 510, "a", wait("a", "Locked 3", 5000, 490)];
  t.equal(judge([told], [grant(3n, "a", 500)]), "pass");
  t.equal(judge([], []), "vacuous");
  const long: Line = [0, 510, "a", wait("a", "Locked 3", 5000, 520)];
  t.equal(judge([long], [grant(3n, "a", 500)]), "fail", "it is believed from the answer on");
  const more: Line = [0, 510, "a", wait("a", "Locked 3", 5000, 400, 1001)];
  t.equal(judge([more], [grant(3n, "a", 500)]), "fail", "more is left than was granted");
  const early = [grant(3n, "a", 500), grant(4n, "b", 1400)];
  t.equal(judge([told], early), "fail", "it is ended before its time");
  t.equal(judge([told], [grant(3n, "a", 500), grant(4n, "b", 1500)]), "pass");
  const released: Line = [1300, 1301, "a", lock("try-unlock", "a", "Unlocked 3")];
  t.equal(judge([told, released], early), "pass", "by its holder");
  const again: Line = [900, 910, "a", wait("a", "Locked 3", 5000, 5, 800)];
  t.equal(judge([told, again], [grant(3n, "a", 500)]), "fail", "more is left than can be");
  term = null;
  t.equal(judge([told, again], [grant(3n, "a", 500)]), "vacuous", "a lease stands still (T3)");
  t.end();
});

t.test("11 P-181 holders go before waiters (Q10)", (t) => {
  const queue = queueOf();
  queue.asked("w", 0);
  const judge = (made: Made, isTroubled = false): string => {
    const history = historyOf([[10, 11, "a", made]]);
    const minimum = { "extends while others wait": 1 };
    return checkHolderFirst(history, [queue], () => isTroubled, minimum).kind;
  };
  t.equal(judge(lock("try-extend", "a", "Extended 3")), "pass");
  t.equal(judge(lock("try-extend", "a", "refused")), "fail", "an extend is refused");
  t.equal(judge(lock("try-unlock", "a", "refused")), "fail", "an unlock is refused");
  t.equal(judge(lock("try-extend", "a", "refused"), true), "pass", "with everybody else");
  t.equal(judge(lock("try-unlock", "a", "Unlocked 3")), "vacuous");
  t.end();
});

t.test("20 P-064 without waiters waiting costs nothing", (t) => {
  const quiet: QuietGroup = {
    ...{ node: 1, partition: 1, waiters: 0, places: 0, lockEntries: 0, tries: 0 },
    lockEntriesBefore: 1,
    ...{ maySleep: true, sleeps: true },
  };
  const judge = (more: Partial<QuietGroup>): string => {
    const checker = new NilCost({ sleepers: 1, "entries of locks before": 1 });
    checker.quiet({ ...quiet, ...more });
    return checker.verdict().kind;
  };
  t.equal(judge({}), "pass");
  t.equal(judge({ maySleep: false, sleeps: false }), "vacuous");
  for (const cost of [{ waiters: 1 }, { places: 1 }, { lockEntries: 1 }, { tries: 1 }]) {
    t.equal(judge(cost), "fail", Object.keys(cost).join());
  }
  t.equal(judge({ sleeps: false }), "fail", "it is awake for nobody");
  t.equal(judge({ lockEntriesBefore: 0 }), "vacuous", "entries of locks are not seen");
  t.end();
});

t.test("1 7 who waited believes by Q6, and its tokens grow like all others", (t) => {
  const holds = (lines: readonly Line[]): string =>
    checkOneHolder(historyOf(lines), { minimum: 2, drift: 0 }).kind;
  const first: Line = [0, 10, "a", lock("try-lock", "a", "Locked 1", 1000)];
  const waited = (fromMs: number): Line => [
    5,
    fromMs,
    "b",
    wait("b", "Locked 2", 9000, 1000, 1000),
  ];
  const third = (atMs: number): Line => [
    atMs,
    atMs + 5,
    "c",
    lock("try-lock", "c", "Locked 3", 1000),
  ];
  t.equal(holds([first, waited(1010), third(2010)]), "pass");
  t.equal(holds([first, waited(1010), third(1900)]), "fail", "it still believes");
  t.equal(holds([first, waited(900)]), "fail", "it was granted what another one holds");
  const backwards = historyOf([waited(1010), [2000, 2001, "c", wait("c", "Locked 1", 9000)]]);
  t.equal(checkTokensGrow(backwards, 1).kind, "fail");
  t.end();
});

t.test("P-183 L12 programs of the library: one holds, tokens grow, and no wait has no end", (t) => {
  const judge = (
    holds: readonly (readonly [token: number, fromMs: number, untilMs: number])[],
    tookMs = 10,
    isOpen = false,
  ): string => {
    const times = new HeldTimes({ grants: 2, "handed over": 1 });
    if (isOpen) times.asked("somebody waits");
    for (const [token, fromMs, untilMs] of holds) {
      times.ended(times.asked("a wait"), "granted", tookMs, 100);
      const owner = `of ${token} from ${fromMs}`;
      times.held({ resource: "r", owner, token: BigInt(token), askedMs: 0, fromMs, untilMs });
    }
    return times.verdict().kind;
  };
  const [first, next] = [[1, 10, 20] as const, [2, 20, 30] as const];
  t.equal(judge([first, next]), "pass");
  t.equal(judge([first]), "vacuous");
  t.equal(judge([first, [2, 19, 30]]), "fail", "two hold it");
  t.equal(judge([first, [1, 20, 30]]), "fail", "a token comes twice");
  t.equal(
    judge([
      [2, 10, 20],
      [1, 20, 30],
    ]),
    "fail",
    "tokens go back",
  );
  t.equal(judge([first, next, [0, 25, 25]]), "pass", "told too late to hold anything");
  t.equal(judge([first, next], 101), "fail", "an end that comes late");
  t.equal(judge([first, next], 10, true), "fail", "a wait without an end");
  const twice = new HeldTimes({});
  const id = twice.asked("a wait");
  for (const how of ["busy", "granted"] as const) twice.ended(id, how, 1, 10);
  t.equal(twice.verdict().kind, "fail", "two ends");
  t.end();
});
