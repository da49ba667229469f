/**
 * Raising the level of the cluster (contract 5.5): carried out by the node that leads the meta
 * partition, whoever was asked.
 *
 * Invariants: 1. A status is told only by a node that proved that it leads the meta partition after
 * it was asked. 2. Only a call that names its level may be given to another leader while its fate
 * is open: it cannot raise twice. 3. Without an answer it is "Refused": nothing is claimed.
 */
import { META_PARTITION } from "../../base/ids.js";
import type { FinalizeResult } from "../../host/cluster/finalizing.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import { Forwarder } from "../forwarding/forwarder.js";
import type { Serving } from "../serving/serving.js";

/** Raises to `level` where the meta partition is led; `moved` when this node does not lead it. */
export function finalizeHere(
  serving: Serving,
  level: number,
  deadlineMs: number,
  moved: () => void,
  then: (result: FinalizeResult) => void,
): void {
  serving.node.finalize(level, deadlineMs, (result) => {
    if (result === "moved") moved();
    else then(result);
  });
}

/** Has the leader of the meta partition raise to `level`; 0 = the present level + 1. */
export function finalize(
  serving: Serving,
  level: number,
  context: RequestContext,
  done: (result: FinalizeResult) => void,
): void {
  const { node, leaders, ports } = serving;
  const { deadlineMs, requestId, trace } = context;
  const refuse = (reason: string): void => {
    done({ status: "Refused", level: serving.clusterLevel(), blockers: [], reason });
  };
  const later = (reason: string): void => ports.timer.soon(() => refuse(reason));
  if (!node.initialized) return later("The cluster is not initialised yet.");
  const noLeader = "The meta partition has no leader.";
  if (!mayForward(context) && !node.metaGroup().isLeader()) return later(noLeader);
  const open = (): void => {
    refuse(leaders.of(META_PARTITION) === 0 ? noLeader : "The commit was not confirmed in time.");
  };
  new Forwarder(serving, {
    partition: META_PARTITION,
    request: { kind: "finalize", level },
    requestId,
    trace,
    deadlineMs,
    reading: level !== 0,
    here: (_group, moved) => finalizeHere(serving, level, deadlineMs, moved, done),
    answered: (answer) => {
      if (answer.kind !== "finalize") return open();
      const { status, blockers, reason } = answer;
      done({ status, level: answer.level, blockers, reason });
    },
    failed: (refusal) => {
      if (refusal === null) open();
      else refuse(`The request was not taken: ${refusal}.`);
    },
  }).go();
}
