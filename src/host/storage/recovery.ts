/**
 * What a start may begin from: holds what the log has of each group against what the state store
 * has, and makes the core's restored state of it, without walking any entries.
 *
 * Invariants: 1. A state that is ahead of its log, or behind the log's floor, stops the start;
 * nothing is ever clamped (P-024). 2. A persisted commit index may lag behind what is applied (it
 * is written lazily), never lie beyond the log's end. 3. Every refusal names the group, the index
 * and a remedy.
 */
import {
  FOUNDING_INCARNATION,
  type Incarnation,
  type PartitionId,
  partitionId,
} from "../../base/ids.js";
import { type Failure, type Result, failure, ok } from "../../base/result.js";
import { KeySpace, fromByteKey, readUint32Key, toByteKey } from "../../machine/store/keys.js";
import type { Machine } from "../../machine/machine.js";
import type { HardState, RecoveredGroupLog, StorePort } from "../../ports.js";
import type { RestoredState } from "../../raft/state/types.js";
import type { ConfigPosition } from "../../raft/state/types.js";
import {
  decodeMembership,
  entryKindOf,
  membershipOfVoters,
} from "../replication/config-entries.js";
import type { NodeIdentity } from "./identity.js";

export type StartRefusal =
  | "state-ahead-of-log"
  | "state-behind-log"
  | "damaged-state"
  | "foreign-data"
  /** The cluster or a group is at a level that the program does not support. */
  | "unsupported-level";

const RESTORE_HINT =
  "Restore log and state store as of one moment, or start this node empty if others have its data.";

/** The groups whose records the state store holds. */
export function storedGroups(store: StorePort): PartitionId[] {
  const found: PartitionId[] = [];
  const first = fromByteKey(String.fromCharCode(KeySpace.groupRecord));
  const last = fromByteKey(String.fromCharCode(KeySpace.groupRecord + 1));
  store.scan(first, last, (key) => {
    found.push(partitionId(readUint32Key(toByteKey(key), 1)));
    return true;
  });
  return found;
}

/** Whether this node may use the data: its own identity, or nothing at all. */
export function checkIdentity(
  identity: NodeIdentity | null,
  nodeId: number,
  holdsGroups: boolean,
): Result<null, StartRefusal> {
  if (identity === null) {
    if (!holdsGroups) return ok(null);
    const found = "The data directory holds groups, but its state store has no identity row.";
    return failure("damaged-state", `${found} ${RESTORE_HINT}`);
  }
  if (identity.nodeId !== nodeId) {
    const mine = `The data directory belongs to node ${identity.nodeId}, not to node ${nodeId}.`;
    const remedy = `Start with --raft-nodeid ${identity.nodeId} or another --storage-path.`;
    return failure("foreign-data", `${mine} ${remedy}`);
  }
  return ok(null);
}

/** Whether the groups are those of a restored cluster that nobody belongs to yet. */
export function adoptable(meta: Machine | null): Result<null, StartRefusal> {
  const isWhole = (meta?.meta.cluster() ?? null) !== null && meta?.meta.members().length === 0;
  if (isWhole) return ok(null);
  const what = "A restored data directory lacks its cluster, or has members already.";
  return failure("damaged-state", `${what} Restore the backup once more.`);
}

function refuse(code: StartRefusal, partition: PartitionId, what: string): Failure<StartRefusal> {
  return failure(code, `Partition ${partition}: ${what} ${RESTORE_HINT}`);
}

/** A snapshot was installed at `index`, but log and store do not agree about it. */
export function mixedState(partition: PartitionId, index: number): Failure<StartRefusal> {
  const what = `a snapshot was installed at index ${index}, which the log does not know.`;
  return refuse("state-ahead-of-log", partition, what);
}

/** What a replica begins with where neither log nor state store say more. */
export interface Beginning {
  /** Voters that the group was founded with; none for a replica that was added to it later. */
  readonly founders: readonly number[];
  readonly incarnation: Incarnation;
  /**
   * The replica was added to its group: until a snapshot brings it members that it is one of, it
   * knows at most those of a time when a former life of this node was one.
   */
  readonly isAdded: boolean;
  /** Of the former life. */
  readonly term: number;
  readonly vote: number;
  /** Of the rows: above all that the group ever had here. */
  readonly firstGeneration: number;
}

