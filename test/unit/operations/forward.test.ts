/**
 * Any node answers: every kind of request at the node that leads and at those that do not, and what
 * becomes of it when links, leaders and nodes fail on the way.
 */
import t from "tap";
import {
  EMPTY_BYTES as NONE,
  compareText,
  encodeText,
  equalBytes,
} from "../../../src/base/bytes.js";
import { ByteWriter } from "../../../src/base/codec.js";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { Prng } from "../../../src/base/prng.js";
import { KvType, LockType, SequenceType } from "../../../src/machine/commands/command.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import type { DataAnswer, RouteHint } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { combineParts } from "../../../src/operations/kv/scan-part.js";
import { KIND_LABELS, KIND_NUMBERS } from "../../../src/operations/admission/tally.js";
import { CALL_SHAPES } from "../../../src/operations/wire/calls.js";
import { Draft, farewell } from "../../../src/operations/wire/frames.js";
import {
  create,
  encode,
  get,
  info,
  lock,
  next,
  range,
  reserve,
  scanAll,
  set,
  unlock,
} from "../../doubles/operations/fixture.js";
import { place } from "../../doubles/machine/placement.js";
import { newMember } from "../../doubles/machine/members.js";
import { everyRequest } from "../../doubles/operations/every-request.js";
import { Trio, body } from "../../doubles/operations/trio.js";
import { administer, view } from "../../doubles/operations/administration.js";

const reading = new Set(["get-lock", "get-sequence", "kv-get", "kv-exists"]);
const SPREAD: ReadonlySet<string> = new Set(["kv-scan-all", "list-locks", "list-lock-audit"]);
for (const kind of ["kv-get-many", "kv-exists-many", "kv-bucket", "kv-range", ...SPREAD]) {
  reading.add(kind);
}

function mustRetryOf(kind: DataRequest["kind"]): number {
  const { api } = KIND_LABELS[KIND_NUMBERS[kind]] as (typeof KIND_LABELS)[number];
  if (api === "locks") return LockType.mustRetry;
  return api === "sequences" ? SequenceType.mustRetry : KvType.mustRetry;
}

/** The types that tell how a request ended: of the answer, or of the items of a many-call. */
function endTypes(answer: DataAnswer): readonly number[] {
  return answer.kind === "kv-many" ? answer.items.map((item) => item.type) : [answer.type];
}

/** The body as text. Stamps name the node that executed; everything else is to be the same. */
function plain(answer: DataAnswer): string {
  return JSON.stringify(body(answer), (key, value: unknown) => (key === "n" ? 0 : value));
}

function routesOf(answer: DataAnswer): readonly RouteHint[] {
  if (answer.kind === "kv-many") return answer.routes;
  return answer.route === null ? [] : [answer.route];
}

/** The name whose lock, sequence and key lie on partition `wanted`, or on any when it is 0. */
function nameOn(trio: Trio, wanted: number, hashText: (name: string) => string): string {
  for (let at = 0; ; at++) {
    const name = `name${at}`;
    if (trio.partitionOf(hashText(name)) === wanted) return name;
  }
}

t.test("P-053, C11: owner and non-owner give the same bodies, for every kind", async (t) => {
  // Two clusters take the same requests; in one node 1 leads everything, in the other node 2 does,
  // or the partitions are spread. All are asked at node 1.
  let compared = 0;
  for (const durability of [1, 0]) {
    const local = new Trio();
    const remote = new Trio();
    const spread = new Trio();
    local.moveAll(1);
    remote.moveAll(2);
    const both = (request: DataRequest, label: string): void => {
      const own = local.ask(1, request);
      const kind = `${label} ${request.kind}`;
      for (const other of [remote, spread]) {
        const far = other.ask(1, request);
        t.equal(plain(far), plain(own), kind);
        compared++;
      }
      if (SPREAD.has(request.kind)) return;
      for (const route of routesOf(remote.ask(1, { ...request }))) {
        t.match(route, { endpoint: "http://n2", provenance: 2 }, `${kind}: forwarded`);
      }
      for (const route of routesOf(local.ask(1, { ...request }))) {
        t.match(route, { endpoint: "http://n1", provenance: 1 }, `${kind}: executed`);
      }
      spread.ask(1, request);
    };
    for (const name of ["a", "dir/b", "c|d/e", "\u65e5\u672c/x"]) {
      for (const request of everyRequest(name, durability)) both(request, `${name} first`);
      for (const request of everyRequest(name, durability).slice(0, -2)) both(request, `${name} 2`);
      for (const trio of [local, remote, spread]) trio.world.pass(1000);
    }
    // Refused, invalid, and contended.
    both(lock("held", "me", 60_000, durability), "held");
    both(lock("held", "you", 60_000, durability), "held");
    both(unlock("held", "you", durability), "held");
    both(info("held", durability), "held");
    both(set("", "v", { durability }), "bad");
    both(range("a", { cursor: "xx", durability }), "bad cursor");
    both(scanAll("a", { cursor: "xx", durability }), "bad cursor");
    t.equal(local.sent.length, 0, "who leads asks nobody");
    t.ok(remote.sent.length > 100, "the other one does");
    t.equal(remote.open + local.open + spread.open, 0, "nothing is left open");
  }
  t.ok(compared > 300, `${compared} bodies were compared`);
});

t.test("1.5, P-147: every end of the executing node arrives as what it is", async (t) => {
  const refused = (reason: "overloaded" | "shutting-down" | "not-initialized") =>
    ({ status: "refused", reason }) as const;
  const ends: readonly ProposalResult[] = [
    refused("overloaded"),
    { status: "aborted" },
    { status: "unknown" },
  ];
  let met = 0;
  for (const end of ends) {
    const local = new Trio();
    const remote = new Trio();
    local.moveAll(1);
    remote.moveAll(2);
    for (const trio of [local, remote]) {
      trio.ask(1, create("n"));
      trio.ask(1, set("n", "v", { expiresMs: 60_000 }));
      trio.propose = () => end;
    }
    for (const request of everyRequest("n")) {
      const own = local.ask(1, request);
      const far = remote.ask(1, request);
      t.equal(plain(far), plain(own), `${request.kind} ${end.status}`);
      if (!endTypes(own).includes(mustRetryOf(request.kind))) continue;
      met++;
      if (end.status === "unknown") t.equal(far.refusal, null, "unknown is no refusal");
    }
  }
  t.ok(met > 10, `${met} requests met the end`);
});

