/**
 * Three nodes that answer together: three operations over one host, whose state stands for the
 * replicas of all of them. Who leads which partition, and what becomes of the frames between them,
 * is the test's to say.
 */
import { assert } from "../../../src/base/assert.js";
import { partitionId } from "../../../src/base/ids.js";
import { FRAME_MAX_BYTES } from "../../../src/base/limits.js";
import type {
  Group,
  ProposalResult,
  ReadResult,
  ResetHook,
} from "../../../src/host/group/group.js";
import type { Node } from "../../../src/host/node.js";
import type { HeardReport } from "../../../src/host/reports/node-reports.js";
import type { PartitionWait } from "../../../src/host/reports/node-report.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { GroupAccess, NodeAccess } from "../../../src/operations/api/host-view.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { AnswerOf } from "../../../src/operations/api/kinds.js";
import { Operations } from "../../../src/operations/operations.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import type { MoveHook } from "../../../src/host/requests/results.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { Trace, TracerPort } from "../../../src/operations/api/tracing.js";
import type { OperationsSettings } from "../../../src/operations/api/settings.js";
import { RequestTally } from "../../../src/operations/admission/tally.js";
import { type Frame, Inbox } from "../../../src/operations/wire/frames.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { World } from "../host/world.js";
import { DEFAULT_OPERATIONS_SETTINGS } from "../default-settings.js";

const kernels = createKernels({ mode: "wasm" });

/** What happens to a frame: it arrives, it is refused by the lane, or it is lost on the way. */
export type Fate = "arrives" | "refused" | "lost";

export interface Sent {
  readonly from: number;
  readonly to: number;
  readonly frame: Frame;
}

/** Leads partitions as the trio says; the state is that of the one group behind it. */
class FalseGroup implements GroupAccess {
  readonly partition: Group["partition"];
  private readonly resets: ResetHook[] = [];

  constructor(
    private readonly trio: Trio,
    private readonly nodeId: number,
    private readonly group: Group,
  ) {
    this.partition = group.partition;
  }

  get machine() {
    return this.group.machine;
  }
  get ephemeral() {
    return this.isLeader() ? this.group.ephemeral : null;
  }
  propose: GroupAccess["propose"] = (
    command,
    sizeBytes,
    deadlineMs,
    done,
    joined = null,
    marks = null,
  ) => {
    const { trio } = this;
    const refused = { status: "refused", reason: "not-leader" } as const;
    const chosen = this.isLeader() ? (trio.propose?.(command, this.nodeId) ?? null) : refused;
    if (chosen !== null) {
      if (joined !== null) this.soon(joined.done, chosen);
      this.soon(done, chosen);
      return chosen.status !== "refused";
    }
    trio.proposals.push([this.nodeId, command.kind]);
    const given = (result: ProposalResult): void => {
      done(trio.hide?.(command, this.nodeId) ?? result);
    };
    return this.group.propose(command, sizeBytes, deadlineMs, given, joined, marks);
  };
  read: GroupAccess["read"] = (deadlineMs, done) => {
    if (!this.isLeader()) return this.trio.world.timer.soon(() => done({ status: "retry" }));
    const chosen = this.trio.read?.(this.nodeId) ?? null;
    if (chosen !== null) return this.trio.world.timer.soon(() => done(chosen));
    this.group.read(deadlineMs, done);
  };
  advanceClock: GroupAccess["advanceClock"] = (leaseMs, deadlineMs, done) => {
    if (!this.isLeader()) return this.soon(done, { status: "refused", reason: "not-leader" });
    this.group.advanceClock(leaseMs, deadlineMs, done);
  };
  leaseNowMs = () => this.group.leaseNowMs();
  nextStamp = () => this.group.nextStamp();
  holdEntries = (forMs: number) => this.group.holdEntries(forMs);
  announceCommits = (forMs: number) => this.group.announceCommits(forMs);
  isServing = () => this.isLeader();
  term = () => this.group.term() + this.trio.termsBehind;
  isHandingOver = () => false;
  isLeader = () => this.trio.leaderOf(this.partition) === this.nodeId;
  leaderNode = () => this.trio.known(this.nodeId, this.partition);
  levelMs = (nowMs: number) => nowMs;
  addReset = (hook: ResetHook) => void this.resets.push(hook);
  addStopHook = () => undefined;
  /** What is to be called before leadership is handed over as planned. */
  readonly moveHooks: MoveHook[] = [];
  addMoveHook = (hook: MoveHook) => void this.moveHooks.push(hook);

  reset(): void {
    for (const hook of this.resets) hook("leadership moved");
  }

