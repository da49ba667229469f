/**
 * What a scenario's node hands to its core at start: positions, from the log in storage.
 */
import type { ConfigPosition, RestoredState, TermRun } from "../../src/raft/state/types.js";
import { payloadBytes } from "./payloads.js";
import type { Storage } from "./storage.js";
import type { Snapshot } from "./wire.js";

/** `newest` is the applied state; entries behind it are applied again as they are committed. */
export function restoredFrom(
  storage: Storage,
  newest: Snapshot,
  awaitsSnapshot: boolean,
): RestoredState {
  const termRuns: TermRun[] = [];
  const configChanges: ConfigPosition[] = [];
  for (const entry of storage.entries) {
    if (termRuns.at(-1)?.term !== entry.term)
      termRuns.push({ first: entry.index, term: entry.term });
    if (entry.type === "EntryNormal") continue;
    const kind = entry.type === "EntryConfChange" ? "configChangeV1" : "configChangeV2";
    configChanges.push({ index: entry.index, kind });
  }
  return {
    hardState: storage.hardState,
    floorIndex: storage.base.index,
    floorTerm: storage.base.term,
    termRuns,
    lastIndex: storage.lastIndex,
    configChanges,
    sizeRuns: storage.entries.map((entry) => {
      return { first: entry.index, sizeBytes: payloadBytes(entry, false) };
    }),
    appliedIndex: newest.index,
    membership: newest.membership,
    awaitsSnapshot,
  };
}
