/**
 * A restore from its order to its end: a chain of backups becomes a storage directory that a node
 * can be started on.
 *
 * Owns the staging directory. Invariants: 1. Nothing has the target's name before all of it is
 * durable, was read back and is what was meant; that name comes last (P-140). 2. The restore is
 * counted, durably, before anything is lifted above what earlier ones set (P-137). 3. After a fault
 * nothing is left but the claim. 4. Where it writes is looked at again right before the rename
 * (P-139).
 */
import { coverageOf, restrictedCoverage } from "../../backup/chain.js";
import { readChain } from "../../backup/catalogue.js";
import { cancelled, systemFault } from "../../backup/faults.js";
import type { Manifest } from "../../backup/manifest.js";
import { passingName } from "../../backup/names.js";
import { writeFile } from "../../backup/steps.js";
import { type VerifiedChain, validateChain } from "../../backup/validate.js";
import { failure, ok } from "../../base/result.js";
import type { RestoreEnd, RestoreProgress, RestoreRequest } from "./restore-types.js";
import { type TakenClaim, takeClaim } from "./claims.js";
import { removeLeftovers } from "./leftovers.js";
import { Pace } from "./pace.js";
import { type RestoreDone, type RestoreFault, stepwise } from "./restore-faults.js";
import type { RestorePorts, RestoreSettings } from "./restore-ports.js";
import { checkTarget, parentOf, targetBelow } from "./restore-target.js";
import { RESTORED_NAME, encodeRestoredMark } from "./restored-mark.js";
import { StagedState } from "./staged-state.js";

const REVISION = /^[A-Za-z0-9._-]{1,64}$/;

export class Restore {
  private isCancelled = false;
  private below = "";
  private staging = "";
  private chain: readonly Manifest[] = [];
  private verified: VerifiedChain | null = null;
  private state: StagedState | null = null;
  private clusterId = "";
  private claim: TakenClaim | null = null;
  private readonly pace: Pace;

  /** `progress`: called now and then. */
  constructor(
    private readonly settings: RestoreSettings,
    private readonly ports: RestorePorts,
    private readonly request: RestoreRequest,
    progress: (progress: RestoreProgress) => void,
  ) {
    this.pace = new Pace(ports.clock, progress);
  }

  cancel(): void {
    this.isCancelled = true;
  }

  /** Runs it; once. */
  run(done: (end: RestoreEnd) => void): void {
    const below = targetBelow(this.request.targetDir, this.settings);
    if (!below.ok) return this.ports.timer.soon(() => done(below));
    this.below = below.value;
    const { entropy } = this.ports;
    const hex = (): string => entropy.uint32().toString(16).padStart(8, "0");
    this.staging = passingName(this.below, "staging", hex());
    this.clusterId = `${hex()}${hex()}${hex()}${hex()}`;
    const steps: readonly ((next: RestoreDone<unknown>) => void)[] = [
      (next) => checkTarget(this.ports.targets, this.below, next),
      (next) => this.readChain(next),
      (next) => this.verify(next),
      (next) => this.stage(next),
      (next) => this.tidy(next),
      (next) => this.replay(next),
      (next) => this.count(next),
      (next) => this.lift(next),
      (next) => this.seal(next),
      (next) => this.readBack(next),
      (next) => this.publish(next),
    ];
    const checked = steps.map((step) => (next: RestoreDone<unknown>): void => {
      if (this.isCancelled) next(cancelled());
      else step(next);
    });
    stepwise(checked, (result) => {
      if (result.ok) return done(ok(this.answer()));
      this.giveUp(() => done(result));
    });
  }

  private readChain(done: RestoreDone<unknown>): void {
    const { backups, signatures } = this.ports;
    readChain(backups, signatures, this.request.leafId, (read) => {
      if (!read.ok) return done(read);
      this.chain = read.value.chain;
      done(this.chainFault() ?? ok(null));
    });
  }

  private get root(): Manifest {
    return this.chain[0] as Manifest;
  }

  private get leaf(): Manifest {
    return this.chain.at(-1) as Manifest;
  }

