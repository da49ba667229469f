/**
 * Pages of locks, and of forced releases, that one node asks of another: of partitions which that
 * one leads. Of clusters of level 2.
 *
 * Pure.
 */
import type { Hlc } from "../../base/hlc.js";
import { PARTITIONS_MAX } from "../../base/limits.js";
import {
  type Members,
  boolean,
  bytes,
  hlc,
  int32,
  int53,
  list,
  nullable,
  oneOf,
  record,
  text,
  uint32,
} from "../../base/shape.js";
import type { LockAuditEntry, LockListItem, Refusal } from "../api/answers.js";
import { auditItems, lockItems, refusal } from "./answers.js";

export interface LocksPartRequest {
  readonly kind: "locks-part";
  readonly partitions: readonly number[];
  readonly prefix: string;
  readonly durability: number;
  readonly heldOnly: boolean;
  /** UTF-8 of the resource above which to begin; null = from the start. */
  readonly after: Uint8Array | null;
  /** Of each partition. */
  readonly limit: number;
}

/** Where a row of a partition stands among those of all: the newest come first. */
export interface AuditPlace {
  readonly stamp: Hlc;
  readonly partitionId: number;
  readonly auditId: number;
}

export interface AuditPartRequest {
  readonly kind: "audit-part";
  readonly partitions: readonly number[];
  readonly prefix: string;
  /** Null: from the newest on. */
  readonly below: AuditPlace | null;
  readonly limit: number;
}

interface PartEnd {
  readonly end: "page" | "mustRetry" | "aborted";
  readonly refusal: Refusal | null;
}

export interface LocksPartAnswer extends PartEnd {
  readonly kind: "locks-part";
  readonly items: readonly LockListItem[];
  /** The last resource considered in every one of the partitions; null when there is no more. */
  readonly next: Uint8Array | null;
}

export interface AuditPartAnswer extends PartEnd {
  readonly kind: "audit-part";
  readonly items: readonly LockAuditEntry[];
  readonly next: AuditPlace | null;
}

const partitions = list(int32, PARTITIONS_MAX);
const place = record<AuditPlace>({ stamp: hlc, partitionId: uint32, auditId: int53 });
const end: Members<PartEnd> = {
  end: oneOf<PartEnd["end"]>("page", "mustRetry", "aborted"),
  refusal,
};

export const locksPart: Members<Omit<LocksPartRequest, "kind">> = {
  partitions,
  prefix: text,
  durability: int32,
  heldOnly: boolean,
  after: nullable(bytes),
  limit: int32,
};
export const auditPart: Members<Omit<AuditPartRequest, "kind">> = {
  partitions,
  prefix: text,
  below: nullable(place),
  limit: int32,
};
export const locksPartAnswer: Members<Omit<LocksPartAnswer, "kind">> = {
  ...end,
  items: lockItems,
  next: nullable(bytes),
};
export const auditPartAnswer: Members<Omit<AuditPartAnswer, "kind">> = {
  ...end,
  items: auditItems,
  next: nullable(place),
};