t.test("1.2.3, P-109: what was forwarded is not forwarded again", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  for (const request of everyRequest("n")) {
    const answer = trio.ask(1, request, 1);
    const types = endTypes(answer);
    t.ok(
      types.every((type) => type === mustRetryOf(request.kind)),
      `${request.kind} is to be sent elsewhere`,
    );
    for (const route of routesOf(answer)) {
      t.match(route, { endpoint: "http://n2", provenance: 2 }, "with a hint");
    }
    if (!SPREAD.has(request.kind)) t.ok(routesOf(answer).length > 0, `${request.kind}: hint`);
  }
  t.equal(trio.sent.length, 0, "no frame left");
  // A node that is asked by mistake sends the request back to the first, which asks the right one.
  for (const partition of [0, 1, 2, 3]) trio.beliefs.set(`1/${partition}`, 3);
  for (const request of everyRequest("m")) {
    const answers = trio.post(1, request);
    // A scan waits until its own groups know better.
    if (SPREAD.has(request.kind)) {
      trio.world.pass(100);
      trio.beliefs.clear();
    }
    for (let step = 0; step < 20 && answers.length === 0; step++) trio.world.pass(10);
    const [answer] = answers;
    t.ok(
      answer !== undefined && !endTypes(answer).includes(mustRetryOf(request.kind)),
      request.kind,
    );
  }
  const hops = trio.sent.filter(({ frame }) => frame.direction === "calls");
  t.ok(
    hops.every(({ from }) => from === 1),
    "only the first node passes on",
  );
  t.equal(trio.open, 0);
  // Nobody leads, and hints off.
  trio.beliefs.clear();
  trio.moveAll(0);
  const alone = trio.ask(1, get("n"), 1);
  t.match(alone, { type: KvType.mustRetry, route: null, servedFrom: null, refusal: null });
  const silent = new Trio({ routingHints: false });
  silent.moveAll(2);
  t.equal(silent.ask(1, set("n", "v")).route, null);
  t.match(silent.ask(1, get("n"), 1), { type: KvType.mustRetry, route: null });
});

t.test("no leader: requests wait for the next one, within bounds", async (t) => {
  const trio = new Trio({ leaderWaitMs: 1500 });
  for (const request of everyRequest("w")) {
    trio.moveAll(0);
    const answers = trio.post(1, request);
    trio.world.pass(700);
    t.equal(answers.length, 0, `${request.kind} waits`);
    trio.moveAll(request.kind.length % 2 === 0 ? 1 : 3);
    trio.world.pass(200);
    t.equal(answers.length, 1, `${request.kind} is answered`);
    t.notOk(endTypes(answers[0] as DataAnswer).includes(mustRetryOf(request.kind)), request.kind);
  }
  trio.moveAll(0);
  const late = everyRequest("w").map((request) => trio.post(1, request));
  const early = everyRequest("w").map((request) => trio.post(1, request, { withinMs: 300 }));
  const hopped = everyRequest("w").map((request) => trio.post(1, request, { hops: 1 }));
  trio.world.settle();
  t.ok(
    hopped.every((answers) => answers.length === 1),
    "hops do not wait",
  );
  trio.world.pass(320);
  t.ok(
    early.every((answers) => answers.length === 1),
    "a deadline ends the wait (C9)",
  );
  t.ok(late.every((answers) => answers.length === 0));
  trio.world.pass(1300);
  everyRequest("w").forEach(({ kind }, at) => {
    for (const [answer] of [late[at] ?? [], early[at] ?? [], hopped[at] ?? []]) {
      t.same([...new Set(endTypes(answer as DataAnswer))], [mustRetryOf(kind)], kind);
      t.equal(answer?.refusal, null);
    }
  });
  t.equal(trio.open, 0);
  // Bounded in number, and ended by the stop.
  const small = new Trio({ inflightMax: 8 });
  small.moveAll(0);
  const many = Array.from({ length: 8 }, (_, at) => small.post(1, set(`k${at}`, "v")));
  small.world.settle();
  t.equal(many.filter(([answer]) => answer?.refusal === "overloaded").length, 4);
  small.stopping.add(1);
  small.world.pass(20);
  t.equal(many.filter(([answer]) => answer?.refusal === "shutting-down").length, 4);
  t.equal(small.open, 0);
});

t.test("P-032, P-049: a link that goes down, or a leader that moves, mid-call", async (t) => {
  const cuts: readonly ((trio: Trio) => void)[] = [
    (trio) => trio.node(1).linkDown(2),
    (trio) => trio.world.pass(400),
  ];
  for (const [number, cut] of cuts.entries()) {
    for (const lost of ["calls", "answers"] as const) {
      const trio = new Trio({ leaderWaitMs: 300 });
      trio.moveAll(2);
      trio.ask(1, create("n"));
      trio.ask(1, set("n", "v", { expiresMs: 60_000 }));
      for (const request of everyRequest("n")) {
        trio.moveAll(2);
        trio.node(1).linkUp(2);
        trio.fate = ({ frame, to, from }) =>
          frame.direction === lost && (to === 2 || from === 2) ? "lost" : "arrives";
        const before = trio.proposals.length;
        const answers = trio.post(1, request);
        trio.world.settle();
        t.equal(answers.length, 0, `${request.kind}: nothing came`);
        trio.moveAll(3);
        cut(trio);
        trio.world.pass(300);
        const label = `${request.kind} ${lost} ${number}`;
        t.equal(answers.length, 1, `${label}: ended`);
        const answer = answers[0] as DataAnswer;
        const retried = endTypes(answer).includes(mustRetryOf(request.kind));
        t.equal(retried, !reading.has(request.kind), `${label}: only a read is asked again`);
        t.equal(answer.refusal, null, `${label}: unknown is no refusal`);
        if (!reading.has(request.kind)) {
          const once = trio.proposals.slice(before).filter(([, kind]) => kind !== "advance-clock");
          t.ok(
            once.every(([node]) => node === 2),
            `${label}: proposed at one node only`,
          );
        }
        trio.fate = () => "arrives";
        trio.world.pass(100);
      }
      t.equal(trio.open, 0);
    }
  }
});

