/**
 * The operations over the real host and machine in a false world, and short ways to ask them.
 */
import { assert } from "../../../src/base/assert.js";
import { partitionId } from "../../../src/base/ids.js";
import type { Group, ProposalResult, ReadResult } from "../../../src/host/group/group.js";
import type { Node } from "../../../src/host/node.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { GroupAccess, NodeAccess } from "../../../src/operations/api/host-view.js";
import type { BackupWorld } from "../../../src/operations/api/backup-world.js";
import type { AnswerOf } from "../../../src/operations/api/kinds.js";
import { Operations } from "../../../src/operations/operations.js";
import type {
  DataRequest,
  GetLockRequest,
  KvGetRequest,
  KvRangeRequest,
  KvScanRequest,
  KvSetRequest,
  RequestContext,
  TryLockRequest,
  TryExtendLockRequest,
  TryUnlockRequest,
  UpdateSequenceRequest,
} from "../../../src/operations/api/requests.js";
import type { OperationsSettings } from "../../../src/operations/api/settings.js";
import { RequestTally } from "../../../src/operations/admission/tally.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { World } from "../host/world.js";
import { holdMoves } from "./moving.js";
import { NEW_SEQUENCE, UNCHANGED_SEQUENCE } from "../machine/bench.js";
import { DEFAULT_OPERATIONS_SETTINGS } from "../default-settings.js";

/** One set for all benches: sets are large, and only one bench works at a time. */
const kernels = createKernels({ mode: "wasm" });

type SizedRange = Parameters<NodeAccess["rangeSize"]>[0];

/** What a test may do to the calls that operations make of one group. */
export interface Faults {
  /** Instead of proposing: a result (given later), or null to propose. */
  propose: ((command: Command) => ProposalResult | null) | null;
  /** As `propose`, of what was taken in before. */
  late: ((command: Command) => ProposalResult | null) | null;
  /** Proposes, but answers this instead of the real result. */
  hide: ((command: Command) => ProposalResult | null) | null;
  read: (() => ReadResult | null) | null;
  /** As `propose`, of what is proposed at the end of a leadership. */
  final: ((command: Command) => ProposalResult | null) | null;
}

/** A group whose ends a test can choose; everything else is the real one's. */
function faulty(group: Group, faults: Faults, world: World): GroupAccess {
  return {
    partition: group.partition,
    get machine() {
      return group.machine;
    },
    get ephemeral() {
      return group.ephemeral;
    },
    propose: (command, sizeBytes, deadlineMs, done, joined = null) => {
      const result = faults.propose?.(command) ?? null;
      if (result !== null) {
        world.timer.soon(() => {
          done(result);
          joined?.done(result);
        });
        return result.status !== "refused";
      }
      const late = faults.late?.(command) ?? null;
      if (late !== null) {
        world.timer.soon(() => done(late));
        return true;
      }
      const hidden = faults.hide?.(command) ?? null;
      return group.propose(command, sizeBytes, deadlineMs, (real) => done(hidden ?? real), joined);
    },
    read: (deadlineMs, done) => {
      const result = faults.read?.() ?? null;
      if (result !== null) return world.timer.soon(() => done(result));
      group.read(deadlineMs, done);
    },
    advanceClock: (leaseMs, deadlineMs, done) => {
      const result = faults.propose?.({ kind: "advance-clock" }) ?? null;
      if (result !== null) return world.timer.soon(() => done(result));
      group.advanceClock(leaseMs, deadlineMs, done);
    },
    leaseNowMs: () => group.leaseNowMs(),
    nextStamp: () => group.nextStamp(),
    holdEntries: (forMs) => group.holdEntries(forMs),
    announceCommits: (forMs) => group.announceCommits(forMs),
    isServing: () => group.isServing(),
    isLeader: () => group.isLeader(),
    term: () => group.term(),
    isHandingOver: () => group.isHandingOver(),
    leaderNode: () => group.leaderNode(),
    levelMs: (nowMs) => group.levelMs(nowMs),
    addReset: (hook) => group.addReset(hook),
    addMoveHook: (hook) => group.addMoveHook(hook),
    addStopHook: (hook) => {
      group.addStopHook((propose) => {
        hook((command, sizeBytes, done) => {
          const result = faults.final?.(command) ?? null;
          if (result !== null) return world.timer.soon(() => done(result));
          propose(command, sizeBytes, done);
        });
      });
    },
  };
}

