/**
 * The packets between two nodes, as bytes: the handshake, echoes, frames, and the two questions of
 * a node that belongs to no cluster yet.
 *
 * Invariants: 1. Every body but that of a frame begins with a version and is read whole or refused.
 * The version is for good: what later programs add they add as extensions, so that programs of any
 * two releases understand each other's ranges (contract 5.5 U7). 2. Texts are bounded when read. 3.
 * Nothing here decides.
 */
import { assert } from "../base/assert.js";
import { ByteReader, ByteWriter } from "../base/codec.js";
import { equalBytes } from "../base/bytes.js";
import { BOOTS_TOLD_MAX, NODE_ID_MAX, VOTERS_MAX } from "../base/limits.js";
import { type Program, RANGE_END } from "../base/levels.js";
import type {
  JoinAnswer,
  JoinRequest,
  FounderDirectory,
  PeerAddress,
  PeerHello,
  PeerIdentity,
  PeerLane,
  PeerProfile,
  PeerRefusal,
  PeerStanding,
  PeerStorage,
} from "../ports.js";
import {
  type Extension,
  putExtensions,
  putProgram,
  skipExtensions,
  takeProgram,
} from "./program.js";
import { PEER_LANES } from "./settings.js";

/** First byte of each message of a Link stream. The numbers are for good. */
export const PACKET = {
  hello: 1,
  refusal: 2,
  confirm: 3,
  echo: 4,
  echoAnswer: 5,
  frame: 6,
} as const;

const VERSION = 3;
export const NONCE_BYTES = 16;
export const NO_NONCE: Uint8Array = new Uint8Array(NONCE_BYTES);
const ID_TEXT_MAX = 128;
const ENDPOINT_TEXT_MAX = 512;
const REASON_TEXT_MAX = 512;
/** Largest message of a handshake or of a question (bytes). */
export const HANDSHAKE_MAX_BYTES = 4096;

/** What one side says first: who it is, whom it wants, and proof that it hears the other side. */
export interface Greeting {
  readonly hello: PeerHello;
  readonly lane: PeerLane;
  /** Node that is meant to hear this. */
  readonly target: number;
  /** Fresh for every connection: a recorded handshake cannot answer to it. */
  readonly nonce: Uint8Array;
  /** The nonce of the other side; NO_NONCE from the side that speaks first. */
  readonly answerTo: Uint8Array;
}

const REFUSALS: readonly PeerRefusal[] = [
  "other-cluster",
  "other-node",
  "storage-lost",
  "protocol",
  "not-a-member",
  "other-storage",
  "other-identity",
  "level",
];
const STORAGES: readonly PeerStorage[] = ["lmdb", "memory"];
const STATES: readonly PeerStanding["state"][] = ["empty", "founding", "founded"];

function boundedText(reader: ByteReader, longest: number): string {
  const text = reader.text();
  if (text.length > longest) reader.fail();
  return text;
}

function nodeIdOf(reader: ByteReader): number {
  const id = reader.uint32();
  if (id < 1 || id > NODE_ID_MAX) reader.fail();
  return id;
}

function opened(body: Uint8Array): ByteReader {
  const reader = new ByteReader(body);
  if (reader.uint8() !== VERSION) reader.fail();
  return reader;
}

function storageOf(reader: ByteReader): PeerStorage {
  const storage = STORAGES[reader.uint8()];
  if (storage === undefined) reader.fail();
  return storage ?? "lmdb";
}

function putProfile(writer: ByteWriter, profile: PeerProfile): ByteWriter {
  const { clusterId, storageId, endpoint, clientEndpoint } = profile;
  assert(clusterId.length <= ID_TEXT_MAX && storageId.length <= ID_TEXT_MAX, "ids are short");
  assert(endpoint.length <= ENDPOINT_TEXT_MAX, "an endpoint is at most 512 characters long");
  assert(clientEndpoint.length <= ENDPOINT_TEXT_MAX, "a base URL is at most 512 characters long");
  putProgram(writer, profile.program).uint32(profile.nodeId).text(clusterId).text(storageId);
  return writer.text(endpoint).text(clientEndpoint).uint8(STORAGES.indexOf(profile.storage));
}

