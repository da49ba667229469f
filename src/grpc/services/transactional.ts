/**
 * The transactional fields of key/value messages: part of the wire format, not part of the service.
 *
 * Invariants: 1. A message is plain exactly when all such fields in it are zero, empty or absent,
 * or the conflict policy is NORMAL; anything else goes down as not plain and comes back as
 * InvalidInput.
 */
import { isZeroHalves, type Int64Halves } from "../../proto/codec.js";
import { GrpcTransactionConflictPolicy as Policy } from "../../proto/generated/keyvalues.js";

interface Transaction {
  readonly TransactionIdNode: number;
  readonly TransactionIdPhysical: Int64Halves;
  readonly TransactionIdCounter: number;
}
interface ReadTimestamp {
  readonly ReadTimestampNode: number;
  readonly ReadTimestampPhysical: Int64Halves;
  readonly ReadTimestampCounter: number;
}
interface Operation {
  readonly CoordinatorKey: string | null;
  readonly OperationIdHigh: Int64Halves | null;
  readonly OperationIdLow: Int64Halves | null;
}

export function noTransaction(message: Transaction): boolean {
  return (
    message.TransactionIdNode === 0 &&
    message.TransactionIdCounter === 0 &&
    isZeroHalves(message.TransactionIdPhysical)
  );
}

export function noReadTimestamp(message: ReadTimestamp): boolean {
  return (
    message.ReadTimestampNode === 0 &&
    message.ReadTimestampCounter === 0 &&
    isZeroHalves(message.ReadTimestampPhysical)
  );
}

export function noOperation(message: Operation): boolean {
  const { CoordinatorKey: key, OperationIdHigh: high, OperationIdLow: low } = message;
  return (
    (key === null || key === "") &&
    (high === null || isZeroHalves(high)) &&
    (low === null || isZeroHalves(low))
  );
}

export function normalPolicy(message: { readonly ConflictPolicy: number }): boolean {
  return (
    message.ConflictPolicy === Policy.TRANSACTION_CONFLICT_POLICY_UNSPECIFIED ||
    message.ConflictPolicy === Policy.TRANSACTION_CONFLICT_POLICY_NORMAL
  );
}
