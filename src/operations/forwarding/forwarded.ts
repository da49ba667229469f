/**
 * What the first node knows about a request that another one carried out: which answers belong to
 * it, which requests change nothing, and how its hint reads.
 *
 * Pure. Invariants: 1. Nothing of an answer is changed but the provenance of its hints. 2. An
 * answer of another kind than its request is none.
 */
import { unreachable } from "../../base/assert.js";
import { KvType, LockType, SequenceType } from "../../machine/commands/command.js";
import {
  type DataAnswer,
  type KvManyAnswer,
  type RouteHint,
  RouteProvenance,
} from "../api/answers.js";
import { type DataRequest, type DataRequestKind, KINDS } from "../api/requests.js";
import type { CallAnswer } from "../wire/calls.js";

/** True for a request that changes nothing, however often it is carried out. */
export function isReading(kind: DataRequestKind): boolean {
  return KINDS[kind].reads;
}

/** True when `answer` is of the kind that `request` is answered with. */
export function isAnswerTo(request: DataRequest, answer: CallAnswer): answer is DataAnswer {
  return answer.kind === KINDS[request.kind].answer;
}

/**
 * True when the answer to `request` says that it was stopped before it had any effect, for every
 * item of a call that changes something.
 */
export function isAborted(request: DataRequest, answer: DataAnswer): boolean {
  switch (answer.kind) {
    case "lock":
    case "forced":
    case "lock-page":
    case "lock-audit":
      return answer.type === LockType.aborted;
    case "sequence":
    case "allocation":
      return answer.type === SequenceType.aborted;
    case "kv":
    case "kv-page":
      return answer.type === KvType.aborted;
    case "kv-many": {
      const aborted = answer.items.filter(({ type }) => type === KvType.aborted).length;
      return aborted > 0 && (isReading(request.kind) || aborted === answer.items.length);
    }
    default:
      return unreachable(answer);
  }
}

/** True when `answer` has a result for each of `count` items, with routes that exist. */
export function isManyOf(answer: CallAnswer, count: number): answer is KvManyAnswer {
  if (answer.kind !== "kv-many" || answer.items.length !== count) return false;
  return answer.items.every((item) => item.routeIndex <= answer.routes.length);
}

/** The hint of the node that executed, as the node that forwarded gives it on (contract 6.4). */
export function forwardedRoute(route: RouteHint | null, hints: boolean): RouteHint | null {
  if (route === null || !hints) return null;
  if (route.provenance !== RouteProvenance.executed) return route;
  return { ...route, provenance: RouteProvenance.forwarded };
}

export function forwarded(answer: DataAnswer, hints: boolean): DataAnswer {
  return { ...answer, route: forwardedRoute(answer.route, hints) };
}
