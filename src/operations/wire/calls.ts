/**
 * What one node asks another and how it is answered, and the frames that carry many of both.
 *
 * Frame: version u8, direction u8 (1 calls, 2 answers), epoch of the asking node u32, then items,
 * each counted. A call: id, time that is left (ms), request id, request. An answer: id, answer.
 * Pure. May call base and the vocabulary.
 *
 * Invariants: 1. An item that cannot be read is told apart by its id and spoils nothing but itself.
 * 2. A frame of another version, or of another life of the asking node, is not read at all.
 */
import { ByteReader, type ByteWriter } from "../../base/codec.js";
import { PARTITIONS_MAX } from "../../base/limits.js";
import type { DataAnswer, KvPageItem, Refusal } from "../answers.js";
import type { DataRequest } from "../requests.js";
import { DATA_ANSWER_KINDS, pageItems, refusal } from "./answers.js";
import { DATA_REQUEST_KINDS } from "./requests.js";
import { boolean, bytes, int32, int53, list, nullable, oneOf, text, union } from "./shape.js";

/** A page of the keys that some partitions hold, all of them led by the node that is asked. */
export interface ScanPartRequest {
  readonly kind: "scan-part";
  readonly partitions: readonly number[];
  readonly prefix: string;
  /** UTF-8 of the key above which to begin; null = from the start. */
  readonly after: Uint8Array | null;
  readonly limit: number;
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
export type MetaCall = RegisterRangeCall | UnregisterRangeCall;

export type CallRequest = DataRequest | ScanPartRequest | MetaCall;

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

/** Nothing was done, because the node that was asked does not lead, or cannot serve now. */
export interface NotTaken {
  readonly kind: "not-taken";
  /** Who leads as far as that node knows; 0 = unknown. */
  readonly leaderNode: number;
  /** The request could not be read: asking again would not help. */
  readonly unreadable: boolean;
}

export type CallAnswer = DataAnswer | ScanPartAnswer | MetaAnswer | NotTaken;

export const callRequest = union<CallRequest>({
  ...DATA_REQUEST_KINDS,
  "scan-part": [
    100,
    {
      partitions: list(int32, PARTITIONS_MAX),
      prefix: text,
      after: nullable(bytes),
      limit: int32,
      durability: int32,
    },
  ],
  "register-range": [110, { keySpace: text, partitionId: int32 }],
  "unregister-range": [111, { keySpace: text }],
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
  "not-taken": [120, { leaderNode: int32, unreadable: boolean }],
});

const VERSION = 1;
const DIRECTIONS = ["calls", "answers"] as const;
export type Direction = (typeof DIRECTIONS)[number];

/** Bytes of a frame before its items. */
export const FRAME_HEAD_BYTES = 6;

/** Begins a frame; `epoch` names this life of the asking node. */
export function beginFrame(writer: ByteWriter, direction: Direction, epoch: number): void {
  writer
    .reset()
    .uint8(VERSION)
    .uint8(DIRECTIONS.indexOf(direction) + 1)
    .uint32(epoch);
}

export interface CallItem {
  readonly id: number;
  /** Time that the asked node has (ms). */
  readonly budgetMs: number;
  readonly requestId: string;
  readonly request: CallRequest;
}

/** Writes one call, without the count of its bytes. */
export function writeCall(writer: ByteWriter, call: CallItem): void {
  writer.uint53(call.id).uint32(call.budgetMs).text(call.requestId);
  callRequest.write(writer, call.request);
}

/** Writes one answer, without the count of its bytes. */
export function writeAnswer(writer: ByteWriter, id: number, answer: CallAnswer): void {
  writer.uint53(id);
  callAnswer.write(writer, answer);
}

/** What an item of a frame says; `content` is null when only its id could be read. */
export interface FrameItem<T> {
  readonly id: number;
  readonly content: T | null;
}

export type Frame =
  | {
      readonly direction: "calls";
      readonly epoch: number;
      readonly items: readonly FrameItem<CallItem>[];
    }
  | {
      readonly direction: "answers";
      readonly epoch: number;
      readonly items: readonly FrameItem<CallAnswer>[];
    };

/**
 * Reads a frame; null when it is none of this version. An item without a readable id is dropped,
 * and so is everything behind a damaged count.
 */
export function readFrame(frame: Uint8Array): Frame | null {
  const reader = new ByteReader(frame);
  const version = reader.uint8();
  const direction = DIRECTIONS[reader.uint8() - 1];
  const epoch = reader.uint32();
  if (reader.failed || version !== VERSION || direction === undefined) return null;
  if (direction === "calls") return { direction, epoch, items: readItems(frame, reader, readCall) };
  return { direction, epoch, items: readItems(frame, reader, readAnswer) };
}

function readItems<T>(
  frame: Uint8Array,
  reader: ByteReader,
  read: (item: ByteReader, id: number) => T,
): FrameItem<T>[] {
  const items: FrameItem<T>[] = [];
  while (reader.remainingBytes > 0) {
    const sizeBytes = reader.length();
    const start = reader.position;
    if (!reader.skip(sizeBytes)) break;
    const item = new ByteReader(frame, start, start + sizeBytes);
    const id = item.uint53();
    if (item.failed) continue;
    const content = read(item, id);
    items.push({ id, content: item.isComplete() ? content : null });
  }
  return items;
}

function readCall(reader: ByteReader, id: number): CallItem {
  const budgetMs = reader.uint32();
  const requestId = reader.text();
  return { id, budgetMs, requestId, request: callRequest.read(reader) };
}

function readAnswer(reader: ByteReader): CallAnswer {
  return callAnswer.read(reader);
}
