/**
 * Which backups make a chain, and what a chain can be restored to.
 *
 * Pure. Invariants: 1. A chain begins with a Full and goes on with Incrementals, each of which
 * continues every partition where the one before it ended: same term, no gap, no overlap. 2. All of
 * it is of one cluster, storage and topology. 3. A circle or an endless chain is told, not walked.
 */
import { compareHlc } from "../base/hlc.js";
import { failure, ok } from "../base/result.js";
import type { BackupFault, BackupResult } from "./faults.js";
import { type Manifest, baseCutOf } from "./manifest.js";
import { uuidOf } from "./names.js";

const CHAIN_MAX = 10_000;

function corrupt(manifest: Manifest, what: string): BackupFault {
  return failure("CorruptChain", `Backup ${uuidOf(manifest.backupId)} ${what}.`);
}

/** Collects a chain from its leaf to its root; who reads the manifests gives them one by one. */
export class ChainWalk {
  private readonly manifests: Manifest[] = [];
  private readonly seen = new Set<string>();

  constructor(readonly leafId: string) {}

  /** The id that is wanted next; null when the root has come. */
  get wanted(): string | null {
    const last = this.manifests.at(-1);
    return last === undefined ? this.leafId : last.parentBackupId;
  }

  /** Takes the manifest that was wanted. */
  take(manifest: Manifest): BackupFault | null {
    if (this.seen.has(manifest.backupId)) return corrupt(manifest, "is its own ancestor");
    if (this.seen.size === CHAIN_MAX) {
      return corrupt(manifest, `is the root of more than ${CHAIN_MAX} backups`);
    }
    this.seen.add(manifest.backupId);
    this.manifests.push(manifest);
    return null;
  }

  /** That there is no manifest of the wanted id. */
  missing(): BackupFault {
    const last = this.manifests.at(-1);
    if (last !== undefined) return corrupt(last, "has a parent that is not there");
    return failure("CorruptChain", `There is no backup ${uuidOf(this.leafId)}.`);
  }

  /** The whole chain, root first, when it keeps the rules. */
  chain(): BackupResult<readonly Manifest[]> {
    const chain = [...this.manifests].reverse();
    for (const [at, manifest] of chain.entries()) {
      const parent = chain[at - 1];
      const fault = parent === undefined ? rootFault(manifest) : linkFault(parent, manifest);
      if (fault !== null) return fault;
    }
    return ok(chain);
  }
}

function rootFault(manifest: Manifest): BackupFault | null {
  return manifest.type === "Full" ? null : corrupt(manifest, "begins a chain and is no Full");
}

/** What keeps `child` from continuing `parent`; null when it does. */
export function linkFault(parent: Manifest, child: Manifest): BackupFault | null {
  if (child.type !== "Incremental") return corrupt(child, "has a parent and is no Incremental");
  for (const name of [
    "clusterId",
    "storageType",
    "storageRevision",
    "topologyGeneration",
  ] as const) {
    if (child[name] !== parent[name]) return corrupt(child, `differs from its parent in ${name}`);
  }
  if (child.partitionRanges.length !== parent.partitionRanges.length) {
    return corrupt(child, "does not have the partitions of its parent");
  }
  for (const [at, range] of child.partitionRanges.entries()) {
    const before = parent.partitionRanges[at];
    if (before?.partition !== range.partition) {
      return corrupt(child, "does not have the partitions of its parent");
    }
    const what = `does not continue partition ${range.partition} of its parent`;
    if (range.fromIndex !== before.toIndex + 1) return corrupt(child, what);
    if (compareHlc(range.fromStamp, before.toStamp) < 0) return corrupt(child, what);
    if (range.toTerm < before.toTerm) return corrupt(child, what);
  }
  return null;
}

export interface Coverage {
  /** Unix milliseconds, both included. */
  readonly minMs: number;
  readonly maxMs: number;
}

/** What times a chain can be restored to. */
export function coverageOf(root: Manifest, leaf: Manifest): Coverage {
  const ends = leaf.partitionRanges.map(({ toStamp }) => toStamp.l);
  return { minMs: baseCutOf(root).l, maxMs: Math.min(...ends) };
}

/** Partitions of the cluster that a backup does not have: it cannot be restored. */
export function restrictedCoverage(manifest: Manifest): BackupFault | null {
  const covered = new Set(manifest.coveredPartitions);
  const missing = manifest.clusterPartitions.filter((partition) => !covered.has(partition));
  if (missing.length === 0) return null;
  const text = `Backup ${uuidOf(manifest.backupId)} lacks partition ${missing[0]}.`;
  return failure("RestrictedCoverage", text);
}