  /** What keeps the chain from being restored as it was asked for, by its manifests alone. */
  private chainFault(): RestoreFault | null {
    const { root, leaf } = this;
    if (root.storageType !== "lmdb") {
      const what = `Backups of ${root.storageType} storage cannot be restored.`;
      return failure("UnsupportedFormat", what);
    }
    if (!REVISION.test(root.storageRevision) || /^\.+$/.test(root.storageRevision)) {
      return failure("CorruptArtifact", "The storage revision of the backup is no plain name.");
    }
    for (const manifest of this.chain) {
      const restricted = restrictedCoverage(manifest);
      if (restricted !== null) return restricted;
    }
    const { targetTimeMs } = this.request;
    const { minMs, maxMs } = coverageOf(root, leaf);
    if (targetTimeMs === 0) return null;
    if (targetTimeMs >= minMs && targetTimeMs <= maxMs) return null;
    const what = `The backup can be restored to times from ${minMs} to ${maxMs} only.`;
    return failure("TargetOutsideCoverage", what);
  }

  private verify(done: RestoreDone<unknown>): void {
    const { backups, signatures } = this.ports;
    const bytes = bytesOf(this.chain);
    this.pace.begin("verifying", this.root.partitionRanges.length, bytes);
    const options = {
      isCancelled: () => this.isCancelled,
      between: (next: () => void): void => {
        this.pace.slice();
        next();
      },
    };
    validateChain(backups, signatures, this.request.leafId, options, (verified) => {
      if (!verified.ok) return done(verified);
      this.verified = verified.value;
      // It was read anew: what was judged before is judged again.
      this.chain = verified.value.chain;
      if (verified.value.isUnchecked) {
        const event = "A backup is restored whose signature cannot be checked: there is no key.";
        this.ports.logger.log("warn", event, { leaf: this.request.leafId });
      }
      done(this.chainFault() ?? ok(null));
    });
  }

  private get home(): string {
    return `${this.staging}/${this.root.storageRevision}`;
  }

  private stage(done: RestoreDone<unknown>): void {
    const { targets } = this.ports;
    const mark = `${this.root.storageRevision}/${RESTORED_NAME}`;
    const { staging, below: target, clusterId } = this;
    this.ports.staged?.({ staging, target, mark, clusterId });
    const scratch = this.targetMs === 0 ? [] : [`${this.staging}/scratch`];
    const folders = [this.staging, this.home, `${this.home}/state`, ...scratch];
    const make = (path: string) => (next: RestoreDone<unknown>) => {
      targets.makeDirectory(path, (made) => next(made.ok ? made : systemFault(made)));
    };
    stepwise(folders.map(make), done);
  }

  /** Removes what restores of before left beside the target. */
  private tidy(done: RestoreDone<unknown>): void {
    const { targets, logger } = this.ports;
    const removed = (name: string): void => {
      logger.log("info", "What a restore that died had left was removed.", { leftover: name });
    };
    removeLeftovers(targets, parentOf(this.below), this.staging, removed, () => done(ok(null)));
  }

  private get targetMs(): number {
    return this.request.targetTimeMs;
  }

  private replay(done: RestoreDone<unknown>): void {
    const { verified } = this;
    if (verified === null) return done(cancelled());
    const state = new StagedState(this.settings, this.ports, {
      verified,
      targetMs: this.targetMs,
      statePath: `${this.home}/state`,
      scratchPath: this.targetMs === 0 ? null : `${this.staging}/scratch`,
      isCancelled: () => this.isCancelled,
      onSlice: () => this.pace.slice(),
      onPartition: () => this.pace.partition(),
    });
    this.state = state;
    const passes = this.targetMs === 0 ? 1 : 2;
    this.pace.begin("replaying", this.root.partitionRanges.length, passes * bytesOf(this.chain));
    state.replay(done);
  }

  private count(done: RestoreDone<unknown>): void {
    const { backups, targets, signatures, clock } = this.ports;
    const { state } = this;
    if (state === null) return done(cancelled());
    const order = {
      leafId: this.request.leafId,
      node: this.settings.nodeName,
      nowMs: () => Math.floor(clock.wallMs()),
      floorsAfter: (earlier: TakenClaim["earlier"]) => state.floorsAfter(earlier),
    };
    takeClaim({ backups, targets }, signatures, order, (taken) => {
      if (!taken.ok) return done(taken);
      this.claim = taken.value;
      done(ok(null));
    });
  }

