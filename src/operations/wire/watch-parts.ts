/**
 * Parts of watches, which one node asks of another (W14). Of clusters of level 2.
 *
 * Pure. Invariant: an event that was read is as one that was made here: nobody made bytes or text
 * of it yet.
 */
import { PARTITIONS_MAX } from "../../base/limits.js";
import {
  type Members,
  type Shape,
  bigint64,
  boolean,
  bytes,
  hlc,
  int32,
  int53,
  list,
  nullable,
  oneOf,
  record,
  text,
} from "../../base/shape.js";
import type {
  PartAsk,
  PartMessage,
  WatchPull,
  WatchPulled,
} from "../../host/joint-watching/parts.js";
import type { Replays } from "../../host/watching/messages.js";
import type { SequenceRecord } from "../../machine/commands/command.js";
import { type WatchEvent, watchEvent } from "../../machine/events.js";

export interface WatchPullRequest extends WatchPull {
  readonly kind: "watch-pull";
}

export interface WatchPullAnswer extends WatchPulled {
  readonly kind: "watch-pulled";
}

/** Messages of one answer, and events of one message. */
const MESSAGES_MAX = 65_536;
const EVENTS_MAX = 4_194_304;

const sequence = record<SequenceRecord>({
  name: text,
  currentValue: bigint64,
  initialValue: bigint64,
  increment: bigint64,
  maxValue: nullable(bigint64),
  blockSize: nullable(int32),
  incarnation: int53,
  revision: int53,
  createdAt: hlc,
  updatedAt: hlc,
});

/** What the node that hosts the names goes by itself stays there. */
type Told = Omit<WatchEvent, "bytes" | "text" | "endedMs">;

const told = record<Told>({
  type: int32,
  name: text,
  value: nullable(bytes),
  revision: int53,
  stamp: hlc,
  token: bigint64,
  owner: nullable(bytes),
  note: nullable(bytes),
  sequence: nullable(sequence),
  forced: boolean,
});

const event: Shape<WatchEvent> = {
  write: (writer, value) => void told.write(writer, value),
  read(reader) {
    const value = told.read(reader);
    return watchEvent(value.type, value.name, value.stamp, value);
  },
};

const ask = record<PartAsk>({
  kind: int32,
  name: text,
  cursor: nullable(text),
  fromRevision: nullable(bigint64),
  initial: boolean,
  noValues: boolean,
  only: int32,
  progressMs: int32,
  eventsMax: int32,
  partitions: list(int32, PARTITIONS_MAX),
  replays: oneOf<Replays>("always", "unless-moved", "never"),
});

const message = record<PartMessage>({
  type: int32,
  events: list(event, EVENTS_MAX),
  cursor: nullable(text),
  initial: boolean,
  merged: boolean,
  reset: boolean,
  more: boolean,
  syncId: int53,
  staleMs: int53,
  end: int32,
  partition: nullable(int32),
  mapVersion: int53,
});

export const watchPull: Members<Omit<WatchPullRequest, "kind">> = {
  part: int53,
  serial: int53,
  ask: nullable(ask),
  begins: boolean,
  syncId: int53,
  waitMs: int32,
  isOver: boolean,
};

export const watchPulled: Members<Omit<WatchPullAnswer, "kind">> = {
  status: oneOf<WatchPulled["status"]>("told", "unknown", "refused"),
  messages: list(message, MESSAGES_MAX),
};
