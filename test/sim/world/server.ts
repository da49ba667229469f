/**
 * One machine of the world with its disk, its store and its clocks, and the production node that
 * lives on it, life after life.
 *
 * May be started, killed, paused and stopped at any event; how a life is opened is in `opening.ts`.
 * Invariants: 1. At most one life at a time.
 * 2. A refused start is a violation unless the atlas says that the disk was damaged. 3. Callers of
 * a life that ends hear that it ended.
 */
import { FIRST_LEVEL } from "../../../src/base/ids.js";
import { PROGRAM, type Program } from "../../../src/base/levels.js";
import { decodeMembership } from "../../../src/host/replication/config-entries.js";
import type { Group } from "../../../src/host/group/group.js";
import type { Replica } from "../../../src/host/group/replica.js";
import { LeadershipTransfers } from "../../../src/host/leaders/leadership-transfers.js";
import type { Node } from "../../../src/host/node.js";
import type { Operations } from "../../../src/operations/operations.js";
import type { FatalPort, Founder, LogEntry, LoggerPort } from "../../../src/ports.js";
import { SimDisk, type DiskCopy, type EndKind } from "../disk/disk.js";
import type { Heard } from "../../judge/checkers/replicas/acks-of-one-life.js";
import type { EntryHook } from "./logmirror.js";
import type { SimNetwork } from "../net/network.js";
import type { GroupWatch } from "./observe.js";
import type { LogMirror } from "./logmirror.js";
import { LEVEL_PATH, openNode } from "./opening.js";
import type { SimPeers } from "../net/peers.js";
import type { BackupWorld } from "../../../src/operations/api/backup-world.js";
import { CLUSTER_ID, type Plan } from "../plan/plan.js";
import { type ClockError, Life, ProcessEnd } from "./process.js";
import { SimRows } from "../disk/store.js";
import type { World } from "./world.js";

/** What a machine tells the run that it is part of. */
export interface ServerEvents {
  /** Something happened that must not. */
  violation(text: string): void;
  /** A life begins; nothing was sent yet. `log` is as recovery found it. */
  recovered?(node: number, log: LogMirror): void;
  /** A node sends a frame of the consensus core; `log` is its own. */
  sent?(node: number, to: number, bytes: Uint8Array, log: LogMirror): void;
  started(server: Server): void;
  /** A node appended an entry to its log. */
  entry(node: number, ...entry: Parameters<EntryHook>): void;
  ended(server: Server, why: string, kind: EndKind): void;
  /** A node appended an entry to its log, with its payload. */
  appended?(group: number, entry: LogEntry): void;
  wiped(server: Server): void;
  /** A replica of a node takes in a message. */
  heard?(heard: Heard): void;
  /** The log of a node forgets a group. */
  dropped?(node: number, group: number): void;
  /** A node founds a cluster with the directories of `founders`; nothing is durable yet. */
  founded?(server: Server, founders: readonly Founder[]): void;
  /** A joiner asked, and is a member now. */
  admitted?(server: Server, level: number): void;
  /** The disk is as it was some lives ago. */
  rolledBack?(server: Server): void;
  /** A node appended an entry with these commands. */
  written?(server: Server, group: number, entry: LogEntry): void;
  /**
   * It would not start, or stopped, because of its level. `hasWritten`: the start wrote something
   * before. False: it should not have been refused.
   */
  unsupported?(server: Server, hasWritten: boolean): boolean;
}

/** Which cluster a machine is of. */
export interface ClusterHome {
  readonly clusterId: string;
  /** Nodes that it was founded with. */
  readonly founders: readonly number[];
  /** Behind the names of generators, where two machines have one node id. */
  readonly suffix: string;
}

/** The cluster that a plan founds. */
export function homeOf({ nodes }: Pick<Plan, "nodes">): ClusterHome {
  const founders = Array.from({ length: nodes }, (_, at) => at + 1);
  return { clusterId: CLUSTER_ID, founders, suffix: "" };
}

/** A data directory as it was between two lives. */
export interface DataCopy {
  readonly disk: DiskCopy;
  readonly rows: ReadonlyMap<string, Uint8Array>;
}

/** Copies kept of each machine in worlds that put them back. */
const COPIES_MAX = 4;

/** Somebody who waits for an answer. */
export interface OpenCall {
  /** No answer will come. */
  ended(why: string): void;
  /** The answer may come later than promised. */
  disturbed(why: string): void;
}

