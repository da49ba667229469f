/**
 * A pass of the collection of old backups: looks, plans, and takes away what the plan says.
 *
 * Invariants: 1. Passes, of all nodes, are one after the other: a lease file keeps them apart. 2. A
 * dry run is the plan, told with the same words, and touches nothing but that lease. 3. What cannot
 * be listed reclaims nothing (P-141). 4. Of a chain all manifests are put aside first, leaves
 * before roots; then whoever took a lease meanwhile is looked for, and whatever was published since
 * the plan was made: who took its lease before it read a manifest keeps the files of it, by the
 * lease, or by what it published before it let the lease go. 5. Files go when the manifest that was
 * put aside is removed for good, leaves first; what a pass that died had put aside and not removed
 * is whole, and the next pass gives it its name back. 6. So at any moment, and after a crash at any
 * moment, what has a manifest has its files and its parents.
 */
import { type Result, failure, ok } from "../base/result.js";
import type { ArchiveEntry, ArchiveErrorCode, SignaturePort } from "../ports.js";
import { type Catalogue, checkRoot, readCatalogue, readParentAsTold } from "./catalogue.js";
import { type BackupDone, type BackupFault, cancelled, systemFault } from "./faults.js";
import {
  type CollectionPlan,
  type Deletion,
  type Orphan,
  type RetentionRules,
  planCollection,
} from "./gc-plan.js";
import {
  type Lease,
  type LeasePorts,
  type Protection,
  isLiving,
  isProtected,
  readProtection,
  takeLease,
} from "./lease.js";
import { asideOf, catalogueName, leaseName, manifestName, passingName } from "./names.js";
import { type Step, inOrder } from "./steps.js";

/** The name of the lease that keeps passes apart. */
const GC = "gc";
/** Pause between two looks at whether the pass of another node has ended (ms). */
const LOOK_AGAIN_MS = 500;

export interface CollectionOrder {
  readonly rules: RetentionRules;
  readonly isDry: boolean;
  /** Advertised peer endpoint of this node. */
  readonly node: string;
  /** 8 hexadecimal digits by chance. */
  readonly tag: string;
  /** How long a pass of another node is waited for (ms). */
  readonly waitMs: number;
  /** By this node's own clock; used where the file system does not tell (Unix ms). */
  readonly wallMs: () => number;
  readonly isCancelled: () => boolean;
}

export interface Collected {
  readonly applied: boolean;
  readonly sizeBytes: number;
  readonly deletions: readonly Deletion[];
  readonly orphans: readonly Orphan[];
  /** Manifests of which nobody knows where they belong: nothing was let go by retention. */
  readonly unplaced: readonly string[];
  /** What the catalogue has after all: backups, and those of them that are invalid. */
  readonly catalogue: Catalogue;
}

/** "busy": another pass did not end in time. */
export type CollectionResult = Result<Collected, BackupFault["code"] | "busy">;

/** Makes a pass. */
export function collect(
  ports: LeasePorts & { readonly signatures: SignaturePort },
  order: CollectionOrder,
  done: (result: CollectionResult) => void,
): void {
  checkRoot(ports.archive, (root) => {
    if (!root.ok) return done(root);
    takeTurn(ports, order, order.waitMs, (turn) => {
      if (!turn.ok) return done(turn);
      const { lease, nowMs } = turn.value;
      new Pass(ports, order, nowMs).run((result) => {
        if (lease === null) return done(result);
        lease.release(() => done(result));
      });
    });
  });
}

interface Turn {
  /** null: the disk is full, and has no room even for that; a pass is what makes room. */
  readonly lease: Lease | null;
  readonly nowMs: number;
}

/** Takes the lease of passes, waiting for that of another one while it is living. */
function takeTurn(
  ports: LeasePorts,
  order: CollectionOrder,
  restMs: number,
  done: (result: Result<Turn, BackupFault["code"] | "busy">) => void,
): void {
  const { archive, timer } = ports;
  const terms = { operation: GC, kind: GC, node: order.node, backups: [] };
  takeLease(ports, terms, (taken) => {
    if (taken.ok) {
      const lease = taken.value;
      return archive.examine(lease.name, (entry) => {
        if (entry.ok) return done(ok({ lease, nowMs: entry.value.modifiedMs }));
        lease.release(() => done(systemFault(entry)));
      });
    }
    if (taken.code === "no-space") return done(ok({ lease: null, nowMs: order.wallMs() }));
    if (taken.code !== "exists") return done(systemFault(taken));
    if (order.isCancelled()) return done(cancelled());
    withdrawStale(ports, order, (withdrawn) => {
      if (!withdrawn.ok) return done(withdrawn);
      if (withdrawn.value) return takeTurn(ports, order, restMs, done);
      if (restMs <= 0) return done(failure("busy", "Another pass is running."));
      const pauseMs = Math.min(LOOK_AGAIN_MS, restMs);
      timer.after(pauseMs, () => takeTurn(ports, order, restMs - pauseMs, done));
    });
  });
}

