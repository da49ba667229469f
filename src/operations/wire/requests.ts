/**
 * The shapes of all data requests, as they are forwarded to the node that leads.
 *
 * Pure. Numbers and members stand in the table of kinds. Requests about locks have members beside
 * those: `locks.ts`.
 */
import { type Kinds, numbered } from "../../base/shape.js";
import type { LockRequest, PlainLockRequest } from "../api/lock-requests.js";
import { type DataRequest, KINDS } from "../api/requests.js";

/** The requests as every program knows them. */
export type PlainRequest = Exclude<DataRequest, LockRequest> | PlainLockRequest;

/** The kinds of data requests, with their numbers. */
export const DATA_REQUEST_KINDS: Kinds<PlainRequest> = numbered<PlainRequest>(KINDS);
