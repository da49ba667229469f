/**
 * Leases: files in the directory of backups by which whoever reads or writes there tells everybody,
 * on every node, what must not be collected meanwhile.
 *
 * `.lease_{operation}`, touched every LEASE_TOUCH_MS. Invariants: 1. A lease is there before the
 * first thing that it protects is looked at, and until the last one was. 2. It counts while its
 * last touch is younger than LEASE_STALE_MS, by the clock of the file system, which all nodes
 * share. 3. A living lease that cannot be read protects everything (P-141). 4. Whoever lost its
 * lease, or could not touch it in time, is told.
 */
import { encodeText, decodeText } from "../base/bytes.js";
import { LEASE_BYTES_MAX, LEASE_STALE_MS, LEASE_TOUCH_MS } from "../base/limits.js";
import { type Failure, type Result, ok } from "../base/result.js";
import type {
  ArchiveEntry,
  ArchiveErrorCode,
  ArchivePort,
  TimerHandle,
  TimerPort,
} from "../ports.js";
import { idOfUuid, leaseName, uuidOf } from "./names.js";
import { readFile, writeFile } from "./steps.js";

/** What a lease says. */
export interface LeaseTerms {
  /** The name of the lease, up to 40 of 0-9, a-z and "_": of an operation, or of a duty. */
  readonly operation: string;
  /** What is done, for whoever reads the file: "full", "restore", "gc". */
  readonly kind: string;
  /** Advertised peer endpoint of the node. */
  readonly node: string;
  /**
   * Ids of the backups that are read or written. What one of them needs or is needed by, its whole
   * chain, is protected with it.
   */
  readonly backups: readonly string[];
}

export interface LeasePorts {
  readonly archive: ArchivePort;
  readonly timer: TimerPort;
}

function leaseBytes({ kind, node, backups }: LeaseTerms): Uint8Array {
  const text = JSON.stringify({ Kind: kind, Node: node, Backups: backups.map(uuidOf) });
  return encodeText(`${text}\n`);
}

/** A lease that this node holds. Made by `takeLease`. */
export class Lease {
  private timer: TimerHandle | null = null;
  private failures = 0;
  private released = false;
  private lost: Failure<ArchiveErrorCode> | null = null;
  private onLost: ((fault: Failure<ArchiveErrorCode>) => void) | null = null;

  constructor(
    private readonly ports: LeasePorts,
    readonly name: string,
  ) {
    this.arm();
  }

  /** Why it protects nothing any more; null while it does. */
  get fault(): Failure<ArchiveErrorCode> | null {
    return this.lost;
  }

  /** `told`: when it protects nothing any more, at once if that is so by now; never after `release`. */
  whenLost(told: (fault: Failure<ArchiveErrorCode>) => void): void {
    this.onLost = told;
    if (this.lost !== null) told(this.lost);
  }

  private lose(fault: Failure<ArchiveErrorCode>): void {
    this.lost = fault;
    this.onLost?.(fault);
  }

  private arm(): void {
    this.timer = this.ports.timer.after(LEASE_TOUCH_MS, () => {
      this.ports.archive.touch(this.name, (result) => {
        if (this.released) return;
        this.failures = result.ok ? 0 : this.failures + 1;
        const isOver = this.failures * LEASE_TOUCH_MS >= LEASE_STALE_MS / 2;
        if (!result.ok && (result.code === "missing" || isOver)) this.lose(result);
        else this.arm();
      });
    });
  }

  /** Takes the file away. The lease has ended, whatever the disk says. */
  release(done: () => void): void {
    this.released = true;
    this.timer?.cancel();
    this.ports.archive.remove(this.name, () => done());
  }
}

/** Takes a lease. `exists`: somebody else has one of this name, living or not. */
export function takeLease(
  ports: LeasePorts,
  terms: LeaseTerms,
  done: (result: Result<Lease, ArchiveErrorCode>) => void,
): void {
  const name = leaseName(terms.operation);
  writeFile(ports.archive, name, leaseBytes(terms), (written) => {
    if (written.ok) return done(ok(new Lease(ports, name)));
    done(written);
  });
}

/** Whether a lease file counts, at a time of the file system. One from the future does. */
export function isLiving({ modifiedMs }: { readonly modifiedMs: number }, nowMs: number): boolean {
  return nowMs - modifiedMs < LEASE_STALE_MS;
}

/** What living leases protect. */
export interface Protection {
  /** Of a lease that nobody could read. */
  readonly everything: boolean;
  readonly backups: ReadonlySet<string>;
}

export function isProtected({ everything, backups }: Protection, id: string | null): boolean {
  return everything || (id !== null && backups.has(id));
}

/** The ids in a lease; null when they cannot be read. */
function backupsIn(bytes: Uint8Array): readonly string[] | null {
  try {
    const read = JSON.parse(decodeText(bytes) ?? "") as { readonly Backups?: unknown };
    if (!Array.isArray(read.Backups)) return null;
    const ids: string[] = [];
    for (const uuid of read.Backups as readonly unknown[]) {
      const id = typeof uuid === "string" ? idOfUuid(uuid) : null;
      if (id === null) return null;
      ids.push(id);
    }
    return ids;
  } catch {
    return null;
  }
}

/** Reads the leases among `entries`, all things in the directory, that are living at `nowMs`. */
export function readProtection(
  archive: ArchivePort,
  leases: readonly Pick<ArchiveEntry, "name" | "modifiedMs">[],
  nowMs: number,
  done: (protection: Protection) => void,
): void {
  const living = leases.filter((lease) => isLiving(lease, nowMs));
  const backups = new Set<string>();
  let everything = false;
  const next = (at: number): void => {
    const lease = living[at];
    if (lease === undefined) return done({ everything, backups });
    readFile(archive, lease.name, LEASE_BYTES_MAX, (bytes) => {
      // What was released meanwhile protects nothing.
      if (!bytes.ok) everything ||= bytes.code !== "missing";
      else {
        const ids = bytes.value.length > LEASE_BYTES_MAX ? null : backupsIn(bytes.value);
        everything ||= ids === null;
        for (const id of ids ?? []) backups.add(id);
      }
      next(at + 1);
    });
  };
  next(0);
}