t.test("P-033: answers of another life, of another node, or twice end nothing", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  trio.fate = () => "lost";
  const answers = trio.post(1, get("n"));
  trio.world.settle();
  const [sent] = trio.sent;
  t.equal(sent?.frame.direction, "calls");
  const { epoch } = sent?.frame ?? { epoch: 0 };
  const id = sent?.frame.items[0]?.id ?? 0;
  const forged = trio.ask(2, get("other"));
  const answerFrame = (ofEpoch: number): Uint8Array => {
    const item = new ByteWriter();
    CALL_SHAPES.answer.write(item, { ...forged, servedFrom: "forged" });
    const draft = new Draft("answers");
    draft.add(ofEpoch, id, item.finish());
    return draft.take()[0]?.bytes ?? new Uint8Array();
  };
  trio.node(1).callFrame(2, answerFrame(epoch + 1));
  trio.node(1).callFrame(3, answerFrame(epoch));
  trio.world.settle();
  t.equal(answers.length, 0, "neither another life nor another node");
  for (const broken of [[], [1], [2, 1, 0, 0, 0, 0], [1, 4, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 200]]) {
    trio.node(1).callFrame(2, Uint8Array.from(broken));
  }
  t.equal(answers.length, 0);
  trio.fate = () => "arrives";
  trio.node(1).linkDown(2);
  trio.world.pass(300);
  t.equal(answers.length, 1, "the read was asked again");
  t.match(answers[0], { type: KvType.doesNotExist, servedFrom: "http://n2" });
  trio.node(1).callFrame(2, answerFrame(epoch));
  t.equal(answers.length, 1, "a late answer finds nobody");
  t.equal(trio.open, 0);
});

t.test("P-033 C12: the farewell of a former life, come late, is of no call of now", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  trio.ask(1, set("before", "1"));
  const former =
    trio.sent.find(({ frame }) => frame.direction === "calls")?.frame.items[0]?.id ?? 0;
  // Node 2 stopped and is there again; what it said last by the former link is still on its way.
  trio.node(1).linkDown(2);
  trio.node(1).linkUp(2);
  trio.sent.length = 0;
  trio.fate = () => "lost";
  const answers = trio.post(1, set("a", "1"));
  trio.world.settle();
  const asked = () => trio.sent.filter(({ to, frame }) => to === 2 && frame.direction === "calls");
  t.equal(asked().length, 1, "it left");
  const { epoch, items } = asked()[0]?.frame ?? { epoch: 0, items: [] };
  const id = items[0]?.id ?? 0;
  t.ok(id > former);
  for (const late of [farewell(epoch, former), farewell(epoch, 0), farewell(epoch + 1, id)]) {
    trio.node(1).callFrame(2, late);
  }
  trio.world.pass(200);
  t.equal(asked().length, 1, "nobody may carry it out twice");
  t.equal(answers.length, 0);
  trio.node(1).callFrame(2, farewell(epoch, id));
  trio.fate = () => "arrives";
  trio.node(1).linkUp(2);
  trio.world.pass(200);
  t.equal(asked().length, 2, "what it says of this link holds");
  t.match(answers, [{ type: KvType.set }]);
  t.equal(trio.open, 0);
});

t.test(
  "P-033 C12: who may have lost an answer does not say farewell (seed 9310078 of placed)",
  async (t) => {
    for (const how of ["link", "no room"] as const) {
      const trio = new Trio();
      trio.moveAll(2);
      const sent = (from: number, direction: string) =>
        trio.sent.filter((one) => one.from === from && one.frame.direction === direction);
      const lost = how === "link" ? "lost" : "refused";
      trio.fate = ({ from, frame }) =>
        from === 2 && frame.direction === "answers" ? lost : "arrives";
      const answers = trio.post(1, set("a", "1"));
      trio.world.settle();
      t.equal(trio.proposals.length, 1, "it is carried out, and the answer is lost on a dead link");
      // The node that asked has a link of its own, which was there all the time.
      if (how === "link") {
        trio.node(2).linkDown(1);
        trio.node(2).linkUp(1);
      } else trio.world.pass(2500);
      trio.fate = () => "arrives";
      t.match(trio.ask(1, set("b", "2")), { type: KvType.set });
      trio.node(2)["serving"].calls.farewell();
      trio.world.settle();
      t.same(sent(2, "farewell"), [], how);
      t.equal(sent(1, "calls").length, 2, "and nobody carries it out twice");
      trio.world.pass(20_000);
      t.match(answers, [{ type: KvType.mustRetry }]);
      t.equal(trio.proposals.length, 2);
      trio.node(2)["serving"].calls.callsCame(1, { direction: "calls", epoch: 99, items: [] });
      trio.node(2)["serving"].calls.farewell();
      t.equal(sent(2, "farewell").length, 1, "another life of that node lost nothing");
    }
  },
);

t.test(
  "P-033 C12: no farewell is of calls whose answers were in a frame that cannot be read",
  async (t) => {
    const trio = new Trio();
    trio.moveAll(2);
    trio.fate = ({ from }) => (from === 2 ? "lost" : "arrives");
    const answers = trio.post(1, set("a", "1"));
    trio.world.settle();
    t.equal(trio.proposals.length, 1, "it is carried out");
    const calls = trio.sent.filter(({ frame }) => frame.direction === "calls");
    const { epoch, items } = calls[0]?.frame ?? { epoch: 0, items: [] };
    trio.node(1).callFrame(2, Uint8Array.of(77, 2, 0, 0, 0, 0));
    trio.node(1).callFrame(2, farewell(epoch, items.at(-1)?.id ?? 0));
    trio.fate = () => "arrives";
    trio.node(1).linkUp(2);
    trio.world.pass(200);
    t.equal(trio.proposals.length, 1, "nobody carries it out twice");
    trio.node(1).linkDown(2);
    trio.world.pass(20_000);
    t.match(answers, [{ type: KvType.mustRetry }]);
    t.equal(trio.proposals.length, 1);
    t.equal(trio.open, 0);
  },
);