/** One life's node, once it is open. */
export interface Running {
  readonly life: Life;
  readonly node: Node;
  readonly operations: Operations;
  readonly watch: GroupWatch;
  readonly port: SimPeers;
}

/** After all is closed, for answers that say just that. */
const LAST_ANSWERS_MS = 50;

export class Server {
  readonly disk: SimDisk;
  readonly rows: SimRows;
  /** The build that its next life runs. */
  program: Program = PROGRAM;
  /** The build of the present life, or of the last one. */
  runs: Program = PROGRAM;
  readonly clockError: ClockError = { rate: 1, wallOffsetMs: 0 };
  lifeNumber = 0;
  life: Life | null = null;
  running: Running | null = null;
  /** A start may be refused, because the disk was damaged. */
  isDamaged = false;
  /** Fatal faults of the disk were injected in this life. */
  expectsFatal = false;
  /** Refused to start with damaged data; stays down. */
  isLost = false;
  /** Taken away by its operator: nobody starts it again by itself. */
  isRetired = false;
  /** Node ids that it asks to be taken in; null: a node that the cluster was founded with. */
  seeds: (() => readonly number[]) | null = null;
  /** Snapshots that came to this machine and were taken, in all lives. */
  snapshotsInstalled = 0;
  /** Frames of former lives of replicas that came to this machine, in the lives that ended. */
  private straysBefore = 0;
  /** Its disk was put back as it was some lives ago. */
  isOutdated = false;
  /** Partitions of which it takes in no messages. */
  readonly deafTo = new Set<number>();
  /** Its disk was lost, and somebody has it removed and brings it back. */
  isUnderRepair = false;
  /** Was taken in again after its disk was lost. */
  isReadmitted = false;
  /** Of this directory, the latest last. */
  copies: DataCopy[] = [];
  hasLog = false;
  /** A restore made its directory: the first start adopts it. */
  isRestored = false;
  /** What its operations need for backups; null: there are none. */
  backupsOf: ((life: Life, node: Node) => BackupWorld) | null = null;
  storageId: string;
  private isWiped = false;
  private writesAtStart = 0;
  private readonly calls = new Set<OpenCall>();
  private disturbances = 0;

  constructor(
    readonly world: World,
    readonly plan: Plan,
    readonly nodeId: number,
    readonly network: SimNetwork,
    readonly events: ServerEvents,
    readonly home: ClusterHome = homeOf(plan),
  ) {
    const prng = world.prng(`server ${nodeId}${home.suffix}`);
    this.disk = new SimDisk(world, nodeId, prng.fork("disk"), {
      ...plan.disk,
      slowPerMillion: 2000,
      writeErrorPerMillion: 0,
      readErrorPerMillion: 0,
    });
    const temper = { commitMs: plan.disk.writeMs * 4 };
    this.rows = new SimRows(world, nodeId, prng.fork("store"), temper);
    this.storageId = prng.nextUint32().toString(16).padStart(8, "0");
  }

  /** The highest level that its directory may hold data of. */
  get storedLevel(): number {
    const inode = this.disk.find(LEVEL_PATH);
    if (inode === undefined) return FIRST_LEVEL;
    const text = Buffer.from(inode.bytes).toString("utf8");
    return (JSON.parse(text) as { readonly level: number }).level;
  }

  /** Frames of former lives of replicas that came to this machine and were dropped. */
  get strays(): number {
    const strays = this.running?.node.facts().strays;
    if (strays === undefined) return this.straysBefore;
    return this.straysBefore + strays["receiver-life"] + strays["sender-life"];
  }

  get isJoiner(): boolean {
    return this.seeds !== null;
  }

  get isUp(): boolean {
    return this.life !== null;
  }

  /** The caller hears of the end of the life that now runs, and of disturbances. */
  openCall(call: OpenCall): void {
    this.calls.add(call);
    if (this.disturbances > 0) call.disturbed("the node is disturbed");
  }

  closeCall(call: OpenCall): void {
    this.calls.delete(call);
  }

  /** Answers may be late from now on, by no fault of the node's. Returns how to end that. */
  disturb(why: string): () => void {
    this.disturbances++;
    for (const call of this.calls) call.disturbed(why);
    return () => void this.disturbances--;
  }

