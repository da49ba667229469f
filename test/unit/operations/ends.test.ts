/**
 * How requests end when nothing is done or nothing is known: every kind of request against every
 * end of the host, refusals, bad input, deadlines, shutdown.
 */
import tap from "tap";
import { KvType, LockType, SequenceType } from "../../../src/machine/commands/command.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest, DataRequestKind } from "../../../src/operations/api/requests.js";
import { KIND_LABELS, KIND_NUMBERS } from "../../../src/operations/admission/tally.js";
import { World } from "../../doubles/host/world.js";
import {
  Bench,
  create,
  deleteSequence,
  encode,
  get,
  getSequence,
  info,
  lock,
  next,
  range,
  reserve,
  scanAll,
  set,
  unlock,
  update,
} from "../../doubles/operations/fixture.js";
import { everyRequest } from "../../doubles/operations/every-request.js";
import { administer } from "../../doubles/operations/administration.js";

const long = "x".repeat(1025);
const wide = "\u00e9".repeat(513);

function requestsOf(name: string, durability = 1): readonly DataRequest[] {
  const local = scanAll(name, { kind: "kv-scan-local", durability });
  return [...everyRequest(name, durability), local];
}

/** The common types of the API that `kind` belongs to. */
function typesOf(kind: DataRequestKind) {
  const { api } = KIND_LABELS[KIND_NUMBERS[kind]] as (typeof KIND_LABELS)[number];
  if (api === "locks") return LockType;
  return api === "sequences" ? SequenceType : KvType;
}

/** The type of a one-object answer, or the type that every item of a many-call has. */
function endTypes(answer: DataAnswer): readonly number[] {
  return answer.kind === "kv-many" ? answer.items.map((item) => item.type) : [answer.type];
}

/** What an answer must hold when it describes nothing. */
function assertEmpty(
  t: Pick<typeof tap, "equal" | "same">,
  answer: DataAnswer,
  label: string,
): void {
  if (answer.kind === "lock") {
    t.equal(answer.fencingToken.toString(), "0", label);
    t.equal(answer.owner, null, label);
    t.same([answer.expires.l, answer.expiresInMs], [0, 0], label);
  } else if (answer.kind === "sequence") {
    t.same([answer.sequence, answer.revision], [null, -1], label);
  } else if (answer.kind === "allocation") {
    t.equal(answer.allocation, null, label);
  } else if (answer.kind === "kv") {
    t.same([answer.value, answer.revision, answer.lastModified.l], [null, 0, 0], label);
  } else if (answer.kind === "kv-page") {
    t.same(
      [answer.items, answer.nextCursor, answer.hasMore, answer.tooLarge],
      [[], null, false, false],
    );
  }
}

tap.test("P-142, P-147, C9: every kind of request meets every end of the host", async (t) => {
  const bench = new Bench();
  for (const name of ["n", "n2"]) bench.ask(create(name));
  const refused = (reason: "not-leader" | "overloaded" | "shutting-down" | "not-initialized") =>
    ({ status: "refused", reason }) as const;
  const ends: readonly [ProposalResult, "mustRetry" | "aborted", string | null][] = [
    [refused("not-leader"), "mustRetry", null],
    [refused("overloaded"), "mustRetry", "overloaded"],
    [refused("shutting-down"), "mustRetry", "shutting-down"],
    [refused("not-initialized"), "mustRetry", "not-initialized"],
    [{ status: "aborted" }, "aborted", null],
    [{ status: "unknown" }, "mustRetry", null],
  ];
  let met = 0;
  for (const durability of [1, 0]) {
    for (const [result, end, refusal] of ends) {
      for (const request of requestsOf("n", durability)) {
        let used = false;
        bench.faults.propose = () => ((used = true), result);
        const answer = bench.ask(request);
        bench.faults.propose = null;
        const types = typesOf(request.kind);
        const label = `${request.kind} ${JSON.stringify(result)}`;
        if (!used || (request.kind === "kv-set-many" && durability === 0)) continue;
        met++;
        const expected = end === "aborted" ? types.aborted : types.mustRetry;
        t.same(new Set(endTypes(answer)), new Set([expected]), label);
        t.equal(answer.refusal, refusal, label);
        assertEmpty(t, answer, label);
        if (refusal !== null) t.same([answer.servedFrom, answer.route], [null, null], label);
      }
    }
  }
  t.ok(met >= 6 * 13, `proposing requests met their ends: ${met}`);
  met = 0;
  for (const durability of [1, 0]) {
    for (const status of ["retry", "aborted"] as const) {
      for (const request of requestsOf("n", durability)) {
        let used = false;
        bench.faults.read = () => ((used = true), { status });
        const answer = bench.askWithin(request, 1000);
        bench.faults.read = null;
        if (!used) continue;
        // A local scan leaves out what it cannot prove; an envelope ends by its items.
        if (request.kind === "kv-scan-local" || request.kind === "kv-set-many") continue;
        met++;
        const types = typesOf(request.kind);
        const scans = request.kind === "kv-scan-all";
        const expected = status === "aborted" && !scans ? types.aborted : types.mustRetry;
        t.same(new Set(endTypes(answer)), new Set([expected]), `${request.kind} read ${status}`);
        assertEmpty(t, answer, `${request.kind} read ${status}`);
      }
    }
  }
  t.ok(met >= 2 * 12, `reading requests met their ends: ${met}`);
  t.equal(bench.operations.inflight, 0);
});