/** How a group begins of which the node has no row of its own. */
export function foundingBeginning(founders: readonly number[], isAdded: boolean): Beginning {
  const incarnation = FOUNDING_INCARNATION;
  return { founders, incarnation, isAdded, term: 0, vote: 0, firstGeneration: 0 };
}

/** Term and vote bind over all lives of a replica (P-003). */
function boundHardState(recovered: RecoveredGroupLog | null, beginning: Beginning): HardState {
  const { term, vote } = beginning;
  const known = recovered?.hardState ?? { term: 0, vote: 0, commit: 0 };
  if (known.term > term) return known;
  return {
    term,
    vote: known.term === term && known.vote !== 0 ? known.vote : vote,
    commit: known.commit,
  };
}

/**
 * The restored state of one group. `recovered`: null when the log knows nothing of it. A replica
 * that was added to its group awaits a snapshot until one was installed.
 */
export function restoredState(
  recovered: RecoveredGroupLog | null,
  machine: Machine,
  beginning: Beginning,
): Result<RestoredState, StartRefusal> {
  const partition = machine.group;
  const applied = machine.appliedIndex;
  const floor = recovered?.floor ?? { term: 0, index: 0 };
  const lastIndex = recovered?.lastIndex ?? 0;
  const hardState = boundHardState(recovered, beginning);
  const awaitsSnapshot = beginning.isAdded && machine.installed.index === 0;
  if (awaitsSnapshot && lastIndex > 0) {
    const what = `the log ends at ${lastIndex}, but no snapshot was ever installed.`;
    return refuse("damaged-state", partition, what);
  }
  if (applied > lastIndex) {
    const what = `the state store is at index ${applied}, but the log ends at ${lastIndex}.`;
    return refuse("state-ahead-of-log", partition, what);
  }
  if (applied < floor.index) {
    const what = `the state store is at index ${applied}, but the log begins above ${floor.index}.`;
    return refuse("state-behind-log", partition, what);
  }
  if (hardState.commit > lastIndex) {
    const what = `index ${hardState.commit} was committed, but the log ends at ${lastIndex}.`;
    return refuse("state-ahead-of-log", partition, what);
  }
  const stored = machine.membership;
  const membership =
    stored === null ? membershipOfVoters(beginning.founders) : decodeMembership(stored);
  if (membership === null) {
    const what = `its members, as of index ${machine.membershipIndex}, are written by a newer version.`;
    return refuse("damaged-state", partition, what);
  }
  const configChanges: ConfigPosition[] = [];
  for (const special of recovered?.specialEntries ?? []) {
    const kind = entryKindOf(special.kind);
    if (kind === null || kind === "normal") {
      const what = `entry ${special.index} of the log has the unknown kind ${special.kind}.`;
      return refuse("damaged-state", partition, what);
    }
    configChanges.push({ index: special.index, kind });
  }
  const termRuns = (recovered?.termRuns ?? []).map((run) => ({
    first: run.firstIndex,
    term: run.term,
  }));
  const sizeRuns = (recovered?.sizeRuns ?? []).map((run) => ({
    first: run.firstIndex,
    sizeBytes: run.sizeBytes,
  }));
  return ok({
    hardState: { ...hardState, commit: Math.max(hardState.commit, applied) },
    floorIndex: floor.index,
    floorTerm: floor.term,
    termRuns,
    lastIndex,
    configChanges,
    sizeRuns,
    appliedIndex: applied,
    membership,
    awaitsSnapshot,
  });
}

/** Checks that the entry which the state stands at is the one that the log has there. */
export function appliedTermAgrees(
  restored: RestoredState,
  machine: Machine,
): Result<null, StartRefusal> {
  const index = machine.appliedIndex;
  let term = restored.floorTerm;
  for (const run of restored.termRuns) if (run.first <= index) term = run.term;
  if (index === 0 || term === machine.appliedTerm) return ok(null);
  const what = `entry ${index} is of term ${machine.appliedTerm} in the state store, but of term`;
  return refuse("state-ahead-of-log", machine.group, `${what} ${term} in the log.`);
}