  private soon(done: (result: ProposalResult) => void, result: ProposalResult): void {
    this.trio.world.timer.soon(() => done(result));
  }
}

export class Trio {
  readonly world: World;
  readonly host: Node;
  readonly nodes: readonly Operations[];
  readonly groups: readonly ReadonlyMap<number, FalseGroup>[];
  readonly tallies = [new RequestTally(), new RequestTally(), new RequestTally()];
  /** Frames as they were sent, whatever became of them. */
  readonly sent: Sent[] = [];
  /** Node and kind of every command that was proposed. */
  readonly proposals: [number, string][] = [];
  propose: ((command: Command, node: number) => ProposalResult | null) | null = null;
  hide: ((command: Command, node: number) => ProposalResult | null) | null = null;
  read: ((node: number) => ReadResult | null) | null = null;
  fate: (sent: Sent) => Fate = () => "arrives";
  /** Leaderships that ended since. */
  termsBehind = 0;
  /** What every lane holds: more than nothing, and a frame that is refused found it full. */
  queuedBytes = 0;
  /** What a node that does not host the partition would not know; 0 = nobody. */
  beliefs = new Map<string, number>();
  stopping = new Set<number>();
  /** Nodes that close log and store. */
  closing = new Set<number>();
  uninitialized = new Set<number>();
  /** Who says that it leads a partition, as other nodes heard. */
  readonly reported = new Map<number, number>();
  /** What nodes said of themselves. */
  readonly reports = new Map<number, HeardReport>();
  /** Nodes that nobody has a link with. */
  readonly dead = new Set<number>();
  /** What partitions wait for, as nodes told. */
  readonly waits: PartitionWait[] = [];
  /** Nodes that the member list does not list any more. */
  outside = new Set<number>();
  /** Partitions that a node has no replica of: "node/partition". */
  unhosted = new Set<string>();
  /** Told when a group leaves its node. */
  readonly left: ((group: FalseGroup) => void)[] = [];
  private readonly leaders = new Map<number, number>();
  private readonly inspected = new Map<string, Inbox>();

  private readonly requestTimeoutMs: number;

  /** `tracerOf`: what records at each node; null: nothing does. */
  constructor(
    settings: Partial<OperationsSettings> = {},
    host: Partial<HostSettings> = {},
    private readonly tracerOf: ((node: number) => TracerPort) | null = null,
  ) {
    ({ requestTimeoutMs: this.requestTimeoutMs } = { ...DEFAULT_OPERATIONS_SETTINGS, ...settings });
    this.world = new World(host);
    this.host = this.world.ready();
    const groups = this.host.groups();
    groups.forEach((group) => this.leaders.set(group.partition, 1 + (group.partition % 3)));
    this.groups = [1, 2, 3].map(
      (id) => new Map(groups.map((group) => [group.partition, new FalseGroup(this, id, group)])),
    );
    this.nodes = [1, 2, 3].map((id) => this.openNode(id, settings));
  }

  private openNode(id: number, settings: Partial<OperationsSettings>): Operations {
    const own = {
      nodeId: id,
      clientEndpoint: `http://n${id}`,
      peerEndpoint: `n${id}:8084`,
      routingHints: true,
    };
    const calls = {
      send: (to: number, bytes: Uint8Array) => this.send(id, to, bytes),
      queuedBytes: () => this.queuedBytes,
    };
    const tracer = this.tracerOf === null ? {} : { tracer: this.tracerOf(id) };
    const operations = new Operations(
      this.access(id),
      { ...DEFAULT_OPERATIONS_SETTINGS, ...own, ...settings },
      { ...this.world.ports(), calls, ...tracer },
      kernels,
      this.tallies[id - 1] ?? new RequestTally(),
    );
    return operations;
  }

