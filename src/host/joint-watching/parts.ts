/**
 * What nodes tell each other about the parts of a watch whose partitions several of them have
 * (W14), and what a joint watch needs of its node.
 *
 * Types only. Invariants: 1. Answers of a part are counted from 1; whoever asks for the next one
 * has the one before, and the last one is kept until then: nothing is lost with a lost answer, and
 * nothing told twice. 2. The messages of a part are those of an ordinary watch of its partitions.
 */
import type { ClockPort, TimerPort } from "../../ports.js";
import type { PartScope, WatchMessage, WatchRequest } from "../watching/messages.js";

/** What a part is of. */
export interface PartAsk extends Omit<WatchRequest, "eventsMax" | "part">, PartScope {
  /** 0 = as many as fit. */
  readonly eventsMax: number;
}

/** Asks for the next answer of a part. */
export interface WatchPull {
  /** Which part, as the asker counts them in its present life. */
  readonly part: number;
  /** Of the answer that is wanted: the first is 1. */
  readonly serial: number;
  /** Of the first one: what it is of. */
  readonly ask: PartAsk | null;
  /** It may begin; until then it only stands, and notes what happens. */
  readonly begins: boolean;
  /** SYNCED of this number is wanted; 0 = of none. Grows. */
  readonly syncId: number;
  /** How long an answer may wait for something to tell (ms). */
  readonly waitMs: number;
  /** Nobody wants it any more. */
  readonly isOver: boolean;
}

export type PartMessage = Omit<WatchMessage, "watchIds">;

export interface WatchPulled {
  /** "unknown": there is no such part, any more; "refused": there are too many. */
  readonly status: "told" | "unknown" | "refused";
  readonly messages: readonly PartMessage[];
}

/** What became of a question to another node: no node answers "unreadable" that knows of parts. */
export type PullResult = WatchPulled | "unsent" | "lost" | "unreadable";

/** A part may be asked of the node that it is asked for at, as of any other. */
export interface JointPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly nodeId: number;
  /** All nodes of the cluster know of parts. */
  isOn(): boolean;
  isHere(partition: number): boolean;
  /** Other nodes that have a replica of it, and can be reached as far as is known. */
  hostsOf(partition: number): readonly number[];
  partitionsOf(kind: number, name: string): ReadonlySet<number> | null;
  /** Grows whenever `partitionsOf` may say something else. */
  mapVersion(): number;
  clusterId(): string;
  isClosing(): boolean;
  /** `done` never in the turn of the call, once. */
  pull(node: number, pull: WatchPull, deadlineMs: number, done: (result: PullResult) => void): void;
}