t.test("P-128: one bad item of a frame spoils nothing but itself", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  const answers = [
    trio.post(1, set("a", "1")),
    trio.post(1, set("b", "2")),
    trio.post(1, get("c")),
  ];
  trio.fate = () => "lost";
  trio.world.settle();
  const calls = trio.sent.filter(({ frame }) => frame.direction === "calls");
  t.equal(calls.length, 1, "all calls of one turn to one peer share a frame");
  t.equal(calls[0]?.frame.items.length, 3);
  t.ok(answers.every((list) => list.length === 0));
  // The same three, but the kind of the second is unknown to the asked node.
  trio.fate = () => "arrives";
  const replies: unknown[] = [];
  const tamper = new Trio();
  tamper.moveAll(2);
  tamper.fate = ({ frame, from }) => {
    if (from === 2 && frame.direction === "answers") {
      replies.push(...frame.items.map((item) => item.content?.kind));
    }
    return "arrives";
  };
  const bytes: number[] = [1, 1, 7, 0, 0, 0];
  const item = (id: number, kind: number): void => {
    const text = [1, 0x78];
    const head = [id, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, kind];
    const get = [...text, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 1];
    bytes.push(head.length + get.length, ...head, ...get);
  };
  item(1, 23);
  item(2, 99);
  item(3, 23);
  tamper.node(2).callFrame(1, Uint8Array.from(bytes));
  tamper.world.settle();
  t.same(replies.sort(), ["kv", "kv", "not-taken"]);
  t.equal(tamper.open, 0);
});

t.test("large requests and answers travel in parts, beside small ones", async (t) => {
  const trio = new Trio({ responseMaxBytes: 12 << 20 });
  trio.moveAll(2);
  const large = (at: number): Uint8Array => new Uint8Array(1 << 20).fill(65 + at);
  const items = Array.from({ length: 5 }, (_, at) => {
    return { ...set(`big/k${at}`, ""), value: large(at) };
  });
  const small = trio.post(1, set("big/small", "v"));
  const written = trio.ask(1, { kind: "kv-set-many", items });
  t.equal(small[0]?.type, KvType.set);
  t.ok(written.items.every(({ type }) => type === KvType.set));
  const bucket = { kind: "kv-bucket" as const, bucket: "big", durability: 1, plain: true };
  const read = trio.ask(1, bucket);
  t.equal(read.items.length, 6);
  t.ok(read.items.slice(0, 5).every(({ value }, at) => equalBytes(value ?? NONE, large(at))));
  t.ok(trio.sent.length > 20, "in many frames");
  // A lane that refuses a part now and then: a call is sent again as a whole, an answer goes on.
  let count = 0;
  trio.fate = () => (++count % 29 === 3 ? "refused" : "arrives");
  const answers = trio.post(3, bucket);
  const again = trio.post(3, { kind: "kv-set-many", items });
  for (let step = 0; step < 300 && answers.length + again.length < 2; step++) trio.world.pass(10);
  t.equal(answers[0]?.items.length, 6);
  t.ok(again[0]?.items.every(({ type, revision }) => type === KvType.set && revision === 1));
  t.equal(trio.open, 0);
});

t.test("overload, stopping and uninitialised nodes on the way", async (t) => {
  // The executing node admits forwarded requests as its own (contract 11).
  const trio = new Trio({ inflightMax: 4 });
  trio.moveAll(2);
  trio.propose = () => null;
  const held: ((result: { status: "retry" }) => void)[] = [];
  trio.read = () => null;
  const busy = Array.from({ length: 4 }, (_, at) => trio.post(2, set(`k${at}`, "v")));
  const far = trio.post(1, set("x", "v"));
  trio.world.settle();
  t.equal(busy.filter((list) => list.length === 1).length, 4);
  t.equal(far[0]?.type, KvType.set);
  t.equal(held.length, 0);
  const crowd = Array.from({ length: 4 }, (_, at) => trio.post(1, set(`c${at}`, "v")));
  trio.world.settle();
  const overloaded = crowd.filter(([answer]) => answer?.refusal === "overloaded");
  t.equal(overloaded.length, 2, "a peer holds half of the admission at most");
  // A leader that stops refuses; the request goes to the next leader without the caller noticing.
  const stop = new Trio();
  stop.moveAll(2);
  stop.stopping.add(2);
  for (const request of everyRequest("n")) {
    stop.moveAll(2);
    const answers = stop.post(1, request);
    stop.world.pass(50);
    t.equal(answers.length, 0, `${request.kind} waits`);
    stop.moveAll(3);
    stop.world.pass(400);
    t.equal(answers.length, 1, request.kind);
    t.notOk(endTypes(answers[0] as DataAnswer).includes(mustRetryOf(request.kind)), request.kind);
  }
  t.equal(stop.open, 0);
  stop.stopping.delete(2);
  stop.uninitialized.add(1);
  t.match(stop.ask(1, get("n")), { type: KvType.mustRetry, refusal: "not-initialized" });
  stop.uninitialized.clear();
  // An unreachable leader is certain to have done nothing: the request waits for the next one.
  const cut = new Trio();
  cut.moveAll(2);
  cut.fate = ({ to }) => (to === 2 ? "refused" : "arrives");
  const answers = cut.post(1, next("s"));
  const written = cut.post(1, set("n", "v"));
  cut.world.pass(600);
  t.equal(answers.length + written.length, 0);
  t.ok(cut.sent.length < 20, `an unreachable peer is tried now and then: ${cut.sent.length}`);
  cut.moveAll(3);
  cut.world.pass(30);
  t.equal(answers[0]?.type, SequenceType.notFound);
  t.equal(written[0]?.type, KvType.set);
  t.equal(cut.proposals.length, 1, "proposed once");
  // It is waited for as long as for any leader, not for a number of tries.
  cut.moveAll(2);
  const long = [cut.post(1, set("n", "v")), cut.post(1, scanAll("n"))];
  cut.world.pass(1700);
  t.same(
    long.map((list) => list.length),
    [0, 0],
  );
  cut.fate = () => "arrives";
  cut.world.pass(300);
  t.same(
    long.map((list) => list[0]?.type),
    [KvType.set, KvType.got],
  );
  t.equal(cut.open, 0);
});