/** Takes the lease of a pass away that nobody carries on, and tells whether it did. */
function withdrawStale(
  { archive }: LeasePorts,
  { tag, wallMs }: CollectionOrder,
  done: BackupDone<boolean>,
): void {
  const name = leaseName(GC);
  // A file of now tells what time the file system has.
  const probe = passingName(name, "tmp", tag);
  archive.create(probe, (created) => {
    const judge = (nowMs: number): void => {
      archive.examine(name, (entry) => {
        if (!entry.ok) return done(entry.code === "missing" ? ok(false) : systemFault(entry));
        if (isLiving(entry.value, nowMs)) return done(ok(false));
        archive.remove(name, (removed) => {
          const isAway = removed.ok || removed.code === "missing";
          done(isAway ? ok(true) : systemFault(removed));
        });
      });
    };
    if (!created.ok) return judge(wallMs());
    archive.examine(probe, (entry) => {
      created.value.abandon(() => judge(entry.ok ? entry.value.modifiedMs : wallMs()));
    });
  });
}

type Lists = { readonly deletions: readonly Deletion[]; readonly orphans: readonly Orphan[] };

class Pass {
  private readonly deletions: Deletion[] = [];
  private readonly orphans: Orphan[] = [];
  /** Ids of what the plan has seen published. */
  private readonly planned = new Set<string>();

  constructor(
    private readonly ports: LeasePorts & { readonly signatures: SignaturePort },
    private readonly order: CollectionOrder,
    private readonly nowMs: number,
  ) {}

  run(done: BackupDone<Collected>): void {
    if (this.order.isDry) return this.plan(done);
    this.bringBack((fault) => (fault === null ? this.plan(done) : done(fault)));
  }

  /** Gives the names back that a pass which died had taken away. */
  private bringBack(done: (fault: BackupFault | null) => void): void {
    const { archive } = this.ports;
    archive.list("", (listed) => {
      if (!listed.ok) return done(systemFault(listed));
      const names = new Set(listed.value.map(({ name }) => name));
      const steps: Step[] = [];
      for (const name of names) {
        const id = asideOf(name);
        if (id === null || !names.has(id) || names.has(manifestName(id))) continue;
        steps.push((renamed) => archive.rename(name, manifestName(id), gone(renamed)));
      }
      if (steps.length === 0) return done(null);
      inOrder([...steps, this.sync], (result) => done(result.ok ? null : systemFault(result)));
    });
  }

  private plan(done: BackupDone<Collected>): void {
    const { archive, signatures } = this.ports;
    readCatalogue(archive, signatures, (read) => {
      if (!read.ok) return done(read);
      const catalogue = read.value;
      for (const { id, isIncomplete } of catalogue.entries) {
        if (!isIncomplete) this.planned.add(id);
      }
      const leases = catalogue.rest.filter(({ is }) => is.kind === "lease");
      readProtection(archive, leases, this.nowMs, (protection) => {
        const { rules, isDry } = this.order;
        const plan = planCollection(catalogue, protection, rules, this.nowMs);
        const tell = (lists: Lists): void => done(ok(told(plan, lists, catalogue, !isDry)));
        if (isDry) return tell({ deletions: plan.chains.flat(), orphans: plan.orphans });
        this.apply(plan, (fault) =>
          fault === null ? tell({ deletions: this.deletions, orphans: this.orphans }) : done(fault),
        );
      });
    });
  }

  /** Who protects what by now: leases, and what was published since the plan was made. */
  private protection(done: BackupDone<Protection>): void {
    const { archive } = this.ports;
    archive.list("", (listed) => {
      if (!listed.ok) return done(systemFault(listed));
      const isLease = ({ name }: ArchiveEntry): boolean => catalogueName(name).kind === "lease";
      readProtection(archive, listed.value.filter(isLease), this.nowMs, (protection) => {
        // After the leases: who has let one go by now had published before.
        archive.list("", (again) => {
          if (!again.ok) return done(systemFault(again));
          this.readFresh(again.value, protection, done);
        });
      });
    });
  }

  private readFresh(
    listed: readonly ArchiveEntry[],
    { everything, backups }: Protection,
    done: BackupDone<Protection>,
  ): void {
    const fresh: string[] = [];
    for (const { name } of listed) {
      const is = catalogueName(name);
      if (is.kind === "manifest" && !this.planned.has(is.id)) fresh.push(is.id);
    }
    const kept = new Set(backups);
    let isUnknown = everything;
    const next = (): void => {
      const id = fresh.pop();
      if (id === undefined) return done(ok({ everything: isUnknown, backups: kept }));
      readParentAsTold(this.ports.archive, id, (told) => {
        if (!told.ok) isUnknown = true;
        else if (told.value !== null) kept.add(told.value);
        next();
      });
    };
    next();
  }

  private apply(plan: CollectionPlan, done: (fault: BackupFault | null) => void): void {
    const next = (at: number): void => {
      const chain = plan.chains[at];
      if (chain === undefined) return this.removeOrphans(plan.orphans, done);
      if (this.order.isCancelled()) return done(cancelled());
      this.removeChain(chain, (fault) => (fault === null ? next(at + 1) : done(fault)));
    };
    next(0);
  }

