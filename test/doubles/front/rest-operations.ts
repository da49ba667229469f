/**
 * An operations port for tests of the front end: records what came down, answers what the test
 * says.
 *
 * Invariants: 1. As the real one it answers in a later turn, exactly once.
 */
import { NO_STAMP } from "../../../src/base/hlc.js";
import { Int64 } from "../../../src/base/int64.js";
import type {
  AnswerOf,
  BackupRefusal,
  DataAnswer,
  DataRequest,
  DataRequestKind,
  HealthAnswer,
  HealthCheck,
  LeaveAnswer,
  MembershipAnswer,
  MergeRangesAnswer,
  OperationsPort,
  PlacementAnswer,
  RangesAnswer,
  Refusal,
  RegisterRangeAnswer,
  ReplicationFactorAnswer,
  RequestContext,
  RoutingAnswer,
  SplitRangeAnswer,
} from "../../../src/operations/api/requests.js";
import { administrationOf, type BackupRequest } from "../operations/administration.js";

const INVALID_INPUT = { lock: 100, sequence: 3, kv: 100 };
const MUST_RETRY = { lock: 101, sequence: 5, kv: 101 };

function familyOf(kind: DataRequestKind): "lock" | "sequence" | "kv" {
  if (kind.startsWith("kv-")) return "kv";
  return kind.endsWith("-sequence") ? "sequence" : "lock";
}

/** An answer of the right sort that describes nothing. */
export function blankAnswer(kind: DataRequestKind, type: number): DataAnswer {
  const base = { type, servedFrom: null, route: null, refusal: null };
  if (kind === "next-sequence" || kind === "reserve-sequence") {
    return { ...base, kind: "allocation", allocation: null };
  }
  const family = familyOf(kind);
  if (family === "sequence") return { ...base, kind: "sequence", sequence: null, revision: 0 };
  if (family === "lock") {
    const none = { fencingToken: Int64.ZERO, owner: null, expires: NO_STAMP, expiresInMs: 0 };
    return { ...base, kind: "lock", ...none };
  }
  if (kind.endsWith("-many")) return { ...base, kind: "kv-many", items: [], routes: [] };
  if (kind === "kv-bucket" || kind === "kv-range" || kind.startsWith("kv-scan")) {
    const page = { items: [], nextCursor: null, hasMore: false, tooLarge: false };
    return { ...base, kind: "kv-page", ...page };
  }
  const stamps = { expires: NO_STAMP, lastModified: NO_STAMP };
  return { ...base, kind: "kv", value: null, revision: 0, ...stamps, state: 0 };
}

export class FakeOperations implements OperationsPort {
  readonly requests: DataRequest[] = [];
  readonly contexts: RequestContext[] = [];
  readonly admin: unknown[] = [];
  /** The next answers of `execute`; without one a blank answer of type 0 is given. */
  readonly answers: DataAnswer[] = [];
  /** Answers wait for `release`. */
  held: (() => void)[] | null = null;

  healthAnswer: HealthAnswer = {
    ready: true,
    initialized: true,
    reason: null,
    localRole: "voter",
    hostedPartitions: 17,
    partitionsWithoutLeader: 0,
    version: "0.1.0",
    uptimeMs: 1234.5,
  };
  checks: readonly HealthCheck[] = [
    { name: "initialized", failure: null },
    { name: "membership", failure: null },
  ];
  fault: string | null = null;
  leaveAnswer: LeaveAnswer = {
    left: true,
    drained: false,
    outcome: "Committed",
    membershipVersion: 3,
    retryable: false,
    reason: "removal committed",
  };
  factorAnswer: ReplicationFactorAnswer = {
    success: true,
    status: "Success",
    generation: 4,
    reason: "",
  };
  registerAnswer: RegisterRangeAnswer = {
    success: true,
    status: "Seeded",
    seeded: true,
    routingMode: "KeyRange",
    descriptorCount: 1,
    reason: "",
  };
  splitAnswer: SplitRangeAnswer = {
    success: true,
    status: "Succeeded",
    determinate: true,
    newPartitionId: 18,
    newGeneration: 2,
    leaderHint: "",
    reason: "",
  };
  mergeAnswer: MergeRangesAnswer = {
    success: true,
    status: "Completed",
    determinate: true,
    merges: 2,
    leaderHint: "",
    reason: "",
  };
  backupAnswer: BackupRefusal = { outcome: "NotConfigured", message: "no directory" };

  private later(answer: () => void): void {
    if (this.held === null) setImmediate(answer);
    else this.held.push(answer);
  }

