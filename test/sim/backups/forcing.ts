/**
 * The last resort: all machines of a cluster but one are gone, and a new cluster is made of what that
 * one has (contract 7.7), cut short and begun again now and then.
 *
 * Invariants: 1. What is done to rows and log is what ships; the files that note how far it is are
 * remembered here. 2. The directory is nobody's meanwhile.
 */
import { BudgetedFiles } from "../../../src/disk/budget.js";
import { openLog } from "../../../src/disk/log/recovery.js";
import { NO_FLOORS } from "../../../src/host/restoring/claims.js";
import { ForcedState } from "../../../src/host/restoring/forced-state.js";
import type { Prng } from "../../../src/base/prng.js";
import type { RestoreDone } from "../../../src/host/restoring/restore-faults.js";
import type { LogPort } from "../../../src/ports.js";
import { SimFiles } from "../disk/files.js";
import { freshLogKernels } from "../world/kernelpool.js";
import { Life } from "../world/process.js";
import type { Server } from "../world/server.js";

/** What a new cluster was forced out of: by partition, the last entry that counts. */
export type ForcedEnds = ReadonlyMap<number, number>;

export class Forcing {
  private tries = 0;
  private ends: Map<number, number> | null = null;
  private isLifted = false;

  constructor(
    private readonly server: Server,
    private readonly clusterId: string,
    private readonly prng: Prng,
    private readonly done: (ends: ForcedEnds) => void,
    private readonly failed: (why: string) => void,
  ) {}

  /** Begins it, or begins it again after it was cut short. */
  begin(): void {
    const { server, prng } = this;
    const { world, nodeId, clockError } = server;
    const life = new Life(world, nodeId, ++server.lifeNumber, clockError);
    let isOver = false;
    life.crashed = () => undefined;
    const open = (): void => this.open(life, () => (isOver = true));
    life.at(1, open);
    if (++this.tries > 2 || !prng.chance(1, 2)) return;
    // Somebody pulls the plug in the middle.
    world.schedule(1 + prng.below(60), () => {
      if (isOver) return;
      life.end();
      server.disk.processEnded("power-loss");
      server.rows.processEnded();
      world.schedule(10, () => this.begin());
    });
  }

  private open(life: Life, over: () => void): void {
    const { server } = this;
    const { storageId, home, nodeId, plan } = server;
    const fatal = server.fatal(life);
    const store = server.rows.port(life, fatal);
    const options = {
      ...{ directory: "/wal", segmentBytes: plan.segmentBytes, spaceRetryMs: 1000 },
      ...{ identity: { storageId, clusterId: home.clusterId, nodeId }, mayCreate: false },
    };
    const ports = {
      files: new BudgetedFiles(new SimFiles(server.disk, life)),
      ...{ timers: life, logger: server.logger(), fatal, clock: life.clock },
      meter: { logSyncMs: () => undefined },
    };
    if (this.isLifted) return this.carryOut(new ForcedState(store, null, life), null, over);
    openLog(options, ports, freshLogKernels(nodeId), (opened) => {
      if (!opened.ok) return this.failed(`the log: ${opened.message}`);
      this.carryOut(new ForcedState(store, opened.value, life), opened.value, over);
    });
  }

  private carryOut(state: ForcedState, log: LogPort | null, over: () => void): void {
    const { clusterId } = this;
    const step = (call: (next: RestoreDone<unknown>) => void, then: () => void): void => {
      call((result) => {
        if (result.ok) then();
        else this.failed(result.message);
      });
    };
    const finish = (): void => {
      this.isLifted = true;
      step(
        (next) => state.forget(next),
        () => {
          state.close(() => {
            over();
            this.done(this.ends ?? new Map());
          });
        },
      );
    };
    if (log === null) return finish();
    const fault = state.survey();
    if (fault !== null) return this.failed(fault.message);
    this.ends ??= new Map(
      state.report().flatMap(({ partition, isMissing, commitIndex }) => {
        return isMissing ? [] : [[partition, commitIndex] as const];
      }),
    );
    const order = { clusterId, ordinal: 1, earlier: NO_FLOORS };
    step(
      (next) => state.replay(next),
      () => step((next) => state.lift(order, next), finish),
    );
  }
}