function takeProfile(reader: ByteReader): PeerProfile {
  const program = takeProgram(reader);
  const nodeId = nodeIdOf(reader);
  const clusterId = boundedText(reader, ID_TEXT_MAX);
  const storageId = boundedText(reader, ID_TEXT_MAX);
  const endpoint = boundedText(reader, ENDPOINT_TEXT_MAX);
  const clientEndpoint = boundedText(reader, ENDPOINT_TEXT_MAX);
  const storage = storageOf(reader);
  return { clusterId, nodeId, storageId, endpoint, clientEndpoint, storage, program };
}

function putHello(writer: ByteWriter, hello: PeerHello): ByteWriter {
  const { bootNumber, bootNonce, earlierNonces } = hello;
  assert(earlierNonces.length <= BOOTS_TOLD_MAX, "a hello tells of few starts");
  putProfile(writer, hello).uint32(bootNumber).uint32(bootNonce).uint8(earlierNonces.length);
  for (const nonce of earlierNonces) writer.uint32(nonce);
  return writer;
}

function takeHello(reader: ByteReader): PeerHello {
  const profile = takeProfile(reader);
  const boot = { bootNumber: reader.uint32(), bootNonce: reader.uint32() };
  const count = reader.uint8();
  if (count > BOOTS_TOLD_MAX) reader.fail();
  const earlierNonces: number[] = [];
  for (let at = 0; at < count && !reader.failed; at++) earlierNonces.push(reader.uint32());
  return { ...profile, ...boot, earlierNonces };
}

export function encodeGreeting(greeting: Greeting, extensions?: readonly Extension[]): Uint8Array {
  const { hello, lane, target, nonce, answerTo } = greeting;
  const writer = new ByteWriter(256).uint8(VERSION).uint8(PEER_LANES.indexOf(lane));
  putHello(writer.uint32(target).raw(nonce).raw(answerTo), hello);
  return putExtensions(writer, extensions).finish();
}

/** Null when the body is no greeting of this version. */
export function decodeGreeting(body: Uint8Array): Greeting | null {
  const reader = opened(body);
  const lane = PEER_LANES[reader.uint8()];
  const target = nodeIdOf(reader);
  const nonce = reader.raw(NONCE_BYTES);
  const answerTo = reader.raw(NONCE_BYTES);
  const hello = takeHello(reader);
  skipExtensions(reader);
  if (!reader.isComplete() || lane === undefined || equalBytes(nonce, NO_NONCE)) return null;
  return { hello, lane, target, nonce, answerTo };
}

export interface RefusalNote {
  readonly by: PeerAddress;
  readonly refusal: PeerRefusal;
  /** What the node that refuses supports. */
  readonly program: Program;
  /** The nonce of the greeting that is refused: nothing else can be. */
  readonly answerTo: Uint8Array;
}

export function encodeRefusal(note: RefusalNote, extensions?: readonly Extension[]): Uint8Array {
  const { by, refusal, program, answerTo } = note;
  const writer = new ByteWriter(64).uint8(VERSION).uint8(REFUSALS.indexOf(refusal));
  putProgram(writer.raw(answerTo).uint32(by.nodeId).text(by.endpoint), program);
  return putExtensions(writer, extensions).finish();
}

export function decodeRefusal(body: Uint8Array): RefusalNote | null {
  const reader = opened(body);
  const refusal = REFUSALS[reader.uint8()];
  const answerTo = reader.raw(NONCE_BYTES);
  const nodeId = nodeIdOf(reader);
  const endpoint = boundedText(reader, ENDPOINT_TEXT_MAX);
  const program = takeProgram(reader);
  skipExtensions(reader);
  if (!reader.isComplete() || refusal === undefined) return null;
  return { by: { nodeId, endpoint }, refusal, program, answerTo };
}

/** What a node gives to whoever must prove something with its question: a fresh nonce. */
export function encodeChallenge(nonce: Uint8Array): Uint8Array {
  return new ByteWriter(32).uint8(VERSION).raw(nonce).finish();
}

/** Null when the body is no challenge of this version. */
export function decodeChallenge(body: Uint8Array): Uint8Array | null {
  const reader = opened(body);
  const nonce = reader.raw(NONCE_BYTES);
  return reader.isComplete() ? nonce : null;
}

