/**
 * One machine of the world with its disk, its store and its clocks, and the production node that
 * lives on it, life after life.
 *
 * Everything from the operations down to the log is what ships; only the ports are false. May be
 * started, killed, paused and stopped at any event. Invariants: 1. At most one life at a time.
 * 2. A refused start is a violation unless the atlas says that the disk was damaged. 3. Callers of
 * a life that ends hear that it ended.
 */
import { BudgetedFiles } from "../../src/disk/budget.js";
import { openLog } from "../../src/disk/recovery.js";
import type { WriteAheadLog } from "../../src/disk/wal.js";
import { PEER_PROTOCOL } from "../../src/base/limits.js";
import { Node } from "../../src/host/node.js";
import type { HostPorts } from "../../src/host/settings.js";
import { KernelSorter } from "../../src/machine/kernel-sorter.js";
import { Operations } from "../../src/operations/operations.js";
import { RequestTally } from "../../src/operations/tally.js";
import type { FatalPort, LoggerPort, MeterPort, PeerHello } from "../../src/ports.js";
import { SimDisk, type EndKind } from "./disk.js";
import { freshLogKernels, sharedKernels } from "./kernelpool.js";
import { type EntryHook, LogMirror } from "./logmirror.js";
import type { SimNetwork } from "./network.js";
import { GroupWatch } from "./observe.js";
import { CLUSTER_ID, type Plan, endpointOf, hostSettingsOf, operationsSettingsOf } from "./plan.js";
import { type ClockError, Life, ProcessEnd } from "./process.js";
import { SimRows } from "./store.js";
import type { World } from "./world.js";

const DIRECTORY = "/wal";
const SPACE_RETRY_MS = 1000;

/** What a machine tells the run that it is part of. */
export interface ServerEvents {
  /** Something happened that must not. */
  violation(text: string): void;
  started(server: Server): void;
  /** A node appended an entry to its log. */
  entry(node: number, ...entry: Parameters<EntryHook>): void;
  ended(server: Server, why: string): void;
  wiped(server: Server): void;
}

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
}

export class Server {
  readonly disk: SimDisk;
  readonly rows: SimRows;
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
  private hasLog = false;
  private storageId: string;
  private isWiped = false;
  private readonly calls = new Set<OpenCall>();
  private disturbances = 0;

  constructor(
    readonly world: World,
    readonly plan: Plan,
    readonly nodeId: number,
    private readonly network: SimNetwork,
    private readonly events: ServerEvents,
  ) {
    const prng = world.prng(`server ${nodeId}`);
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
    if (this.life !== null || this.isLost) return;
    const { world, nodeId } = this;
    const life = new Life(world, nodeId, ++this.lifeNumber, this.clockError);
    this.life = life;
    life.crashed = (why) => this.end("kill", why);
    world.say(nodeId, `starts, life ${life.number}`);
    life.at(1, () => this.open(life));
  }

  /** Ends the life at this very moment. */
  end(kind: EndKind, why: string): void {
    const { life, world } = this;
    if (life === null) return;
    world.say(this.nodeId, `ends: ${why}`);
    life.end();
    this.life = null;
    this.running = null;
    this.network.lifeEnded(this.nodeId, kind === "kill");
    this.disk.processEnded(kind);
    this.rows.processEnded();
    const told = [...this.calls];
    this.calls.clear();
    for (const call of told) call.ended(why);
    this.events.ended(this, why);
  }

  /** The machine dies and comes back with nothing on its disk. */
  wipe(): void {
    this.end("power-loss", "its disk was taken away");
    this.disk.wipe();
    this.rows.wipe();
    this.hasLog = false;
    this.isWiped = true;
    this.storageId += "w";
    this.events.wiped(this);
  }

  /** Asks the process to stop by itself; it has ended when `isUp` is false. */
  stop(graceMs: number): void {
    const { running } = this;
    if (running === null) return this.end("kill", "killed before it was open");
    const { life, node } = running;
    life.at(0, () => {
      node.stop(life.monotonicMs() + graceMs, () => life.at(0, () => this.end("kill", "stopped")));
    });
  }