t.test("P-162: who waits for another node when this one stops is answered first", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  trio.fate = ({ to }) => (to === 1 ? "lost" : "arrives");
  const kinds = everyRequest("n");
  const answers = kinds.map((request) => trio.post(1, request));
  trio.world.settle();
  t.ok(answers.every((list) => list.length === 0) && trio.node(1).inflight > 0, "all of them wait");
  trio.stopping.add(1);
  let finished = 0;
  const stopMs = trio.world.timer.nowMs;
  trio.node(1).finish(stopMs + 10_000, () => void finished++);
  trio.world.pass(500);
  t.equal(finished, 0, "answers may still come");
  trio.world.pass(600);
  t.equal(finished, 1);
  trio.world.pass(100);
  for (const [at, list] of answers.entries()) t.equal(list.length, 1, kinds[at]?.kind ?? "");
  t.equal(trio.node(1).inflight, 0);
  // With nobody waiting, and behind the deadline, it is over at once.
  trio.node(1).finish(stopMs, () => void finished++);
  trio.world.pass(1);
  t.equal(finished, 2);
});

t.test(
  "P-197 C12: what a node did not take before its stop is asked of the next leader",
  async (t) => {
    for (const request of everyRequest("n")) {
      const { kind } = request;
      const trio = new Trio();
      trio.moveAll(2);
      trio.ask(1, create("n"));
      // The call is still on its way when the node says that it takes no more.
      trio.fate = ({ frame }) => (frame.direction === "calls" ? "lost" : "arrives");
      const answers = trio.post(1, request);
      trio.world.settle();
      trio.stopping.add(2);
      trio.node(2).finish(trio.world.timer.nowMs + 1000, () => undefined);
      trio.fate = () => "arrives";
      trio.world.settle();
      trio.node(1).linkDown(2);
      trio.moveAll(3);
      trio.world.pass(200);
      t.equal(answers.length, 1, kind);
      const types = endTypes(answers[0] as DataAnswer);
      t.notOk(types.includes(mustRetryOf(kind)), `${kind}: ${types.join()}`);
      t.equal(trio.open, 0);
    }
  },
);

t.test("P-197 C12: a leader that could not prove itself in time tries again", async (t) => {
  for (const at of [1, 2]) {
    for (const durability of [1, 0]) {
      const trio = new Trio();
      trio.moveAll(2);
      trio.ask(1, create("n"));
      for (const request of everyRequest("n", durability)) {
        let refusals = 1;
        trio.read = () => (refusals-- > 0 ? { status: "retry" } : null);
        const answers = trio.post(at, request);
        trio.world.pass(200);
        t.equal(answers.length, 1, request.kind);
        const types = endTypes(answers[0] as DataAnswer);
        t.notOk(types.includes(mustRetryOf(request.kind)), `${request.kind}: ${types.join()}`);
      }
      t.equal(trio.open, 0);
    }
  }
});

t.test("P-150: a node that lost the others answers at once, until it finds them", async (t) => {
  const trio = new Trio({ leaderWaitMs: 500 });
  trio.moveAll(0);
  const first = everyRequest("n").map((request) => trio.post(1, request));
  trio.world.pass(600);
  t.ok(
    first.every((list) => list.length === 1),
    "the first wait",
  );
  for (const request of everyRequest("n")) {
    const answer = trio.ask(1, request);
    t.same([...new Set(endTypes(answer))], [mustRetryOf(request.kind)], request.kind);
    t.same(routesOf(answer), []);
  }
  trio.moveAll(3);
  trio.world.pass(20);
  t.equal(trio.ask(1, set("n", "v")).type, KvType.set);
  trio.moveAll(0);
  const again = trio.post(1, set("n", "v"));
  trio.world.pass(200);
  t.equal(again.length, 0, "the next loss is waited for again");
  trio.moveAll(2);
  trio.world.pass(20);
  t.equal(again[0]?.type, KvType.set);
  t.equal(trio.open, 0);
});

t.test("a proposal refused before it entered the log goes to the new leader", async (t) => {
  for (const at of [1, 3]) {
    const trio = new Trio();
    trio.moveAll(1);
    let moved = 0;
    trio.propose = (_command, node) => {
      if (node !== 1) return null;
      moved++;
      trio.moveAll(2);
      return { status: "refused", reason: "not-leader" };
    };
    trio.read = (node) => {
      if (node !== 1) return null;
      trio.moveAll(2);
      return { status: "retry" };
    };
    for (const request of everyRequest("n")) {
      trio.moveAll(1);
      const answers = trio.post(at, request);
      trio.world.pass(200);
      t.equal(answers.length, 1, request.kind);
      const answer = answers[0] as DataAnswer;
      t.notOk(endTypes(answer).includes(mustRetryOf(request.kind)), `${request.kind} at ${at}`);
      for (const route of routesOf(answer)) t.equal(route.endpoint, "http://n2");
    }
    t.ok(moved > 5, `${moved} proposals were refused`);
    t.equal(trio.open, 0);
  }
});

t.test("S8: keyless next and reserve go on when their leader ends under them", async (t) => {
  for (const at of [1, 3]) {
    for (const when of ["round", "reservation", "unknown"] as const) {
      const trio = new Trio();
      trio.moveAll(1);
      trio.ask(2, create("n", { blockSize: 10 }));
      // A block is open at node 1: what is left of it is skipped, never given again.
      const first = trio.ask(at, reserve("n", 3));
      t.equal(first.allocation?.end.toBigInt(), 3n);
      const answers = when === "round" ? [next("n"), reserve("n", 2)] : [reserve("n", 20)];
      const node = (id: number) => id === 1 && trio.leaderOf(trio.partitionOf("n")) === 1;
      if (when === "round") {
        trio.read = (id) => {
          if (id !== 1) return null;
          trio.moveAll(2);
          return { status: "retry" };
        };
      } else {
        const end = (_command: unknown, id: number): ProposalResult | null => {
          if (!node(id)) return null;
          trio.moveAll(2);
          if (when === "unknown") return { status: "unknown" };
          return { status: "refused", reason: "not-leader" };
        };
        if (when === "unknown") trio.hide = end;
        else trio.propose = end;
      }
      const lists = answers.map((request) => trio.post(at, request));
      trio.world.pass(300);
      const seen = new Set<bigint>([1n, 2n, 3n]);
      for (const [answer] of lists) {
        t.equal(answer?.type, SequenceType.success, `${when} at ${at}`);
        const { start, end } = answer?.allocation ?? {};
        for (let value = start?.toBigInt() ?? 1n; value <= (end?.toBigInt() ?? 1n); value++) {
          t.notOk(seen.has(value), `${value} is given once`);
          seen.add(value);
        }
      }
      t.ok(seen.size > 5);
      t.equal(trio.open, 0);
    }
  }
});