export class Bench {
  readonly world: World;
  readonly settings: OperationsSettings;
  readonly node: Node;
  readonly operations: Operations;
  readonly tally = new RequestTally();
  readonly faults: Faults = { propose: null, late: null, hide: null, read: null, final: null };
  /** Live keys of ranges, as their leaders would say; null: the true ones. "silent": nobody does. */
  sizeOf: ((range: SizedRange) => number | null) | "silent" | null = null;
  /** Commands that reached a group. */
  readonly commands: Command[] = [];

  constructor(
    settings: Partial<OperationsSettings> = {},
    world = new World(),
    started = true,
    backups: (world: World) => BackupWorld | null = () => null,
  ) {
    this.world = world;
    this.settings = { ...DEFAULT_OPERATIONS_SETTINGS, ...settings };
    this.node = started ? world.ready() : world.open();
    const made = backups(world);
    const ports = { ...world.ports(), ...(made === null ? {} : { backups: made }) };
    this.operations = new Operations(this.access(), this.settings, ports, kernels, this.tally);
  }

  private access(): NodeAccess {
    const { node, world, faults } = this;
    const wrapped = new Map<Group, GroupAccess>();
    const wrap = (group: Group): GroupAccess => {
      let access = wrapped.get(group);
      if (access === undefined) {
        const noting: Faults = {
          get propose() {
            return faults.propose;
          },
          get late() {
            return faults.late;
          },
          get hide() {
            return faults.hide;
          },
          get read() {
            return faults.read;
          },
          get final() {
            return faults.final;
          },
        };
        access = faulty(group, noting, world);
        const { propose } = access;
        access.propose = (command, sizeBytes, deadlineMs, done, joined = null) => {
          this.commands.push(command);
          if (joined !== null) this.commands.push(joined.command);
          return propose(command, sizeBytes, deadlineMs, done, joined);
        };
        wrapped.set(group, access);
      }
      return access;
    };
    const orNull = (group: Group | null): GroupAccess | null =>
      group === null ? null : wrap(group);
    return {
      get initialized() {
        return node.initialized;
      },
      get shuttingDown() {
        return node.shuttingDown;
      },
      get closing() {
        return node.closing;
      },
      get isOutside() {
        return node.isOutside;
      },
      health: () => node.health(),
      checks: () => node.checks(),
      leave: (deadlineMs, drainMs, done) => node.leave(deadlineMs, drainMs, done),
      removeMember: (member, deadlineMs, done) => node.removeMember(member, deadlineMs, done),
      finalize: (level, deadlineMs, done) => node.finalize(level, deadlineMs, done),
      route: (hashText) => orNull(node.route(hashText)),
      group: (id) => orNull(node.group(id)),
      partitionOf: (hashText) => node.partitionOf(hashText),
      metaGroup: () => wrap(node.metaGroup()),
      rangeSize: (range, done) => {
        if (this.sizeOf === "silent") return;
        const keys = this.sizeOf === null ? this.counted(range) : this.sizeOf(range);
        world.timer.soon(() => done({ keys }));
      },
      groups: () => node.groups().map(wrap),
      onGroup: (hook) => node.onGroup((group) => hook(wrap(group))),
      onGroupLeft: (hook) => node.onGroupLeft((group) => hook(wrap(group))),
      reportedLeader: (partition) => node.reportedLeader(partition),
      isLinked: (other) => node.isLinked(other),
      partitionWaits: () => node.partitionWaits(),
      lastReport: (other) => node.lastReport(other),
      levels: () => node.levels(),
    };
  }

  /** The keys of a range, at the one node there is. */
  private counted({ partitionId: id, keySpace, startKey, endKey }: SizedRange): number {
    const query = { bucket: keySpace, startKey, startInclusive: true, endKey, endInclusive: false };
    const bounds = { after: null, limit: 0, maxBytes: Infinity, maxVisits: Infinity };
    const { reads, leaseMs } = this.group(id).machine;
    const reading = reads.rangePage(query, bounds, leaseMs);
    return reading.kind === "page" ? reading.page.items.length : 0;
  }

  /** The host moves no range by itself: each step is the test's to take. */
  holdMoves(): void {
    holdMoves(this.node);
  }

  get nowMs(): number {
    return this.world.timer.nowMs;
  }

  /** What a front end would send along with a request that its caller gave `withinMs`. */
  context(withinMs = Infinity): RequestContext {
    const leftMs = Math.min(withinMs, this.settings.requestTimeoutMs);
    return { deadlineMs: this.nowMs + leftMs, forwardHops: 0, requestId: "t" };
  }