  private open(life: Life): void {
    const { nodeId } = this;
    const identity = { storageId: this.storageId, clusterId: CLUSTER_ID, nodeId };
    const options = {
      directory: DIRECTORY,
      identity,
      segmentBytes: this.plan.segmentBytes,
      spaceRetryMs: SPACE_RETRY_MS,
      mayCreate: !this.hasLog,
    };
    const files = new BudgetedFiles(this.disk.files(life));
    const ports = {
      files,
      timers: life,
      logger: this.logger(),
      fatal: this.fatal(life),
      clock: life.clock,
      meter: { logSyncMs: () => undefined },
    };
    openLog(options, ports, freshLogKernels(nodeId), (opened) => {
      if (!opened.ok)
        return this.refused(`the log: ${opened.code}: ${opened.message}`, opened.code);
      this.hasLog = true;
      this.openNode(life, opened.value);
    });
  }

  private openNode(life: Life, real: WriteAheadLog): void {
    const log = new LogMirror(real, (...entry) => this.events.entry(this.nodeId, ...entry));
    const shared = sharedKernels();
    const entropy = this.world.prng(`entropy ${this.nodeId} ${life.number}`);
    const ports: HostPorts = {
      clock: life.clock,
      timer: life,
      log,
      store: this.rows.port(life),
      entropy: { uint32: () => entropy.nextUint32() },
      logger: this.logger(),
      fatal: this.fatal(life),
      meter: SILENT_METER,
      peers: this.network.port(life, this.hello()),
      sorter: new KernelSorter(shared.compact),
    };
    const opened = Node.open(hostSettingsOf(this.plan, this.nodeId, this.storageId), ports);
    if (!opened.ok) return this.refused(`the node: ${opened.code}: ${opened.message}`, opened.code);
    const node = opened.value;
    const settings = operationsSettingsOf(this.plan, this.nodeId);
    const calls = { send: (to: number, bytes: Uint8Array) => node.links.sendCall(to, bytes) };
    const operations = new Operations(
      node,
      settings,
      { ...ports, calls },
      shared,
      new RequestTally(),
    );
    node.links.handleCalls((from, bytes) => operations.callFrame(from, bytes));
    node.links.listen(operations);
    const watch = new GroupWatch(this.nodeId, life.number, log);
    this.running = { life, node, operations, watch };
    this.expectsFatal = this.disk.failNext;
    this.world.say(this.nodeId, "is open");
    this.events.started(this);
  }

  private hello(): PeerHello {
    return {
      clusterId: CLUSTER_ID,
      nodeId: this.nodeId,
      storageId: this.storageId,
      endpoint: endpointOf(this.nodeId),
      clientEndpoint: `http://node-${this.nodeId}:8083`,
      protocol: PEER_PROTOCOL,
    };
  }

  private refused(why: string, code: string): void {
    const transient = code === "log-no-space" && this.disk.isFull;
    const excused = this.isDamaged || transient || (this.expectsFatal && code === "log-unreadable");
    if (!excused) this.events.violation(`node ${this.nodeId} refuses to start: ${why}`);
    if (this.isDamaged && !transient) this.isLost = true;
    this.end("kill", `start refused: ${why}`);
  }

  private fatal(life: Life): FatalPort {
    return {
      fatal: (reason, fields): void => {
        const text = `${reason} ${fields === undefined ? "" : JSON.stringify(fields)}`;
        if (!this.expectsFatal && !this.isDamaged) {
          this.events.violation(`node ${this.nodeId} met a fatal fault: ${text}`);
        }
        if (this.isWiped) this.isLost = true;
        throw new ProcessEnd(life, `fatal fault: ${text}`);
      },
    };
  }

  private logger(): LoggerPort {
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

const SILENT_METER: MeterPort = {
  batchEntries: () => undefined,
  logSyncMs: () => undefined,
  commitMs: () => undefined,
  flushMs: () => undefined,
  lockGranted: () => undefined,
  sequenceValues: () => undefined,
  leaderChanged: () => undefined,
};
