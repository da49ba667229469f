/**
 * What a pass of the collection of old backups takes away: what was begun and never ended, and
 * whole chains that retention lets go.
 *
 * Pure. Invariants: 1. A chain is a root with everything that goes on from it, and goes whole. 2.
 * Never the newest chain, nor the newest one that is whole; never one that a living lease names;
 * never one with a manifest that cannot be read, and none at all while there is a manifest of which
 * nobody knows where it belongs (P-141). 3. Retention keeps the newest chains that fit its bounds:
 * whatever is older than one that goes, goes too, unless it is protected. 4. In a chain what goes
 * on from something is before it. 5. Claims, living leases, and what no rule knows stay.
 */
import { LEASE_STALE_MS, ORPHAN_AGE_MS } from "../base/limits.js";
import type { Catalogue, CatalogueEntry, CatalogueRest } from "./catalogue.js";
import { type Protection, isProtected } from "./lease.js";

/** Bounds; 0 = none. */
export interface RetentionRules {
  readonly maxChains: number;
  /** Of the newest entry of a chain. */
  readonly maxAgeMs: number;
  readonly maxBytes: number;
}

export type DeletionReason = "MaxAge" | "MaxChains" | "MaxBytes";
export type OrphanReason = "Leftover" | "NoManifest" | "StaleLease";

export interface Deletion {
  readonly entry: CatalogueEntry;
  readonly reason: DeletionReason;
}

export interface Orphan {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
  readonly reason: OrphanReason;
  /** Of the backup that it would have been; null where the name does not tell. */
  readonly id: string | null;
}

export interface CollectionPlan {
  /** Oldest chain first, each with its leaves first. */
  readonly chains: readonly (readonly Deletion[])[];
  readonly orphans: readonly Orphan[];
  /** Ids of manifests of which nobody knows where they belong: retention waits. */
  readonly unplaced: readonly string[];
}

/** Whether retention runs at all. */
function isBounded({ maxChains, maxAgeMs, maxBytes }: RetentionRules): boolean {
  return maxChains > 0 || maxAgeMs > 0 || maxBytes > 0;
}

/** `nowMs`: by the clock of the file system. */
export function planCollection(
  catalogue: Catalogue,
  protection: Protection,
  rules: RetentionRules,
  nowMs: number,
): CollectionPlan {
  const published = catalogue.entries.filter(({ isIncomplete }) => !isIncomplete);
  const unplaced = published.filter(({ told }) => told === null).map(({ id }) => id);
  const isWaiting = unplaced.length > 0 || protection.everything || !isBounded(rules);
  return {
    chains: isWaiting ? [] : expired(chainsOf(published), protection, rules, nowMs),
    orphans: orphansOf(catalogue, protection, nowMs),
    unplaced,
  };
}

/** Entries that hang together, parents before what goes on from them. */
interface Chain {
  readonly entries: readonly CatalogueEntry[];
  readonly newest: CatalogueEntry;
}

/** By time of creation, then id: the order of the catalogue. */
function isOlder(a: CatalogueEntry, b: CatalogueEntry): boolean {
  return a.createdAtMs < b.createdAtMs || (a.createdAtMs === b.createdAtMs && a.id < b.id);
}

/** Where an entry is in its chain. */
interface Place {
  readonly root: string;
  readonly depth: number;
}

/** The place of every entry. A circle is a chain with an end that anybody may take for its root. */
function placesOf(entries: readonly CatalogueEntry[]): Map<string, Place> {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const places = new Map<string, Place>();
  for (const entry of entries) {
    const path: string[] = [];
    const seen = new Set<string>();
    let at: CatalogueEntry | undefined = entry;
    while (at !== undefined && !seen.has(at.id) && !places.has(at.id)) {
      seen.add(at.id);
      path.push(at.id);
      at = byId.get(at.told?.parent ?? "");
    }
    const above = at === undefined ? undefined : places.get(at.id);
    const root = above?.root ?? at?.id ?? path.at(-1) ?? entry.id;
    let depth = above?.depth ?? 0;
    for (const id of path.reverse()) places.set(id, { root, depth: ++depth });
  }
  return places;
}