  private lift(done: RestoreDone<unknown>): void {
    const { state, claim, clusterId } = this;
    if (state === null || claim === null) return done(cancelled());
    const { sequenceSkip } = this.request;
    this.pace.begin("lifting", state.partitions.length, 0);
    state.lift({ clusterId, sequenceSkip, ...claim }, done);
  }

  /** Makes the directory one that a node can be started on. */
  private seal(done: RestoreDone<unknown>): void {
    const { state, claim, home, staging } = this;
    const { targets, stores, clock } = this.ports;
    if (state === null || claim === null) return done(cancelled());
    this.pace.begin("publishing", state.partitions.length, 0);
    const mark = {
      ...{ clusterId: this.clusterId, leafId: this.request.leafId, ordinal: claim.ordinal },
      ...{ forcedCount: 0, atMs: Math.floor(clock.wallMs()) },
      ...state.floors,
    };
    const archive = (call: (next: (result: ArchiveEnd) => void) => void) => {
      return (next: RestoreDone<unknown>): void => {
        call((result) => next(result.ok ? ok(null) : systemFault(result)));
      };
    };
    const bytes = encodeRestoredMark(mark);
    const dropScratch = archive((next) => {
      targets.removeTree(`${staging}/scratch`, (gone) => {
        next(gone.ok || gone.code === "missing" ? ok(null) : gone);
      });
    });
    const steps = [
      (next: RestoreDone<unknown>) => state.close(() => next(ok(null))),
      ...(this.targetMs === 0 ? [] : [dropScratch]),
      (next: RestoreDone<unknown>) => stores.noteLevel(home, state.level, next),
      archive((next) => writeFile(targets, `${home}/${RESTORED_NAME}`, bytes, next)),
      archive((next) => targets.syncDirectory(`${home}/state`, next)),
      archive((next) => targets.syncDirectory(home, next)),
      archive((next) => targets.syncDirectory(staging, next)),
    ];
    stepwise(steps, done);
  }

  private readBack(done: RestoreDone<unknown>): void {
    const { state } = this;
    if (state === null) return done(cancelled());
    state.readBack(done);
  }

  private publish(done: RestoreDone<unknown>): void {
    const { targets } = this.ports;
    checkTarget(targets, this.below, (checked) => {
      if (!checked.ok) return done(checked);
      targets.rename(this.staging, this.below, (renamed) => {
        if (!renamed.ok) {
          const isThere = renamed.code === "exists";
          const text = "The target directory exists.";
          return done(isThere ? failure("TargetConflict", text) : systemFault(renamed));
        }
        targets.syncDirectory(parentOf(this.below), (synced) => {
          if (synced.ok) return done(ok(null));
          // Whoever hears of a fault finds no target.
          targets.rename(this.below, this.staging, () => done(systemFault(synced)));
        });
      });
    });
  }

  /** Closes and removes whatever there is of it. */
  private giveUp(done: () => void): void {
    const { targets } = this.ports;
    const remove = (): void => {
      targets.removeTree(this.staging, () => {
        targets.syncDirectory(parentOf(this.below), () => done());
      });
    };
    if (this.state === null) remove();
    else this.state.close(remove);
  }

  private answer(): Extract<RestoreEnd, { ok: true }>["value"] {
    const { root, leaf, chain } = this;
    const state = this.state as StagedState;
    const { minMs, maxMs } = coverageOf(root, leaf);
    return {
      targetDir: this.request.targetDir,
      partitionsRestored: state.partitions.length,
      entriesApplied: state.entries,
      lastAppliedPhysicalMs: state.lastStampMs,
      chain,
      minRecoverablePhysicalMs: minMs,
      maxRecoverablePhysicalMs: maxMs,
      sequencesAhead: state.ahead.names(),
      sequencesAheadCount: state.ahead.count,
    };
  }
}

type ArchiveEnd = { readonly ok: true } | Parameters<typeof systemFault>[0];

function bytesOf(chain: readonly Manifest[]): number {
  let bytes = 0;
  for (const { files } of chain) for (const { sizeBytes } of files.values()) bytes += sizeBytes;
  return bytes;
}
