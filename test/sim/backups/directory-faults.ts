/**
 * What goes wrong with the directory of backups, and heals again: calls that fail or hang, a disk that
 * is full, a byte that is turned.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { World } from "../world/world.js";
import type { BackupPlan, DirectoryFault } from "../plan/backup-plan.js";
import type { Catalogued } from "./published.js";
import type { SharedDirectory } from "./shared-directory.js";

const LONGEST_MS = 2000;

export class DirectoryFaults {
  readonly counts: Record<DirectoryFault, number> = { failing: 0, full: 0, hung: 0, flip: 0 };
  private readonly prng: Prng;
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: BackupPlan,
    private readonly directory: SharedDirectory,
    private readonly catalogued: Catalogued,
  ) {
    this.prng = world.prng("faults of the directory");
  }

  start(): void {
    if (this.plan.directoryFaults.length > 0) this.later();
  }

  /** Something is wrong now, but for bytes that were turned. */
  get isTroubled(): boolean {
    const { failPerMille, freeBytes, hungUntilMs } = this.directory;
    return failPerMille > 0 || freeBytes !== Infinity || hungUntilMs > this.world.nowMs;
  }

  private later(): void {
    this.world.schedule(1 + this.prng.below(2 * this.plan.directoryFaultEveryMs), () => {
      if (this.isOver) return;
      const { directoryFaults: kinds } = this.plan;
      this.strike(kinds[this.prng.below(kinds.length)] as DirectoryFault);
      this.later();
    });
  }

  private strike(kind: DirectoryFault): void {
    const { directory, prng, world } = this;
    const tookMs = 1 + prng.below(LONGEST_MS);
    switch (kind) {
      case "failing":
        directory.failPerMille = [20, 300, 1000][prng.below(3)] as number;
        world.schedule(tookMs, () => (directory.failPerMille = 0));
        break;
      case "full":
        directory.freeBytes = prng.below(20_000);
        world.schedule(tookMs, () => (directory.freeBytes = Infinity));
        break;
      case "hung":
        directory.hungUntilMs = world.nowMs + tookMs;
        break;
      case "flip":
        if (!this.flip()) return;
    }
    this.counts[kind]++;
    world.say(0, `the directory of backups: ${kind}`);
  }

  /** Turns a bit of an artifact. */
  private flip(): boolean {
    const { directory, prng, catalogued } = this;
    // Of one that is spoilt already, or of a few: the others are for those who restore.
    const { ids } = catalogued;
    const id = ids[prng.below(Math.max(1, ids.length))];
    if (id === undefined || ids.length < 3) return false;
    const files = [...directory.files().keys()].filter((path) => path.startsWith(`${id}/`));
    const path = files[prng.below(Math.max(1, files.length))];
    if (path === undefined) return false;
    const size = directory.find(path)?.bytes.length ?? 0;
    if (size === 0) return false;
    directory.flip(path, prng.below(size), 1 << prng.below(8));
    catalogued.spoil(id);
    return true;
  }

  heal(): void {
    this.isOver = true;
    this.directory.failPerMille = 0;
    this.directory.freeBytes = Infinity;
    this.directory.hungUntilMs = 0;
  }
}
