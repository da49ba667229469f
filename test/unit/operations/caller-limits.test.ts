/** How many requests a caller may make in a second (contract 10.9), and what becomes of the rest. */
import t from "tap";
import { CallerLimits } from "../../../src/operations/admission/caller-limits.js";
import type { RequestContext } from "../../../src/operations/api/requests.js";
import { Bench, get, set } from "../../doubles/operations/fixture.js";
import { KvType } from "../../../src/machine/commands/command.js";
import { WatchKind } from "../../../src/base/result-types.js";
import { WatchCaller, watchRequest } from "../../doubles/operations/watching.js";

function context(name: string, rate: number | null = null): RequestContext {
  return { deadlineMs: 0, forwardHops: 0, requestId: "t", caller: { name, rate } };
}

/** How many of 100 requests at `nowMs` are admitted. */
function admitted(limits: CallerLimits, from: RequestContext, nowMs: number): number {
  let count = 0;
  for (let at = 0; at < 100; at++) if (limits.admits(from, nowMs)) count++;
  return count;
}

t.test("10.9 each caller has its rate, and what it left of a second at most", (t) => {
  const limits = new CallerLimits(10);
  t.equal(admitted(limits, context("a"), 0), 10);
  t.equal(admitted(limits, context("b"), 0), 10, "another caller");
  t.equal(limits.refused, 180);
  t.equal(admitted(limits, context("a"), 100), 1);
  t.equal(admitted(limits, context("a"), 600), 5);
  t.equal(admitted(limits, context("a"), 60_000), 10, "not what it left of a minute");
  t.end();
});

t.test("10.9 a token's own rate stands above that of all; 0 is none", (t) => {
  const limits = new CallerLimits(10);
  t.equal(admitted(limits, context("fast", 50), 0), 50);
  t.equal(admitted(limits, context("free", 0), 0), 100);
  const none = new CallerLimits(0);
  t.equal(admitted(none, context("a"), 0), 100);
  t.equal(admitted(none, context("slow", 3), 0), 3);
  t.equal(admitted(limits, { deadlineMs: 0, forwardHops: 1, requestId: "t" }, 0), 100, "a node");
  t.end();
});

t.test("10.8 a changed rate counts from now on", (t) => {
  const limits = new CallerLimits(50);
  t.equal(admitted(limits, context("a"), 0), 50);
  limits.change(5);
  t.equal(admitted(limits, context("a"), 10_000), 5);
  limits.change(0);
  t.equal(admitted(limits, context("a"), 10_000), 100);
  t.end();
});

t.test("what is known of callers is bounded", (t) => {
  const limits = new CallerLimits(1);
  t.ok(limits.admits(context("first"), 0));
  t.notOk(limits.admits(context("first"), 0));
  for (let at = 0; at < 10_000; at++) limits.admits(context(`caller ${at}`), 0);
  t.ok(limits.admits(context("first"), 0), "it was forgotten");
  t.end();
});

t.test("10.9 what is too much is refused as overload, had no effect, and is counted", (t) => {
  const bench = new Bench({ callerRateLimit: 2 });
  const caller = { name: "ada", rate: null };
  const ask = (request: Parameters<Bench["ask"]>[0]): { type: number; refusal: string | null } => {
    const answers: { type: number; refusal: string | null }[] = [];
    bench.operations.execute(request, { ...bench.context(), caller }, (answer) => {
      answers.push(answer);
    });
    t.equal(answers.length, 0, "never in the turn of the call");
    bench.world.settle();
    return answers[0] ?? { type: -1, refusal: null };
  };
  t.match(ask(set("k", "1")), { type: KvType.set, refusal: null });
  t.match(ask(set("k", "2")), { type: KvType.set, refusal: null });
  t.match(ask(set("k", "3")), { type: KvType.mustRetry, refusal: "overloaded" });
  t.equal(bench.operations.rateLimited, 1);
  t.equal(Buffer.from(bench.ask(get("k")).value ?? []).toString(), "2");
  t.equal(bench.operations.inflight, 0);
  bench.operations.changeCallerRateLimit(0);
  t.match(ask(set("k", "4")), { type: KvType.set });
  t.end();
});

t.test("10.9 W16 a watch counts as a request of its caller; one too many ends OVERLOADED", (t) => {
  const bench = new Bench({ callerRateLimit: 2 });
  const callerOf = (name: string): WatchCaller =>
    new WatchCaller(bench.operations, { name, rate: null });
  const [ada, bob] = [callerOf("ada"), callerOf("bob")];
  for (const id of [1, 2, 3]) ada.stream.create(id, watchRequest(WatchKind.key, "k"));
  bob.stream.create(1, watchRequest(WatchKind.key, "k"));
  bench.world.settle();
  t.same(ada.take().sort(), ["created", "created #2", "ended overloaded #3"]);
  t.same(bob.take(), ["created"], "each caller has its own");
  t.equal(bench.operations.rateLimited, 1);
  const again = callerOf("ada");
  again.stream.create(1, watchRequest(WatchKind.key, "k"));
  bench.world.pass(600);
  t.same(again.take(), ["ended overloaded"], "over all of its streams");
  again.stream.create(1, watchRequest(WatchKind.key, "k"));
  bench.world.settle();
  t.same(again.take(), ["created"]);
  t.end();
});
