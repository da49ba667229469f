/**
 * What a request on one key must be like, by rules K3, K5, K8 and K18 of the contract.
 */
import type { KvKeyOperation, KvSetOperation } from "../history.js";

export const FLAG = {
  set: 1,
  noRevision: 2,
  ifExists: 4,
  ifNotExists: 8,
  ifEqualToValue: 16,
  ifEqualToRevision: 32,
} as const;
const FLAGS_ALL = 63;

const NAME_BYTES_MAX = 1024;
const EXPIRES_MAX_MS = 2 ** 31 - 1;

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

export function isAcceptable(
  operation: KvSetOperation | KvKeyOperation,
  maxValueBytes: number,
): boolean {
  const { key, expiresMs } = operation;
  if (bytesOf(key) < 1 || bytesOf(key) > NAME_BYTES_MAX || key.startsWith("__svc:")) return false;
  if (operation.kind === "kv-extend") return expiresMs >= 1 && expiresMs <= EXPIRES_MAX_MS;
  if (operation.kind !== "kv-set") return operation.revision >= -1n;
  const { flags, value } = operation;
  if ((flags & ~FLAGS_ALL) !== 0 || expiresMs < 0 || expiresMs > EXPIRES_MAX_MS) return false;
  if (value !== null && bytesOf(value) > maxValueBytes) return false;
  return (flags & FLAG.ifExists) === 0 || (flags & FLAG.ifNotExists) === 0;
}
