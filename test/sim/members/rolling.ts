/**
 * A rolling restart: each node is stopped gracefully and started again, and the next one follows
 * when it is ready, or when it takes too long.
 *
 * Invariant: it ends, whatever else goes on.
 */
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

const LOOK_MS = 100;
/** Longest wait for one node to stop, and to be ready again (ms). */
const PATIENCE_MS = 15_000;

export class RollingRestart {
  isOver = false;
  private at = 0;
  private stopped = 0;
  /** Number of the life of the present server that was seen ready; 0: none. */
  private readyLife = 0;

  /** `done` is called when all were restarted and half of them stopped by themselves. */
  constructor(
    private readonly world: World,
    private readonly servers: readonly Server[],
    private readonly graceMs: number,
    private readonly done: () => void,
  ) {}

  start(): void {
    this.next();
  }

  private next(): void {
    const server = this.servers[this.at++];
    if (server === undefined) {
      this.isOver = true;
      if (this.stopped * 2 >= this.servers.length) this.done();
      return;
    }
    if (server.running === null) return this.later(() => this.next());
    const { lifeNumber } = server;
    this.readyLife = 0;
    server.stop(this.graceMs, () => this.stopped++);
    this.await(server, lifeNumber, this.world.nowMs + PATIENCE_MS);
  }

  private later(then: () => void): void {
    this.world.schedule(LOOK_MS, then);
  }

  /** Asks as input of the node: it may end by that, when a row that is read is damaged. */
  private look({ running, lifeNumber }: Server): void {
    running?.life.enter(() => {
      if (running.node.health().ready) this.readyLife = lifeNumber;
    });
  }

  private await(server: Server, formerLife: number, untilMs: number): void {
    if (!server.isUp && server.lifeNumber === formerLife) server.start();
    this.look(server);
    const isBack = this.readyLife > formerLife;
    if (isBack || this.world.nowMs >= untilMs || server.isLost || server.isRetired) {
      return this.later(() => this.next());
    }
    this.later(() => this.await(server, formerLife, untilMs));
  }
}
