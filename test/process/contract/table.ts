/**
 * Messages, enums, rpcs and paths as the interface contract states them, in its own notation.
 *
 * `F=3:int64` is field F number 3; `opt` optional, `rep` repeated, `of-payload` member of that
 * oneof. TX, RT, EX, LU, LM are three flat fields, OP the coordinator's three.
 */

const ROUTED = "ServedFrom=1:opt string; Type=2:";
const MANY_ITEM =
  "ServedFrom=1:opt string; Type=2:T; Key=3:string; Revision=4:int64; LM=5,6,7; Durability=8:D; " +
  "RouteIndex=9:int32";
const KV_WRITE =
  "ServedFrom=1:opt string; Type=2:T; Revision=3:int64; LM=4,5,6; TimeElapsedMs=7:int32; " +
  "Route=8:opt Hint";
const KV_READ = "TX=1,2,3; Key=4:string; Revision=5:int64; Durability=6:D; RT=7,8,9; OP=10,11,12";
const PAGE = "Type=1:T; Items=2:rep Item; NextCursor=3:opt string; HasMore=4:bool";
const SERVED_PAGE =
  "ServedFrom=1:opt string; Type=2:T; Items=3:rep Item; NextCursor=4:opt string; HasMore=5:bool";
const POLICY = "GrpcTransactionConflictPolicy";
const LOCK_TOKEN = ROUTED + "GrpcLockResponseType; FencingToken=3:int64; Route=4:opt GrpcRouteHint";
const RANGE = "StartKey=1:opt string; EndKey=2:opt string; PartitionId=3:int32; Generation=4:int64";

function kvItems(direction: string): string {
  const fields = [
    "TrySetKeyValue=3:GrpcTrySetKeyValue",
    "TrySetManyKeyValue=4:GrpcTrySetManyKeyValue",
    "TryGetKeyValue=5:GrpcTryGetKeyValue",
    "TryDeleteKeyValue=6:GrpcTryDeleteKeyValue",
    "TryExtendKeyValue=7:GrpcTryExtendKeyValue",
    "TryExistsKeyValue=8:GrpcTryExistsKeyValue",
    "GetByBucket=11:GrpcGetByBucket",
    "ScanByPrefix=12:GrpcScanAllByPrefix",
    "TryDeleteManyKeyValue=16:GrpcTryDeleteManyKeyValue",
  ].map((field) => field.replace(":", ":of-payload ") + direction);
  fields.push(`Frame=17:of-payload GrpcBatchClientKeyValue${direction}Frame`);
  return `Type=1:GrpcClientBatchType; RequestId=2:int32; ${fields.join("; ")}`;
}

function lockItems(direction: string): string {
  return (
    `RequestId=2:int32; TryLock=3:of-payload GrpcTryLock${direction}; ` +
    `Unlock=4:of-payload GrpcUnlock${direction}; ` +
    `ExtendLock=5:of-payload GrpcExtendLock${direction}; ` +
    `GetLock=6:of-payload GrpcGetLock${direction}; ` +
    `CancelWait=8:of-payload GrpcCancelWait${direction}`
  );
}