  release(): void {
    const waiting = this.held ?? [];
    this.held = null;
    for (const answer of waiting) answer();
  }

  execute<R extends DataRequest>(
    request: R,
    context: RequestContext,
    done: (answer: AnswerOf<R>) => void,
  ): void {
    this.requests.push(request);
    this.contexts.push(context);
    const answer = this.answers.shift() ?? blankAnswer(request.kind, 0);
    this.later(() => done(answer as AnswerOf<R>));
  }

  invalidInput(kind: DataRequestKind): DataAnswer {
    return blankAnswer(kind, INVALID_INPUT[familyOf(kind)]);
  }

  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer {
    return { ...blankAnswer(kind, MUST_RETRY[familyOf(kind)]), refusal };
  }

  health(): HealthAnswer {
    return this.healthAnswer;
  }

  healthChecks(): readonly HealthCheck[] {
    return this.checks;
  }

  isStopping(): boolean {
    return false;
  }

  fatalFault(): string | null {
    return this.fault;
  }

  readonly administration = administrationOf(this);

  membership(): MembershipAnswer {
    const member = { endpoint: "127.0.0.1:8084", nodeId: 1, joinedVersion: 1 } as const;
    return {
      membershipVersion: 1,
      members: [{ ...member, role: "voter" }],
      localRole: "voter",
      initialized: true,
    };
  }

  placement(): PlacementAnswer {
    return {
      replicationFactor: 0,
      rebalancerEnabled: false,
      initialized: true,
      localEndpoint: "127.0.0.1:8084",
      hostedPartitionCount: 2,
      partitions: [
        {
          partitionId: 1,
          state: "Active",
          generation: 1,
          effectiveReplicationFactor: 0,
          hostedLocally: true,
          replicas: [{ endpoint: "127.0.0.1:8084", role: "Voter" }],
        },
      ],
    };
  }

  routing(keySpace: string): RoutingAnswer {
    this.admin.push({ routing: keySpace });
    const range = { startKey: null, endKey: "m", partitionId: 3, generation: 1 };
    return {
      initialized: true,
      schemaVersion: 1,
      hashAlgorithm: "svc.bucket-jump-xxh32-v1",
      prefixSeparator: "/",
      groupSeparator: "|",
      hashPoolSize: 16,
      hashPartitionOffset: 1,
      sequenceStorageKeyFormat: "__svc:sequences:{0}",
      reservedKeyPrefix: "__svc:",
      localEndpoint: "http://127.0.0.1:8083",
      snapshotVersion: 7,
      coherent: true,
      keySpaces: [{ keySpace: "orders", routingMode: "KeyRange", ranges: [range] }],
      leaders: [{ partitionId: 1, endpoint: "http://127.0.0.1:8083" }],
    };
  }

  ranges(keySpace: string): RangesAnswer {
    this.admin.push({ ranges: keySpace });
    const range = { startKey: "", endKey: null, partitionId: 3, generation: 1 };
    return {
      initialized: true,
      localEndpoint: "http://127.0.0.1:8083",
      keySpaces: [{ keySpace: "orders", routingMode: "KeyRange", descriptors: [range] }],
    };
  }

  leave(
    request: { readonly nodeId: number },
    _: RequestContext,
    done: (answer: LeaveAnswer) => void,
  ): void {
    this.admin.push(request);
    this.later(() => done(this.leaveAnswer));
  }

  setReplicationFactor(
    request: { readonly partitionId: number; readonly replicationFactor: number },
    _: RequestContext,
    done: (answer: ReplicationFactorAnswer) => void,
  ): void {
    this.admin.push(request);
    this.later(() => done(this.factorAnswer));
  }

  registerRange(
    keySpace: string,
    _: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void {
    this.admin.push({ register: keySpace });
    this.later(() => done(this.registerAnswer));
  }

  unregisterRange(
    keySpace: string,
    _: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void {
    this.admin.push({ unregister: keySpace });
    this.later(() => done(this.registerAnswer));
  }

  splitRange(
    request: { readonly keySpace: string; readonly splitKey: string },
    _: RequestContext,
    done: (answer: SplitRangeAnswer) => void,
  ): void {
    this.admin.push(request);
    this.later(() => done(this.splitAnswer));
  }

  mergeRanges(_: RequestContext, done: (answer: MergeRangesAnswer) => void): void {
    this.later(() => done(this.mergeAnswer));
  }

  backup(request: BackupRequest, _: RequestContext, done: (answer: BackupRefusal) => void): void {
    this.admin.push(request);
    this.later(() => done(this.backupAnswer));
  }
}