t.test("what the stop of a leader ends without effect goes to the next one", async (t) => {
  for (const status of ["read", "proposal"] as const) {
    const trio = new Trio();
    trio.moveAll(2);
    trio.ask(2, create("n"));
    // Node 2 begins to stop while it has the request, and ends it.
    const stop = (node: number) => {
      if (node !== 2) return null;
      trio.stopping.add(2);
      return { status: "aborted" } as const;
    };
    if (status === "read") trio.read = stop;
    else trio.propose = (_command, node) => stop(node);
    for (const request of everyRequest("n")) {
      trio.stopping.clear();
      trio.moveAll(2);
      const answers = trio.post(1, request);
      trio.world.pass(100);
      trio.moveAll(3);
      trio.world.pass(400);
      const label = `${status}: ${request.kind}`;
      t.equal(answers.length, 1, label);
      const [type] = endTypes(answers[0] as DataAnswer);
      t.not(type, mustRetryOf(request.kind), label);
      t.not(type, mustRetryOf(request.kind) + 3, label);
      t.equal(answers[0]?.servedFrom === "http://n2" && trio.stopping.has(2), false, label);
    }
    // Without a stop, "aborted" is an end of its own: a deadline passed in a queue.
    trio.stopping.clear();
    trio.moveAll(2);
    trio.propose = () => ({ status: "aborted" });
    trio.read = null;
    t.equal(trio.ask(1, set("n", "v")).type, KvType.aborted);
    t.equal(trio.open, 0);
  }
  // The node that stops itself ends what it has begun.
  const trio = new Trio();
  trio.moveAll(1);
  const late = trio.post(1, get("n"));
  trio.stopping.add(1);
  trio.world.settle();
  t.match(late[0], { type: KvType.doesNotExist, refusal: null }, "a read that was begun ends");
});

t.test("a many-call that bounces is bounded, as any other", async (t) => {
  const trio = new Trio({ leaderWaitMs: 2000 });
  trio.moveAll(1);
  let proposed = 0;
  trio.propose = () => {
    proposed++;
    // This node lost its leadership, and has it again at once.
    trio.moveAll(0);
    trio.world.timer.after(1, () => trio.moveAll(1));
    return { status: "refused", reason: "not-leader" };
  };
  const single = trio.post(1, set("a", "v"));
  trio.world.pass(20_000);
  t.equal(single.length, 1);
  const ofSingle = proposed;
  const many = trio.post(1, { kind: "kv-set-many", items: [set("a", "v")] });
  trio.world.pass(20_000);
  t.same(
    many[0]?.items.map(({ type }) => type),
    [KvType.mustRetry],
  );
  t.ok(proposed - ofSingle <= ofSingle + 1, `${proposed - ofSingle} proposals, not ${ofSingle}`);
  t.equal(trio.open, 0);
});

t.test("a lane that is full is no node that cannot be reached", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  trio.queuedBytes = 1 << 20;
  trio.fate = ({ to }) => (to === 2 ? "refused" : "arrives");
  for (const request of everyRequest("n")) {
    const answers = trio.post(1, request);
    trio.world.settle();
    t.match(answers[0], { refusal: "overloaded" }, request.kind);
  }
  trio.fate = () => "arrives";
  t.equal(trio.ask(1, set("n", "v")).type, KvType.set, "and the next request is forwarded");
  trio.fate = ({ to }) => (to === 2 ? "refused" : "arrives");
  trio.ask(1, set("n", "v"));
  const hopped = trio.ask(1, set("n", "v"), 1);
  t.equal(hopped.route?.endpoint, "http://n2", "hints name it");
  t.equal(trio.open, 0);
});

t.test("K11, K15: many-calls and scans over three leaders", async (t) => {
  const trio = new Trio();
  const keys = Array.from({ length: 300 }, (_, at) => `dir${at % 40}/k${at}`);
  const spread = new Set(keys.map((key) => trio.partitionOf(key.split("/")[0] ?? "")));
  t.equal(spread.size, 3, "the keys lie on all partitions");
  const items = keys.map((key) => set(key, `value of ${key}`));
  const written = trio.ask(2, { kind: "kv-set-many", items });
  t.ok(written.items.every((item, at) => item.type === KvType.set && item.key === keys[at]));
  t.same([...new Set(written.items.map((item) => item.servedFrom))].sort(), [
    "http://n1",
    "http://n2",
    "http://n3",
  ]);
  for (const item of written.items) {
    const route = written.routes[item.routeIndex - 1];
    t.equal(route?.endpoint, item.servedFrom);
    t.equal(route?.provenance, item.servedFrom === "http://n2" ? 1 : 2);
  }
  const read = trio.ask(3, {
    kind: "kv-get-many",
    items: keys.map((key) => get(key)),
    plain: true,
  });
  t.ok(
    read.items.every(({ key, value }) =>
      new TextDecoder().decode(value ?? encode("")).endsWith(key),
    ),
  );
  const sorted = [...keys].sort();
  for (const limit of [0, 1, 7, 100, 299, 300, 301]) {
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      // Each page at another node: the cursor serves everywhere.
      const request = scanAll("dir", { limit, cursor });
      const page = trio.ask(1 + (pages % 3), request);
      t.equal(page.type, KvType.got);
      if (limit > 0) t.ok(page.items.length <= limit);
      t.equal(page.hasMore, page.nextCursor !== null);
      seen.push(...page.items.map((item) => item.key));
      cursor = page.nextCursor;
      pages++;
      if (limit === 1 && pages > 12) break;
    } while (cursor !== null);
    if (limit !== 1) t.same(seen, sorted, `limit ${limit}`);
    else t.same(seen, sorted.slice(0, seen.length));
    if (limit === 7) t.equal(pages, Math.ceil(300 / 7));
  }
  // Pages end by size at the same key wherever they are asked for.
  const small = new Trio({ pageBytes: 2000 });
  const whole = new Trio({ pageBytes: 2000 });
  whole.moveAll(1);
  for (const each of [small, whole]) each.ask(1, { kind: "kv-set-many", items });
  let cursor: string | null = null;
  for (let pages = 0; pages < 40; pages++) {
    const request = scanAll("dir", { limit: 10_000, cursor });
    const page = small.ask(1 + (pages % 3), request);
    const own = whole.ask(1, request);
    t.same(
      [page.items.map(({ key }) => key), page.nextCursor],
      [own.items.map(({ key }) => key), own.nextCursor],
    );
    cursor = page.nextCursor;
    if (cursor === null) break;
  }
  t.equal(cursor, null);
  const local = trio.ask(2, { ...scanAll("dir"), kind: "kv-scan-local" });
  const own = keys.filter((key) => trio.leaderOf(trio.partitionOf(key.split("/")[0] ?? "")) === 2);
  t.same(
    local.items.map(({ key }) => key),
    own.sort(),
    "K17: only what this node leads",
  );
  // One partition loses its leader: its items alone end without one.
  trio.move(1, 0);
  const [partly] = (() => {
    const answers = trio.post(2, { kind: "kv-set-many", items });
    trio.world.pass(2500);
    return answers;
  })();
  for (const { key, type } of partly?.items ?? []) {
    const lost = trio.partitionOf(key.split("/")[0] ?? "") === 1;
    t.equal(type, lost ? KvType.mustRetry : KvType.set);
  }
  t.equal(partly?.type, KvType.set);
});

