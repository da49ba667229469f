/** Operations of a higher level than the cluster's: answered so by every node, without effect. */
import t from "tap";
import { present } from "../../../src/base/assert.js";
import { level } from "../../../src/base/ids.js";
import { PERMITS, permitsOf } from "../../../src/base/levels.js";
import { KvType } from "../../../src/base/result-types.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { readCall } from "../../../src/operations/wire/calls.js";
import { get, scanAll, set } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";

/** As it would be if level 2 had brought these. */
const permits = permitsOf(PERMITS.commands, {
  ...PERMITS.operations,
  "kv-extend": 2,
  "kv-set-many": 2,
  "kv-scan-all": 2,
  "cluster.placement": 2,
});

const extend = {
  kind: "kv-extend",
  key: "a",
  expiresMs: 1000,
  durability: 1,
  plain: true,
} as const;

t.test("U8 every node answers so until the partition is at the level", (t) => {
  const trio = new Trio({ permits }, { entryLevel: 1 });
  trio.ask(1, set("a", "v"));
  const early: readonly DataRequest[] = [
    extend,
    { kind: "kv-set-many", items: [set("b", "v")] },
    scanAll("a"),
  ];
  for (const at of [1, 2, 3]) {
    for (const request of early) {
      const answer: DataAnswer = trio.ask(at, request);
      t.equal(answer.refusal, "not-available-at-level", `${request.kind} at node ${at}`);
      t.equal(answer.servedFrom, null);
    }
    t.equal(trio.ask(at, get("a")).refusal, null, "what is of the level goes on");
  }
  t.equal(trio.proposals.filter(([, kind]) => kind === "kv-extend").length, 0, "no effect");
  const partition = trio.partitionOf("a");
  trio.host
    .groups()
    [partition]?.propose(
      { kind: "set-level", level: level(2) },
      32,
      trio.world.timer.nowMs + 1000,
      () => undefined,
    );
  trio.world.settle();
  for (const at of [1, 2, 3]) t.match(trio.ask(at, extend), { refusal: null, type: 2 });
  t.equal(trio.ask(1, scanAll("a")).refusal, "not-available-at-level", "this goes by the cluster");
  t.equal(trio.open, 0);
  t.end();
});

t.test(
  "U8 while a raised level is on its way to the partition, the same request may come again",
  (t) => {
    const trio = new Trio({ permits }, { entryLevel: 1 });
    const { machine } = trio.host.metaGroup();
    const raised = { ...present(machine.meta.cluster(), "it was founded"), level: level(2) };
    const { meta } = machine;
    meta.cluster = () => raised;
    const answer = trio.ask(1, extend);
    t.strictSame([answer.type, answer.refusal], [KvType.mustRetry, null]);
    t.equal(trio.proposals.filter(([, kind]) => kind === "kv-extend").length, 0, "no effect");
    t.end();
  },
);

t.test("U8 an administrative call goes by the level of the cluster", (t) => {
  const trio = new Trio({ permits }, { entryLevel: 1 });
  const ends: unknown[] = [];
  const context = { deadlineMs: 1e9, forwardHops: 0, requestId: "" };
  trio.node(2).administration["cluster.placement"]({}, context, (end) => void ends.push(end));
  t.strictSame(ends, [], "in no turn");
  trio.world.settle();
  t.strictSame(ends, [{ notAtLevel: true }]);
  trio.node(2).administration["cluster.membership"]({}, context, (end) => void ends.push(end));
  t.match(ends[1], { answer: { initialized: true } });
  t.end();
});

t.test("U8 a forwarded call of an unknown kind is answered so, never dropped", (t) => {
  const trio = new Trio();
  const partition = trio.partitionOf("a");
  const leader = trio.leaderOf(partition);
  const asker = (leader % 3) + 1;
  const node = trio.node(leader);
  const callFrame = node.callFrame.bind(node);
  let unknown = 0;
  // The leader runs a program that does not know the kind: its number means nothing there.
  node.callFrame = (from, bytes) => {
    const copy = bytes.slice();
    // Behind the head of the frame, and size, id and part of its only item.
    const body = copy.subarray(16);
    const call = readCall(0, body);
    if (call?.request.kind === "kv-extend") {
      body[4 + 1 + call.requestId.length] = 99;
      unknown++;
    }
    callFrame(from, copy);
  };
  const answer = trio.ask(asker, extend);
  t.equal(unknown, 1);
  t.equal(answer.refusal, "not-available-at-level");
  t.equal(trio.open, 0);
  t.end();
});
