/**
 * What the calls of a core answer: proposals, messages, reads and lookups, each with its refusals.
 *
 * May call: types of this folder.
 * Invariants: 1. Every refusal has a reason from a closed list. 2. Unknown is a variant, never a
 * number.
 */
import type { LogIndex, NodeId, Term } from "./types.js";

export type ProposalRefusal =
  /** No leader is known, or an election is going on. */
  | "no-leader"
  /** This node does not lead, and forwarding is switched off. */
  | "not-leader"
  /** The leader is no member of its own group any more. */
  | "not-member"
  /** The leader is busy handing over leadership. */
  | "transferring"
  /** The uncommitted tail of the log is as large as it may be. */
  | "uncommitted-limit"
  /** The membership change could never be applied (for example it removes the last voter). */
  | "invalid-change";

export interface Appended {
  readonly ok: true;
  readonly kind: "appended";
  readonly term: Term;
  readonly firstIndex: LogIndex;
  readonly lastIndex: LogIndex;
  /** True if a membership change was refused; an empty normal entry stands at its place. */
  readonly replacedByEmpty: boolean;
}

export interface Forwarded {
  readonly ok: true;
  readonly kind: "forwarded";
  readonly to: NodeId;
}

export interface Refused {
  readonly ok: false;
  readonly reason: ProposalRefusal;
}

export type ProposeResult = Appended | Forwarded | Refused;

export type StepRefusal =
  /** An answer from a node that is in no part of the configuration. */
  | "peer-not-found"
  /** A forwarded proposal was refused here. */
  | "proposal-dropped";

export type StepResult =
  /**
   * `proposed` is set if the message was a forwarded proposal that was appended or forwarded on.
   */
  | { readonly ok: true; readonly proposed: Appended | Forwarded | null }
  | { readonly ok: false; readonly reason: StepRefusal };

export type ReadRequestResult =
  | "accepted"
  | "forwarded"
  /** No leader is known; ask again later. */
  | "no-leader"
  /** Too many reads wait already. */
  | "too-many";

/** What a lookup of a term can answer; unknown is never a number. */
export type TermLookup =
  | { readonly kind: "known"; readonly term: Term }
  | { readonly kind: "compacted" }
  | { readonly kind: "beyond" };
