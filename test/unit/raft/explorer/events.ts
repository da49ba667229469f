/**
 * What can happen in a model world: one event changes one node and the network.
 */
import { isJoint } from "../../../../src/raft/state/membership.js";
import type {
  ConfigChange,
  ConfigOperation,
  Membership,
  Message,
} from "../../../../src/raft/state/types.js";

export type EventKind =
  /** The message at position `at` of the network arrives (for `duplicate`: and stays). */
  | "deliver"
  | "duplicate"
  | "drop"
  /** `at` ticks pass on the node. */
  | "tick"
  | "campaign"
  /** The oldest write of the node is on its disk. */
  | "complete"
  /** The oldest batch of committed entries is applied. */
  | "apply"
  /** The node loses what is not on its disk, except `at` writes that just made it, and starts. */
  | "crash"
  /** A replica that was removed is dropped, and made again with nothing but its term and vote. */
  | "renew"
  /** `at` entries are proposed. */
  | "propose"
  /** A membership change is proposed: number `at` of those that make sense. */
  | "change"
  | "read"
  /** Leadership is to go to node `at`. */
  | "transfer"
  /** The applied state becomes durable. */
  | "flush"
  /** The log up to `at` entries before the durable state is dropped. */
  | "compact"
  /** The sender of a snapshot learns how it ended: `at` is the node, negative for a failure. */
  | "report"
  | "unreachable"
  | "forget";

/** Whether a change makes a voter of somebody whom `isFit` refuses. */
export function addsUnfit(change: ConfigChange, isFit: (id: number) => boolean): boolean {
  return change.operations.some(({ kind, node }) => kind === "addVoter" && !isFit(node));
}

export interface Event {
  readonly kind: EventKind;
  readonly node: number;
  readonly at: number;
}

/** A message on its way. */
export interface Flight {
  readonly message: Message;
  /** Lives of the sender and, as far as anybody knew, of the receiver. */
  readonly fromLife: number;
  readonly toLife: number;
  /** Digest of the message; 0 if the world keeps none. */
  readonly key: number;
}

/** The end of sending a snapshot, of which the sender has not heard yet. */
export interface Report {
  readonly node: number;
  readonly about: number;
  readonly ok: boolean;
}

function direct(kind: ConfigOperation["kind"], node: number): ConfigChange {
  return { version: 2, transition: "auto", operations: [{ kind, node }] };
}

/** What a group is left with by a change that names these operations. */
function votersAfter(voters: readonly number[], change: ConfigChange): number[] {
  const gone = change.operations.filter(({ kind }) => kind === "remove" || kind === "addLearner");
  return voters.filter((id) => !gone.some(({ node }) => node === id));
}

/**
 * Every membership change that makes sense among the nodes `ids`; only the gentle ones if asked to:
 * those that keep a majority of the voters. After others, for example from two voters to one, a group
 * may be stuck for good: a voter that does not know yet that the change is committed needs the votes
 * of nodes that left with longer logs and may not lead.
 */
export function possibleChanges(
  membership: Membership,
  ids: readonly number[],
  gentle: boolean,
): ConfigChange[] {
  if (isJoint(membership)) return [{ version: 2, transition: "auto", operations: [] }];
  const changes: ConfigChange[] = [];
  const { voters, learners } = membership;
  const outside = ids.filter((id) => !voters.includes(id));
  for (const id of outside) {
    changes.push(direct("addVoter", id));
    if (!learners.includes(id)) changes.push(direct("addLearner", id));
  }
  for (const id of learners) changes.push(direct("remove", id));
  if (voters.length > 1) {
    for (const id of voters) changes.push(direct("remove", id), direct("addLearner", id));
  }
  for (const [at, joining] of outside.entries()) {
    const leaving = voters[at % voters.length] ?? 0;
    const swap: ConfigOperation[] = [
      { kind: "addVoter", node: joining },
      { kind: at % 2 === 0 ? "remove" : "addLearner", node: leaving },
    ];
    changes.push({ version: 2, transition: "auto", operations: swap });
    changes.push({ version: 2, transition: "explicit", operations: swap });
  }
  if (voters.length > 2) {
    const operations = voters.slice(0, 2).map((node): ConfigOperation => {
      return { kind: "remove", node };
    });
    changes.push({ version: 2, transition: "implicit", operations });
  }
  if (!gentle) return changes;
  return changes.filter((change) => votersAfter(voters, change).length * 2 > voters.length);
}
