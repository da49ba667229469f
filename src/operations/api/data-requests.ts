/**
 * Data requests: what the front ends hand down, also over a forward. Answers, administration and
 * the port that carries them are in the files beside this one and come with it.
 *
 * One file for each family of requests. Invariants: 1. One type per request and answer serves REST,
 * gRPC, batch streams and forwards. 2. Text is well-formed but otherwise unchecked (trimming,
 * emptiness, length are the operation's business). 3. Numbers that came from outside are in their
 * wire range (int32, int64) and otherwise unchecked. 4. Absent and zero differ.
 */
import type { KvRequest } from "./kv-requests.js";
import type { LockAdminRequest, LockRequest } from "./lock-requests.js";
import type { SequenceRequest } from "./sequence-requests.js";

export type * from "./kv-requests.js";
export { isWaiting } from "./lock-requests.js";
export type * from "./lock-requests.js";
export { Durability } from "./names.js";
export type * from "./sequence-requests.js";

export type DataRequest = LockRequest | LockAdminRequest | SequenceRequest | KvRequest;
export type DataRequestKind = DataRequest["kind"];
