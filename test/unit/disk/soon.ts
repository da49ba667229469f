/**
 * What is called soon, as the real timers do it. Run by log.test.ts.
 */
import t from "tap";
import { SoonQueue, systemTimers } from "../../../src/sys.js";

/** A queue whose rounds of the event loop the test makes. */
function manual(): { readonly queue: SoonQueue; readonly round: () => boolean } {
  let next: (() => void) | null = null;
  const queue = new SoonQueue((callback) => {
    if (next !== null) throw new Error("armed twice");
    next = callback;
  });
  const round = (): boolean => {
    const run = next;
    next = null;
    run?.();
    return run !== null;
  };
  return { queue, round };
}

void t.test("soon: in order, never inside a call, and what it leads to in the same round", (t) => {
  const { queue, round } = manual();
  const seen: string[] = [];
  queue.add(() => {
    seen.push("turn");
    queue.add(() => void seen.push("log write"));
    seen.push("turn ends");
  });
  queue.add(() => void seen.push("second"));
  t.same(seen, [], "not in the turn of the call");
  t.ok(round());
  t.same(seen, ["turn", "turn ends", "second", "log write"]);
  t.notOk(round(), "nothing is left to do");
  queue.add(() => void seen.push("again"));
  t.ok(round());
  t.equal(seen.pop(), "again");
  t.end();
});

void t.test("soon: callbacks that ask for each other without end let input in", async (t) => {
  const { queue, round } = manual();
  let count = 0;
  const again = (): void => {
    count++;
    if (count < 100) queue.add(again);
  };
  queue.add(again);
  t.ok(round());
  t.ok(count < 10, `${String(count)} generations in one round`);
  while (round());
  t.equal(count, 100, "none is lost");
  let running = true;
  const spin = (): void => {
    if (running) systemTimers.soon(spin);
  };
  systemTimers.soon(spin);
  await new Promise((resolve) => setTimeout(resolve, 1));
  running = false;
  t.pass("a timer had its turn");
});

void t.test("soon: one that throws takes nobody with it", (t) => {
  const { queue, round } = manual();
  const seen: number[] = [];
  queue.add(() => void seen.push(1));
  queue.add(() => {
    throw new Error("a fault");
  });
  queue.add(() => void seen.push(3));
  t.throws(round, /a fault/);
  queue.add(() => void seen.push(4));
  t.ok(round());
  t.same(seen, [1, 3, 4]);
  queue.add(() => {
    throw new Error("the last one");
  });
  t.throws(round, /the last one/);
  t.notOk(round());
  t.end();
});
