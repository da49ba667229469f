/**
 * A span that has ended, and the document in which collectors take them (OTLP 1.x, JSON over HTTP).
 *
 * Pure. Invariants: 1. Times are whole nanoseconds since 1970 as text, ids lower-case hexadecimal,
 * as the protocol wants both in JSON.
 */

/** As the protocol numbers them. */
export const SpanKind = { internal: 1, server: 2, client: 3 } as const;

type Attributes = Readonly<Record<string, string | number>>;

export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  /** Unix time (ms), with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
}

export interface SpanSink {
  add(span: EndedSpan): void;
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

/** `resource`: who recorded them. */
export function spansDocument(spans: readonly EndedSpan[], resource: Attributes): string {
  const told = spans.map(({ traceId, spanId, parentId, name, kind, ...span }) => ({
    ...{ traceId, spanId, parentSpanId: parentId, name, kind },
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.endMs),
    attributes: attributesOf(span.attributes),
  }));
  const scope = { name: "svc" };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope, spans: told }],
      },
    ],
  });
}