export const CONTRACT_MESSAGES: Readonly<Record<string, string>> = {
  GrpcCreateSequenceRequest: `Name=1:string; InitialValue=2:int64; Increment=3:int64;
    MaxValue=4:opt int64; Durability=5:GrpcSequenceDurability; BlockSize=6:opt int32`,
  GrpcUpdateSequenceRequest: `Name=1:string; CurrentValue=2:opt int64; Increment=3:opt int64;
    InitialValue=4:opt int64; MaxValue=5:opt int64; RemoveMaxValue=6:bool; BlockSize=7:opt int32;
    RemoveBlockSize=8:bool; Durability=9:GrpcSequenceDurability`,
  GrpcGetSequenceRequest: "Name=1:string; Durability=2:GrpcSequenceDurability",
  GrpcDeleteSequenceRequest: "Name=1:string; Durability=2:GrpcSequenceDurability",
  GrpcNextSequenceRequest:
    "Name=1:string; IdempotencyKey=2:opt string; Durability=3:GrpcSequenceDurability",
  GrpcReserveSequenceRangeRequest: `Name=1:string; Count=2:int32; IdempotencyKey=3:opt string;
    Durability=4:GrpcSequenceDurability`,
  GrpcSequenceEntry: `Name=1:string; CurrentValue=2:int64; InitialValue=3:int64;
    Increment=4:int64; MaxValue=5:opt int64; Revision=6:int64;
    Durability=7:GrpcSequenceDurability; CreatedAtNode=8:int32; CreatedAtPhysical=9:int64;
    CreatedAtCounter=10:uint32; UpdatedAtNode=11:int32; UpdatedAtPhysical=12:int64;
    UpdatedAtCounter=13:uint32; BlockSize=14:opt int32; Incarnation=15:int64`,
  GrpcSequenceAllocation:
    "Name=1:string; Start=2:int64; End=3:int64; Count=4:int32; Revision=5:int64",
  GrpcSequenceResponse: `${ROUTED}GrpcSequenceResponseType; Sequence=3:GrpcSequenceEntry;
    Revision=4:int64; TimeElapsedMs=5:int32; Route=6:opt GrpcRouteHint`,
  GrpcSequenceAllocationResponse: `${ROUTED}GrpcSequenceResponseType;
    Allocation=3:GrpcSequenceAllocation; TimeElapsedMs=4:int32; Route=5:opt GrpcRouteHint`,
  GrpcBatchClientSequenceRequest: `Type=1:GrpcSequenceClientBatchType; RequestId=2:int32;
    CreateSequence=3:of-payload GrpcCreateSequenceRequest;
    UpdateSequence=4:of-payload GrpcUpdateSequenceRequest;
    GetSequence=5:of-payload GrpcGetSequenceRequest;
    NextSequenceValue=6:of-payload GrpcNextSequenceRequest;
    ReserveSequenceRange=7:of-payload GrpcReserveSequenceRangeRequest;
    DeleteSequence=8:of-payload GrpcDeleteSequenceRequest;
    Frame=17:of-payload GrpcBatchClientSequenceRequestFrame`,
  GrpcBatchClientSequenceResponse: `Type=1:GrpcSequenceClientBatchType; RequestId=2:int32;
    Sequence=3:of-payload GrpcSequenceResponse;
    Allocation=4:of-payload GrpcSequenceAllocationResponse;
    Frame=17:of-payload GrpcBatchClientSequenceResponseFrame`,
  GrpcBatchClientSequenceRequestFrame: "Items=1:rep GrpcBatchClientSequenceRequest",
  GrpcBatchClientSequenceResponseFrame: "Items=1:rep GrpcBatchClientSequenceResponse",

  GrpcWatchRequest: `Create=1:of-request GrpcWatchCreate; Cancel=2:of-request GrpcWatchCancel;
    Sync=3:of-request GrpcWatchSync`,
  GrpcWatchCreate: `WatchId=1:int32; Kind=2:GrpcWatchKind; Name=3:string; Cursor=4:opt string;
    FromRevision=5:opt int64; Initial=6:bool; NoValues=7:bool; Only=8:int32; ProgressMs=9:int32`,
  GrpcWatchCancel: "WatchId=1:int32",
  GrpcWatchSync: "SyncId=1:int32; WatchId=2:int32",
  GrpcWatchResponse: `Type=1:GrpcWatchResponseType; WatchIds=2:rep int32;
    Events=3:rep GrpcWatchEvent; Cursor=4:opt string; Initial=5:bool; Merged=6:bool; Reset=7:bool;
    More=8:bool; SyncId=9:int32; StaleMs=10:int32; End=11:GrpcWatchEnd; Route=12:opt GrpcRouteHint`,
  GrpcWatchEvent: `Type=1:GrpcWatchEventType; Name=2:string; Value=3:opt bytes; Revision=4:int64;
    StampNode=5:int32; StampPhysical=6:int64; StampCounter=7:uint32; FencingToken=8:int64;
    Owner=9:opt bytes; Note=10:opt bytes; Sequence=11:opt GrpcSequenceEntry; Forced=12:bool`,

  GrpcTryLockRequest: `Resource=1:string; Owner=2:bytes; ExpiresMs=3:int32;
    Durability=4:GrpcLockDurability; WaitMs=5:int32; WaitId=6:uint64; Note=7:opt bytes;
    Try=8:uint64`,
  GrpcTryLockResponse: `${LOCK_TOKEN}; LeaseLeftMs=5:opt int64; WaitedMs=6:opt int64;
    Position=7:int32; Waiters=8:int32`,
  GrpcExtendLockResponse: `${LOCK_TOKEN}; LeaseLeftMs=5:opt int64; Waiters=6:int32`,
  GrpcExtendLockRequest: `Resource=1:string; Owner=2:opt bytes; ExpiresMs=3:int32;
    Durability=4:GrpcLockDurability; FencingToken=5:opt int64; Note=6:opt bytes`,
  GrpcUnlockRequest: `Resource=1:string; Owner=2:opt bytes; Durability=3:GrpcLockDurability;
    FencingToken=4:opt int64`,
  GrpcUnlockResponse: `${ROUTED}GrpcLockResponseType; Route=3:opt GrpcRouteHint;
    FencingToken=4:opt int64`,
  GrpcGetLockRequest: "Resource=1:string; durability=2:GrpcLockDurability; Owner=3:opt bytes",
  GrpcGetLockResponse: `${ROUTED}GrpcLockResponseType; Owner=3:opt bytes; EX=4,5,6;
    FencingToken=7:int64; Route=8:opt GrpcRouteHint; Note=9:opt bytes; Waiters=10:int32;
    Position=11:int32; ExpiresInMs=12:opt int64`,
  GrpcListLocksRequest: `Prefix=1:string; Durability=2:GrpcLockDurability; HeldOnly=3:bool;
    Limit=4:int32; Cursor=5:opt string`,
  GrpcListLocksResponse: `Type=1:GrpcLockResponseType; Items=2:rep GrpcLockItem;
    NextCursor=3:opt string; HasMore=4:bool`,
  GrpcLockItem: `Resource=1:string; Owner=2:opt bytes; FencingToken=3:int64; Held=4:bool;
    EX=5,6,7; ExpiresInMs=8:int64; Waiters=9:int32; Note=10:opt bytes`,
  GrpcForceUnlockRequest: `Resource=1:string; Durability=2:GrpcLockDurability;
    FencingToken=3:int64; Reason=4:string; DropWaiters=5:bool`,
  GrpcForceUnlockResponse: `${ROUTED}GrpcLockResponseType; FencingToken=3:int64;
    Owner=4:opt bytes; AuditId=5:int64; Route=6:opt GrpcRouteHint`,
  GrpcListLockAuditRequest: "Prefix=1:string; Limit=2:int32; Cursor=3:opt string",
  GrpcListLockAuditResponse: `Items=1:rep GrpcLockAuditItem; NextCursor=2:opt string;
    HasMore=3:bool; Type=4:GrpcLockResponseType`,
  GrpcLockAuditItem: `AuditId=1:int64; PartitionId=2:int32; Resource=3:string;
    Durability=4:GrpcLockDurability; Owner=5:opt bytes; FencingToken=6:int64; StampNode=7:int32;
    StampPhysical=8:int64; StampCounter=9:uint32; Actor=10:string; Reason=11:string;
    RequestId=12:string; NodeId=13:int32; WaitersDropped=14:int32`,
  GrpcCancelWaitRequest: "RequestId=1:int32",
  GrpcCancelWaitResponse: "Cancelled=1:bool",
  GrpcBatchClientLockRequest: `Type=1:GrpcLockClientBatchType; ${lockItems("Request")};
    Frame=17:of-payload GrpcBatchClientLockRequestFrame`,
  GrpcBatchClientLockResponse: `Type=1:GrpcLockClientBatchType; ${lockItems("Response")};
    Frame=17:of-payload GrpcBatchClientLockResponseFrame`,
  GrpcBatchClientLockRequestFrame: "Items=1:rep GrpcBatchClientLockRequest",
  GrpcBatchClientLockResponseFrame: "Items=1:rep GrpcBatchClientLockResponse",
  GrpcBatchServerLockRequest: `Type=1:GrpcLockServerBatchType; ${lockItems("Request")};
    ForwardHops=7:int32`,
  GrpcBatchServerLockResponse: `Type=1:GrpcLockServerBatchType; ${lockItems("Response")}`,

  GrpcTrySetKeyValueRequest: `TX=1,2,3; Key=4:string; Value=5:opt bytes; CompareValue=6:opt bytes;
    CompareRevision=7:int64; Flags=8:GrpcKeyValueFlags; ExpiresMs=9:int32; Durability=10:D;
    RoutedGeneration=11:int64; OP=12,13,14; ConflictPolicy=15:${POLICY}`,
  GrpcTrySetKeyValueResponse: KV_WRITE,
  GrpcTryExtendKeyValueResponse: KV_WRITE,
  GrpcTryDeleteKeyValueResponse: KV_WRITE,
  GrpcTryExtendKeyValueRequest: `TX=1,2,3; Key=4:string; ExpiresMs=5:int32; Durability=6:D;
    OP=7,8,9; ConflictPolicy=10:${POLICY}`,
  GrpcTryDeleteKeyValueRequest: `TX=1,2,3; Key=4:string; Durability=5:D; OP=6,7,8;
    ConflictPolicy=9:${POLICY}`,
  GrpcTryGetKeyValueRequest: KV_READ,
  GrpcTryExistsKeyValueRequest: KV_READ,
  GrpcTryGetKeyValueResponse: `${ROUTED}T; Value=3:opt bytes; Revision=4:int64; EX=5,6,7;
    LU=8,9,10; LM=11,12,13; State=14:GrpcKeyValueState; TimeElapsedMs=15:int32; Route=16:opt Hint`,
  GrpcTryExistsKeyValueResponse: `${ROUTED}T; Revision=3:int64; EX=4,5,6; LU=7,8,9; LM=10,11,12;
    State=13:GrpcKeyValueState; TimeElapsedMs=14:int32; Route=15:opt Hint`,
  GrpcTrySetManyKeyValueRequest: "Items=1:rep GrpcTrySetManyKeyValueRequestItem",
  GrpcTrySetManyKeyValueRequestItem: `TX=1,2,3; Key=4:string; Value=5:opt bytes;
    CompareValue=6:opt bytes; CompareRevision=7:int64; Flags=8:GrpcKeyValueFlags;
    ExpiresMs=9:int32; Durability=10:D; RoutedGeneration=11:int64; ConflictPolicy=12:${POLICY}`,
  GrpcTrySetManyKeyValueResponse: `Items=1:rep GrpcTrySetManyKeyValueResponseItem;
    Routes=3:rep Hint; TimeElapsedMs=7:int32`,
  GrpcTrySetManyKeyValueResponseItem: MANY_ITEM,
  GrpcTryDeleteManyKeyValueRequest: `Items=1:rep GrpcTryDeleteManyKeyValueRequestItem;
    CoordinatorKey=2:opt string; OperationIdHigh=3:opt uint64; OperationIdLow=4:opt uint64`,
  GrpcTryDeleteManyKeyValueRequestItem: `TX=1,2,3; Key=4:string; Durability=5:D;
    ConflictPolicy=6:${POLICY}`,
  GrpcTryDeleteManyKeyValueResponse: `Items=1:rep GrpcTryDeleteManyKeyValueResponseItem;
    Routes=3:rep Hint; TimeElapsedMs=7:int32`,
  GrpcTryDeleteManyKeyValueResponseItem: MANY_ITEM,
  GrpcTryGetManyValuesRequest: "TX=1,2,3; Items=4:rep GrpcTryManyValuesRequestItem; RT=5,6,7",
  GrpcTryExistsManyValuesRequest: "TX=1,2,3; Items=4:rep GrpcTryManyValuesRequestItem; RT=5,6,7",
  GrpcTryManyValuesRequestItem: "Key=1:string; Revision=2:int64; Durability=3:D",
  GrpcTryGetManyValuesResponse: `ServedFrom=1:opt string;
    Items=2:rep GrpcTryGetManyValuesResponseItem; Routes=3:rep Hint`,
  GrpcTryGetManyValuesResponseItem: `Type=1:T; Key=2:string; Durability=3:D; Value=4:opt bytes;
    Revision=5:int64; EX=6,7,8; LU=9,10,11; LM=12,13,14; State=15:GrpcKeyValueState;
    RouteIndex=16:int32`,
  GrpcTryExistsManyValuesResponse: `ServedFrom=1:opt string;
    Items=2:rep GrpcTryExistsManyValuesResponseItem; Routes=3:rep Hint`,
  GrpcTryExistsManyValuesResponseItem: `Type=1:T; Key=2:string; Durability=3:D; Revision=4:int64;
    EX=5,6,7; LU=8,9,10; LM=11,12,13; State=14:GrpcKeyValueState; RouteIndex=15:int32`,
  GrpcGetByBucketRequest: "TX=1,2,3; PrefixKey=4:string; Durability=5:D; RT=6,7,8; OP=9,10,11",
  GrpcGetByBucketResponse: "ServedFrom=1:opt string; Type=2:T; Items=3:rep Item",
  GrpcScanAllByPrefixRequest: `PrefixKey=1:string; Durability=2:D; RT=3,4,5; Limit=6:int32;
    Cursor=7:opt string`,
  GrpcScanAllByPrefixResponse: PAGE,
  GrpcGetByRangePageResponse: PAGE,
  GrpcScanByPrefixRequest: `PrefixKey=1:string; Durability=2:D; RT=3,4,5;
    IncludeTombstones=6:bool; Limit=7:int32; Cursor=8:opt string`,
  GrpcScanByPrefixResponse: SERVED_PAGE,
  GrpcGetByRangeResponse: SERVED_PAGE,
  GrpcGetByRangeRequest: `TX=1,2,3; Prefix=4:string; StartKey=5:opt string; StartInclusive=6:bool;
    EndKey=7:opt string; EndInclusive=8:bool; Limit=9:int32; RT=10,11,12; Durability=13:D;
    OP=14,15,16; SnapshotAtLeader=17:bool`,
  GrpcKeyValueByPrefixItemResponse: `Key=1:string; Value=2:opt bytes; Revision=3:int64; EX=4,5,6;
    LU=7,8,9; LM=10,11,12; State=13:GrpcKeyValueState`,
  GrpcRegisterKeyRangeRequest: "KeySpace=1:string",
  GrpcRemoveKeyRangeRequest: "KeySpace=1:string",
  GrpcRegisterKeyRangeResponse: `Success=1:bool; Status=2:string; Seeded=3:bool;
    RoutingMode=4:string; DescriptorCount=5:int32; Reason=6:string`,
  GrpcRemoveKeyRangeResponse: `Success=1:bool; Status=2:string; RoutingMode=3:string;
    DescriptorCount=4:int32; Reason=5:string`,
  GrpcBatchClientKeyValueRequest: kvItems("Request"),
  GrpcBatchClientKeyValueResponse: kvItems("Response"),
  GrpcBatchClientKeyValueRequestFrame: "Items=1:rep GrpcBatchClientKeyValueRequest",
  GrpcBatchClientKeyValueResponseFrame: "Items=1:rep GrpcBatchClientKeyValueResponse",

  GrpcGetMembershipRequest: "",
  GrpcClusterLeaveRequest: "NodeId=1:int32",
  GrpcGetPlacementRequest: "",
  GrpcMergeRangesRequest: "",
  GrpcGetMembershipResponse: `MembershipVersion=1:int64; Members=2:rep GrpcClusterMember;
    LocalRole=3:GrpcClusterMemberRole; Initialized=4:bool`,
  GrpcClusterMember: `Endpoint=1:string; NodeId=2:int32; Role=3:GrpcClusterMemberRole;
    JoinedVersion=4:int64`,
  GrpcClusterLeaveResponse: `Left=1:bool; Outcome=2:GrpcLeaveClusterOutcome;
    MembershipVersion=3:int64; Retryable=4:bool; Reason=5:string; Drained=6:bool`,
  GrpcGetPlacementResponse: `ReplicationFactor=1:int32; RebalancerEnabled=2:bool;
    Initialized=3:bool; LocalEndpoint=4:string; HostedPartitionCount=5:int32;
    Partitions=6:rep GrpcPartitionPlacement`,
  GrpcPartitionPlacement: `PartitionId=1:int32; State=2:string; Generation=3:int64;
    EffectiveReplicationFactor=4:int32; HostedLocally=5:bool; Replicas=6:rep GrpcPartitionReplica`,
  GrpcPartitionReplica: "Endpoint=1:string; Role=2:GrpcPartitionReplicaRole",
  GrpcGetOverviewRequest: "",
  GrpcGetNodeDebugRequest: "ProfileSeconds=1:int32",
  GrpcNodeDebugChunk: "Data=1:bytes",
  GrpcGetOverviewResponse: `Initialized=1:bool; MembershipVersion=2:int64; Level=3:int32;
    LocalNodeId=4:int32; MetaLeaderNodeId=5:int32; Partitions=6:int32;
    PartitionsWithoutLeader=7:int32; PartitionsUnderReplicated=8:int32;
    Nodes=9:rep GrpcOverviewNode; Alarms=10:rep string`,
  GrpcOverviewNode: `NodeId=1:int32; Endpoint=2:string; ClientEndpoint=3:string;
    Role=4:GrpcClusterMemberRole; Ready=5:bool; Reason=6:string; Version=7:string;
    LevelMin=8:int32; LevelMax=9:int32; UptimeMs=10:int64; AgeMs=11:opt int64;
    HostedPartitions=12:int32; LeadingPartitions=13:int32; RequestsPerSecond=14:int32;
    FailedPerSecond=15:int32`,
  GrpcFinalizeRequest: "Level=1:int32",
  GrpcFinalizeResponse:
    "Success=1:bool; Status=2:string; Level=3:int32; Blockers=4:rep GrpcFinalizeBlocker; Reason=5:string",
  GrpcFinalizeBlocker:
    "NodeId=1:int32; Endpoint=2:string; Version=3:string; LevelMin=4:int32; LevelMax=5:int32",
  GrpcSetReplicationFactorRequest: "PartitionId=1:int32; ReplicationFactor=2:int32",
  GrpcSetReplicationFactorResponse:
    "Success=1:bool; Status=2:string; Generation=3:int64; Reason=4:string",
  GrpcGetRangesRequest: "KeySpace=1:string",
  GrpcGetRoutingMetadataRequest: "KeySpace=1:string",
  GrpcGetRangesResponse: `Initialized=1:bool; LocalEndpoint=2:string;
    KeySpaces=3:rep GrpcKeySpaceRanges`,
  GrpcKeySpaceRanges: `KeySpace=1:string; RoutingMode=2:string;
    Descriptors=3:rep GrpcRangeDescriptor; Moves=4:rep GrpcRangeMove; Leaving=5:bool`,
  GrpcRangeDescriptor: `${RANGE}; Keys=5:opt int64`,
  GrpcRangeMove: `MoveId=1:int64; Kind=2:string; StartKey=3:opt string; EndKey=4:opt string;
    Source=5:int32; Target=6:int32; Phase=7:string; Attempt=8:int32; Reason=9:string`,
  GrpcRoutingRange: RANGE,
  GrpcSplitRangeRequest: "KeySpace=1:string; SplitKey=2:string",
  GrpcSplitRangeResponse: `Success=1:bool; Status=2:string; Determinate=3:bool;
    NewPartitionId=4:int32; NewGeneration=5:int64; LeaderHint=6:string; Reason=7:string`,
  GrpcMergeRangesResponse: `Success=1:bool; Status=2:string; Determinate=3:bool; Merges=4:int32;
    LeaderHint=5:string; Reason=6:string`,
  GrpcRouteHint: `PartitionId=1:int32; Endpoint=2:string; Provenance=3:GrpcRouteProvenance;
    Generation=4:int64`,
  GrpcGetRoutingMetadataResponse: `Initialized=1:bool; SchemaVersion=2:int32;
    HashAlgorithm=3:string; PrefixSeparator=4:string; HashPoolSize=5:int32;
    HashPartitionOffset=6:int32; SequenceStorageKeyFormat=7:string; ReservedKeyPrefix=8:string;
    LocalEndpoint=9:string; SnapshotVersion=10:int64; Coherent=11:bool;
    KeySpaces=12:rep GrpcRoutingKeySpace; Leaders=13:rep GrpcPartitionLeader;
    GroupSeparator=14:string`,
  GrpcRoutingKeySpace: "KeySpace=1:string; RoutingMode=2:string; Ranges=3:rep GrpcRoutingRange",
  GrpcPartitionLeader: "PartitionId=1:int32; Endpoint=2:string",

  GrpcTakeFullBackupRequest: "",
  GrpcTakeCoordinatedBackupRequest: "",
  GrpcListBackupsRequest: "",
  GrpcTakeIncrementalBackupRequest: "ParentBackupId=1:string",
  GrpcGetBackupChainRequest: "LeafBackupId=1:string",
  GrpcValidateChainRequest: "LeafBackupId=1:string",
  GrpcListRunningBackupsRequest: "",
  GrpcListRunningBackupsResponse: "Operations=1:rep GrpcRunningBackup",
  GrpcRunningBackup: `Operation=1:string; Kind=2:string; Phase=3:string; StartedAtUtc=4:string;
    ElapsedMs=5:int64; PartitionsDone=6:int32; PartitionsTotal=7:int32; BytesDone=8:int64;
    BytesTotal=9:int64`,
  GrpcRestoreRequest: `LeafBackupId=1:string; TargetDir=2:string; TargetTimeMs=3:int64;
    SequenceSkip=4:int64`,
  GrpcBackupGcRequest: "DryRun=1:bool",
  GrpcListBackupsResponse: "Backups=1:rep GrpcBackupInfoResponse",
  GrpcBackupInfoResponse: `BackupId=1:string; Type=2:string; CreatedAtUtc=3:string;
    ParentBackupId=4:string; PartitionCount=5:int32; HasSnapshotTime=6:bool; SnapshotNode=7:int32;
    SnapshotPhysical=8:int64; SnapshotCounter=9:uint32; RequestedKind=10:string;
    ActualKind=11:string; SubstitutionReason=12:string; FormatVersion=13:int32; IsInvalid=14:bool;
    InvalidReason=15:string; HasCoverage=16:bool; MinRecoverablePhysicalMs=17:int64;
    MaxRecoverablePhysicalMs=18:int64; ClusterId=19:string; CoordinatorNode=20:string;
    IsIncomplete=21:bool`,
  GrpcRestoreResponse: `TargetDir=1:string; PartitionsRestored=2:int32; EntriesApplied=3:int64;
    LastAppliedPhysicalMs=4:int64; Chain=5:rep GrpcBackupInfoResponse; Outcome=6:string;
    MinRecoverablePhysicalMs=7:int64; MaxRecoverablePhysicalMs=8:int64;
    SequencesAhead=9:rep string; SequencesAheadCount=10:int64`,
  GrpcBackupGcResponse: `Applied=1:bool; BytesReclaimed=2:int64;
    RetentionDeletions=3:rep GrpcBackupGcDeletion; OrphanReclamations=4:rep GrpcBackupGcOrphan`,
  GrpcBackupGcDeletion:
    "BackupId=1:string; Type=2:string; CreatedAtUtc=3:string; Bytes=4:int64; Reason=5:string",
  GrpcBackupGcOrphan: "Name=1:string; IsDirectory=2:bool; Reason=3:string",
};