  /** Sends without waiting; the list gets the answer. */
  send<R extends DataRequest>(request: R, into: AnswerOf<R>[] = [], withinMs = 1e6): AnswerOf<R>[] {
    this.operations.execute(request, this.context(withinMs), (answer) => void into.push(answer));
    return into;
  }

  /** Sends and runs the world, time standing still, until the answer is there. */
  ask<R extends DataRequest>(request: R): AnswerOf<R> {
    const answers = this.send(request);
    const before = answers.length;
    this.world.settle();
    const [answer] = answers;
    assert(before === 0, "no answer in the turn of the call");
    assert(answer !== undefined && answers.length === 1, `${request.kind} is answered once`);
    return answer;
  }

  /** The same where the answer may need time: it is given `withinMs`. */
  askWithin<R extends DataRequest>(request: R, withinMs: number): AnswerOf<R> {
    const answers = this.send(request);
    this.world.settle();
    if (answers.length === 0) this.world.pass(withinMs);
    const [answer] = answers;
    assert(answer !== undefined && answers.length === 1, `${request.kind} is answered once`);
    return answer;
  }

  partitionOf(text: string): number {
    return this.world.group(this.node, text).partition;
  }

  group(id: number): Group {
    const group = this.node.group(partitionId(id));
    assert(group !== null, "the group is hosted");
    return group;
  }
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export function lock(
  resource: string,
  owner: string,
  expiresMs = 1000,
  durability = 1,
): TryLockRequest {
  return { kind: "try-lock", resource, owner: encode(owner), expiresMs, durability };
}
export function unlock(resource: string, owner: string, durability = 1): TryUnlockRequest {
  return { kind: "try-unlock", resource, owner: encode(owner), durability };
}
export function extendLock(
  resource: string,
  owner: string,
  expiresMs = 1000,
  durability = 1,
): TryExtendLockRequest {
  return { kind: "try-extend", resource, owner: encode(owner), expiresMs, durability };
}
export function info(resource: string, durability = 1): GetLockRequest {
  return { kind: "get-lock", resource, durability };
}
export function set(
  key: string,
  value: string | null,
  more: Partial<KvSetRequest> = {},
): KvSetRequest {
  return {
    kind: "kv-set",
    key,
    value: value === null ? null : encode(value),
    compareValue: null,
    compareRevision: 0n,
    expiresMs: 0,
    flags: 0,
    durability: 1,
    plain: true,
    ...more,
  };
}
export function get(key: string, revision = -1n, durability = 1): KvGetRequest {
  return { kind: "kv-get", key, revision, durability, plain: true };
}
export function scanAll(prefix: string, more: Partial<KvScanRequest> = {}): KvScanRequest {
  return {
    kind: "kv-scan-all",
    prefix,
    includeTombstones: false,
    limit: 0,
    cursor: null,
    durability: 1,
    plain: true,
    ...more,
  };
}
export function range(prefix: string, more: Partial<KvRangeRequest> = {}): KvRangeRequest {
  return {
    kind: "kv-range",
    prefix,
    startKey: null,
    startInclusive: false,
    endKey: null,
    endInclusive: false,
    limit: 0,
    cursor: null,
    durability: 1,
    plain: true,
    ...more,
  };
}
interface CreateOptions {
  initialValue?: bigint;
  increment?: bigint;
  maxValue?: bigint | null;
  blockSize?: number | null;
}
export function create(name: string, more: CreateOptions = {}) {
  return {
    kind: "create-sequence" as const,
    name,
    ...NEW_SEQUENCE,
    durability: 1,
    ...more,
  };
}
export function update(name: string, more: Partial<UpdateSequenceRequest>): UpdateSequenceRequest {
  return {
    kind: "update-sequence",
    name,
    ...UNCHANGED_SEQUENCE,
    durability: 1,
    ...more,
  };
}
export function next(name: string, idempotencyKey: string | null = null) {
  return { kind: "next-sequence" as const, name, idempotencyKey, durability: 1 };
}
export function reserve(name: string, count: number, idempotencyKey: string | null = null) {
  return { kind: "reserve-sequence" as const, name, count, idempotencyKey, durability: 1 };
}
export function getSequence(name: string) {
  return { kind: "get-sequence" as const, name, durability: 1 };
}
export function deleteSequence(name: string) {
  return { kind: "delete-sequence" as const, name, durability: 1 };
}
