/** Traced requests over three nodes: who records what, and what goes along with a forward. */
import t from "tap";
import { LockType } from "../../../src/machine/commands/command.js";
import type { TracerPort, TraceParent } from "../../../src/operations/api/tracing.js";
import { Trace } from "../../../src/operations/api/tracing.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { Tracer } from "../../../src/server/tracing/tracer.js";
import type { EndedSpan } from "../../../src/server/tracing/spans.js";
import { everyRequest } from "../../doubles/operations/every-request.js";
import { get, lock, set } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";

const PARENT: TraceParent = { traceId: "a".repeat(32), spanId: "b".repeat(16), flags: 1 };

interface Recorded extends EndedSpan {
  readonly node: number;
}

/** Three nodes that record, at the newest level or another one. */
function traced(entryLevel = 2): { trio: Trio; spans: Recorded[] } {
  const spans: Recorded[] = [];
  let made = 0;
  const tracerOf = (node: number): TracerPort => {
    const clock = {
      monotonicMs: () => trio.world.timer.nowMs,
      wallMs: () => 1e12 + trio.world.timer.nowMs,
    };
    const spanId = (): string => (++made).toString(16).padStart(16, "0");
    return new Tracer({ clock, spanId }, { add: (span) => void spans.push({ ...span, node }) });
  };
  const trio: Trio = new Trio({}, { entryLevel }, tracerOf);
  return { trio, spans };
}

function ask(trio: Trio, at: number, request: DataRequest, parent: TraceParent | null): void {
  trio.post(at, request, parent === null ? {} : { trace: new Trace(parent) });
  trio.world.settle();
}

const told = ({ node, name, parentId, spanId }: Recorded): unknown[] => [
  node,
  name,
  parentId,
  spanId,
];

t.test("contract 1.5 item 6: spans over two nodes hang together", (t) => {
  const { trio, spans } = traced();
  trio.moveAll(3);
  ask(trio, 1, set("k", "v"), PARENT);
  const of = (name: string, node: number): Recorded => {
    const found = spans.filter((span) => span.name === name && span.node === node);
    t.equal(found.length, 1, `${name} at node ${node}: ${JSON.stringify(spans.map(told))}`);
    return found[0] as Recorded;
  };
  const server = of("kv-set", 1);
  const forward = of("forward", 1);
  const there = of("kv-set", 3);
  t.equal(server.parentId, PARENT.spanId);
  t.equal(forward.parentId, server.spanId);
  t.equal(there.parentId, forward.spanId);
  for (const name of ["queue", "replicate", "apply"]) {
    const step = of(name, 3);
    t.equal(step.parentId, there.spanId);
    t.ok(step.startMs >= there.startMs && step.endMs <= there.endMs && step.startMs <= step.endMs);
  }
  t.equal(spans.length, 6);
  t.equal(new Set(spans.map(({ spanId }) => spanId)).size, 6);
  for (const span of spans) t.equal(span.traceId, PARENT.traceId);
  t.match(forward.attributes, { "svc.to_node": 3, "svc.status": "kv" });
  t.match(there.attributes, { "svc.request_id": "trio", "svc.hops": 1 });
  spans.length = 0;
  ask(trio, 3, get("k"), PARENT);
  t.same(
    spans.map(({ name }) => name),
    ["kv-get"],
    "a read here is one span",
  );
  t.end();
});

t.test("what is not sampled, and what has no trace, leaves nothing", (t) => {
  const { trio, spans } = traced();
  trio.moveAll(3);
  ask(trio, 1, set("k", "v"), { ...PARENT, flags: 0 });
  const sent = (): unknown[] =>
    trio.sent.flatMap(({ frame }) =>
      frame.direction !== "calls" ? [] : frame.items.map(({ content }) => content?.trace),
    );
  t.same(sent(), [{ ...PARENT, flags: 0 }], "it goes along all the same");
  ask(trio, 1, set("k", "v"), null);
  t.same(sent()[1], null);
  t.same(spans, []);
  t.end();
});

t.test("a node that records nothing hands on what it was told", (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  ask(trio, 1, set("k", "v"), PARENT);
  const calls = trio.sent.filter(({ frame }) => frame.direction === "calls");
  t.same(calls[0]?.frame.items[0]?.content, {
    ...calls[0]?.frame.items[0]?.content,
    trace: PARENT,
  });
  t.end();
});

t.test("P-030 below level 2 no trace is sent: programs of level 1 cannot read it", (t) => {
  const { trio, spans } = traced(1);
  trio.moveAll(3);
  ask(trio, 1, set("k", "v"), PARENT);
  t.same(
    spans.map(told).map(([node, name]) => [node, name]),
    [[1, "kv-set"]],
  );
  t.end();
});

t.test("every kind of request ends the spans that it began, at each node", (t) => {
  const { trio, spans } = traced();
  for (const at of [1, 2, 3]) {
    for (const request of everyRequest("r")) {
      spans.length = 0;
      ask(trio, at, request, PARENT);
      trio.world.pass(20_000);
      const ids = new Set([PARENT.spanId, ...spans.map(({ spanId }) => spanId)]);
      t.ok(
        spans.some(({ node, name }) => node === at && name === request.kind),
        request.kind,
      );
      const lost = spans.filter(({ parentId }) => !ids.has(parentId));
      t.same(lost.map(told), [], `${request.kind} at node ${at}: every parent is there`);
    }
  }
  t.equal(trio.open, 0);
  t.end();
});

t.test(
  "a lock that is tried under contention, and its release, are followed through the log",
  (t) => {
    const { trio, spans } = traced();
    trio.moveAll(1);
    for (const request of [
      lock("r", "a"),
      { ...lock("r", "a"), kind: "try-unlock" } as DataRequest,
    ]) {
      spans.length = 0;
      const [answer] = trio.post(1, request, { trace: new Trace(PARENT) });
      trio.world.settle();
      t.not(answer?.type, LockType.errored);
      t.same(
        spans.map(({ name }) => name).sort(),
        ["apply", "queue", "replicate", request.kind].sort(),
      );
    }
    t.end();
  },
);
