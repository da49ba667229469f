/**
 * The operators of a world: they add nodes, ask nodes to leave, bring them back, move leaderships and
 * restart all nodes in turn, while everything else goes on.
 *
 * They know what people know: which machines there are, and which of them they broke themselves.
 * Invariants: 1. Numbers come from the schedule of faults, and leaving one out leaves all others
 * where they are. 2. No action takes away what the atlas says is needed. 3. In peace nothing new
 * begins, and what was begun goes on to its end.
 */
import { VOTERS_MAX } from "../../../src/base/limits.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Atlas } from "../faults/fault-budget.js";
import type { OperatorKind } from "../faults/kinds.js";
import type { Faults } from "../faults/faults.js";
import { LeaveTask } from "./leavetask.js";
import type { MemberPlan } from "./memberplan.js";
import type { Plan } from "../plan/plan.js";
import { RollingRestart } from "./rolling.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

/** Machines of a world, those of the past included. */
const MACHINES_MAX = 14;

/** Told of who leaves. */
export interface OperatorEvents {
  leaveAsked(node: number): void;
  /** `node` was told that it has left. */
  left(node: number, isDrained: boolean): void;
}

const NOBODY: OperatorEvents = { leaveAsked: () => undefined, left: () => undefined };

export class Operator {
  readonly counts = {
    left: 0,
    leaveCalls: 0,
    needed: 0,
    transfersOrdered: 0,
    transfersDone: 0,
  };
  private readonly prng: Prng;
  private readonly tasks = new Set<LeaveTask>();
  /** Nodes that left, and stand where they were with their old data. */
  private readonly gone = new Set<Server>();
  private readonly strays = new Set<Server>();
  private rolling: RollingRestart | null = null;
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly members: MemberPlan,
    private readonly servers: readonly Server[],
    private readonly faults: Faults,
    private readonly atlas: Atlas,
    /** Builds a machine with the next node id. */
    private readonly build: () => Server,
    private readonly told: OperatorEvents = NOBODY,
  ) {
    this.prng = world.prng("operators");
  }

  start(): void {
    const delayMs = 1 + this.prng.below(2 * this.members.everyMs);
    this.world.schedule(delayMs, () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  /** Nothing new begins; strays are stopped, and everybody finds a seed. */
  settle(): void {
    this.isOver = true;
    for (const server of [...this.strays]) this.retire(server);
  }

  /** What was begun and is not at its end; null when there is nothing. */
  unfinished(): string | null {
    for (const { server } of this.tasks) return `node ${server.nodeId} still leaves`;
    return this.rolling?.isOver === false ? "a rolling restart is under way" : null;
  }

  private act(): void {
    const { faults, members } = this;
    const number = ++faults.count;
    const kind = members.kinds[this.prng.below(members.kinds.length)] as OperatorKind;
    const prng = this.prng.fork(kind);
    if (this.plan.without.includes(number)) return;
    const done = (node: number): void => faults.saw(kind, number, node);
    switch (kind) {
      case "join":
        return this.join(prng, done);
      case "leave":
        return this.leave(prng, done);
      case "rejoin":
        return this.rejoin(prng, done);
      case "start-the-gone":
        return this.startTheGone(prng, done);
      case "wipe-joiner":
        return this.wipeJoiner(prng, done);
      case "transfer":
        return this.transfer(prng, done);
      case "rolling-restart":
        return this.restartAll(prng, done);
    }
  }

  private one(from: readonly Server[], prng: Prng): Server | null {
    return from[prng.below(Math.max(1, from.length))] ?? null;
  }

  private get whole(): readonly Server[] {
    return this.servers.filter(({ isDamaged, isLost, isRetired }) => {
      return !isDamaged && !isLost && !isRetired;
    });
  }

  /** What somebody writes into `--join`: some members, maybe a wrong name, maybe its own. */
  private seedsFor(own: number, prng: Prng): () => readonly number[] {
    const named = this.servers.filter((server) => !this.strays.has(server));
    const given: number[] = [];
    for (let count = 1 + prng.below(3); count > 0; count--) {
      given.push((named[prng.below(named.length)] as Server).nodeId);
    }
    if (prng.chance(1, 4)) given.unshift(own);
    // When none of them is left, somebody looks up the members of today.
    const isMember = (id: number): boolean => {
      return id !== own && this.whole.some(({ nodeId }) => nodeId === id);
    };
    return () => {
      if (given.some((id) => isMember(id) && this.atlas.roleOf(id) !== null)) return given;
      return this.whole.filter(({ nodeId }) => nodeId !== own).map(({ nodeId }) => nodeId);
    };
  }

  private join(prng: Prng, done: (node: number) => void): void {
    if (this.whole.length >= this.members.most || this.servers.length >= MACHINES_MAX) return;
    // A member whose data is lost keeps its place: nobody but itself can take it out.
    if (this.servers.filter(({ isRetired }) => !isRetired).length >= VOTERS_MAX) return;
    const server = this.build();
    server.seeds = this.seedsFor(server.nodeId, prng);
    server.start();
    done(server.nodeId);
  }

  private leave(prng: Prng, done: (node: number) => void): void {
    const { atlas, members, tasks } = this;
    const able = this.servers.filter((server) => {
      const isAsked = [...tasks].some((task) => task.server === server);
      const isThere = !server.isLost && !server.isRetired && atlas.roleOf(server.nodeId) !== null;
      const isFree = !isAsked && !atlas.doomed.has(server);
      return isThere && isFree && atlas.mayLeave(server, members.least);
    });
    const server = this.one(able, prng);
    if (server === null) return;
    const own = prng.fork("task");
    const task: LeaveTask = new LeaveTask(
      this.world,
      server,
      members.drainMs,
      own,
      () => this.faults.repairs.unfinished() !== null,
      (how, isDrained) => {
        tasks.delete(task);
        atlas.leaving.delete(server);
        this.counts.leaveCalls += task.calls;
        if (how === "needed") this.counts.needed++;
        if (how !== "left") return;
        this.counts.left++;
        this.told.left(server.nodeId, isDrained);
        this.gone.add(server);
        this.retire(server, own.chance(1, 2) ? 1000 : 0);
      },
    );
    tasks.add(task);
    atlas.leaving.add(server);
    this.told.leaveAsked(server.nodeId);
    task.start();
    done(server.nodeId);
  }

  /** The process ends and nobody starts it again. `graceMs`: 0 = it is killed. */
  private retire(server: Server, graceMs = 0): void {
    this.strays.delete(server);
    server.isRetired = true;
    if (graceMs > 0 && server.running !== null) server.stop(graceMs);
    else server.end("kill", "taken away by its operator");
  }

  private rejoin(prng: Prng, done: (node: number) => void): void {
    const server = this.one(
      [...this.gone].filter((each) => !each.isUp),
      prng,
    );
    const taken = this.servers.filter(({ isRetired }) => !isRetired).length;
    if (server === null || this.whole.length >= this.members.most || taken >= VOTERS_MAX) return;
    this.gone.delete(server);
    this.strays.delete(server);
    server.rejoin(this.seedsFor(server.nodeId, prng));
    done(server.nodeId);
  }

  private startTheGone(prng: Prng, done: (node: number) => void): void {
    const server = this.one(
      [...this.gone].filter((each) => !each.isUp),
      prng,
    );
    if (server === null) return;
    this.strays.add(server);
    server.isRetired = false;
    server.start();
    server.isRetired = true;
    this.world.schedule(500 + prng.below(10_000), () => {
      if (this.strays.has(server)) this.retire(server);
    });
    done(server.nodeId);
  }

  private wipeJoiner(prng: Prng, done: (node: number) => void): void {
    const { atlas } = this;
    const able = this.servers.filter((server) => {
      const isNew = server.isJoiner && !atlas.isVoter(server.nodeId) && !server.isDamaged;
      return isNew && !server.isRetired && !server.isLost && atlas.mayLose(server);
    });
    const server = this.one(able, prng);
    if (server === null || atlas.leaving.has(server)) return;
    server.isDamaged = true;
    const wasUp = server.isUp;
    server.wipe();
    if (!wasUp) server.start();
    done(server.nodeId);
  }

  /** Some orders in a row, to whoever leads something then. */
  private transfer(prng: Prng, done: (node: number) => void): void {
    const { counts } = this;
    const again = (left: number): void => {
      const leaders = this.servers.filter(({ running }) => {
        return running?.node.groups().some((group) => group.isServing()) ?? false;
      });
      const server = this.one(leaders, prng);
      server?.handOver(prng.chance(1, 2), (ordered) => {
        counts.transfersOrdered += ordered.length;
        if (ordered.length === 0) return;
        this.world.schedule(2 * (this.plan.host.electionMs ?? 1000), () => {
          const moved = ordered.filter((group) => ![0, server.nodeId].includes(group.leaderNode()));
          counts.transfersDone += moved.length;
        });
      });
      if (left > 0 && !this.isOver) {
        this.world.schedule(50 + prng.below(500), () => again(left - 1));
      }
    };
    again(prng.below(6));
    done(0);
  }

  private restartAll(prng: Prng, done: (node: number) => void): void {
    if (this.rolling?.isOver === false) return;
    const servers = this.servers.filter((server) => !server.isRetired && !server.isLost);
    const graceMs = 1000 + prng.below(4000);
    this.rolling = new RollingRestart(this.world, servers, graceMs, () => done(0));
    this.rolling.start();
  }
}
