/**
 * One node of a scenario: the core, its storage and state machine, and the carrying out of what the
 * core asks.
 *
 * This is the smallest host that a core can have. It does its duties in the order that Effects
 * (src/raft/state/types.ts) names: in synchronous mode all at once, in asynchronous mode when the
 * storage threads are told to work.
 */
import type { CoreConfig } from "../../src/raft/state/config.js";
import { RaftCore } from "../../src/raft/core.js";
import type {
  ConfigChange,
  Effects,
  HardState,
  Membership,
  Message,
  ProposeResult,
  SnapshotMeta,
} from "../../src/raft/state/types.js";
import { madeEntries, Payloads, payloadBytes } from "./payloads.js";
import { formatReady } from "./print.js";
import { Storage } from "./storage.js";
import { restoredFrom } from "./restore.js";
import { describeResponses, describeWork, storageMessages } from "./threads.js";
import {
  appendThread,
  blankMessage,
  kindOfType,
  typeOfKind,
  type Entry,
  type Snapshot,
  type WireMessage,
} from "./wire.js";

const errorTexts = {
  "peer-not-found": "raft: cannot step as peer not found",
  "proposal-dropped": "raft proposal dropped",
} as const;

const noMembership: Membership = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

/**
 * Takes what a piece of work prints; before the work is done, so that a failure leaves the trace
 * behind.
 */
export type Print = (text: string) => void;

/** What a piece of work sent. */
export interface Work {
  readonly messages: readonly WireMessage[];
}

export class HarnessNode {
  readonly id: number;
  core: RaftCore;
  storage: Storage;
  history: Snapshot[];
  appendQueue: WireMessage[] = [];
  applyQueue: WireMessage[] = [];
  private readonly config: CoreConfig;
  private readonly asynchronous: boolean;
  private payloads = new Payloads();
  /** Its present life begins with a snapshot. */
  private renewed = false;

  constructor(config: CoreConfig, asynchronous: boolean, start: Snapshot) {
    this.id = config.id;
    this.config = config;
    this.asynchronous = asynchronous;
    this.storage = new Storage(start.index, start.term);
    this.storage.hardState = { term: 0, vote: 0, commit: start.index };
    this.history = [start];
    this.core = this.start();
  }

  private get newest(): Snapshot {
    return this.history[this.history.length - 1] as Snapshot;
  }

  /** The state machine's content. */
  get content(): string {
    return this.newest.data;
  }

  private start(): RaftCore {
    const awaitsSnapshot = this.renewed && this.newest.index === 0;
    const restored = restoredFrom(this.storage, this.newest, awaitsSnapshot);
    const core = new RaftCore(this.config, restored);
    core.snapshotAvailable(this.newest);
    return core;
  }

  /** Loses everything that is not in storage, as a crash does, and starts again from there. */
  restart(): void {
    this.appendQueue = [];
    this.applyQueue = [];
    for (const entry of this.storage.entries) this.payloads.record(entry);
    this.core = this.start();
  }

  /**
   * Ends this life of the replica and begins another: nothing is left but term and vote.
   */
  renew(): void {
    const { term, vote } = this.storage.hardState;
    this.storage = new Storage(0, 0);
    this.storage.hardState = { term, vote, commit: 0 };
    this.history = [{ index: 0, term: 0, data: "", membership: noMembership }];
    this.payloads = new Payloads();
    this.renewed = true;
    this.restart();
  }

  /**
   * Gives storage the log and hard state that a history elsewhere is said to have left, and starts
   * from there.
   */
  load(terms: readonly number[], hardState: HardState): void {
    const made = madeEntries(this.storage.firstIndex, terms);
    this.storage.append(made);
    this.storage.hardState = hardState;
    this.restart();
  }

  propose(data: string): ProposeResult {
    const token = this.payloads.keep([{ data, change: null }]);
    const bytes = payloadBytes({ data, change: null }, false);
    return this.proposed(token, this.core.propose([bytes], token));
  }

  proposeChange(change: ConfigChange): ProposeResult {
    const token = this.payloads.keep([{ data: "", change }]);
    const bytes = payloadBytes({ data: "", change }, false);
    return this.proposed(token, this.core.proposeConfigChange(change, bytes, token));
  }

  private proposed(token: number, result: ProposeResult): ProposeResult {
    if (result.ok && result.kind === "appended" && !result.replacedByEmpty) {
      this.payloads.place(token, result.term, result.firstIndex);
    }
    return result;
  }

  /**
   * Gives a message from the pool to the core. Returns the error text if it is refused, else null.
   */
  step(wire: WireMessage): string | null {
    if (wire.type === "MsgStorageAppendResp") {
      if (wire.receipt !== null) this.core.written(wire.receipt);
      return null;
    }
    if (wire.type === "MsgStorageApplyResp") {
      const last = wire.entries.at(-1);
      if (last !== undefined) this.core.applied(last.index);
      return null;
    }
    const message = this.toCore(wire);
    const result = this.core.step(message);
    if (!result.ok) return errorTexts[result.reason];
    if (result.proposed !== null && message.proposal !== null) {
      this.proposed(message.proposal.token, result.proposed);
    }
    return null;
  }

  private toCore(wire: WireMessage): Message {
    const kind = kindOfType(wire.type);
    if (kind === undefined) throw new Error(`no such message: ${wire.type}`);
    const { from, to, term, logTerm, index, commit, reject, rejectHint, context, snapshot } = wire;
    const base = { kind, from, to, term, logTerm, index, commit, reject, rejectHint, context };
    if (snapshot !== null) this.arriving.set(snapshot.index, snapshot);
    if (kind !== "propose") {
      return { ...base, entries: this.payloads.spanOf(wire.entries), snapshot, proposal: null };
    }
    const token = this.payloads.keep(wire.entries.map(({ data, change }) => ({ data, change })));
    const proposal = {
      count: wire.entries.length,
      sizesBytes: wire.entries.map((entry) => payloadBytes(entry, false)),
      change: wire.entries[0]?.change ?? null,
      token,
    };
    return { ...base, entries: null, snapshot: null, proposal };
  }

