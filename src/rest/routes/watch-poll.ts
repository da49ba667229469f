/**
 * `POST /v1/watch/poll`: what changed since a cursor, or the next that does.
 *
 * Owns the one watch of each request. Invariants: 1. An answer has the cursor behind all that it
 * tells: it ends with a log entry, or with the whole of a state; it has no more than `limit`
 * events, unless one entry or the state has. 2. A state that is larger than an
 * answer may be is refused, never cut. 3. What is kept for an answer counts as unsent. 4. A client
 * that goes away, or that is answered, has no watch.
 */
import {
  PAGE_LIMIT_MAX,
  WATCH_POLL_WAIT_MAX_MS,
  WATCH_PROGRESS_MIN_MS,
} from "../../base/limits.js";
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type {
  OperationsPort,
  WatchEvent,
  WatchMessage,
  WatchReceiver,
  WatchRequest,
  WatchStream,
} from "../../operations/api/requests.js";
import { decodeBody } from "../json/decoder.js";
import {
  bool,
  int32,
  optionalInt32,
  optionalInt64,
  optionalText,
  tableOf,
  text,
  texts,
  type ValuesOf,
} from "../json/members.js";
import type { Exchange } from "../http/exchange.js";
import type { Route } from "../http/route.js";
import { ACCESS, answerEnd, requestOf } from "./watch-asked.js";
import { eventText, KIND_NAMES, toldText, WATCHED } from "./watch-answers.js";

const WAIT_DEFAULT_MS = 30_000;
const LIMIT_DEFAULT = 1000;
const ONLY = 1;

const table = tableOf(
  text("kind", `one of ${KIND_NAMES.join(", ")}`),
  text("name", "of the key, bucket, lock or sequence, or what names begin with"),
  optionalText("cursor", "of the answer before; omitted = from now on"),
  optionalInt64("fromRevision", "of a key: the retained revisions above it come first"),
  bool("initial", "the present state comes first"),
  bool("noValues", "events without values"),
  texts("only", "types of events; omitted = all"),
  optionalInt32("waitMs", `longest wait for events (milliseconds); omitted = ${WAIT_DEFAULT_MS}`),
  int32("limit", `events at most, unless one log entry has more; omitted = ${LIMIT_DEFAULT}`),
);

/** One request that waits for what changes. */
class Poll implements WatchReceiver {
  private readonly stream: WatchStream;
  private readonly timer: NodeJS.Timeout;
  private readonly forgetDrain: () => void;
  private readonly events: WatchEvent[] = [];
  private heldBytes = 0;
  private cursor: string | null = null;
  /** Events before the cursor. */
  private wholeCount = 0;
  private initial = false;
  private merged = false;
  private reset = false;
  private staleMs = 0;
  /** A state is being told: an answer ends behind it. */
  private isInState: boolean;
  private isAnswering = false;

  constructor(
    private readonly exchange: Exchange,
    private readonly request: WatchRequest,
    private readonly limit: number,
    private readonly maxBytes: number,
    waitMs: number,
    port: OperationsPort,
  ) {
    this.isInState = request.initial && request.cursor === null;
    this.timer = setTimeout(() => this.refuse(WatchEnd.stale), exchange.boundMs(waitMs));
    this.forgetDrain = exchange.whenDraining(() => this.refuse(WatchEnd.shuttingDown));
    exchange.whenGone(() => {
      this.leave();
      exchange.abandon();
    });
    this.stream = port.watches.open(this, exchange.caller);
    // Its mark tells that the time is over: what is to be told comes before it.
    const progressMs = Math.max(waitMs, WATCH_PROGRESS_MIN_MS);
    this.stream.create(ONLY, { ...request, progressMs, eventsMax: limit });
  }

  deliver(message: WatchMessage): void {
    if (this.exchange.hasEnded) return;
    const { created, events, mark, ended } = WatchMessageType;
    if (message.type === ended) return this.refuse(message.end);
    if (this.isTooMuch(message)) {
      this.events.length = this.wholeCount;
      return this.answer();
    }
    if (message.cursor !== null) this.cursor = message.cursor;
    if (message.type === created) {
      const { cursor, initial, fromRevision } = this.request;
      if (cursor === null && !initial && fromRevision === null) return this.answer();
    } else if (message.type === events) {
      if (!this.take(message)) return;
    } else if (message.type === mark) {
      this.staleMs = message.staleMs;
      this.merged ||= message.merged;
      return this.answer();
    }
    if (message.cursor === null) return;
    this.isInState = false;
    this.wholeCount = this.events.length;
    if (this.events.length >= this.limit) this.answer();
    else if (this.events.length > 0) this.answerSoon();
  }