t.test("a forwarded request is in the log of both nodes under the id of its caller", async (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  t.equal(trio.ask(1, set("k", "v")).type, KvType.set);
  const named = trio.world.logLines.filter((line) => line.includes('"requestId":"trio"'));
  t.equal(named.length, 2);
  t.match(named[0], /^debug request to another node .*"to":2,.*"kind":"kv-set"/);
  t.match(named[1], /^debug request of another node .*"from":1,"kind":"kv-set"/);
});

t.test("6.2 to 6.4: the meta partition is led elsewhere", async (t) => {
  const trio = new Trio();
  trio.move(0, 2);
  const context = { deadlineMs: 1e9, forwardHops: 0, requestId: "t" };
  const wait = <T>(start: (done: (answer: T) => void) => void): T => {
    const answers: T[] = [];
    start((answer) => void answers.push(answer));
    for (let step = 0; step < 300 && answers.length === 0; step++) trio.world.pass(10);
    t.equal(answers.length, 1, "answered once");
    return answers[0] as T;
  };
  const { leaders, initialized, coherent } = view(trio.node(1), "cluster.routing", {
    keySpace: "",
  });
  t.ok(initialized && coherent);
  t.same(
    leaders,
    [0, 1, 2, 3].map((id) => ({ partitionId: id, endpoint: `http://n${trio.leaderOf(id)}` })),
    "every partition with the endpoint of its leader",
  );
  trio.move(3, 0);
  t.equal(
    view(trio.node(1), "cluster.routing", { keySpace: "" }).leaders[3]?.endpoint,
    "",
    "unknown",
  );
  trio.move(3, 1);
  const register = (node: number) =>
    wait<{ status: string; descriptorCount: number; routingMode: string }>((done) =>
      administer(trio.node(node), "ranges.register", { keySpace: "space" }, context, done),
    );
  t.match(register(1), { status: "Seeded", descriptorCount: 1, routingMode: "KeyRange" });
  t.match(register(3), { status: "AlreadySeeded", descriptorCount: 1, routingMode: "KeyRange" });
  t.ok(
    trio.proposals.every(([node]) => node === 2),
    "proposed where the meta partition is led",
  );
  for (let at = 0; at < 12; at++) trio.ask(1, set(`space/k${at}`, "v"));
  const split = (node: number) =>
    wait<{ status: string; leaderHint: string }>((done) =>
      administer(
        trio.node(node),
        "ranges.split",
        { keySpace: "space", splitKey: "space/k5" },
        context,
        done,
      ),
    );
  t.match(split(1), { status: "NotLeader", leaderHint: "http://n2" });
  const merge = wait<{ status: string; leaderHint: string }>((done) =>
    administer(trio.node(3), "ranges.merge", {}, context, done),
  );
  t.match(merge, { status: "NotLeader", leaderHint: "http://n2" });
  const factor = wait<{ status: string; reason: string }>((done) =>
    administer(
      trio.node(1),
      "cluster.setReplicationFactor",
      { partitionId: 1, replicationFactor: 1 },
      context,
      done,
    ),
  );
  t.equal(factor.status, "Refused", "5.4: the node does not lead the meta partition");
  const removed = wait<{ status: string; descriptorCount: number }>((done) =>
    administer(trio.node(3), "ranges.unregister", { keySpace: "space" }, context, done),
  );
  t.match(removed, { status: "Removed", descriptorCount: 0 });
  t.equal(trio.ask(3, get("space/k1")).type, KvType.got);
  trio.move(0, 0);
  const open = wait<{ status: string }>((done) =>
    administer(trio.node(1), "ranges.register", { keySpace: "x" }, context, done),
  );
  t.equal(open.status, "Indeterminate");
  t.equal(trio.open, 0);
});

t.test("a partition that this node does not host is found through the others", async (t) => {
  const trio = new Trio();
  for (const [nodeId, endpoint] of [
    [2, "n2:8084"],
    [3, "n3:8084"],
  ] as const) {
    const meta = trio.host.metaGroup();
    const add = { kind: "add-member", ...newMember(nodeId, endpoint, `disk${nodeId}`) } as const;
    meta.propose(add, 100, 1e9, () => undefined);
    trio.world.settle();
    meta.propose({ kind: "set-member-role", nodeId, role: "voter" }, 100, 1e9, () => undefined);
    trio.world.settle();
  }
  for (const partition of [1, 2, 3]) trio.unhosted.add(`1/${partition}`);
  const name = nameOn(trio, 2, (text) => text);
  const first = trio.post(1, set(name, "v"));
  trio.world.pass(200);
  t.equal(first[0]?.type, KvType.set);
  const hopsBefore = trio.sent.length;
  t.equal(trio.ask(1, get(name)).type, KvType.got);
  t.ok(trio.sent.length - hopsBefore <= 2, "the second time it knows whom to ask");
});