  /** Snapshots that came with snapshot messages, by index. */
  private readonly arriving = new Map<number, Snapshot>();

  private snapshotOf(meta: SnapshotMeta): Snapshot {
    const own = this.history.filter(
      ({ index, term }) => index === meta.index && term === meta.term,
    );
    const snapshot = own.at(-1) ?? this.arriving.get(meta.index);
    if (snapshot === undefined) throw new Error(`no snapshot at ${meta.index}`);
    return snapshot;
  }

  private toWire(message: Message): WireMessage {
    const { from, to, term, logTerm, index, commit, reject, rejectHint, context } = message;
    const base = { from, to, term, logTerm, index, commit, reject, rejectHint, context };
    const entries =
      message.proposal !== null
        ? this.payloads.forwarded(message.proposal)
        : message.entries !== null
          ? this.payloads.entriesOf(message.entries)
          : [];
    const snapshot = message.snapshot === null ? null : this.snapshotOf(message.snapshot);
    return { ...blankMessage, ...base, type: typeOfKind[message.kind], entries, snapshot };
  }

  /** Takes one Ready and carries it out. */
  handleReady(print: Print): Work {
    const effects = this.core.takeEffects();
    const entries = effects.append === null ? [] : this.payloads.entriesOf(effects.append);
    const snapshot = effects.snapshot === null ? null : this.snapshotOf(effects.snapshot);
    const committed = this.payloads.committedOf(this.core, effects.committed);
    const immediate = effects.messages.map((message) => this.toWire(message));
    const deferred = effects.messagesAfterWrite.map((message) => this.toWire(message));
    const { mustSync, softState, hardState, readStates, droppedReads } = effects;
    const states = { mustSync, softState, hardState, readStates, droppedReads };
    const view = { ...states, entries, snapshot, committed };
    if (this.asynchronous) {
      const work = storageMessages(this.id, effects, deferred, entries, snapshot, committed);
      print(formatReady({ ...view, messages: [...immediate, ...work] }));
      for (const message of work) {
        (message.to === appendThread ? this.appendQueue : this.applyQueue).push(message);
      }
      return { messages: immediate };
    }
    const away = deferred.filter(({ to }) => to !== this.id);
    const messages = [...immediate, ...away];
    print(formatReady({ ...view, messages }));
    this.write(hardState, snapshot, entries);
    for (const entry of committed) this.apply(entry);
    this.advance(effects);
    return { messages };
  }

  private write(
    hardState: HardState | null,
    snapshot: Snapshot | null,
    entries: readonly Entry[],
  ): void {
    if (hardState !== null) this.storage.hardState = hardState;
    if (snapshot !== null) {
      if (entries.length > 0) {
        throw new Error("can't apply snapshot and entries at the same time");
      }
      this.storage.install(snapshot);
      this.history.push(snapshot);
      this.core.snapshotAvailable(snapshot);
    }
    this.storage.append(entries);
  }

  private apply(entry: Entry): void {
    const before = this.newest;
    let membership: Membership = before.membership;
    if (entry.change !== null) membership = this.core.applyConfigChange(entry.index, entry.change);
    const data = before.data + (entry.type === "EntryNormal" ? entry.data : "");
    const after: Snapshot = { index: entry.index, term: entry.term, data, membership };
    this.history.push(after);
    this.core.snapshotAvailable(after);
  }

  /** The core's own acknowledgements of a synchronous Ready. */
  private advance(effects: Effects): void {
    for (const message of effects.messagesAfterWrite) {
      if (message.to === this.id) this.core.step(message);
    }
    if (effects.receipt !== null) this.core.written(effects.receipt);
    if (effects.committed !== null) this.core.applied(effects.committed.last);
  }

  /** One piece of work of the append thread. */
  processAppend(print: Print): Work {
    const [message, ...rest] = this.appendQueue;
    if (message === undefined) {
      print("no append work to perform");
      return { messages: [] };
    }
    this.appendQueue = rest;
    const { term, vote, commit, snapshot, entries, responses } = message;
    print(describeWork(message));
    const empty = term === 0 && vote === 0 && commit === 0;
    this.write(empty ? null : { term, vote, commit }, snapshot, entries);
    print(describeResponses(message));
    return { messages: responses };
  }

  /** One piece of work of the apply thread. */
  processApply(print: Print): Work {
    const [message, ...rest] = this.applyQueue;
    if (message === undefined) {
      print("no apply work to perform");
      return { messages: [] };
    }
    this.applyQueue = rest;
    print(describeWork(message));
    // What a snapshot has overtaken since is in the state already.
    const due = message.entries.filter((entry) => entry.index > this.newest.index);
    for (const entry of due) this.apply(entry);
    print(describeResponses(message));
    return { messages: message.responses };
  }

  compact(index: number): void {
    this.storage.compact(index);
    const { commitIndex, writtenIndex } = this.core.status();
    this.core.compacted(Math.min(index, commitIndex, writtenIndex));
  }

  /** The newest state, as a snapshot message made behind the core's back. */
  snapshotTo(to: number): WireMessage {
    const place = { from: this.id, to, term: this.core.term, snapshot: this.newest };
    return { ...blankMessage, type: "MsgSnap", ...place };
  }
}
