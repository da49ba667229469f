/**
 * A false OperationsPort for the tests of the gRPC front end: records what comes down, answers what
 * a test scripts.
 *
 * Owns the record of requests. Invariants: 1. As the port demands, no answer comes in the turn of
 * its call and each comes once. 2. Without a script an answer has the type "success" of its kind
 * and made-up, recognisable contents.
 */
import { NO_STAMP } from "../../../src/base/hlc.js";
import { Int64 } from "../../../src/base/int64.js";
import type {
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

export interface Recorded {
  readonly request: DataRequest;
  readonly context: RequestContext;
  readonly done: (answer: DataAnswer) => void;
}

type Family = "lock" | "sequence" | "allocation" | "kv" | "kv-many" | "kv-page";

function familyOf(kind: DataRequestKind): Family {
  if (kind === "next-sequence" || kind === "reserve-sequence") return "allocation";
  if (kind.endsWith("-sequence")) return "sequence";
  if (kind.endsWith("-many")) return "kv-many";
  if (kind === "kv-bucket" || kind.startsWith("kv-scan") || kind === "kv-range") return "kv-page";
  return kind.startsWith("kv-") ? "kv" : "lock";
}

const MUST_RETRY = { sequence: 5, allocation: 5 } as Readonly<Partial<Record<Family, number>>>;
const INVALID = { sequence: 3, allocation: 3 } as Readonly<Partial<Record<Family, number>>>;

/** An answer of the family of `kind` that describes nothing. */
export function bareAnswer(
  kind: DataRequestKind,
  type: number,
  refusal: Refusal | null = null,
): DataAnswer {
  const base = { type, servedFrom: null, route: null, refusal };
  const family = familyOf(kind);
  switch (family) {
    case "lock":
      return {
        ...base,
        kind: family,
        fencingToken: Int64.ZERO,
        owner: null,
        expires: NO_STAMP,
        expiresInMs: 0,
      };
    case "sequence":
      return { ...base, kind: family, sequence: null, revision: -1 };
    case "allocation":
      return { ...base, kind: family, allocation: null };
    case "kv":
      return {
        ...base,
        kind: family,
        value: null,
        revision: 0,
        expires: NO_STAMP,
        lastModified: NO_STAMP,
        state: 0,
      };
    case "kv-many":
      return { ...base, kind: family, items: [], routes: [] };
    case "kv-page":
      return {
        ...base,
        kind: family,
        items: [],
        nextCursor: null,
        hasMore: false,
        tooLarge: false,
      };
  }
}

export const READY: HealthAnswer = {
  ready: true,
  initialized: true,
  reason: null,
  localRole: "voter",
  hostedPartitions: 3,
  partitionsWithoutLeader: 0,
  version: "0.1.0",
  uptimeMs: 5,
};

export class FakeOperations implements OperationsPort {
  readonly recorded: Recorded[] = [];
  readonly admin: unknown[] = [];
  /**
   * Decides the answer of a request; null keeps it open until the test calls `done` of the record.
   */
  script: (request: DataRequest, context: RequestContext) => DataAnswer | null = (request) =>
    bareAnswer(request.kind, 0);
  /** When false, requests are not recorded (load tests). */
  recording = true;
  healthNow: HealthAnswer = READY;
  shutdownFailure: string | null = null;
  refusal: BackupRefusal = { outcome: "NotConfigured", message: "backups are not configured" };
  leaveAnswer: LeaveAnswer = {
    left: false,
    drained: false,
    outcome: "NotInitialized",
    membershipVersion: 4,
    retryable: true,
    reason: "later",
  };
  private round: (() => void)[] = [];

  execute(request: DataRequest, context: RequestContext, done: (answer: never) => void): void {
    const give = done as (answer: DataAnswer) => void;
    if (this.recording) this.recorded.push({ request, context, done: give });
    const answer = this.script(request, context);
    if (answer !== null) this.later(() => give(answer));
  }

  /** All that was asked for in one turn is answered in one later turn. */
  later(action: () => void): void {
    this.round.push(action);
    if (this.round.length > 1) return;
    setImmediate(() => {
      const actions = this.round;
      this.round = [];
      for (const one of actions) one();
    });
  }

  invalidInput(kind: DataRequestKind): DataAnswer {
    return bareAnswer(kind, INVALID[familyOf(kind)] ?? 100);
  }

  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer {
    return bareAnswer(kind, MUST_RETRY[familyOf(kind)] ?? 101, refusal);
  }

  health(): HealthAnswer {
    return this.healthNow;
  }

  healthChecks(): readonly HealthCheck[] {
    return [{ name: "shutdown", failure: this.shutdownFailure }];
  }

  isStopping(): boolean {
    return this.shutdownFailure !== null;
  }

  fatalFault(): null {
    return null;
  }

  readonly administration = administrationOf(this);

  membership(): MembershipAnswer {
    return {
      membershipVersion: 7,
      members: [
        { endpoint: "a:1", nodeId: 1, role: "voter", joinedVersion: 1 },
        { endpoint: "b:2", nodeId: 2, role: "learner", joinedVersion: 6 },
        { endpoint: "c:3", nodeId: 3, role: "leaving", joinedVersion: 2 },
      ],
      localRole: "voter",
      initialized: true,
    };
  }

  placement(): PlacementAnswer {
    return {
      replicationFactor: 3,
      rebalancerEnabled: true,
      initialized: true,
      localEndpoint: "a:1",
      hostedPartitionCount: 2,
      partitions: [
        {
          partitionId: 1,
          state: "Active",
          generation: 9,
          effectiveReplicationFactor: 3,
          hostedLocally: true,
          replicas: [
            { endpoint: "a:1", role: "Voter" },
            { endpoint: "b:2", role: "Learner" },
            { endpoint: "c:3", role: "Removing" },
          ],
        },
      ],
    };
  }

  routing(keySpace: string): RoutingAnswer {
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
      localEndpoint: "http://a",
      snapshotVersion: 12,
      coherent: true,
      keySpaces: this.ranges(keySpace).keySpaces.map(({ descriptors, ...space }) => ({
        ...space,
        ranges: descriptors,
      })),
      leaders: [{ partitionId: 1, endpoint: "http://a" }],
    };
  }

  ranges(keySpace: string): RangesAnswer {
    return {
      initialized: true,
      localEndpoint: "http://a",
      keySpaces: [
        {
          keySpace: keySpace === "" ? "all" : keySpace,
          routingMode: "KeyRange",
          descriptors: [
            { startKey: null, endKey: "m", partitionId: 1, generation: 1 },
            { startKey: "m", endKey: "", partitionId: 2, generation: 2 },
          ],
        },
      ],
    };
  }

  leave(
    { nodeId }: { readonly nodeId: number },
    context: RequestContext,
    done: (answer: LeaveAnswer) => void,
  ): void {
    this.admin.push(["leave", nodeId, context.forwardHops]);
    this.later(() => done(this.leaveAnswer));
  }

  setReplicationFactor(
    request: { readonly partitionId: number; readonly replicationFactor: number },
    _context: RequestContext,
    done: (answer: ReplicationFactorAnswer) => void,
  ): void {
    this.admin.push(["factor", request]);
    const answer = { success: false, status: "Refused", generation: 5, reason: "no" } as const;
    this.later(() => done(answer));
  }

  private register(name: string, keySpace: string, done: (answer: RegisterRangeAnswer) => void) {
    this.admin.push([name, keySpace]);
    const answer: RegisterRangeAnswer = {
      success: true,
      status: "Registered",
      seeded: true,
      routingMode: "KeyRange",
      descriptorCount: 3,
      reason: "because",
    };
    this.later(() => done(answer));
  }

  registerRange(
    keySpace: string,
    _context: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void {
    this.register("register", keySpace, done);
  }

  unregisterRange(
    keySpace: string,
    _context: RequestContext,
    done: (answer: RegisterRangeAnswer) => void,
  ): void {
    this.register("unregister", keySpace, done);
  }

  splitRange(
    request: { readonly keySpace: string; readonly splitKey: string },
    _context: RequestContext,
    done: (answer: SplitRangeAnswer) => void,
  ): void {
    this.admin.push(["split", request]);
    const answer = {
      success: true,
      status: "Split",
      determinate: true,
      newPartitionId: 17,
      newGeneration: 3,
      leaderHint: "http://a",
      reason: "",
    };
    this.later(() => done(answer));
  }

  mergeRanges(_context: RequestContext, done: (answer: MergeRangesAnswer) => void): void {
    const answer = {
      success: false,
      status: "Refused",
      determinate: false,
      merges: 2,
      leaderHint: "h",
      reason: "r",
    };
    this.later(() => done(answer));
  }

  backup(
    request: BackupRequest,
    _context: RequestContext,
    done: (answer: BackupRefusal) => void,
  ): void {
    this.admin.push(request);
    this.later(() => done(this.refusal));
  }
}
