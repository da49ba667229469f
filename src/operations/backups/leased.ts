/**
 * Work on backups under a lease, so that no collection, of whatever node, takes them away
 * meanwhile.
 *
 * Invariants: 1. The work begins when the lease is there, and is told to go on when it is gone
 * again, whatever came of it. 2. Where a lease cannot be written (a directory that may only be
 * read, a full disk) the work is done without: at worst it finds a file missing, and tells.
 */
import { checkRoot } from "../../backup/catalogue.js";
import { takeLease } from "../../backup/lease.js";
import type { ArchivePort } from "../../ports.js";
import type { Serving } from "../serving/serving.js";

export interface LeasedWork {
  readonly archive: ArchivePort;
  /** 12 hexadecimal digits. */
  readonly operation: string;
  readonly kind: string;
  /** Ids of the backups that are read. */
  readonly backups: readonly string[];
}

/** `begin` gets what ends the lease: it calls back when the file is gone. */
export function leased(
  { ports, settings }: Serving,
  { archive, ...terms }: LeasedWork,
  begin: (release: (done: () => void) => void) => void,
): void {
  const { timer, logger } = ports;
  const without = (cause: string): void => {
    const { operation } = terms;
    logger.log("info", "backups are read without a lease", { operation, cause });
    begin((done) => done());
  };
  // Nothing is written into a directory that is not safe; whoever works there finds that out.
  checkRoot(archive, (root) => {
    if (!root.ok) return without(root.message);
    takeLease({ archive, timer }, { ...terms, node: settings.peerEndpoint }, (taken) => {
      if (taken.ok) begin((done) => taken.value.release(done));
      else without(taken.message);
    });
  });
}
