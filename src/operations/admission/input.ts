/**
 * Which data requests are acceptable as sent: the checks behind InvalidInput that need no state.
 *
 * Pure. Invariants: 1. These checks come before routing, admission and everything else. 2. Whatever
 * depends on state (a merged record, a revision) is checked in apply, not here.
 */
import { isKvAcceptable, isManyAcceptable } from "../api/kv-requests.js";
import { isListAcceptable, isLockAcceptable } from "../api/lock-requests.js";
import { type DataRequest, familyOf, isOf } from "../api/requests.js";
import { isSequenceAcceptable } from "../api/sequence-requests.js";
import type { OperationsSettings } from "../api/settings.js";

/** True unless the answer is InvalidInput. */
export function isAcceptable(request: DataRequest, settings: OperationsSettings): boolean {
  const family = familyOf(request);
  if (isOf(request, "sequence", family)) return isSequenceAcceptable(request);
  if (isOf(request, "lock", family)) return isLockAcceptable(request, settings);
  if (isOf(request, "list", family)) return isListAcceptable(request);
  if (isOf(request, "many", family)) return isManyAcceptable(request);
  return isKvAcceptable(request, settings);
}