/** The chains, the one with the newest entry first. */
function chainsOf(entries: readonly CatalogueEntry[]): Chain[] {
  const places = placesOf(entries);
  const byRoot = new Map<string, CatalogueEntry[]>();
  for (const entry of entries) {
    const root = places.get(entry.id)?.root ?? entry.id;
    const members = byRoot.get(root);
    if (members === undefined) byRoot.set(root, [entry]);
    else members.push(entry);
  }
  const depthOf = ({ id }: CatalogueEntry): number => places.get(id)?.depth ?? 0;
  const chains = [...byRoot.values()].map((members) => {
    members.sort((a, b) => depthOf(a) - depthOf(b) || (isOlder(a, b) ? -1 : 1));
    return { entries: members, newest: members.reduce((a, b) => (isOlder(a, b) ? b : a)) };
  });
  return chains.sort((a, b) => (isOlder(a.newest, b.newest) ? 1 : -1));
}

/** It can be restored, as far as the catalogue tells. */
function isWhole({ entries: [root, ...rest] }: Chain): boolean {
  return root !== undefined && root.coverage !== null && rest.every(({ fault }) => fault === null);
}

function expired(
  chains: readonly Chain[],
  protection: Protection,
  { maxChains, maxAgeMs, maxBytes }: RetentionRules,
  nowMs: number,
): Deletion[][] {
  const newestWhole = chains.find(isWhole);
  const gone: Deletion[][] = [];
  let sizeBytes = 0;
  for (const [at, chain] of chains.entries()) {
    const { entries, newest } = chain;
    for (const entry of entries) sizeBytes += entry.sizeBytes;
    let reason: DeletionReason | null = null;
    if (maxAgeMs > 0 && nowMs - newest.createdAtMs > maxAgeMs) reason = "MaxAge";
    else if (maxChains > 0 && at >= maxChains) reason = "MaxChains";
    else if (maxBytes > 0 && sizeBytes > maxBytes) reason = "MaxBytes";
    if (reason === null || at === 0 || chain === newestWhole) continue;
    if (entries.some(({ id, manifest }) => manifest === null || isProtected(protection, id))) {
      continue;
    }
    const { length } = gone;
    gone[length] = [...entries].reverse().map((entry) => ({ entry, reason: reason as never }));
  }
  return gone.reverse();
}

/** Why something that is no backup goes; null: it stays. */
function orphanReason(
  { is, modifiedMs }: CatalogueRest,
  protection: Protection,
  nowMs: number,
): OrphanReason | null {
  if (nowMs - modifiedMs < ORPHAN_AGE_MS) return null;
  // A lease that old protects nothing: it is long stale.
  if (is.kind === "lease") return ORPHAN_AGE_MS > LEASE_STALE_MS ? "StaleLease" : null;
  if (is.kind !== "leftover" && is.kind !== "artifacts") return null;
  if (isProtected(protection, is.id)) return null;
  return is.kind === "leftover" ? "Leftover" : "NoManifest";
}

function orphansOf({ entries, rest }: Catalogue, protection: Protection, nowMs: number): Orphan[] {
  const orphans: Orphan[] = [];
  const bare = entries.flatMap(({ isIncomplete, artifacts }) =>
    isIncomplete && artifacts !== null ? [artifacts] : [],
  );
  for (const thing of [...rest, ...bare]) {
    const reason = orphanReason(thing, protection, nowMs);
    if (reason === null) continue;
    const { name, is, isDirectory, sizeBytes } = thing;
    orphans.push({ name, isDirectory, sizeBytes, reason, id: "id" in is ? is.id : null });
  }
  return orphans.sort((a, b) => (a.name < b.name ? -1 : 1));
}
