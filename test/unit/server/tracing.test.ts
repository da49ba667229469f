/** Spans on their way to a collector: what is read of a caller's header, what is sent, what is dropped. */
import t from "tap";
import { ByteReader, ByteWriter } from "../../../src/base/codec.js";
import { TRACE_BATCH_MAX, TRACE_SPANS_MAX } from "../../../src/base/limits.js";
import {
  TRACE_BYTES,
  type TraceParent,
  readTrace,
  traceOf,
  writeTrace,
} from "../../../src/operations/api/tracing.js";
import { makeConfig } from "../../../src/server/flags/config.js";
import { readFlags } from "../../../src/server/flags/flags.js";
import { collectorUrl } from "../../../src/server/tracing/collector.js";
import { type Posted, SpanExporter } from "../../../src/server/tracing/exporter.js";
import { type EndedSpan, SpanKind, spansDocument } from "../../../src/server/tracing/spans.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const read = (text: string): TraceParent | null => traceOf(text)?.parent ?? null;
const SPAN = "00f067aa0ba902b7";

t.test(
  "contract 1.5 item 6: a traceparent is read as W3C Trace Context has it, or not at all",
  (t) => {
    const parent = { traceId: TRACE, spanId: SPAN, flags: 1 };
    t.same(read(`00-${TRACE}-${SPAN}-01`), parent);
    t.same(read(`00-${TRACE}-${SPAN}-00`), { ...parent, flags: 0 });
    t.same(read(`00-${TRACE}-${SPAN}-ff`), { ...parent, flags: 255 });
    t.same(read(`cc-${TRACE}-${SPAN}-01-more`), parent, "of a later version, its beginning");
    for (const bad of [
      "",
      "00",
      `00-${TRACE}-${SPAN}`,
      `00-${TRACE}-${SPAN}-1`,
      `00-${TRACE}-${SPAN}-01-more`,
      `00-${TRACE}-${SPAN}-01.`,
      `cc-${TRACE}-${SPAN}-01.more`,
      `ff-${TRACE}-${SPAN}-01`,
      `00-${"0".repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${"0".repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${SPAN}-01`,
      `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
      ` 00-${TRACE}-${SPAN}-01`,
      `cc-${TRACE}-${SPAN}-01-${"x".repeat(1000)}`,
    ]) {
      t.equal(read(bad), null, bad.slice(0, 60));
    }
    t.end();
  },
);

t.test("between nodes it takes 25 bytes", (t) => {
  const parent = { traceId: TRACE, spanId: SPAN, flags: 255 };
  const writer = new ByteWriter();
  writeTrace(writer, parent);
  const bytes = writer.finish();
  t.equal(bytes.length, 25);
  t.equal(TRACE_BYTES, 25);
  t.same(readTrace(new ByteReader(bytes)), parent);
  t.end();
});

function span(number: number): EndedSpan {
  return {
    traceId: TRACE,
    spanId: number.toString(16).padStart(16, "0"),
    parentId: SPAN,
    name: "kv-set",
    kind: SpanKind.server,
    startMs: 1_700_000_000_000.125,
    endMs: 1_700_000_000_001,
    attributes: { "svc.request_id": "r", "svc.hops": 1 },
  };
}

t.test("the document is OTLP in JSON: times as text, numbers as text, ids as digits", (t) => {
  const document = JSON.parse(spansDocument([span(7)], { "service.name": "svc" })) as unknown;
  t.same(document, {
    resourceSpans: [
      {
        resource: { attributes: [{ key: "service.name", value: { stringValue: "svc" } }] },
        scopeSpans: [
          {
            scope: { name: "svc" },
            spans: [
              {
                traceId: TRACE,
                spanId: "0000000000000007",
                parentSpanId: SPAN,
                name: "kv-set",
                kind: 2,
                startTimeUnixNano: "1700000000000125000",
                endTimeUnixNano: "1700000000001000000",
                attributes: [
                  { key: "svc.request_id", value: { stringValue: "r" } },
                  { key: "svc.hops", value: { intValue: "1" } },
                ],
              },
            ],
          },
        ],
      },
    ],
  });
  t.equal(collectorUrl("http://c:4318").href, "http://c:4318/v1/traces");
  t.equal(collectorUrl("https://c/").href, "https://c/v1/traces");
  t.equal(collectorUrl("http://c:4318/own").href, "http://c:4318/own");
  t.end();
});

/** An exporter whose collector answers when it is told to. */
function bench() {
  const posts: { spans: number; done: (end: Posted, why: string) => void }[] = [];
  const timers: (() => void)[] = [];
  const lines: string[] = [];
  let closed = 0;
  const collector = {
    post: (document: string, done: (end: Posted, why: string) => void): void => {
      posts.push({ spans: document.split('"spanId"').length - 1, done });
    },
    close: () => void closed++,
  };
  const timer = {
    after: (_ms: number, callback: () => void) => {
      timers.push(callback);
      return { cancel: () => void timers.splice(timers.indexOf(callback), 1) };
    },
  };
  const logger = { log: (_level: string, text: string) => void lines.push(text) };
  const exporter = new SpanExporter(collector, {}, timer, logger as never);
  const fire = (): void => timers.shift()?.();
  return { exporter, posts, timers, lines, fire, closed: () => closed };
}

t.test("spans go in batches: when one is full, or after a while; unused there is no timer", (t) => {
  const { exporter, posts, timers, fire } = bench();
  t.equal(timers.length, 0);
  exporter.add(span(1));
  t.same([posts.length, timers.length], [0, 1]);
  fire();
  t.same(
    posts.map(({ spans }) => spans),
    [1],
  );
  for (let at = 0; at < 2 * TRACE_BATCH_MAX; at++) exporter.add(span(at));
  t.equal(posts.length, 1, "one is on its way at a time");
  posts[0]?.done("taken", "");
  t.same(
    posts.map(({ spans }) => spans),
    [1, TRACE_BATCH_MAX],
  );
  posts[1]?.done("taken", "");
  posts[2]?.done("taken", "");
  t.same(exporter.count, { sent: 1 + 2 * TRACE_BATCH_MAX, dropped: 0 });
  t.equal(timers.length, 0, "nothing waits, nothing ticks");
  t.end();
});

t.test("a collector that is gone or hangs costs a bounded number of spans, told once", (t) => {
  const { exporter, posts, timers, lines, fire } = bench();
  for (let at = 0; at < 3 * TRACE_SPANS_MAX; at++) exporter.add(span(at));
  t.equal(exporter.count.dropped, 2 * TRACE_SPANS_MAX);
  posts[0]?.done("failed", "no answer in time");
  t.equal(timers.length, 1, "it is tried again, later");
  fire();
  posts[1]?.done("failed", "no answer in time");
  t.same(lines, ["the trace collector does not take spans"]);
  for (let tries = 2; exporter.count.sent < TRACE_SPANS_MAX; tries++) {
    if (posts.length === tries) fire();
    posts[tries]?.done("taken", "");
  }
  t.same(lines.slice(1), ["the trace collector takes spans again"]);
  t.same(exporter.count, { sent: TRACE_SPANS_MAX, dropped: 2 * TRACE_SPANS_MAX });
  exporter.add(span(1));
  fire();
  posts.at(-1)?.done("refused", "status 400");
  t.equal(exporter.count.dropped, 2 * TRACE_SPANS_MAX + 1, "what it refuses is not sent again");
  t.end();
});

t.test("after the close nothing is sent, and what waited counts as dropped", (t) => {
  const { exporter, posts, timers, closed } = bench();
  exporter.add(span(1));
  exporter.flush();
  exporter.add(span(2));
  exporter.close();
  t.equal(closed(), 1);
  exporter.add(span(3));
  posts[0]?.done("taken", "");
  t.same(exporter.count, { sent: 0, dropped: 3 });
  t.equal(posts.length, 1);
  t.same(timers, []);
  t.end();
});

t.test("an endpoint that is none is refused", (t) => {
  const said = (endpoint: string): string | null => {
    const raw = readFlags([`--trace-endpoint=${endpoint}`], {});
    const config = raw.ok ? makeConfig(raw.value, {}) : raw;
    return config.ok ? config.value.traceEndpoint : config.message;
  };
  for (const good of ["http://c:4318", "https://c/v1/traces", "http://[::1]:4318/"]) {
    t.equal(said(good), good);
  }
  for (const bad of [
    "collector:4318",
    "ftp://c",
    "http://user:word@c:4318",
    "http://",
    "http://c?a",
  ]) {
    t.match(said(bad), /^--trace-endpoint ".*" is not a URL/, bad);
  }
  t.end();
});