  private removeChain(chain: readonly Deletion[], done: (fault: BackupFault | null) => void): void {
    const { archive } = this.ports;
    const ids = chain.map(({ entry }) => entry.id);
    const away = ids.map((id): Step => {
      return (renamed) => archive.rename(manifestName(id), this.aside(id), gone(renamed));
    });
    this.whileUnprotected(ids, done, () => {
      inOrder([...away, this.sync], (hidden) => {
        const show = (fault: BackupFault | null): void => this.show(ids, fault, done);
        if (!hidden.ok) return show(systemFault(hidden));
        this.whileUnprotected(ids, show, () => this.removeHidden(chain, done));
      });
    });
  }

  /** Goes on if nobody needs any of these; else, or when nobody knows, it is over. */
  private whileUnprotected(
    ids: readonly string[],
    over: (fault: BackupFault | null) => void,
    then: () => void,
  ): void {
    this.protection((protection) => {
      if (!protection.ok) return over(protection);
      if (ids.some((id) => isProtected(protection.value, id))) return over(null);
      then();
    });
  }

  private aside(id: string): string {
    return passingName(manifestName(id), "quarantine", this.order.tag);
  }

  private readonly sync: Step = (synced) => this.ports.archive.syncDirectory("", synced);

  /** Brings back what was put aside, roots first; what it tells is the first fault. */
  private show(
    ids: readonly string[],
    fault: BackupFault | null,
    done: (fault: BackupFault | null) => void,
  ): void {
    const { archive } = this.ports;
    const back = [...ids].reverse().map((id): Step => {
      return (renamed) => archive.rename(this.aside(id), manifestName(id), gone(renamed));
    });
    inOrder([...back, this.sync], (shown) => done(fault ?? (shown.ok ? null : systemFault(shown))));
  }

  /** Removes what was put aside, as far as no other pass has brought it back meanwhile. */
  private removeHidden(
    chain: readonly Deletion[],
    done: (fault: BackupFault | null) => void,
  ): void {
    const { archive } = this.ports;
    const removed: Deletion[] = [];
    const files = (fault: BackupFault | null): void => {
      const trees = removed.map(({ entry }): Step => {
        return (cleared) => archive.removeTree(entry.id, gone(cleared));
      });
      const left = chain.slice(removed.length).map(({ entry }) => entry.id);
      const end = (): void => (left.length === 0 ? done(fault) : this.show(left, fault, done));
      if (removed.length === 0) return end();
      // A manifest that came back with the power would have no files.
      inOrder([this.sync, ...trees, this.sync], (result) => {
        if (result.ok) this.deletions.push(...removed);
        else fault ??= systemFault(result);
        end();
      });
    };
    const next = (): void => {
      const deletion = chain[removed.length];
      if (deletion === undefined) return files(null);
      archive.remove(this.aside(deletion.entry.id), (result) => {
        if (!result.ok) return files(result.code === "missing" ? null : systemFault(result));
        removed.push(deletion);
        next();
      });
    };
    next();
  }

  private removeOrphans(
    orphans: readonly Orphan[],
    done: (fault: BackupFault | null) => void,
  ): void {
    const { archive } = this.ports;
    if (orphans.length === 0) return done(null);
    this.protection((protection) => {
      if (!protection.ok) return done(protection);
      const next = (at: number): void => {
        const orphan = orphans[at];
        if (orphan === undefined) {
          return this.sync((synced) => done(synced.ok ? null : systemFault(synced)));
        }
        if (this.order.isCancelled()) return done(cancelled());
        const { name, reason, id } = orphan;
        const isLease = reason === "StaleLease";
        if (!isLease && isProtected(protection.value, id)) return next(at + 1);
        const remove = (): void => {
          archive.removeTree(name, (removed) => {
            if (!removed.ok && removed.code !== "missing") return done(systemFault(removed));
            this.orphans.push(orphan);
            next(at + 1);
          });
        };
        if (reason !== "NoManifest" || id === null) return remove();
        // It may have been published at last.
        archive.examine(manifestName(id), (manifest) => {
          if (!manifest.ok && manifest.code === "missing") return remove();
          next(at + 1);
        });
      };
      // A manifest that is gone may come back with a crash: then these are its files.
      this.sync((synced) => (synced.ok ? next(0) : done(systemFault(synced))));
    });
  }
}

/** Somebody else may be taking away the same. */
function gone(
  done: (result: Result<unknown, ArchiveErrorCode>) => void,
): (result: Result<unknown, ArchiveErrorCode>) => void {
  return (result) => done(!result.ok && result.code === "missing" ? ok(null) : result);
}

function told(
  { unplaced }: CollectionPlan,
  { deletions, orphans }: Lists,
  catalogue: Catalogue,
  applied: boolean,
): Collected {
  let sizeBytes = 0;
  for (const { entry } of deletions) sizeBytes += entry.sizeBytes;
  for (const orphan of orphans) sizeBytes += orphan.sizeBytes;
  return {
    applied,
    sizeBytes,
    deletions: [...deletions],
    orphans: [...orphans],
    unplaced,
    catalogue,
  };
}
