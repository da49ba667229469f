/** The answers of the REST API that the console reads, as far as it reads them. Types only. */
import type { Wide } from "./exact-json.js";

export interface OverviewNode {
  readonly nodeId: number;
  readonly endpoint: string;
  readonly clientEndpoint: string;
  readonly role: string;
  readonly ready: boolean;
  readonly reason: string;
  readonly version: string;
  readonly levelMin: number;
  readonly levelMax: number;
  readonly uptimeMs: number;
  readonly ageMs: number | null;
  readonly hostedPartitions: number;
  readonly leadingPartitions: number;
  readonly requestsPerSecond: number;
  readonly failedPerSecond: number;
}

export interface Overview {
  readonly initialized: boolean;
  readonly membershipVersion: Wide;
  readonly level: number;
  readonly localNodeId: number;
  readonly metaLeaderNodeId: number;
  readonly partitions: number;
  readonly partitionsWithoutLeader: number;
  readonly partitionsUnderReplicated: number;
  readonly nodes: readonly OverviewNode[];
  readonly alarms: readonly string[];
}

export interface PlacedPartition {
  readonly partitionId: number;
  readonly state: string;
  readonly generation: Wide;
  readonly effectiveReplicationFactor: number;
  readonly hostedLocally: boolean;
  readonly replicas: readonly { readonly endpoint: string; readonly role: string }[];
}

export interface Placement {
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly initialized: boolean;
  readonly partitions: readonly PlacedPartition[];
}

export interface Routing {
  readonly leaders: readonly { readonly partitionId: number; readonly endpoint: string }[];
}

export interface Ranges {
  readonly keySpaces: readonly {
    readonly keySpace: string;
    readonly routingMode: string;
    readonly descriptors: readonly {
      readonly startKey: string | null;
      readonly endKey: string | null;
      readonly partitionId: number;
      readonly generation: Wide;
    }[];
  }[];
}

export interface Stamp {
  readonly n: number;
  readonly l: Wide;
  readonly c: number;
}

export interface LockInfo {
  readonly type: number;
  readonly owner: string | null;
  readonly fencingToken: Wide;
  readonly expires: Stamp;
  readonly expiresInMs: Wide;
  readonly note: string | null;
  readonly waiters: number;
}

export interface LockItem {
  readonly resource: string;
  readonly owner: string | null;
  readonly fencingToken: Wide;
  readonly held: boolean;
  readonly expires: Stamp;
  readonly expiresInMs: Wide;
  readonly waiters: number;
  readonly note: string | null;
}

/** A page of a list. */
export interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

export interface LockPage extends ListPage<LockItem> {
  readonly type: number;
}

export interface SequenceAnswer {
  readonly type: string;
  readonly sequence: null | {
    readonly name: string;
    readonly currentValue: Wide;
    readonly initialValue: Wide;
    readonly increment: Wide;
    readonly maxValue: Wide | null;
    readonly blockSize: number | null;
    readonly revision: Wide;
    readonly createdAt: Stamp;
    readonly updatedAt: Stamp;
  };
}

export interface KeyItem {
  readonly key: string;
  readonly value: string | null;
  readonly revision: Wide;
  readonly expires: Stamp;
  readonly lastModified: Stamp;
}

export interface KeyPage extends ListPage<KeyItem> {
  readonly type: number;
}

export interface Backup {
  readonly backupId: string;
  readonly type: string;
  readonly createdAtUtc: string;
  readonly parentBackupId: string | null;
  readonly partitionCount: number;
  readonly actualKind: string | null;
  readonly isInvalid: boolean;
  readonly isIncomplete: boolean;
  readonly invalidReason: string | null;
}

export interface Collection {
  readonly applied: boolean;
  readonly bytesReclaimed: Wide;
  readonly retentionDeletions: readonly {
    readonly backupId: string;
    readonly bytes: Wide;
    readonly reason: string;
  }[];
  readonly orphanReclamations: readonly { readonly name: string; readonly reason: string }[];
}

export interface RunningBackup {
  readonly kind: string;
  readonly phase: string;
  readonly elapsedMs: number;
  readonly partitionsDone: number;
  readonly partitionsTotal: number;
}

export interface Finalized {
  readonly status: string;
  readonly level: number;
  readonly reason: string | null;
}