function prefixed(prefix: string, values: string): string {
  return values
    .split(", ")
    .map((value) => prefix + value)
    .join(", ");
}

export const CONTRACT_ENUMS: Readonly<Record<string, string>> = {
  GrpcSequenceClientBatchType: prefixed(
    "SEQUENCE_BATCH_",
    "NONE=0, CREATE=1, UPDATE=2, GET=3, NEXT=4, RESERVE=5, DELETE=6, FRAME=15",
  ),
  GrpcSequenceDurability: "SEQUENCE_DURABILITY_UNSPECIFIED=0, SEQUENCE_PERSISTENT=1",
  GrpcSequenceResponseType: prefixed(
    "SEQUENCE_",
    "SUCCESS=0, NOT_FOUND=1, ALREADY_EXISTS=2, INVALID_INPUT=3, MAX_VALUE_EXCEEDED=4, " +
      "MUST_RETRY=5, ABORTED=6, ERROR=99",
  ),
  GrpcWatchKind: prefixed(
    "WATCH_",
    "NONE=0, KEY=1, PREFIX=2, BUCKET=3, LOCK=4, LOCK_PREFIX=5, SEQUENCE=6",
  ),
  GrpcWatchResponseType: prefixed("WATCH_", "EVENTS=0, CREATED=1, MARK=2, SYNCED=3, ENDED=4"),
  GrpcWatchEventType: prefixed(
    "WATCH_EVENT_",
    "NONE=0, SET=1, DELETED=2, EXPIRED=3, LOCKED=4, UNLOCKED=5, LOCK_EXPIRED=6, " +
      "SEQUENCE_CREATED=7, SEQUENCE_UPDATED=8, SEQUENCE_DELETED=9, SEQUENCE_RESERVED=10",
  ),
  GrpcWatchEnd: prefixed(
    "WATCH_END_",
    "NONE=0, CANCELLED=1, INVALID_INPUT=2, OVERLOADED=3, SHUTTING_DOWN=4, STALE=5, " +
      "NOT_HOSTED=6, FORBIDDEN=7",
  ),
  GrpcLockClientBatchType: prefixed(
    "TYPE_",
    "NONE=0, TRY_LOCK=1, EXTEND_LOCK=2, UNLOCK=3, GET_LOCK=4, CANCEL_WAIT=5, FRAME=15",
  ),
  GrpcLockServerBatchType: prefixed(
    "SERVER_TYPE_",
    "NONE=0, TRY_LOCK=1, EXTEND_LOCK=2, UNLOCK=3, GET_LOCK=4, CANCEL_WAIT=5",
  ),
  GrpcLockResponseType: prefixed(
    "LOCK_RESPONSE_TYPE_",
    "LOCKED=0, BUSY=1, EXTENDED=2, UNLOCKED=3, GOT=4, ERRORED=99, INVALID_INPUT=100, " +
      "MUST_RETRY=101, LOCK_DOES_NOT_EXIST=102, INVALID_OWNER=103, ABORTED=104",
  ),
  GrpcLockDurability: "LOCK_DURABILITY_EPHEMERAL=0, LOCK_DURABILITY_PERSISTENT=1",
  GrpcClientBatchType:
    "TYPE_NONE=0, TRY_SET_KEY_VALUE=1, TRY_SET_MANY_KEY_VALUE=2, TRY_EXTEND_KEY_VALUE=3, " +
    "TRY_DELETE_KEY_VALUE=4, TRY_GET_KEY_VALUE=5, TRY_EXISTS_KEY_VALUE=6, TRY_GET_BY_BUCKET=9, " +
    "TRY_SCAN_BY_PREFIX=10, TRY_DELETE_MANY_KEY_VALUE=14, CLIENT_BATCH_FRAME=15, " +
    "TRY_EXECUTE_TRANSACTION_SCRIPT=7, TRY_ACQUIRE_EXCLUSIVE_LOCK=8, TRY_START_TRANSACTION=11, " +
    "TRY_COMMIT_TRANSACTION=12, TRY_ROLLBACK_TRANSACTION=13",
  GrpcKeyValueDurability: "EPHEMERAL=0, PERSISTENT=1",
  GrpcKeyValueFlags:
    "NONE=0, SET=1, SET_NO_REVISION=2, SET_IF_EXISTS=4, SET_IF_NOT_EXISTS=8, " +
    "SET_IF_EQUAL_TO_VALUE=16, SET_IF_EQUAL_TO_REVISION=32",
  GrpcKeyValueState: "STATE_UNDEFINED=0, STATE_SET=1, STATE_DELETED=2",
  GrpcKeyValueResponseType: prefixed(
    "TYPE_",
    "SET=0, NOTSET=1, EXTENDED=2, GOT=3, DELETED=4, LOCKED=5, UNLOCKED=6, PROPOSED=7, " +
      "COMMITTED=8, ROLLEDBACK=9, EXISTS=10, ERRORED=99, INVALID_INPUT=100, MUST_RETRY=101, " +
      "ABORTED=102, DOES_NOT_EXIST=103, ALREADY_LOCKED=104, " +
      "PREFIX_LOCK_UNSUPPORTED_ON_RANGED_SPACE=105, RANGE_LOCKS=106, SAFE_TIMESTAMP=107, " +
      "ADMISSION_REFUSED=108",
  ),
  GrpcTransactionConflictPolicy: prefixed(
    "TRANSACTION_CONFLICT_POLICY_",
    "UNSPECIFIED=0, NORMAL=1, YIELD=2",
  ),
  GrpcClusterMemberRole: prefixed(
    "CLUSTER_MEMBER_ROLE_",
    "LEARNER=0, VOTER=1, LEAVING=2, NOT_MEMBER=3",
  ),
  GrpcPartitionReplicaRole: prefixed("PARTITION_REPLICA_ROLE_", "VOTER=0, LEARNER=1, REMOVING=2"),
  GrpcLeaveClusterOutcome: prefixed(
    "LEAVE_CLUSTER_OUTCOME_",
    "COMMITTED=0, NOT_A_MEMBER=1, REFUSED_INSUFFICIENT_VOTERS=2, NOT_INITIALIZED=3, " +
      "NO_LEADER=4, TIMEOUT=5, REFUSED_DRAIN_IN_PROGRESS=6, DRAIN_TIMED_OUT=7, " +
      "REFUSED_STILL_ALIVE=8",
  ),
  GrpcRouteProvenance: prefixed("ROUTE_PROVENANCE_", "UNKNOWN=0, EXECUTED=1, FORWARDED=2"),
};