/** The question for a node's identity, or for a challenge; it says nothing of who asks. */
export function encodeQuestion(extensions?: readonly Extension[]): Uint8Array {
  return putExtensions(new ByteWriter(8).uint8(VERSION), extensions).finish();
}

export function isQuestion(body: Uint8Array): boolean {
  const reader = opened(body);
  skipExtensions(reader);
  return reader.isComplete();
}

export function encodeIdentityAnswer(
  identity: PeerIdentity,
  extensions?: readonly Extension[],
): Uint8Array {
  const { state, founders } = identity;
  assert(founders.length <= VOTERS_MAX, "founders are voters");
  const writer = putProfile(new ByteWriter(256).uint8(VERSION), identity);
  writer.uint8(STATES.indexOf(state)).length(founders.length);
  for (const { nodeId, storageId } of founders) writer.uint32(nodeId).text(storageId);
  return putExtensions(writer, extensions).finish();
}

/** Null when the body is no answer of this version. */
export function decodeIdentityAnswer(body: Uint8Array): PeerIdentity | null {
  const reader = opened(body);
  const profile = takeProfile(reader);
  const state = STATES[reader.uint8()];
  const count = reader.length();
  if (state === undefined || count > VOTERS_MAX) return null;
  const founders: FounderDirectory[] = [];
  for (let at = 0; at < count; at++) {
    const nodeId = nodeIdOf(reader);
    if (nodeId <= (founders.at(-1)?.nodeId ?? 0)) reader.fail();
    founders.push({ nodeId, storageId: boundedText(reader, ID_TEXT_MAX) });
  }
  skipExtensions(reader);
  return reader.isComplete() ? { ...profile, state, founders } : null;
}

export function encodeJoinRequest(
  request: JoinRequest,
  extensions?: readonly Extension[],
): Uint8Array {
  const { nodeId, storageId, endpoint, storage, program } = request;
  const writer = new ByteWriter(128).uint8(VERSION);
  writer.uint32(nodeId).text(storageId).text(endpoint).uint8(STORAGES.indexOf(storage));
  return putExtensions(putProgram(writer, program), extensions).finish();
}

export function decodeJoinRequest(body: Uint8Array): JoinRequest | null {
  const reader = opened(body);
  const nodeId = nodeIdOf(reader);
  const storageId = boundedText(reader, ID_TEXT_MAX);
  const endpoint = boundedText(reader, ENDPOINT_TEXT_MAX);
  const storage = storageOf(reader);
  const program = takeProgram(reader);
  skipExtensions(reader);
  return reader.isComplete() ? { nodeId, storageId, endpoint, storage, program } : null;
}

const JOIN_STATUSES: readonly JoinAnswer["status"][] = ["accepted", "retry", "refused"];

export function encodeJoinAnswer(
  answer: JoinAnswer,
  extensions?: readonly Extension[],
): Uint8Array {
  const writer = new ByteWriter(128).uint8(VERSION).uint8(JOIN_STATUSES.indexOf(answer.status));
  if (answer.status !== "accepted") {
    writer.text(answer.reason.slice(0, REASON_TEXT_MAX).toWellFormed());
    return putExtensions(writer, extensions).finish();
  }
  const { clusterId, level, founders } = answer;
  writer.text(clusterId).uint32(level).length(founders.length);
  for (const founder of founders) writer.uint32(founder);
  return putExtensions(writer, extensions).finish();
}

export function decodeJoinAnswer(body: Uint8Array): JoinAnswer | null {
  const reader = opened(body);
  const status = JOIN_STATUSES[reader.uint8()];
  if (status === undefined) return null;
  if (status !== "accepted") {
    const reason = boundedText(reader, REASON_TEXT_MAX);
    skipExtensions(reader);
    return reader.isComplete() ? { status, reason } : null;
  }
  const clusterId = boundedText(reader, ID_TEXT_MAX);
  const level = reader.uint32();
  const count = reader.length();
  if (reader.failed || level > RANGE_END || count > VOTERS_MAX) return null;
  const founders: number[] = [];
  for (let at = 0; at < count; at++) founders.push(nodeIdOf(reader));
  skipExtensions(reader);
  return reader.isComplete() ? { status, clusterId, level, founders } : null;
}