/** Partition 1 is placed by its record; node 1 has nothing of it yet, or no more. */
function placedApart(learners: readonly number[] = []): Trio {
  const trio = new Trio();
  const meta = trio.host.metaGroup();
  const decide = (command: Command): void => {
    meta.propose(command, 200, 1e9, () => undefined);
    trio.world.settle();
  };
  for (const nodeId of [2, 3]) {
    decide({ kind: "add-member", ...newMember(nodeId, `n${nodeId}:8084`, `disk${nodeId}`) });
  }
  const voters = [1, 2, 3].filter((nodeId) => !learners.includes(nodeId));
  decide(place(1, 5, voters, learners));
  t.equal(trio.host.metaGroup().machine.meta.partition(1)?.mode, "placed");
  trio.unhosted.add("1/1");
  return trio;
}

/** Whom node 1 asked since `from`. */
function askedSince(trio: Trio, from: number): number[] {
  const sent = trio.sent.slice(from).filter((each) => each.from === 1);
  return sent.map(({ to }) => to);
}

t.test("who hosts nothing of a placed partition asks its replicas in turn", async (t) => {
  const trio = placedApart();
  const name = nameOn(trio, 1, (text) => text);
  trio.move(1, 3);
  const first = trio.post(1, set(name, "v"));
  trio.world.pass(200);
  t.equal(first[0]?.type, KvType.set);
  trio.move(1, 2);
  let from = trio.sent.length;
  const second = trio.post(1, get(name));
  trio.world.pass(200);
  t.equal(second[0]?.type, KvType.got);
  t.strictSame(askedSince(trio, from), [3, 2], "the last known leader first, then whom it names");
  trio.fate = ({ from: by, to }) => (by === 1 && to === 2 ? "refused" : "arrives");
  trio.move(1, 3);
  from = trio.sent.length;
  const third = trio.post(1, get(name));
  trio.world.pass(200);
  t.equal(third[0]?.type, KvType.got);
  t.strictSame(askedSince(trio, from), [2, 3], "one that is out of reach is not waited for");
});

t.test("who reports that it leads is asked, until it turns out that it does not", async (t) => {
  const trio = placedApart();
  const name = nameOn(trio, 1, (text) => text);
  trio.move(1, 3);
  trio.reported.set(1, 3);
  const { leaders } = view(trio.node(1), "cluster.routing", { keySpace: "" });
  t.match(leaders[1], { partitionId: 1, endpoint: "http://n3" }, "clients hear of it");
  let from = trio.sent.length;
  t.equal(trio.ask(1, set(name, "v")).type, KvType.set);
  t.strictSame(askedSince(trio, from), [3]);
  const other = placedApart();
  other.move(1, 3);
  other.reported.set(1, 2);
  other.beliefs.set("2/1", 0);
  from = other.sent.length;
  const found = other.post(1, set(name, "v"));
  other.world.pass(500);
  t.equal(found[0]?.type, KvType.set);
  t.equal(askedSince(other, from)[0], 2);
  t.ok(askedSince(other, from).length <= 4, "one that knows nothing is not asked again and again");
});

t.test("C11: a hint names a replica where the leader is unknown", async (t) => {
  const trio = placedApart();
  const name = nameOn(trio, 1, (text) => text);
  const answer = trio.ask(1, get(name), 1);
  t.equal(answer.type, KvType.mustRetry);
  t.match(answer.route?.endpoint, /^http:\/\/n[23]$/);
  trio.reported.set(1, 3);
  t.equal(trio.ask(1, get(name), 1).route?.endpoint, "http://n3", "else the leader");
});

t.test("P-109 a replica that comes only now asks whom others heard of, a voter does not", (t) => {
  for (const learners of [[], [1]]) {
    const trio = placedApart(learners);
    const name = nameOn(trio, 1, (text) => text);
    trio.unhosted.clear();
    trio.move(1, 3);
    trio.beliefs.set("1/1", 0);
    trio.reported.set(1, 3);
    const answers = trio.post(1, set(name, "v"));
    trio.world.pass(200);
    t.equal(answers.length, learners.length, "a voter waits for what its own group says");
    trio.beliefs.delete("1/1");
    trio.world.pass(200);
    t.equal(answers[0]?.type, KvType.set);
  }
  t.end();
});

t.test("K15: pages of parts that ended anywhere hold every key once, in order", async (t) => {
  const random = new Prng(15);
  for (let round = 0; round < 300; round++) {
    const nodes = 1 + random.below(4);
    const held = Array.from({ length: nodes }, (): string[] => []);
    const count = random.below(60);
    for (let key = 0; key < count; key++) held[random.below(nodes)]?.push(`k${1000 + key * 3}`);
    const limit = random.below(9);
    const pageBytes = random.chance(1, 2) ? 1 << 20 : 70 * (1 + random.below(5));
    const seen: string[] = [];
    let after: string | null = null;
    for (let pages = 0; pages < 500; pages++) {
      const from: string = after ?? "";
      const parts = held.map((keys) => {
        const rest = keys.filter((key) => key > from);
        const shown = rest.slice(0, random.below(rest.length + 1));
        // A part may end behind its last item: rows were looked at that are not shown.
        const last = shown.at(-1) ?? (from === "" ? "k" : from);
        const ended = shown.length === rest.length && random.chance(1, 2);
        const following = rest[shown.length];
        const reached = following === undefined && !ended ? `${last}!` : last;
        const items = shown.map((key) => {
          return {
            key,
            value: null,
            revision: 0,
            expires: NO_STAMP,
            lastModified: NO_STAMP,
            state: 1,
          };
        });
        return { items, next: ended ? null : encodeText(reached), spaces: [] };
      });
      const page = combineParts(parts, { limit, maxBytes: pageBytes, whole: false });
      if (page === "too-large") return t.fail("a paged scan is not refused");
      if (limit > 0 && parts.length > 1 && page.items.length > limit) t.fail("within the limit");
      seen.push(...page.items.map(({ key }) => key));
      if (page.next === null) break;
      after = new TextDecoder().decode(page.next);
      const last = page.items.at(-1);
      if (last !== undefined && compareText(last.key, after) > 0) t.fail("next is behind the page");
    }
    t.same(seen, held.flat().sort(), `round ${round}`);
  }
});