  start(): void {
    if (this.life !== null || this.isLost || this.isRetired) return;
    const { world, nodeId } = this;
    const life = new Life(world, nodeId, ++this.lifeNumber, this.clockError);
    this.life = life;
    this.writesAtStart = this.disk.counts.writes;
    life.crashed = (why) => this.end("kill", why);
    this.keepCopy();
    world.say(nodeId, `starts, life ${life.number}`);
    life.at(1, () => openNode(this, life));
  }

  /** Ends the life at this very moment. */
  end(kind: EndKind, why: string): void {
    const { life, world } = this;
    if (life === null) return;
    world.say(this.nodeId, `ends: ${why}`);
    life.end();
    this.snapshotsInstalled += this.running?.node.facts().snapshotsInstalled ?? 0;
    this.straysBefore = this.strays;
    this.life = null;
    this.running = null;
    this.network.lifeEnded(this.nodeId, kind === "kill");
    this.disk.processEnded(kind);
    this.rows.processEnded();
    const told = [...this.calls];
    this.calls.clear();
    for (const call of told) call.ended(why);
    this.events.ended(this, why, kind);
  }

  /** The machine dies and comes back with nothing on its disk. */
  wipe(): void {
    this.isWiped = true;
    this.empty();
  }

  /** The machine dies and comes back with the disk of an earlier day. */
  rollBack({ disk, rows }: DataCopy): void {
    this.isOutdated = true;
    this.end("power-loss", "its disk was put back as it was");
    this.disk.restore(disk);
    this.rows.restore(rows);
    this.copies = [];
    this.events.rolledBack?.(this);
  }

  private keepCopy(): void {
    if (!this.plan.faults.includes("roll-back") || !this.hasLog || this.isDamaged) return;
    this.copies.push({ disk: this.disk.copy(), rows: this.rows.copy() });
    if (this.copies.length > COPIES_MAX) this.copies.shift();
  }

  /** A machine that left gets an empty disk and joins anew. */
  rejoin(seeds: () => readonly number[]): void {
    this.empty();
    this.seeds = seeds;
    this.isRetired = false;
    this.start();
  }

  private empty(): void {
    this.end("power-loss", "its disk was taken away");
    this.disk.wipe();
    this.rows.wipe();
    this.hasLog = false;
    this.isOutdated = false;
    this.copies = [];
    this.storageId += "w";
    this.events.wiped(this);
  }

  /**
   * Asks the process to stop by itself; it has ended when `isUp` is false. `stopped` is called
   * then, unless it ended otherwise: whether every group that it led with others has another
   * leader.
   */
  stop(graceMs: number, stopped: (isHandedOver: boolean) => void = () => undefined): void {
    const { running } = this;
    if (running === null) return this.end("kill", "killed before it was open");
    const { life, node, port, operations } = running;
    life.at(0, () => {
      if (node.shuttingDown) return;
      const led = node.groups().filter((group) => group.isLeader() && hasOtherVoters(group));
      const end = (): void => {
        this.oweNothing(operations.inflight);
        const isHandedOver = led.every((group) => ![0, this.nodeId].includes(group.leaderNode()));
        this.end("kill", "stopped");
        stopped(isHandedOver);
      };
      // Who waits for a leader looks up now and then; the front ends wait for that.
      const graceOf = (): number => (operations.inflight > 0 ? LAST_ANSWERS_MS : 0);
      const deadlineMs = life.monotonicMs() + graceMs;
      operations.endBackups();
      // As the process does, before it withdraws: whoever waits for a lock asks another node.
      operations.endWaits();
      node.stop(deadlineMs, () => {
        operations.finish(deadlineMs, () => port.close(() => life.at(graceOf(), end)));
      });
    });
  }

  /** A node that stopped by itself has answered everybody (P-162). */
  private oweNothing(requests: number): void {
    if (requests === 0) return;
    this.events.violation(`node ${this.nodeId} stops and leaves ${requests} requests`);
  }

  /**
   * Orders that groups led here be led by others; `told` gets them, later. There is no operation
   * for it: a stop and the balancer do it by the same order.
   */
  handOver(isAll: boolean, told: (ordered: readonly Group[]) => void): void {
    const { running } = this;
    if (running === null) return;
    const { life, node } = running;
    life.enter(() => {
      if (node.shuttingDown) return;
      const { registry, peers } = node["parts"];
      const transfers = new LeadershipTransfers(
        (id) => peers.isUp(id),
        () => node.nowMs(),
      );
      const led = registry.all.filter(({ replica }) => transfers.isNeeded(replica));
      const chosen = isAll ? led : led.slice(-1);
      const ordered = chosen.filter(({ replica }) =>
        transfers.order(replica, node.nowMs(), "balance"),
      );
      told(ordered.map(({ group }) => group));
    });
  }

