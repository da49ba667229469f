/**
 * The removal of a member whose process or disk is gone (contract 5.3 rule 3): carried out by the
 * node that leads the meta partition, whoever was asked.
 *
 * Invariants: 1. An outcome is told only by a node that proved that it leads the meta partition
 * after it was asked. 2. The call may be given to another leader while its fate is open: it is
 * idempotent. 3. Without an answer the outcome is one that may be repeated.
 */
import { META_PARTITION } from "../../base/ids.js";
import type { LeaveAnswer } from "../api/administration.js";
import { Forwarder } from "../forwarding/forwarder.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";

type LeaveOutcome = LeaveAnswer["outcome"];

/** Beside the drain, a leave may take so long (ms; contract 5.3). */
export const LEAVE_EXTRA_MS = 30_000;

/** Removes `nodeId` where the meta partition is led; `moved` when this node does not lead it. */
export function removeMemberHere(
  serving: Serving,
  nodeId: number,
  deadlineMs: number,
  moved: () => void,
  then: (outcome: LeaveOutcome) => void,
): void {
  const { node } = serving;
  const group = node.metaGroup();
  group.read(deadlineMs, (result) => {
    if (result.status !== "confirmed") return group.isLeader() ? then("NoLeader") : moved();
    node.removeMember(nodeId, deadlineMs, (outcome) => {
      if (outcome === "NoLeader" && !group.isLeader()) moved();
      else then(outcome);
    });
  });
}

/** Has `nodeId` removed by the leader of the meta partition. */
export function removeMember(
  serving: Serving,
  nodeId: number,
  context: RequestContext,
  done: (outcome: LeaveOutcome) => void,
): void {
  const { node, leaders, ports } = serving;
  const { deadlineMs, requestId, trace } = context;
  if (!node.initialized) return ports.timer.soon(() => done("NotInitialized"));
  const open = (): void => done(leaders.of(META_PARTITION) === 0 ? "NoLeader" : "Timeout");
  if (!mayForward(context) && !node.metaGroup().isLeader()) {
    return ports.timer.soon(() => done("NoLeader"));
  }
  new Forwarder(serving, {
    partition: META_PARTITION,
    request: { kind: "remove-member", nodeId },
    requestId,
    trace,
    deadlineMs,
    reading: true,
    here: (_group, moved) => removeMemberHere(serving, nodeId, deadlineMs, moved, done),
    answered: (answer) => (answer.kind === "removal" ? done(answer.outcome) : open()),
    failed: open,
  }).go();
}