function plain(service: string, names: string): string[] {
  return names
    .split(" ")
    .map((name) => `${service}/${name} Grpc${name}Request > Grpc${name}Response`);
}

export const CONTRACT_RPCS: readonly string[] = [
  ...["Create", "Update", "Get", "Delete"].map(
    (name) => `Sequencer/${name}Sequence Grpc${name}SequenceRequest > GrpcSequenceResponse`,
  ),
  "Sequencer/NextSequenceValue GrpcNextSequenceRequest > GrpcSequenceAllocationResponse",
  "Sequencer/ReserveSequenceRange GrpcReserveSequenceRangeRequest > GrpcSequenceAllocationResponse",
  "Sequencer/BatchClientSequenceRequests stream GrpcBatchClientSequenceRequest > " +
    "stream GrpcBatchClientSequenceResponse",
  "Watcher/Watch stream GrpcWatchRequest > stream GrpcWatchResponse",
  "Locker/TryLock GrpcTryLockRequest > GrpcTryLockResponse",
  "Locker/TryExtendLock GrpcExtendLockRequest > GrpcExtendLockResponse",
  "Locker/Unlock GrpcUnlockRequest > GrpcUnlockResponse",
  "Locker/GetLock GrpcGetLockRequest > GrpcGetLockResponse",
  ...plain("Locker", "ListLocks ForceUnlock ListLockAudit"),
  "Locker/BatchClientLockRequests stream GrpcBatchClientLockRequest > " +
    "stream GrpcBatchClientLockResponse",
  "Locker/BatchServerLockRequests stream GrpcBatchServerLockRequest > " +
    "stream GrpcBatchServerLockResponse",
  ...plain(
    "KeyValuer",
    "TrySetKeyValue TryExtendKeyValue TryDeleteKeyValue TryGetKeyValue TryExistsKeyValue " +
      "TrySetManyKeyValue TryDeleteManyKeyValue TryGetManyValues TryExistsManyValues GetByBucket " +
      "ScanAllByPrefix ScanByPrefix GetByRange RegisterKeyRange RemoveKeyRange",
  ),
  "KeyValuer/GetByRangeStream GrpcGetByRangeRequest > stream GrpcGetByRangePageResponse",
  "KeyValuer/BatchClientKeyValueRequests stream GrpcBatchClientKeyValueRequest > " +
    "stream GrpcBatchClientKeyValueResponse",
  ...plain(
    "Cluster",
    "GetMembership GetPlacement SetReplicationFactor GetOverview Finalize GetRanges SplitRange MergeRanges " +
      "GetRoutingMetadata",
  ),
  "Cluster/GetNodeDebug GrpcGetNodeDebugRequest > stream GrpcNodeDebugChunk",
  "Cluster/Leave GrpcClusterLeaveRequest > GrpcClusterLeaveResponse",
  "Backups/TakeFullBackup GrpcTakeFullBackupRequest > GrpcBackupInfoResponse",
  "Backups/TakeIncrementalBackup GrpcTakeIncrementalBackupRequest > GrpcBackupInfoResponse",
  "Backups/TakeCoordinatedBackup GrpcTakeCoordinatedBackupRequest > GrpcBackupInfoResponse",
  "Backups/ListBackups GrpcListBackupsRequest > GrpcListBackupsResponse",
  "Backups/ListRunningBackups GrpcListRunningBackupsRequest > GrpcListRunningBackupsResponse",
  "Backups/GetBackupChain GrpcGetBackupChainRequest > GrpcListBackupsResponse",
  "Backups/ValidateChain GrpcValidateChainRequest > GrpcListBackupsResponse",
  "Backups/Restore GrpcRestoreRequest > GrpcRestoreResponse",
  "Backups/RunBackupGarbageCollection GrpcBackupGcRequest > GrpcBackupGcResponse",
];

