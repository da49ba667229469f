/** What nodes say to each other: handshakes, and the frames of every lane. */
import { encodeText } from "../../../src/base/bytes.js";
import { ByteReader, ByteWriter } from "../../../src/base/codec.js";
import { Prng } from "../../../src/base/prng.js";
import type { Shape } from "../../../src/base/shape.js";
import { Hearing } from "../../../src/host/cluster/hearing.js";
import {
  type MetaResult,
  readMetaResult,
  writeMetaResult,
} from "../../../src/host/cluster/meta-proposals.js";
import { NodeClocks } from "../../../src/host/node-clocks.js";
import {
  type MoveFrame,
  decodeMoveFrame,
  encodeMoveFrame,
} from "../../../src/host/replication/move-frames.js";
import {
  FrameRoom,
  NO_BEAT_SIGN,
  type RaftItem,
  RaftFrameWriter,
  readRaftFrame,
  spanOf,
} from "../../../src/host/replication/raft-frames.js";
import {
  type NodeReport,
  decodeNodeReport,
  encodeNodeReport,
} from "../../../src/host/reports/node-report.js";
import {
  type SnapshotFrame,
  decodeSnapshotFrame,
  encodeSnapshotFrame,
} from "../../../src/host/snapshots/snapshot-frames.js";
import { placementGeneration } from "../../../src/base/ids.js";
import { emptyMembership } from "../../../src/raft/state/membership.js";
import type { MessageKind } from "../../../src/raft/state/types.js";
import {
  type CallAnswer,
  type CallRequest,
  CALL_SHAPES,
  writeAnswer,
  writeCall,
} from "../../../src/operations/wire/calls.js";
import type { TraceParent } from "../../../src/operations/api/tracing.js";
import { ofLockAnswer, ofLockCall } from "../../../src/operations/wire/locks.js";
import { Draft, Inbox, farewell } from "../../../src/operations/wire/frames.js";
import { InventingReader } from "../../doubles/base/inventing-reader.js";
import { entries } from "../../doubles/disk/fixture.js";
import { BACKUP_FRAME } from "./backup-frames.js";
import { type Format, format } from "./format.js";

const MESSAGE_KINDS: readonly MessageKind[] = [
  ...(["append", "appendAnswer", "vote", "voteAnswer", "preVote", "preVoteAnswer"] as const),
  ...(["heartbeat", "heartbeatAnswer", "timeoutNow"] as const),
];

function messageOf(kind: MessageKind, at: number): RaftItem {
  const list = kind === "append" ? entries(11, 13, 5) : [];
  const message = {
    kind,
    ...{ from: 1, to: 2, term: 5 + at, logTerm: 4, index: 10, commit: 9 },
    ...{ reject: at % 2 === 0, rejectHint: 3, context: at },
    ...{ entries: spanOf(list), snapshot: null, proposal: null },
  };
  const sign = {
    lease: { leaseMs: 1_700_000_000_000, nodeMs: 55 },
    digest: { index: 8, low: -7, high: 6 },
  };
  const lives = at % 3 === 0 ? { fromLife: 4, toLife: 2 ** 40 } : { fromLife: 0, toLife: 0 };
  const beat = kind === "heartbeat" ? sign : NO_BEAT_SIGN;
  return { group: 100 + at, message, entries: list, sign: beat, ...lives };
}

function writeRaft(items: readonly RaftItem[]): Uint8Array {
  const writer = new RaftFrameWriter(new FrameRoom());
  for (const { group, message, entries: list, sign, fromLife, toLife } of items) {
    writer.add(group, message, list, sign, fromLife, toLife);
  }
  return writer.take() ?? new Uint8Array();
}

function readRaft(bytes: Uint8Array): readonly RaftItem[] | null {
  const items: RaftItem[] = [];
  const bad = readRaftFrame(bytes, 1, 2, (item) => void items.push(item));
  return bad === 0 ? items : null;
}

const META = {
  index: 77,
  term: 3,
  membership: {
    voters: [1, 2, 3],
    votersOutgoing: [],
    learners: [4],
    learnersNext: [],
    autoLeave: false,
  },
};
const AT = { group: 6, session: 2 ** 40 + 1 };
const SNAPSHOT_FRAMES: readonly SnapshotFrame[] = [
  { kind: "begin", ...AT, term: 9, meta: META, fromLife: 1, toLife: 2 },
  { kind: "chunk", ...AT, sequence: 3, bytes: encodeText("a chunk") },
  { kind: "ack", ...AT, next: 4, resend: true },
  ...(["installed", "not-needed", "busy", "outdated", "damaged", "unknown"] as const).map(
    (code): SnapshotFrame => ({ kind: "result", ...AT, code }),
  ),
  { kind: "query", ...AT },
  { kind: "abort", ...AT },
];