  // What the opening of a life tells ------------------------------------------------------------

  logFound(): void {
    this.hasLog = true;
  }

  founds(founders: readonly Founder[]): void {
    this.isWiped = false;
    this.isDamaged = false;
    this.events.founded?.(this, founders);
  }

  admitted(level: number): void {
    this.isReadmitted ||= this.isWiped;
    this.isWiped = false;
    this.isDamaged = false;
    this.events.admitted?.(this, level);
  }

  joinRefused(why: string): void {
    if (/ level /.test(why) && this.events.unsupported?.(this, false) === true) {
      return this.end("kill", `refused to join: ${why}`);
    }
    if (!this.isWiped) this.events.violation(`node ${this.nodeId} may not join: ${why}`);
    this.isLost = !this.isUnderRepair;
    this.end("kill", `refused to join: ${why}`);
  }

  opened(running: Running): void {
    this.running = running;
    this.overhear(running.node);
    this.expectsFatal = this.disk.failNext;
    this.world.say(this.nodeId, "is open");
    this.events.started(this);
  }

  /** What each replica takes in is told, where anybody wants to know. */
  private overhear(node: Node): void {
    const { events, nodeId } = this;
    if (events.heard === undefined) return;
    const { registry } = node["parts"];
    const listen = (replica: Replica): void => {
      const receive = replica.receive.bind(replica);
      replica.receive = (item) => {
        const { group, fromLife, toLife, message } = item;
        if (this.deafTo.has(group)) return;
        const { kind, from } = message;
        const { own: ownLife } = replica.lives;
        const knownLife = replica.lives.of(from);
        const { term } = message;
        const ownTerm = replica.core.term;
        // Told of every message: one object of one shape.
        const node = nodeId;
        const heard = {
          node,
          from,
          group,
          kind,
          fromLife,
          toLife,
          ownLife,
          knownLife,
          term,
          ownTerm,
        };
        events.heard?.(heard);
        receive(item);
      };
    };
    for (const { replica } of registry.all) listen(replica);
    registry.onAdded(listen);
  }

  refused(why: string, code: string): void {
    const isOfLevel = code === "storage-level" || code === "unsupported-level";
    const hasWritten = this.disk.counts.writes > this.writesAtStart;
    if (isOfLevel && this.events.unsupported?.(this, hasWritten) === true) {
      return this.end("kill", `start refused: ${why}`);
    }
    const transient = code === "log-no-space" && this.disk.isFull;
    const excused = this.isDamaged || transient || (this.expectsFatal && code === "log-unreadable");
    if (!excused) this.events.violation(`node ${this.nodeId} refuses to start: ${why}`);
    if (this.isDamaged && !transient) this.isLost = true;
    this.end("kill", `start refused: ${why}`);
  }

  fatal(life: Life): FatalPort {
    return {
      fatal: (reason, fields): void => {
        const text = `${reason} ${fields === undefined ? "" : JSON.stringify(fields)}`;
        const isOfLevel = reason.includes("at a level that this program does not support");
        if (isOfLevel && this.events.unsupported?.(this, false) === true) {
          throw new ProcessEnd(life, `fatal fault: ${text}`);
        }
        if (!this.expectsFatal && !this.isDamaged) {
          this.events.violation(`node ${this.nodeId} met a fatal fault: ${text}`);
        }
        // Whoever looks after it puts an empty disk in its place.
        const isRotten = this.isDamaged && reason.startsWith("state store row damaged");
        if (this.isWiped || isRotten) this.isLost = true;
        throw new ProcessEnd(life, `fatal fault: ${text}`);
      },
    };
  }

  logger(): LoggerPort {
    return {
      log: (level, event, fields): void => {
        const { world } = this;
        world.trace.mix(event.length);
        if (!world.trace.hasWords || level === "debug") return;
        const detail = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
        world.say(this.nodeId, `log ${level}: ${event}${detail}`);
      },
    };
  }
}

function hasOtherVoters(group: Group): boolean {
  const bytes = group.machine.membership;
  const membership = bytes === null ? null : decodeMembership(bytes);
  return membership === null || membership.voters.length > 1;
}
