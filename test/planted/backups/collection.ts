/** Planted bugs of the collection of old backups, and of the leases that hold it off. */
import type { RecordBug } from "../records.js";
import { backup } from "./bug.js";

const CHAINS = ["backup/gc-plan.test", "7.4 whole chains go"] as const;
const UNREAD = ["backup/gc-plan.test", "P-141 what cannot be read"] as const;
const ORPHANS = ["backup/gc-plan.test", "7.4 orphans"] as const;
const CRASH = ["backup/collection.test", "P-141 after a crash"] as const;
const LEASED = ["backup/collection.test", "P-141 whoever has a lease"] as const;
const LATE = ["backup/collection.test", "P-141 a lease that comes"] as const;
const PASSES = ["backup/collection.test", "7.4 passes of two nodes"] as const;
const TOUCHED = ["backup/collection.test", "leases are touched"] as const;

export const collectionBugs: readonly RecordBug[] = [
  backup(
    "P-141",
    "the collection removes the root first",
    CHAINS,
    "backup/gc-plan",
    "[...entries].reverse().map",
    "[...entries].map",
  ),
  backup(
    "P-141",
    "the newest chain goes with the others",
    CHAINS,
    "backup/gc-plan",
    "at === 0 || chain === newestWhole",
    "chain === undefined",
  ),
  backup(
    "P-141",
    "a chain goes with a manifest that cannot be read",
    UNREAD,
    "backup/gc-plan",
    "manifest === null || isProtected(protection, id)",
    "manifest === undefined || isProtected(protection, id)",
  ),
  backup(
    "P-141",
    "a manifest of which nobody knows the parent holds nothing",
    UNREAD,
    "backup/gc-plan",
    "const isWaiting = unplaced.length > 0 || protection",
    "const isWaiting = protection",
  ),
  backup(
    "P-141",
    "what is being written is a leftover",
    ORPHANS,
    "backup/gc-plan",
    "if (nowMs - modifiedMs < ORPHAN_AGE_MS) return null;",
    "if (nowMs - modifiedMs < 0) return null;",
  ),
  backup(
    "P-141",
    "a leftover goes in spite of the lease of its writer",
    ORPHANS,
    "backup/gc-plan",
    "if (isProtected(protection, is.id)) return null;",
    "if (protection.everything) return null;",
  ),
  backup(
    "P-141",
    "the files of a chain go before its manifests",
    CRASH,
    "backup/collection",
    "inOrder([...away, this.sync], (hidden) => {",
    `const early = ids.map((id): Step => (d) => archive.removeTree(id, d));
      inOrder([...early, ...away, this.sync], (hidden) => {`,
  ),
  backup(
    "P-141",
    "leases are looked at once, before",
    LATE,
    "backup/collection",
    "this.whileUnprotected(ids, show, () => this.removeHidden(chain, done));",
    "this.removeHidden(chain, done);",
  ),
  backup(
    "P-141",
    "two passes are made at once",
    PASSES,
    "backup/collection",
    'if (taken.code === "no-space") return',
    'if (taken.code === "no-space" || taken.code === "exists") return',
  ),
  backup(
    "P-141",
    "a lease that cannot be read holds nothing",
    LEASED,
    "backup/lease",
    "everything ||= ids === null;",
    "everything ||= false;",
  ),
  backup(
    "P-141",
    "a lease of somebody dead holds for ever",
    LEASED,
    "backup/lease",
    "return nowMs - modifiedMs < LEASE_STALE_MS;",
    "return nowMs - modifiedMs < 1e9 * LEASE_STALE_MS;",
  ),
  backup(
    "P-141",
    "a lease that is held is not touched",
    TOUCHED,
    "backup/lease",
    "    this.arm();\n  }\n\n  /** Why",
    "  }\n\n  /** Why",
  ),
];