const MOVE = { group: 3, term: 8, token: 2 };
const MOVE_FRAMES: readonly MoveFrame[] = [
  { kind: "ask", ...MOVE, sizeBytes: 12_345 },
  { kind: "answer", ...MOVE, accepted: true, frames: 2 },
  {
    kind: "rows",
    ...MOVE,
    sequence: 1,
    isLast: true,
    head: { leaseMs: 1_700_000_000_000, stamp: { n: 3, l: 1_700_000_000_001, c: 9 }, nextLife: 4 },
    rows: [{ key: encodeText("key"), value: encodeText("value") }],
  },
];

const REPORT: NodeReport = {
  ...{ bootNumber: 3, metaIndex: 99, replicas: 5, learners: 1, leading: [1, 4, 200] },
  wallMs: 1_700_000_000_123,
  placement: { rebalances: true, leadingBytes: [0, 4096, 2 ** 20] },
  arrivals: [{ partition: 4, nodeId: 3, matchIndex: 7, snapshotChunks: 2, hasSnapshot: true }],
  waits: [{ partition: 4, why: "node 3 takes its snapshot" }],
  ...{ isReady: false, reason: "not-initialized", uptimeMs: 123_000 },
  ...{ requestsPerSecond: 2000, failedPerSecond: 3 },
  ...{ snapshotsIn: 1, snapshotsOut: 2, logBytes: 2 ** 40, storeBytes: 5, storeMaxBytes: 0 },
  ...{ isFull: true, writesPerSecond: 1000, loopLagP99Ms: 1.5, logSyncP99Ms: 0.25 },
  unlinked: [
    { nodeId: 2, forMs: 100 },
    { nodeId: 9, forMs: 5 },
  ],
};

/** Values of every kind of a union, made up, one each. */
function everyKind<U extends { readonly kind: string }>(shape: Shape<U>): readonly U[] {
  const found: U[] = [];
  for (let number = 0; number < 256; number++) {
    const random = new Prng(number);
    for (let attempt = 0; attempt < 100; attempt++) {
      const reader = new InventingReader(random, [number]);
      const value = shape.read(reader);
      if (reader.failed) continue;
      found.push(value);
      break;
    }
  }
  return found;
}

interface Call {
  readonly epoch: number;
  readonly id: number;
  readonly budgetMs: number;
  readonly requestId: string;
  readonly request: CallRequest;
  readonly knowsLocks: boolean;
  /** Absent: none. */
  readonly trace?: TraceParent;
}

interface Answer {
  readonly epoch: number;
  readonly id: number;
  readonly answer: CallAnswer;
  readonly knowsLocks: boolean;
}

const EPOCH = 2 ** 32 - 2;
const ID = 2 ** 40;

function framed(direction: "calls" | "answers", body: Uint8Array): Uint8Array {
  const draft = new Draft(direction);
  draft.add(EPOCH, ID, body);
  return draft.take()[0]?.bytes ?? new Uint8Array();
}

function writeCallFrame(call: Call): Uint8Array {
  const writer = new ByteWriter();
  writeCall(writer, { ...call, trace: call.trace ?? null });
  return framed("calls", writer.finish());
}

function readCallFrame(bytes: Uint8Array): Call | null {
  const frame = new Inbox(1 << 20).open(bytes);
  if (frame?.direction !== "calls") return null;
  const { content } = frame.items[0] ?? {};
  if (content === null || content === undefined) return null;
  const { trace, ...call } = content;
  return { epoch: frame.epoch, ...call, ...(trace === null ? {} : { trace }) };
}

function writeAnswerFrame({ answer, knowsLocks }: Answer): Uint8Array {
  const writer = new ByteWriter();
  writeAnswer(writer, answer, knowsLocks);
  return framed("answers", writer.finish());
}

function readAnswerFrame(bytes: Uint8Array): Answer | null {
  const frame = new Inbox(1 << 20).open(bytes);
  if (frame?.direction !== "answers") return null;
  const { id = 0, content: answer } = frame.items[0] ?? {};
  if (answer === null || answer === undefined) return null;
  // Its form is not told; only the newer one has a wait.
  const knowsLocks = answer.kind === "lock" && answer.waiters !== 0;
  return { epoch: frame.epoch, id, answer, knowsLocks };
}

