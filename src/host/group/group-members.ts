/**
 * Who belongs to one group: proposes changes of its membership and applies them.
 *
 * Invariants: 1. A change takes effect when it is applied, in the core and in the group's record
 * together (P-084). 2. One proposed change is followed at a time; its proposer hears "applied" only
 * when that very entry was applied (P-086). 3. A change is *established* when it is committed and a
 * majority of the new members cannot forget that: each of them has a later entry on its disk that
 * was appended when the change was committed, and with it the commit index. Whoever of them is left
 * elects by the new members, also when the leader is gone that alone knew first.
 */
import { assert } from "../../base/assert.js";
import { EMPTY_BYTES } from "../../base/bytes.js";
import type { Machine } from "../../machine/machine.js";
import type { LogEntry } from "../../ports.js";
import type { RaftCore } from "../../raft/core.js";
import type { Membership } from "../../raft/state/types.js";
import {
  type ConfigPayload,
  EntryKindCode,
  decodeConfigChange,
  encodeConfigChange,
  encodeMembership,
  entryKindCode,
} from "../replication/config-entries.js";
import type { Proposals } from "../requests/proposals.js";

/** "refused": certainly not in the log. "unknown": it may take effect yet. */
export type MembershipResult = "applied" | "refused" | "unknown";

interface PendingChange {
  readonly index: number;
  readonly term: number;
  readonly done: (result: MembershipResult) => void;
}

export class GroupMembers {
  private pending: PendingChange | null = null;
  /** The last change that was applied since the start: in which term, and where the log ended. */
  private readonly changed = { term: 0, lastIndex: 0 };

  constructor(
    private readonly nodeId: number,
    private readonly core: RaftCore,
    private readonly machine: Machine,
    private readonly proposals: Proposals,
  ) {}

  get membership(): Membership {
    return this.core.membership;
  }

  /** This node is the only member of the group: nobody else is to be heard or told. */
  get isAlone(): boolean {
    const { voters, votersOutgoing, learners } = this.core.membership;
    if (votersOutgoing.length > 0 || learners.length > 0) return false;
    return voters.length === 1 && voters[0] === this.nodeId;
  }

  /**
   * On a serving leader: the last change is established. One that was applied before its term is
   * since its first entry: that one was appended behind it.
   */
  get isEstablished(): boolean {
    const { term, lastIndex } = this.changed;
    return term !== this.core.term || this.core.commitIndex > lastIndex;
  }

  /** On a serving leader: sees to it that an entry follows the last change. May be repeated. */
  establish(nowMs: number): void {
    if (this.core.term !== this.changed.term) return;
    if (this.core.lastIndex > this.changed.lastIndex) return;
    const result = this.core.propose([0]);
    if (!result.ok || result.kind !== "appended") return;
    this.proposals.add({
      ...{ index: result.firstIndex, term: result.term },
      ...{ kind: EntryKindCode.normal, payload: EMPTY_BYTES, stamp: null },
      ...{ commands: [], waiters: [], sizeBytes: 0, proposedAtMs: nowMs },
    });
  }

  /**
   * Proposes a change; only on a leader. `done` is called inside a turn, once, possibly at once.
   * `nowMs`: for the age of the entry.
   */
  propose(ordered: ConfigPayload, nowMs: number, done: (result: MembershipResult) => void): void {
    if (this.pending !== null) return done("refused");
    const { change } = ordered;
    const payload = encodeConfigChange(ordered);
    const result = this.core.proposeConfigChange(change, payload.length);
    if (!result.ok || result.kind !== "appended") return done("refused");
    const { firstIndex: index, term, replacedByEmpty } = result;
    const kind = change.version === 1 ? "configChangeV1" : "configChangeV2";
    this.proposals.add({
      index,
      term,
      kind: replacedByEmpty ? EntryKindCode.normal : entryKindCode(kind),
      payload: replacedByEmpty ? EMPTY_BYTES : payload,
      stamp: null,
      commands: [],
      waiters: [],
      sizeBytes: 0,
      proposedAtMs: nowMs,
    });
    if (replacedByEmpty) return done("refused");
    this.pending = { index, term, done };
  }

  /** Applies a committed change. False: its payload cannot be decoded. */
  apply(entry: LogEntry): boolean {
    const ordered = decodeConfigChange(entry.payload);
    if (ordered === null) return false;
    assert(entry.kind !== EntryKindCode.normal, "a membership change is an entry of its own kind");
    const membership = this.core.applyConfigChange(entry.index, ordered.change);
    this.machine.applyMembership(entry, encodeMembership(membership), ordered.generation);
    this.changed.term = this.core.term;
    this.changed.lastIndex = this.core.lastIndex;
    const { pending } = this;
    if (pending !== null && pending.index <= entry.index) {
      const isSame = pending.index === entry.index && pending.term === entry.term;
      this.end(isSame ? "applied" : "unknown");
    }
    return true;
  }

  /** Leadership ended, or the state was replaced: what was proposed may take effect or not. */
  reset(): void {
    if (this.pending !== null) this.end("unknown");
  }

  private end(result: MembershipResult): void {
    const { pending } = this;
    this.pending = null;
    pending?.done(result);
  }
}