  /** It goes beyond the limit, or begins a state, and something was told whole before it. */
  private isTooMuch({ events, initial, merged, reset }: WatchMessage): boolean {
    if (this.wholeCount === 0) return false;
    if (reset) return true;
    if (events.length === 0) return false;
    return initial || merged || this.events.length + events.length > this.limit;
  }

  /** False: there is too much of it, which was said. */
  private take(message: WatchMessage): boolean {
    const { events, initial, merged, reset } = message;
    if (reset) {
      // What was told before of an entry or a state is void: nothing of it was whole.
      this.events.length = 0;
      this.isInState = true;
    }
    this.initial ||= initial;
    this.merged ||= merged;
    this.reset ||= reset;
    this.isInState ||= initial || merged;
    let sizeBytes = 0;
    for (const event of events) {
      this.events.push(event);
      sizeBytes += eventText(event).length;
    }
    const { unsent } = this.exchange;
    if (this.heldBytes + sizeBytes > this.maxBytes) {
      this.leave();
      const detail = "the state is too large for one answer: use the stream, or a scan";
      this.exchange.problem(422, "response-too-large", detail);
      return false;
    }
    if (!unsent.admits(sizeBytes)) {
      this.refuse(WatchEnd.overloaded);
      return false;
    }
    this.heldBytes += sizeBytes;
    unsent.take(sizeBytes);
    return true;
  }

  isFull(): boolean {
    return this.isAnswering && this.events.length >= this.limit;
  }

  mayRead(): boolean {
    return this.exchange.isStillPermitted(ACCESS);
  }

  /** No entry is told in part. */
  private get isWhole(): boolean {
    return this.wholeCount === this.events.length;
  }

  /** Behind what else is told in this turn. */
  private answerSoon(): void {
    if (this.isAnswering) return;
    this.isAnswering = true;
    setImmediate(() => {
      this.isAnswering = false;
      if (!this.exchange.hasEnded && !this.isInState && this.isWhole) this.answer();
    });
  }

  /** Never within an entry: `more` is false, whatever ended it. */
  private answer(): void {
    const { events, cursor, initial, merged, reset, staleMs, exchange } = this;
    this.leave();
    const told = { events, cursor, initial, merged, reset, more: false, staleMs };
    exchange.json(200, toldText(told));
  }

  private refuse(end: number): void {
    this.leave();
    if (!this.exchange.hasEnded) answerEnd(this.exchange, end);
  }

  private leave(): void {
    clearTimeout(this.timer);
    this.forgetDrain();
    this.stream.close();
    this.exchange.unsent.give(this.heldBytes);
    this.heldBytes = 0;
  }
}

/** `maxBytes`: of an answer. */
export function watchPollRoute(maxBytes: number): Route {
  return {
    method: "POST",
    path: "/v1/watch/poll",
    access: ACCESS,
    tag: "watch",
    summary: "Wait for what changes",
    body: table.table,
    query: [],
    answer: WATCHED,
    statuses: [422, 503],
    kind: null,
    run(exchange, body, port) {
      const decoded = decodeBody(body, table.table);
      if ("code" in decoded) return exchange.problem(400, decoded.code, decoded.detail);
      if (decoded.misfit !== null) {
        const detail = `member "${decoded.misfit}" does not fit its number`;
        return exchange.problem(400, "invalid-argument", detail);
      }
      // The decoder fills the values by the same table from which their types were derived.
      const values = decoded.values as unknown as ValuesOf<typeof table.members>;
      const [kind, name, cursor, fromRevision, initial, noValues, only, waitMs, limit] = values;
      const waitForMs = waitMs ?? WAIT_DEFAULT_MS;
      if (waitForMs < 0 || waitForMs > WATCH_POLL_WAIT_MAX_MS) {
        const detail = `waitMs is 0 to ${WATCH_POLL_WAIT_MAX_MS}`;
        return exchange.problem(400, "invalid-argument", detail);
      }
      if (limit < 0 || limit > PAGE_LIMIT_MAX) {
        return exchange.problem(400, "invalid-argument", `limit is 1 to ${PAGE_LIMIT_MAX}`);
      }
      const asked = { kind, name, cursor, fromRevision, initial, noValues, only: only ?? [] };
      const request = requestOf(asked);
      if (typeof request === "string") return exchange.problem(400, "invalid-argument", request);
      if (exchange.isOverloaded) return exchange.refusal("overloaded", null, "none");
      new Poll(exchange, request, limit || LIMIT_DEFAULT, maxBytes, waitForMs, port);
    },
  };
}