const RESULTS: readonly MetaResult[] = [
  { status: "refused" },
  { status: "unknown" },
  { status: "later" },
  {
    status: "applied",
    outcome: "taken-in",
    version: 2 ** 40,
    items: [{ status: "stale", generation: placementGeneration(4) }],
  },
];

function writeResult(result: MetaResult): Uint8Array {
  const writer = new ByteWriter();
  writeMetaResult(writer, result);
  return writer.finish();
}

/** The frame in which a node tells its clock. */
function writeClock(nodeMs: number): Uint8Array {
  let sent = new Uint8Array();
  const members = { membership: { ...emptyMembership, voters: [1, 2] } };
  const sleeper = { peers: { isQuiesced: true }, hasLeases: true, members };
  const clocks = new NodeClocks({
    linked: () => [2],
    hosted: () => [{ replica: sleeper }],
    send: (_to, bytes) => (sent = Uint8Array.from(bytes)),
  });
  clocks.check(nodeMs);
  return sent;
}

function readClock(bytes: Uint8Array): number | null {
  const clocks = new NodeClocks({
    linked: () => [],
    hosted: () => [],
    send: () => undefined,
  });
  return clocks.frame(1, bytes) ? clocks.of(1) : null;
}

function hearing(isLinked: (node: number) => boolean, sent: Uint8Array[]): Hearing {
  return new Hearing({
    nowMs: () => 0,
    soon: () => undefined,
    isLinked,
    send: (_to, bytes) => sent.push(Uint8Array.from(bytes)) > 0,
    tickSoon: () => undefined,
  });
}

/** The question whether somebody heard `member`, and the answer "yes". */
function writeHearing(member: number): Uint8Array {
  const sent: Uint8Array[] = [];
  hearing(() => false, sent).ask(member, [2], () => undefined);
  return sent[0] ?? new Uint8Array();
}

function readHearing(bytes: Uint8Array): number | null {
  const asked: number[] = [];
  hearing((node) => asked.push(node) > 0, []).frame(1, bytes);
  return asked[0] ?? null;
}

const CALL_HEAD = { epoch: EPOCH, id: ID, budgetMs: 2500, requestId: "request-1" };
const CALLS = everyKind(CALL_SHAPES.request).map((request): Call => {
  if (request.kind !== "lock-call") return { ...CALL_HEAD, request, knowsLocks: false };
  return { ...CALL_HEAD, request: ofLockCall(request), knowsLocks: true };
});
/** As its caller named a trace. */
const TRACED_CALL: Call = {
  ...CALL_HEAD,
  request: { kind: "remove-member", nodeId: 3 },
  knowsLocks: false,
  trace: { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", flags: 1 },
};

/** Frames that have a version of their own, by their names in the table of levels. */
export const FRAME_FORMATS: Readonly<Record<string, Format>> = {
  "backup frame": BACKUP_FRAME,
  "raft frame": format(4, [MESSAGE_KINDS.map(messageOf)], writeRaft, readRaft),
  "snapshot frame": format(2, SNAPSHOT_FRAMES, encodeSnapshotFrame, decodeSnapshotFrame),
  "call frame": format<Call>(1, [...CALLS, TRACED_CALL], writeCallFrame, readCallFrame),
  "call frame, answers": format<Answer>(
    1,
    everyKind(CALL_SHAPES.answer).map((answer) => {
      const head = { epoch: EPOCH, id: ID, knowsLocks: answer.kind === "lock-answer" };
      const isOfLock = answer.kind === "lock" || answer.kind === "lock-answer";
      return { ...head, answer: isOfLock ? ofLockAnswer(answer) : answer };
    }),
    writeAnswerFrame,
    readAnswerFrame,
  ),
  "call frame, farewell": format(
    1,
    ["farewell"],
    () => farewell(0, 0),
    (bytes) => (new Inbox(1).open(bytes)?.direction === "farewell" ? "farewell" : null),
  ),
  "node report": format(2, [REPORT], encodeNodeReport, decodeNodeReport),
};

/** Frames that are known by their mark alone. */
export const MARKED_FORMATS: Readonly<Record<string, Format>> = {
  "move frame": format(1, MOVE_FRAMES, encodeMoveFrame, decodeMoveFrame),
  "clock frame": format(1, [2 ** 40], writeClock, readClock),
  "hearing frame": format(1, [65_000], writeHearing, readHearing),
  "result of a meta proposal": format(1, RESULTS, writeResult, (bytes) => {
    return readMetaResult(new ByteReader(bytes));
  }),
};
