/**
 * The storage threads of a node with asynchronous writes: the messages that they get, and what they
 * print.
 */
import type { Effects } from "../../src/raft/state/types.js";
import { formatMessage } from "./print.js";
import {
  appendThread,
  applyThread,
  blankMessage,
  type Entry,
  type Snapshot,
  type WireMessage,
} from "./wire.js";

/** The storage messages of an asynchronous Ready. */
export function storageMessages(
  id: number,
  effects: Effects,
  deferred: readonly WireMessage[],
  entries: readonly Entry[],
  snapshot: Snapshot | null,
  committed: readonly Entry[],
): WireMessage[] {
  const { hardState, receipt } = effects;
  const made: WireMessage[] = [];
  if (entries.length > 0 || hardState !== null || snapshot !== null || deferred.length > 0) {
    const responses = [...deferred];
    if (receipt !== null) {
      const { term, index, logTerm } = receipt;
      const place = { from: appendThread, to: id, term, index, logTerm, snapshot, receipt };
      responses.push({ ...blankMessage, type: "MsgStorageAppendResp", ...place });
    }
    const state = hardState ?? { term: 0, vote: 0, commit: 0 };
    const content = { ...state, entries, snapshot, responses };
    made.push({
      ...blankMessage,
      type: "MsgStorageAppend",
      from: id,
      to: appendThread,
      ...content,
    });
  }
  if (committed.length > 0) {
    const answer = { from: applyThread, to: id, entries: committed };
    const responses = [{ ...blankMessage, type: "MsgStorageApplyResp", ...answer }];
    const content = { from: id, to: applyThread, entries: committed, responses };
    made.push({ ...blankMessage, type: "MsgStorageApply", ...content });
  }
  return made;
}

export function describeWork(message: WireMessage): string {
  return `Processing:\n${formatMessage({ ...message, responses: [] })}\n`;
}

export function describeResponses(message: WireMessage): string {
  const lines = message.responses.map((response) => `${formatMessage(response)}\n`);
  return `Responses:\n${lines.join("")}`;
}
