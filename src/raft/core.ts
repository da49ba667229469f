/**
 * RaftCore: one member of one Raft group, as a deterministic state machine. One event in, effects accumulate, the host takes
 * them out. Signature only for the moment; the bodies follow.
 *
 * May call: base and this folder.
 * Invariants: 1. No I/O, no clock, no promise. 2. Equal inputs give equal effects. 3. Nothing here reads a payload.
 */
import { AssertionError } from "../base/assert.js";
import type { CoreConfig } from "./config.js";
import type {
  ConfigChange,
  CoreStatus,
  Effects,
  LogIndex,
  Membership,
  Message,
  NodeId,
  ProposeResult,
  ReadRequestResult,
  RestoredState,
  Role,
  SnapshotMeta,
  StepResult,
  Term,
  TermLookup,
  WriteReceipt,
} from "./types.js";

function pending(): never {
  throw new AssertionError("not written yet");
}

/* eslint-disable @typescript-eslint/no-unused-vars */
export class RaftCore {
  constructor(_config: CoreConfig, _restored: RestoredState) {
    pending();
  }
  /** Lets `count` ticks pass. */
  tick(_count: number): void {
    pending();
  }
  /** How many ticks may pass before tick() would do anything but count; a host may save them up and give them at once. */
  ticksUntilDue(): number {
    pending();
  }
  /** Starts an election now, unless this node leads or may not. */
  campaign(): void {
    pending();
  }
  /** Proposes `count` normal entries. `token` is carried along if the proposal is forwarded. */
  propose(_count: number, _sizesBytes: readonly number[], _token = 0): ProposeResult {
    pending();
  }
  /** Proposes a membership change whose encoded payload has `sizeBytes`. */
  proposeConfigChange(_change: ConfigChange, _sizeBytes: number, _token = 0): ProposeResult {
    pending();
  }
  /** Takes in a message from another core, or a deferred one to this node itself whose write is durable. */
  step(_message: Message): StepResult {
    pending();
  }
  /** The write of `receipt`, and all earlier ones, are durable. Call after stepping that record's messages to itself. */
  written(_receipt: WriteReceipt): void {
    pending();
  }
  /** The state contains everything up to `index`. Membership changes among it went through applyConfigChange before. */
  applied(_index: LogIndex): void {
    pending();
  }
  /** A committed membership change is applied, exactly once each, in log order. Returns the new membership. */
  applyConfigChange(_index: LogIndex, _change: ConfigChange): Membership {
    pending();
  }
  /** Asks for a linearizable read index; the answer comes as a ReadState with this context. */
  requestRead(_context: number): ReadRequestResult {
    pending();
  }
  /** Asks that `to` become leader; a follower passes the request on. */
  transferLeadership(_to: NodeId): void {
    pending();
  }
  /** A follower forgets who leads, and stays in its term. */
  forgetLeader(): void {
    pending();
  }
  /** The last message to `id` may be lost. */
  reportUnreachable(_id: NodeId): void {
    pending();
  }
  /** How the transfer of a snapshot image to `id` ended, as far as the sender can tell. */
  reportSnapshot(_id: NodeId, _ok: boolean): void {
    pending();
  }
  /** Entries up to and including `floor` are gone from the log. At most the applied index. */
  compacted(_floor: LogIndex): void {
    pending();
  }
  /** The state image that may be sent to a follower that is too far behind; by default the applied state. */
  snapshotAvailable(_snapshot: SnapshotMeta): void {
    pending();
  }
  hasEffects(): boolean {
    pending();
  }
  takeEffects(): Effects {
    pending();
  }
  get role(): Role {
    pending();
  }
  get term(): Term {
    pending();
  }
  get leader(): NodeId {
    pending();
  }
  get commitIndex(): LogIndex {
    pending();
  }
  get appliedIndex(): LogIndex {
    pending();
  }
  get lastIndex(): LogIndex {
    pending();
  }
  get membership(): Membership {
    pending();
  }
  /** True on a leader that has committed an entry of its own term. */
  get hasCommittedInTerm(): boolean {
    pending();
  }
  status(): CoreStatus {
    pending();
  }
  termAt(_index: LogIndex): TermLookup {
    pending();
  }
  /** For tests: the election timeout until the next draw, in ticks. */
  setElectionTimeout(_ticks: number): void {
    pending();
  }
  /** Throws AssertionError if any numbered invariant of this folder is broken. */
  assertState(): void {
    pending();
  }
}