tap.test("L16, P-050: no answer about state without a proof", async (t) => {
  const bench = new Bench();
  bench.ask(create("p"));
  bench.ask(next("p"));
  bench.ask(lock("p", "a"));
  bench.ask(lock("p", "a", 1000, 0));
  bench.ask(set("p", "v", { durability: 0 }));
  bench.faults.read = () => ({ status: "retry" });
  bench.faults.propose = () => ({ status: "refused", reason: "not-leader" });
  for (const durability of [1, 0]) {
    for (const request of requestsOf("p", durability)) {
      const answer = bench.askWithin(request, 1000);
      const types = typesOf(request.kind);
      if (request.kind === "kv-scan-local") continue;
      t.same(new Set(endTypes(answer)), new Set([types.mustRetry]), request.kind);
    }
  }
});

tap.test("bad input is told before anything else, and does nothing", async (t) => {
  const bench = new Bench();
  const commands = bench.commands.length;
  const bad: readonly DataRequest[] = [
    lock("", "o"),
    lock(long, "o"),
    lock(wide, "o"),
    lock("r", ""),
    lock("r", long),
    lock("r", "o", 0),
    lock("r", "o", -5),
    lock("r", "o", 86_400_001),
    lock("r", "o", 1, 2),
    { ...lock("r", "o", 0), kind: "try-extend" },
    unlock("r", ""),
    unlock("", "o"),
    info("", 1),
    info("r", 7),
    info(long, 0),
    create(""),
    create(" \u3000"),
    create("__svc:x"),
    create(" __svc:x"),
    create(long),
    create("s", { increment: 0n }),
    create("s", { maxValue: -1n }),
    create("s", { blockSize: 0 }),
    create("s", { increment: -1n }),
    { ...create("s"), durability: 0 },
    { ...create("s"), durability: 5 },
    update("s", {}),
    update("s", { increment: 0n }),
    update("s", { blockSize: -1 }),
    update("s", { maxValue: 5n, removeMaxValue: true }),
    update("s", { blockSize: 5, removeBlockSize: true }),
    next(""),
    next("s", long),
    { ...next("s"), durability: 0 },
    getSequence(""),
    reserve("s", 0),
    reserve("s", -1),
    reserve("s", 1, wide),
    deleteSequence("\t"),
    set("", "v"),
    set(long, "v"),
    set("__svc:k", "v"),
    set("k", "v", { flags: 64 }),
    set("k", "v", { flags: -1 }),
    set("k", "v", { flags: 12 }),
    set("k", "v", { expiresMs: -1 }),
    set("k", "v", { durability: 3 }),
    set("k", "v", { plain: false }),
    set("k", null, { value: new Uint8Array((1 << 20) + 1) }),
    set("k", null, { compareValue: new Uint8Array((1 << 20) + 1) }),
    { kind: "kv-extend", key: "k", expiresMs: 0, durability: 1, plain: true },
    { kind: "kv-extend", key: "", expiresMs: 1, durability: 1, plain: true },
    { kind: "kv-delete", key: "__svc:", durability: 1, plain: true },
    { kind: "kv-delete", key: "k", durability: 1, plain: false },
    get("k", -2n),
    get(""),
    { ...get("k"), plain: false },
    get("k", -1n, 9),
    { kind: "kv-bucket", bucket: "", durability: 1, plain: true },
    { kind: "kv-bucket", bucket: "__svc:a", durability: 1, plain: true },
    scanAll(""),
    scanAll("a", { limit: -1 }),
    scanAll("a", { limit: 10_001 }),
    scanAll("a", { cursor: "" }),
    scanAll("__svc:"),
    scanAll("a", { plain: false }),
    range(""),
    range("b", { limit: 10_001 }),
    range("b", { startKey: long }),
    range("b", { endKey: wide }),
    range("b", { cursor: "AAAA" }),
    { kind: "kv-get-many", items: [get("k")], plain: false },
    { kind: "kv-delete-many", items: [], plain: true },
  ];
  for (const request of bad) {
    const answer = bench.ask(request);
    const label = JSON.stringify(request, (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    ).slice(0, 90);
    t.equal(answer.type, typesOf(request.kind).invalidInput, label);
    t.same([answer.refusal, answer.servedFrom, answer.route], [null, null, null], label);
    assertEmpty(t, answer, label);
  }
  t.equal(bench.commands.length, commands, "no command was proposed");
  const good: readonly DataRequest[] = [
    lock("x".repeat(1024), "o".repeat(1024)),
    lock("__svc:lock", "o"),
    lock("r", "o", 86_400_000),
    create("\u00a0trimmed\u2029"),
    create("x".repeat(1024)),
    next("trimmed", " \u2003 "),
    reserve("trimmed", 1, "x".repeat(1024)),
    set("x".repeat(1024), "v"),
    set("k", null, { value: new Uint8Array(1 << 20) }),
    range("b", { startKey: "", endKey: "" }),
    set("__sv", "v"),
  ];
  for (const request of good) t.equal(bench.ask(request).refusal, null);
  for (const request of good) {
    t.not(bench.ask(request).type, typesOf(request.kind).invalidInput, request.kind);
  }
  for (const request of requestsOf("k")) {
    const { kind } = request;
    t.equal(bench.operations.invalidInput(kind).type, typesOf(kind).invalidInput);
    const full = bench.operations.mustRetry(kind, "overloaded");
    t.match(full, { type: typesOf(kind).mustRetry, refusal: "overloaded", servedFrom: null });
  }
});

tap.test("admission: overload, not initialised, shutting down", async (t) => {
  const early = new Bench({}, new World(), false);
  for (const request of requestsOf("a")) {
    const answers: DataAnswer[] = [];
    early.operations.execute(request, early.context(), (answer) => void answers.push(answer));
    t.equal(answers.length, 0);
    while (answers.length === 0) t.ok(early.world.timer.step());
    t.match(answers, [{ refusal: "not-initialized", type: typesOf(request.kind).mustRetry }]);
    if (early.node.initialized) break;
  }
  const bench = new Bench({ inflightMax: 5 });
  const answers: DataAnswer[] = [];
  for (let at = 0; at < 8; at++) {
    bench.operations.execute(
      set(`k${at}`, "v"),
      bench.context(),
      (answer) => void answers.push(answer),
    );
  }
  t.equal(bench.operations.inflight, 8);
  bench.world.settle();
  const refusals = answers.filter((answer) => answer.refusal === "overloaded");
  t.same([refusals.length, answers.length], [3, 8], "P-149: the excess at once, the rest served");
  t.ok(refusals.every((answer) => answer.type === KvType.mustRetry));
  t.equal(bench.operations.inflight, 0);
  t.equal(bench.tally.refused(KIND_NUMBERS["kv-set"]), 3);
  t.equal(bench.tally.count(KIND_NUMBERS["kv-set"], KvType.set), 5);
  t.equal(
    bench.tally.duration(KIND_NUMBERS["kv-set"]).buckets.reduce((a, b) => a + b),
    8,
  );
  const waiting = requestsOf("w").map((request) => bench.send(request));
  bench.node.stop(bench.nowMs + 1000, () => undefined);
  const late = requestsOf("late").map((request) => bench.send(request));
  bench.world.pass(2000);
  for (const list of [...waiting, ...late]) t.equal(list.length, 1, "answered once");
  for (const list of late) t.equal((list[0] as DataAnswer).refusal, "shutting-down");
});

tap.test("P-070: a crowd before one lock does not keep its holder out", async (t) => {
  for (const durability of [1, 0]) {
    const bench = new Bench({ inflightMax: 40 });
    bench.ask(lock("hot", "holder", 1000, durability));
    const crowd = Array.from({ length: 30 }, (_, at) =>
      bench.send(lock("hot", `c${at}`, 1000, durability)),
    );
    const extend = { ...lock("hot", "holder", 1000, durability), kind: "try-extend" as const };
    const extended = bench.send(extend);
    const released = bench.send(unlock("hot", "holder", durability));
    const other = bench.send(lock("cold", "x", 1000, durability));
    bench.world.settle();
    const ends = crowd.map(([answer]) => [answer?.type, answer?.refusal].join());
    t.equal(ends.filter((end) => end === "101,overloaded").length, 20);
    t.equal(ends.filter((end) => end === `${LockType.busy},`).length, 10);
    t.equal(extended[0]?.type, LockType.extended);
    t.equal(released[0]?.type, LockType.unlocked);
    t.equal(other[0]?.type, LockType.locked);
    t.equal(bench.ask(lock("hot", "next", 1000, durability)).type, LockType.locked);
  }
});

tap.test("C9: a deadline ends every kind of request once", async (t) => {
  for (const stuck of ["log", "round"] as const) {
    const bench = new Bench({ requestTimeoutMs: 500 });
    bench.ask(create("d"));
    if (stuck === "log") bench.world.log.automatic = false;
    else bench.faults.read = () => ({ status: "retry" });
    const sent = [...requestsOf("d"), ...requestsOf("d", 0), next("d", "k"), reserve("d", 5000)];
    const lists = sent.map((request, at) => bench.send(request, [], at % 2 === 0 ? 200 : 1e6));
    bench.world.pass(199, 1);
    const open = lists.filter((list) => list.length === 0).length;
    t.ok(stuck === "round" || open > 10, `${open} wait`);
    bench.world.pass(30);
    lists.forEach((list, at) => {
      if (at % 2 === 0) t.equal(list.length, 1, `${sent[at]?.kind} by the client's deadline`);
    });
    bench.world.pass(300);
    lists.forEach((list, at) => t.equal(list.length, 1, `${sent[at]?.kind} by the timeout`));
    if (stuck === "log") {
      const updated = lists[sent.findIndex((request) => request.kind === "update-sequence")];
      t.equal(updated?.[0]?.type, SequenceType.mustRetry);
    }
    bench.world.log.automatic = true;
    bench.world.log.sync();
    bench.faults.read = null;
    bench.world.pass(1000);
    lists.forEach((list) => t.equal(list.length, 1, "and never again"));
    t.equal(bench.operations.inflight, 0);
    t.equal(bench.ask(next("d")).type === SequenceType.mustRetry, false, "and it goes on");
  }
});

tap.test("route hints and servedFrom", async (t) => {
  const bench = new Bench({ clientEndpoint: "http://h:1" });
  const answer = bench.ask(set("a/b", "v"));
  t.same(answer.route, {
    partitionId: bench.partitionOf("a"),
    endpoint: "http://h:1",
    provenance: 1,
    generation: 0,
  });
  t.equal(answer.servedFrom, "http://h:1");
  t.equal(bench.ask(lock("jobs/mail", "o")).route?.partitionId, bench.partitionOf("jobs/mail"));
  const sequence = bench.ask(create("eu/orders"));
  t.equal(sequence.route?.partitionId, bench.partitionOf("__svc:sequences:eu/orders"));
  t.equal(bench.ask(get("users|eu/1")).route?.partitionId, bench.partitionOf("users"), "P-099");
  const quiet = new Bench({ clientEndpoint: "", routingHints: false });
  t.match(quiet.ask(set("a", "v")), { route: null, servedFrom: "" });
});

tap.test("P-053: the answer of a request does not depend on what an owner holds", async (t) => {
  const bench = new Bench();
  const owner = encode("\u0000\uffff");
  const request = { ...lock("bytes", "x"), owner };
  t.equal(bench.ask(request).type, LockType.locked);
  t.same(bench.ask(info("bytes")).owner, owner);
});

tap.test("6.4: an endpoint that is known only once the listeners are open is named then", (t) => {
  const bench = new Bench({ clientEndpoint: "" });
  bench.ask(create("s"));
  for (const request of requestsOf("s")) {
    t.not(bench.ask(request).servedFrom, "http://late", request.kind);
  }
  Object.assign(bench.settings, { clientEndpoint: "http://late" });
  for (const request of requestsOf("s")) {
    t.equal(bench.ask(request).servedFrom, "http://late", request.kind);
  }
  t.end();
});

tap.test("requests that took long are logged by their ids, so many lines a second", (t) => {
  const bench = new Bench();
  const slow = (requestId: string): void => {
    const answers: DataAnswer[] = [];
    const context = { ...bench.context(), requestId };
    bench.world.log.automatic = false;
    bench.operations.execute(set("k", "v"), context, (answer) => void answers.push(answer));
    bench.world.pass(1500);
    bench.world.log.automatic = true;
    bench.world.log.sync();
    bench.world.settle();
    t.match(answers, [{ type: KvType.set }]);
  };
  const told = (): unknown[] =>
    bench.world.logLines
      .filter((line) => line.startsWith("warn slow request "))
      .map((line) => JSON.parse(line.slice("warn slow request ".length)) as unknown);
  bench.ask(set("k", "v"));
  t.same(told(), [], "a quick one is not");
  slow("first");
  t.match(told(), [{ requestId: "first", kind: "kv-set", type: KvType.set, untold: 0 }]);
  t.ok((told()[0] as { durationMs: number }).durationMs - 1500 < 100);
  // Many at once, all of the same second.
  const context = { ...bench.context(), deadlineMs: Infinity, caller: { name: "ada", rate: null } };
  bench.world.log.automatic = false;
  for (let at = 0; at < 50; at++) {
    const requestId = `crowd ${at}`;
    bench.operations.execute(set("k", "v"), { ...context, requestId }, () => undefined);
  }
  bench.world.pass(1500);
  bench.world.log.automatic = true;
  bench.world.log.sync();
  bench.world.settle();
  t.equal(told().length, 21);
  t.match(told()[1], { requestId: "crowd 0", caller: "ada" });
  slow("last");
  t.match(told().at(-1), { requestId: "last", untold: 30 });
  bench.operations.changeSlowThreshold(0);
  slow("nobody");
  t.equal(told().length, 22);
  t.equal(bench.operations.slowRequests, 52);
  t.end();
});

tap.test("6.3: a node that does not know the cluster yet refuses no range for good", (t) => {
  const early = new Bench({}, new World(), false);
  const statuses: string[] = [];
  const done = ({ status }: { status: string }): void => void statuses.push(status);
  const context = { deadlineMs: 10_000, forwardHops: 0, requestId: "r" };
  administer(early.operations, "ranges.register", { keySpace: "orders" }, context, done);
  administer(early.operations, "ranges.unregister", { keySpace: "orders" }, context, done);
  administer(
    early.operations,
    "ranges.split",
    { keySpace: "orders", splitKey: "orders/1" },
    context,
    done,
  );
  for (let step = 0; step < 20; step++) early.world.timer.step();
  t.strictSame(statuses.sort(), ["Indeterminate", "Indeterminate", "NotLeader"]);
  t.end();
});