  private access(id: number): NodeAccess {
    const { host, stopping, closing, uninitialized, unhosted, outside } = this;
    const own = this.groups[id - 1];
    assert(own !== undefined, "there are three nodes");
    const find = (partition: number): FalseGroup | null =>
      unhosted.has(`${id}/${partition}`) ? null : (own.get(partition) ?? null);
    return {
      get initialized() {
        return !uninitialized.has(id);
      },
      get shuttingDown() {
        return stopping.has(id);
      },
      get closing() {
        return closing.has(id);
      },
      get isOutside() {
        return outside.has(id);
      },
      health: () => host.health(),
      checks: () => host.checks(),
      leave: (deadlineMs, drainMs, done) => host.leave(deadlineMs, drainMs, done),
      removeMember: (member, deadlineMs, done) => host.removeMember(member, deadlineMs, done),
      finalize: (level, deadlineMs, done) => host.finalize(level, deadlineMs, done),
      route: (hashText) => {
        const partition = host.partitionOf(hashText);
        return partition === null ? null : find(partition);
      },
      partitionOf: (hashText) => host.partitionOf(hashText),
      group: (partition) => find(partition),
      metaGroup: () => {
        const meta = own.get(0);
        assert(meta !== undefined, "every node hosts the meta group");
        return meta;
      },
      groups: () => [...own.values()].filter((group) => find(group.partition) !== null),
      onGroup: (hook) => own.forEach((group) => hook(group)),
      onGroupLeft: (hook) => {
        this.left.push((group) => void (own.get(group.partition) === group && hook(group)));
      },
      clientEndpointOf: (node) => `http://n${node}`,
      reportedLeader: (partition) => this.reported.get(partition) ?? 0,
      isLinked: (node) => !this.dead.has(node),
      partitionWaits: () => this.waits,
      rangeSize: (_range, done) => this.world.timer.soon(() => done({ keys: null })),
      lastReport: (node) => this.reports.get(node) ?? null,
      levels: () => this.host.levels(),
    };
  }

  private send(from: number, to: number, bytes: Uint8Array): boolean {
    assert(bytes.length <= FRAME_MAX_BYTES, "a frame is not larger than its bound");
    const lane = `${from}/${to}`;
    const inbox = this.inspected.get(lane) ?? new Inbox(1 << 26);
    this.inspected.set(lane, inbox);
    const frame = inbox.open(bytes);
    assert(frame !== null, "what is sent can be read");
    const sent = { from, to, frame };
    this.sent.push(sent);
    const fate = this.fate(sent);
    if (fate === "refused") return false;
    if (fate === "arrives") this.world.timer.after(0, () => this.node(to).callFrame(from, bytes));
    return true;
  }

  node(id: number): Operations {
    const operations = this.nodes[id - 1];
    assert(operations !== undefined, "there are three nodes");
    return operations;
  }

  leaderOf(partition: number): number {
    return this.leaders.get(partition) ?? 0;
  }

  /** Who leads, as `node` believes. */
  known(node: number, partition: number): number {
    return this.beliefs.get(`${node}/${partition}`) ?? this.leaderOf(partition);
  }

  /** The leadership moves to `node`; 0 = nobody leads. */
  move(partition: number, node: number): void {
    const before = this.leaderOf(partition);
    this.leaders.set(partition, node);
    if (before !== 0 && before !== node) this.groups[before - 1]?.get(partition)?.reset();
  }

  moveAll(node: number): void {
    for (const partition of [...this.leaders.keys()]) this.move(partition, node);
  }

  partitionOf(hashText: string): number {
    const partition = this.host.partitionOf(hashText);
    assert(partition !== null, "the cluster is founded");
    return partition;
  }

  machine(id: number) {
    const group = this.host.group(partitionId(id));
    assert(group !== null, "the group is hosted");
    return group.machine;
  }

  /** Sends without waiting; the list gets the answer. */
  post<R extends DataRequest>(
    at: number,
    request: R,
    { withinMs = 1e6, hops = 0, trace }: { withinMs?: number; hops?: number; trace?: Trace } = {},
    into: AnswerOf<R>[] = [],
  ): AnswerOf<R>[] {
    const leftMs = Math.min(withinMs, this.requestTimeoutMs);
    const deadlineMs = this.world.timer.nowMs + leftMs;
    const context = { deadlineMs, forwardHops: hops, requestId: "trio", trace };
    this.node(at).execute(request, context, (answer) => void into.push(answer));
    return into;
  }

  /** Asks node `at` and runs the world, time standing still, until the answer is there. */
  ask<R extends DataRequest>(at: number, request: R, hops = 0): AnswerOf<R> {
    const answers = this.post(at, request, { hops });
    const before = answers.length;
    this.world.settle();
    const [answer] = answers;
    assert(before === 0, "no answer in the turn of the call");
    assert(answer !== undefined && answers.length === 1, `${request.kind} is answered once`);
    return answer;
  }

  /** Calls that are open anywhere. */
  get open(): number {
    return this.nodes.reduce((sum, node) => sum + node.inflight + node.forwardedInFlight, 0);
  }
}

/** What must be the same wherever the request was sent. */
export function body(answer: DataAnswer): unknown {
  const stripped = { ...answer, servedFrom: null, route: null };
  if (answer.kind !== "kv-many") return stripped;
  const items = answer.items.map((item) => ({ ...item, servedFrom: null, routeIndex: 0 }));
  return { ...stripped, items, routes: [] };
}