/** Each path with the least role that may call it; null = nobody needs one. */
export const CONTRACT_PATHS: readonly (readonly [
  method: "GET" | "POST",
  path: string,
  role: "reader" | "writer" | "admin" | null,
])[] = [
  ["POST", "/v1/locks/get-info", "reader"],
  ...["try-lock", "try-extend", "try-unlock"].map(
    (n) => ["POST", `/v1/locks/${n}`, "writer"] as const,
  ),
  ["POST", "/v1/locks/list", "reader"],
  ["POST", "/v1/watch/poll", "reader"],
  ["GET", "/v1/watch/stream", "reader"],
  ["POST", "/v1/locks/force-unlock", "admin"],
  ["POST", "/v1/locks/audit", "admin"],
  ["POST", "/v1/sequences/get", "reader"],
  ...["create", "update", "next", "reserve", "delete"].map(
    (n) => ["POST", `/v1/sequences/${n}`, "writer"] as const,
  ),
  ...[
    "try-get",
    "try-exists",
    "try-get-many",
    "try-exists-many",
    "get-by-bucket",
    "scan-all-by-prefix",
  ].map((name) => ["POST", `/v1/kv/${name}`, "reader"] as const),
  ["POST", "/v1/kv/get-by-range", "reader"],
  ...["try-set", "try-extend", "try-delete", "try-set-many", "try-delete-many"].map(
    (name) => ["POST", `/v1/kv/${name}`, "writer"] as const,
  ),
  ...["membership", "placement", "routing"].map(
    (name) => ["GET", `/v1/cluster/${name}`, "reader"] as const,
  ),
  ["GET", "/v1/ranges", "reader"],
  ["GET", "/metrics", "reader"],
  ["POST", "/v1/cluster/leave", "admin"],
  ["POST", "/v1/cluster/replication-factor", "admin"],
  ["GET", "/v1/cluster/overview", "reader"],
  ["POST", "/v1/cluster/finalize", "admin"],
  ["GET", "/v1/node/debug", "admin"],
  ...["register", "unregister", "split", "merge"].map(
    (name) => ["POST", `/v1/ranges/${name}`, "admin"] as const,
  ),
  ["GET", "/v1/backups", "admin"],
  ["GET", "/v1/backups/running", "admin"],
  ["GET", "/v1/backups/{id}/chain", "admin"],
  ...["full", "coordinated", "incremental", "validate-chain", "gc"].map(
    (name) => ["POST", `/v1/backups/${name}`, "admin"] as const,
  ),
  ["POST", "/v1/restore", "admin"],
  ...["/", "/livez", "/readyz", "/v1/cluster/health", "/openapi.json"].map(
    (path) => ["GET", path, null] as const,
  ),
];
