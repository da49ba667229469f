/**
 * A caller that watches, as a front end would have it: keeps what it is told, in short, and can be
 * slow.
 */
import { WatchEnd, WatchEventType, WatchMessageType } from "../../../src/base/result-types.js";
import type {
  CallerName,
  RouteHint,
  WatchEvent,
  WatchMessage,
  WatchReceiver,
  WatchRequest,
  WatchStream,
  Watches,
} from "../../../src/operations/api/requests.js";

function namesOf(table: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(table).map(([name, number]) => [number, name]));
}

const EVENTS = namesOf(WatchEventType);
const TYPES = namesOf(WatchMessageType);
const ENDS = namesOf(WatchEnd);

const shown = (bytes: Uint8Array | null): string => Buffer.from(bytes ?? []).toString();

export function shortEvent(event: WatchEvent): string {
  const { type, name, value, revision, token, owner, note, sequence, forced } = event;
  const parts = [`${EVENTS.get(type)} ${name}`];
  if (value !== null) parts.push(shown(value));
  if (revision !== 0) parts.push(`r${revision}`);
  if (type >= WatchEventType.locked && type <= WatchEventType.lockExpired) parts.push(`t${token}`);
  if (owner !== null) parts.push(shown(owner));
  if (note !== null) parts.push(`(${shown(note)})`);
  if (sequence !== null) parts.push(`=${sequence.currentValue}`);
  if (forced) parts.push("forced");
  return parts.join(" ");
}

/** Of a message, what is not nothing. */
export function shortMessage(message: WatchMessage): string {
  const { type, watchIds, events, initial, merged, reset, more, syncId, end } = message;
  const flags = Object.entries({ initial, merged, reset, more }).filter(([, is]) => is);
  const parts: string[] = [];
  if (type !== WatchMessageType.events) parts.push(`${TYPES.get(type)}`);
  if (end !== 0) parts.push(`${ENDS.get(end)}`);
  if (syncId !== 0) parts.push(`${syncId}`);
  if (watchIds.length !== 1 || watchIds[0] !== 1) parts.push(`#${watchIds.join(",")}`);
  parts.push(...flags.map(([name]) => name.toUpperCase()));
  parts.push(events.map(shortEvent).join("; "));
  return parts.filter((part) => part !== "").join(" ");
}

export function watchRequest(
  kind: number,
  name: string,
  rest: Partial<WatchRequest> = {},
): WatchRequest {
  const none = { cursor: null, fromRevision: null, initial: false, noValues: false };
  return { kind, name, ...none, only: 0, progressMs: 0, ...rest };
}

export class WatchCaller implements WatchReceiver {
  readonly messages: WatchMessage[] = [];
  readonly stream: WatchStream;
  /** What it was told and not asked for yet. */
  private read = 0;
  full = false;
  allowed = true;
  /** Takes so many messages, then is full. */
  room = Infinity;
  /** Of the last message that had one. */
  cursor: string | null = null;

  constructor(
    operations: { readonly watches: Pick<Watches, "open"> },
    caller: CallerName | null = null,
  ) {
    this.stream = operations.watches.open(this, caller);
  }

  /** Of the last end. */
  route: RouteHint | null = null;

  deliver(message: WatchMessage, route: RouteHint | null = null): void {
    this.messages.push(message);
    this.route = route ?? this.route;
    this.cursor = message.cursor ?? this.cursor;
    if (--this.room <= 0) this.full = true;
  }

  isFull(): boolean {
    return this.full;
  }

  mayRead(): boolean {
    return this.allowed;
  }

  /** Takes on again. */
  drain(room = Infinity): void {
    this.full = false;
    this.room = room;
    this.stream.ready();
  }

  /** What came since this was called last, in short. */
  take(): string[] {
    const fresh = this.messages.slice(this.read);
    this.read = this.messages.length;
    return fresh.map(shortMessage);
  }

  /** The events that came since, without how they came. */
  takeEvents(): string[] {
    const fresh = this.messages.slice(this.read);
    this.read = this.messages.length;
    return fresh.flatMap(({ events }) => events.map(shortEvent));
  }
}
