/**
 * What one node asks another, and how it is answered.
 *
 * A call: time that is left (ms), request id, request. Pure. Invariants: 1. Every request has one
 * kind of answer, or "not-taken". 2. What cannot be read whole is not read at all.
 */
import { ByteReader, type ByteWriter } from "../../base/codec.js";
import { MEMBERS_MAX, PARTITIONS_MAX } from "../../base/limits.js";
import { FINALIZE_STATUSES, LEAVE_OUTCOMES } from "../../api/cluster.js";
import type { FinalizeBlocker, FinalizeResult } from "../../host/cluster/finalizing.js";
import type { LeaveAnswer } from "../api/administration.js";
import type { DataAnswer, KvPageItem, Refusal } from "../api/answers.js";
import type { DataRequest } from "../api/requests.js";
import { DATA_ANSWER_KINDS, pageItems, refusal } from "./answers.js";
import { DATA_REQUEST_KINDS } from "./requests.js";
import {
  boolean,
  bytes,
  int32,
  int53,
  list,
  nullable,
  oneOf,
  record,
  text,
  union,
} from "../../base/shape.js";

type LeaveOutcome = LeaveAnswer["outcome"];

/** A page of the keys that some partitions hold, all of them led by the node that is asked. */
export interface ScanPartRequest {
  readonly kind: "scan-part";
  readonly partitions: readonly number[];
  readonly prefix: string;
  /** UTF-8 of the key above which to begin; null = from the start. */
  readonly after: Uint8Array | null;
  readonly limit: number;
  /** All of it, or word by `next` that it is larger than one answer may be. */
  readonly whole: boolean;
  readonly durability: number;
}

/** A change of the committed key ranges, for the leader of the meta partition. */
export interface RegisterRangeCall {
  readonly kind: "register-range";
  readonly keySpace: string;
  readonly partitionId: number;
}
export interface UnregisterRangeCall {
  readonly kind: "unregister-range";
  readonly keySpace: string;
}
/** A member whose process or disk is gone is to be removed (contract 5.3 rule 3). */
export interface RemoveMemberCall {
  readonly kind: "remove-member";
  readonly nodeId: number;
}
/** The level of the cluster is to be raised (contract 5.5); 0 = by one. */
export interface FinalizeCall {
  readonly kind: "finalize";
  readonly level: number;
}
export type MetaCall = RegisterRangeCall | UnregisterRangeCall;

export type CallRequest =
  DataRequest | ScanPartRequest | MetaCall | RemoveMemberCall | FinalizeCall;

export interface ScanPartAnswer {
  readonly kind: "scan-part";
  readonly end: "page" | "mustRetry" | "aborted";
  readonly refusal: Refusal | null;
  readonly items: readonly KvPageItem[];
  /** The last key considered in every one of the partitions; null when there is no more. */
  readonly next: Uint8Array | null;
}

export interface MetaAnswer {
  readonly kind: "meta";
  /** How apply ended the command; null when it is not known to have been applied. */
  readonly status: string | null;
  /** Log index of the command; 0 without a status. */
  readonly index: number;
}

/** How the removal of a member ended: an outcome of contract 5.3. */
export interface RemovalAnswer {
  readonly kind: "removal";
  readonly outcome: LeaveOutcome;
}

/** How the raising of the level ended. */
export interface FinalizeAnswer extends FinalizeResult {
  readonly kind: "finalize";
}

/** Nothing was done, because the node that was asked does not lead, or cannot serve now. */
export interface NotTaken {
  readonly kind: "not-taken";
  /** Who leads as far as that node knows; 0 = unknown. */
  readonly leaderNode: number;
  /** The request could not be read: asking again would not help. */
  readonly unreadable: boolean;
}

export type CallAnswer =
  DataAnswer | ScanPartAnswer | MetaAnswer | RemovalAnswer | FinalizeAnswer | NotTaken;

const blocker = record<FinalizeBlocker>({
  nodeId: int32,
  endpoint: text,
  version: text,
  levelMin: int32,
  levelMax: int32,
});

export const callRequest = union<CallRequest>({
  ...DATA_REQUEST_KINDS,
  "scan-part": [
    100,
    {
      partitions: list(int32, PARTITIONS_MAX),
      prefix: text,
      after: nullable(bytes),
      limit: int32,
      whole: boolean,
      durability: int32,
    },
  ],
  "register-range": [110, { keySpace: text, partitionId: int32 }],
  "unregister-range": [111, { keySpace: text }],
  "remove-member": [112, { nodeId: int32 }],
  finalize: [113, { level: int32 }],
});

export const callAnswer = union<CallAnswer>({
  ...DATA_ANSWER_KINDS,
  "scan-part": [
    100,
    {
      end: oneOf<ScanPartAnswer["end"]>("page", "mustRetry", "aborted"),
      refusal,
      items: pageItems,
      next: nullable(bytes),
    },
  ],
  meta: [110, { status: nullable(text), index: int53 }],
  removal: [112, { outcome: oneOf<LeaveOutcome>(...LEAVE_OUTCOMES) }],
  finalize: [
    113,
    {
      status: oneOf<FinalizeResult["status"]>(...FINALIZE_STATUSES),
      level: int32,
      blockers: list(blocker, MEMBERS_MAX),
      reason: text,
    },
  ],
  "not-taken": [120, { leaderNode: int32, unreadable: boolean }],
});

/** One call as it travels. */
export interface CallItem {
  readonly id: number;
  /** Time that the asked node has (ms). */
  readonly budgetMs: number;
  readonly requestId: string;
  readonly request: CallRequest;
}

/** Writes a call without its id. */
export function writeCall(writer: ByteWriter, call: Omit<CallItem, "id">): void {
  writer.uint32(call.budgetMs).text(call.requestId);
  callRequest.write(writer, call.request);
}

/** Null when `body` is no call of this version. */
export function readCall(id: number, body: Uint8Array): CallItem | null {
  const reader = new ByteReader(body);
  const budgetMs = reader.uint32();
  const requestId = reader.text();
  const request = callRequest.read(reader);
  return reader.isComplete() ? { id, budgetMs, requestId, request } : null;
}

/** Null when `body` is no answer of this version. */
export function readAnswer(body: Uint8Array): CallAnswer | null {
  const reader = new ByteReader(body);
  const answer = callAnswer.read(reader);
  return reader.isComplete() ? answer : null;
}
