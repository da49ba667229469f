/**
 * Changes of the committed key ranges: proposed by the node that leads the meta partition, whoever
 * was asked.
 *
 * Invariants: 1. A status is told only when apply gave it. 2. Before it is told, this node has
 * applied the change too, or the time is over: whoever reads this node's view next sees it.
 */
import { META_PARTITION } from "../../base/ids.js";
import { textSizeBytes } from "../../base/bytes.js";
import type { ProposalResult } from "../../host/requests/results.js";
import { Forwarder } from "../forwarding/forwarder.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";
import type { MetaAnswer, MetaCall } from "../wire/calls.js";

/** Upper bound of the size of a range command beside its key space. */
const COMMAND_BYTES = 64;
/** How long a change that is committed is waited for here (ms). */
const CATCH_UP_MS = 2000;

const OPEN: MetaAnswer = { kind: "meta", status: null, index: 0 };

/** Proposes `call` here; `moved` when this node does not lead and nothing was proposed. */
export function proposeMeta(
  serving: Serving,
  call: MetaCall,
  deadlineMs: number,
  moved: () => void,
  then: (end: MetaAnswer) => void,
): void {
  const group = serving.node.metaGroup();
  const sizeBytes = COMMAND_BYTES + textSizeBytes(call.keySpace);
  group.propose(call, sizeBytes, deadlineMs, (result: ProposalResult) => {
    const refused = result.status === "refused" && result.reason === "not-leader";
    if (refused && !group.isLeader()) return moved();
    if (result.status !== "applied" || result.outcome.kind !== "meta") return then(OPEN);
    then({ kind: "meta", status: result.outcome.status, index: result.index });
  });
}

/** Has `call` proposed by the leader of the meta partition. */
export function changeMeta(
  serving: Serving,
  call: MetaCall,
  context: RequestContext,
  then: (end: MetaAnswer) => void,
): void {
  const { deadlineMs, requestId, trace } = context;
  const catchUp = (end: MetaAnswer): void => {
    const { machine } = serving.node.metaGroup();
    const isOver = (): boolean => serving.node.metaGroup().machine.appliedIndex >= end.index;
    if (machine.appliedIndex >= end.index) return then(end);
    const untilMs = Math.min(deadlineMs, serving.ports.clock.monotonicMs() + CATCH_UP_MS);
    if (!serving.leaders.wait({ untilMs, isOver, resume: () => then(end) })) then(end);
  };
  const group = serving.node.metaGroup();
  if (!mayForward(context) && !group.isLeader()) {
    return serving.ports.timer.soon(() => then(OPEN));
  }
  new Forwarder(serving, {
    partition: META_PARTITION,
    request: call,
    requestId,
    trace,
    deadlineMs,
    reading: false,
    here: (_group, moved) => proposeMeta(serving, call, deadlineMs, moved, catchUp),
    answered: (answer) => {
      if (answer.kind === "meta") catchUp(answer);
      else then(OPEN);
    },
    failed: () => then(OPEN),
  }).go();
}
