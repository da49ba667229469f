/**
 * What travels between the nodes of a scenario, with payloads: entries, snapshots, messages.
 *
 * Invariants: 1. Values are never changed once made, so that nodes may share them.
 */
import type {
  ConfigChange,
  Membership,
  Message,
  WriteReceipt,
} from "../../src/raft/state/types.js";

export type EntryType = "EntryNormal" | "EntryConfChange" | "EntryConfChangeV2";

export interface Entry {
  readonly term: number;
  readonly index: number;
  readonly type: EntryType;
  /** Payload of a normal entry, one character per byte. */
  readonly data: string;
  readonly change: ConfigChange | null;
}

export interface Snapshot {
  readonly index: number;
  readonly term: number;
  readonly data: string;
  readonly membership: Membership;
}

/** Stand for the storage threads of a node; no node has such a number. */
export const appendThread = -1;
export const applyThread = -2;

export interface WireMessage {
  readonly type: string;
  readonly from: number;
  readonly to: number;
  readonly term: number;
  readonly logTerm: number;
  readonly index: number;
  readonly commit: number;
  readonly vote: number;
  readonly reject: boolean;
  readonly rejectHint: number;
  readonly entries: readonly Entry[];
  readonly snapshot: Snapshot | null;
  readonly responses: readonly WireMessage[];
  /** Never printed: read rounds, transfer marks. */
  readonly context: number;
  /** Of a storage answer: what the core wants back. */
  readonly receipt: WriteReceipt | null;
}

export const blankMessage: WireMessage = {
  type: "",
  from: 0,
  to: 0,
  term: 0,
  logTerm: 0,
  index: 0,
  commit: 0,
  vote: 0,
  reject: false,
  rejectHint: 0,
  entries: [],
  snapshot: null,
  responses: [],
  context: 0,
  receipt: null,
};

/** Names of the core's message kinds in scenario files. */
export const typeOfKind: Readonly<Record<Message["kind"], string>> = {
  append: "MsgApp",
  appendAnswer: "MsgAppResp",
  vote: "MsgVote",
  voteAnswer: "MsgVoteResp",
  preVote: "MsgPreVote",
  preVoteAnswer: "MsgPreVoteResp",
  snapshot: "MsgSnap",
  heartbeat: "MsgHeartbeat",
  heartbeatAnswer: "MsgHeartbeatResp",
  propose: "MsgProp",
  transferLeader: "MsgTransferLeader",
  timeoutNow: "MsgTimeoutNow",
  readIndex: "MsgReadIndex",
  readIndexAnswer: "MsgReadIndexResp",
};

const kinds = new Map<string, Message["kind"]>(
  (Object.keys(typeOfKind) as Message["kind"][]).map((kind) => [typeOfKind[kind], kind]),
);

/** The core's kind of a message type, or undefined for the storage messages. */
export function kindOfType(type: string): Message["kind"] | undefined {
  return kinds.get(type);
}

/** Every type name that the language knows, for the `type=` filter. */
export const messageTypes: ReadonlySet<string> = new Set([
  ...kinds.keys(),
  "MsgForgetLeader",
  "MsgStorageAppend",
  "MsgStorageAppendResp",
  "MsgStorageApply",
  "MsgStorageApplyResp",
  "MsgHup",
  "MsgBeat",
  "MsgUnreachable",
  "MsgSnapStatus",
  "MsgCheckQuorum",
]);

/** Whether a message is between a node and its own storage, or from a node to itself. */
export function isLocal(message: WireMessage): boolean {
  return message.from === message.to || message.from < 0 || message.to < 0;
}
