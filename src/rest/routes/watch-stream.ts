/**
 * `GET /v1/watch/stream`: what changes, as server-sent events.
 *
 * Owns the one watch of each request. Invariants: 1. Nothing is answered before the watch stands: a
 * watch that does not come to that is a problem document. 2. Each block whose cursor is known has
 * it as its id, so that a client that comes back with it misses nothing. 3. What is not read is
 * counted, and from the buffer of the stream on nothing is told (P-185). 4. A watch that ended is
 * told, and then the answer ends.
 */
import { INT64_MAX, INT64_MIN } from "../../base/int64.js";
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type {
  OperationsPort,
  WatchMessage,
  WatchReceiver,
  WatchRequest,
  WatchStream,
} from "../../operations/api/requests.js";
import { EVENT_STREAM_TYPE, type Exchange } from "../http/exchange.js";
import type { LastingOwner, LastingResponse } from "../http/lasting.js";
import { parseQuery } from "../http/query.js";
import type { QueryParameter, Route } from "../http/route.js";
import { ACCESS, answerEnd, requestOf } from "./watch-asked.js";
import { endName, KIND_NAMES, toldText } from "./watch-answers.js";

const ONLY = 1;
const RETRY_MS = 1000;
const COMMENT_MS = 15_000;
/** A full stream gets more when so much of its buffer is left (share). */
const ROOM_SHARE = 0.5;

const QUERY: readonly QueryParameter[] = [
  { name: "kind", kind: "text", note: `one of ${KIND_NAMES.join(", ")}` },
  { name: "name", kind: "text", note: "of what is watched, or what names begin with" },
  { name: "cursor", kind: "text", note: "go on behind it; the header Last-Event-ID wins" },
  { name: "fromRevision", kind: "text", note: "of a key: revisions above it come first" },
  { name: "initial", kind: "bool", note: "the present state comes first" },
  { name: "noValues", kind: "bool", note: "events without values" },
  { name: "only", kind: "text", note: "types of events, with commas between" },
];

class EventStream implements WatchReceiver, LastingOwner {
  private readonly stream: WatchStream;
  private readonly forgetDrain: () => void;
  private response: LastingResponse | null = null;
  private comments: NodeJS.Timeout | null = null;
  private wasFull = false;

  constructor(
    private readonly exchange: Exchange,
    request: WatchRequest,
    private readonly bufferBytes: number,
    private readonly port: OperationsPort,
  ) {
    this.forgetDrain = exchange.whenDraining(() => this.end(WatchEnd.shuttingDown));
    exchange.whenGone(() => {
      if (this.response !== null) return;
      this.leave();
      exchange.abandon();
    });
    this.stream = port.watches.open(this, exchange.caller);
    this.stream.create(ONLY, request);
  }

  deliver(message: WatchMessage): void {
    const { created, mark, ended } = WatchMessageType;
    if (this.exchange.hasEnded) return;
    if (message.type === ended) return this.end(message.end);
    if (message.type === created) this.begin();
    let event = "events";
    if (message.type === created) event = "created";
    else if (message.type === mark) event = "mark";
    else if (message.reset) event = "reset";
    const id = message.cursor === null ? "" : `id: ${message.cursor}\n`;
    this.write(`event: ${event}\n${id}data: ${toldText(message)}\n\n`);
  }

  private begin(): void {
    this.response = this.exchange.last(EVENT_STREAM_TYPE, this);
    this.comments = setInterval(() => this.comment(), COMMENT_MS);
    this.write(`retry: ${RETRY_MS}\n\n`);
  }

  /** So that proxies, and the client, see that somebody is there. */
  private comment(): void {
    if (this.response?.unsentBytes === 0) this.write(":\n\n");
  }

  private write(text: string): void {
    const sizeBytes = this.response?.write(text) ?? 0;
    const { tally } = this.port.watches;
    tally.sent(sizeBytes);
    tally.buffered(sizeBytes);
  }

  isFull(): boolean {
    const { response } = this;
    if (response === null) return false;
    const { unsentBytes, isNodeFull } = response;
    const isFull = unsentBytes >= this.bufferBytes || (unsentBytes > 0 && isNodeFull);
    this.wasFull ||= isFull;
    return isFull;
  }

  mayRead(): boolean {
    return this.exchange.isStillPermitted(ACCESS);
  }

  moved(sizeBytes: number): void {
    this.port.watches.tally.buffered(-sizeBytes);
    const unsentBytes = this.response?.unsentBytes ?? 0;
    if (!this.wasFull || unsentBytes > this.bufferBytes * ROOM_SHARE) return;
    this.wasFull = false;
    this.stream.ready();
  }

  gone(): void {
    this.leave();
    this.exchange.lasted();
  }

  /** The watch is over. */
  private end(end: number): void {
    this.leave();
    if (this.response === null) {
      if (!this.exchange.hasEnded) answerEnd(this.exchange, end);
      return;
    }
    this.write(`event: end\ndata: {"end":"${endName(end)}"}\n\n`);
    this.response.end();
  }

  private leave(): void {
    if (this.comments !== null) clearInterval(this.comments);
    this.comments = null;
    this.forgetDrain();
    this.stream.close();
  }
}

/** Null: it is no number of 64 bits. */
function revisionOf(text: string): bigint | null {
  if (!/^-?[0-9]{1,19}$/.test(text)) return null;
  const value = BigInt(text);
  return value < INT64_MIN || value > INT64_MAX ? null : value;
}

/** What is asked for; a text says what is wrong with it. */
function askedIn(exchange: Exchange): WatchRequest | string {
  const values = parseQuery(exchange.raw.url ?? "", QUERY);
  if (typeof values === "string") return values;
  const revision = values.get("fromRevision");
  const fromRevision = revision === undefined ? null : revisionOf(revision);
  if (revision !== undefined && fromRevision === null) return "fromRevision is a whole number";
  const last = exchange.raw.headers["last-event-id"];
  const cursor = typeof last === "string" && last !== "" ? last : (values.get("cursor") ?? null);
  return requestOf({
    kind: values.get("kind") ?? "",
    name: values.get("name") ?? "",
    cursor,
    fromRevision,
    initial: values.get("initial") === "true",
    noValues: values.get("noValues") === "true",
    only: (values.get("only") ?? "").split(",").filter((type) => type !== ""),
  });
}

export function watchStreamRoute(bufferBytes: number): Route {
  return {
    method: "GET",
    path: "/v1/watch/stream",
    access: ACCESS,
    tag: "watch",
    summary: "What changes, as server-sent events",
    body: null,
    query: QUERY,
    answer: null,
    lasts: true,
    statuses: [400, 503],
    kind: null,
    run(exchange, _body, port) {
      const request = askedIn(exchange);
      if (typeof request === "string") return exchange.problem(400, "invalid-argument", request);
      if (exchange.raw.method === "HEAD") return exchange.send(200, EVENT_STREAM_TYPE, "");
      if (exchange.isOverloaded) return exchange.refusal("overloaded", null, "none");
      new EventStream(exchange, request, bufferBytes, port);
    },
  };
}
