/**
 * Which groups this node hosts, and how each comes to be and to go: recovered at start, made and
 * dropped as the applied partition map says, for as long as the node runs.
 *
 * Owns the list of groups and the memtable. Invariants:
 * 1. Meta comes first, then groups by partition id; an id is hosted once, and meta always. 2. No
 * group writes to the log before the node's identity is durable in the store. 3. A group that is on
 * every node exists before anybody can be routed to it. 4. Whoever keeps something of a group is
 * told when it leaves, in the same turn (P-042).
 */
import { assert, present } from "../../base/assert.js";
import { FIRST_LEVEL, META_PARTITION, type MapVersion, type PartitionId } from "../../base/ids.js";
import { levelFault } from "../../base/levels.js";
import { BOOTS_TOLD_MAX } from "../../base/limits.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { MemberRole } from "../../machine/commands/command.js";
import { Machine } from "../../machine/machine.js";
import { Memtable } from "../../machine/store/memtable.js";
import type { Founder, RecoveredGroupLog, PeerBoot, PeerStanding } from "../../ports.js";
import type { GroupOwner } from "../group/group-owner.js";
import { PeerLives } from "../replication/peer-lives.js";
import { type ReplicaDeps, Replica } from "../group/replica.js";
import type { Flusher } from "../storage/flusher.js";
import { Group } from "../group/group.js";
import { GroupLevel } from "../group/group-level.js";
import {
  IDENTITY_KEY,
  type NodeIdentity,
  encodeIdentity,
  knownIdentity,
} from "../storage/identity.js";
import {
  type Beginning,
  type StartRefusal,
  adoptable,
  appliedTermAgrees,
  checkIdentity,
  foundingBeginning,
  mixedState,
  restoredState,
  storedGroups,
} from "../storage/recovery.js";
import { installAtStart } from "../snapshots/snapshot-recovery.js";
import { Retention } from "../group/retention.js";
import type { LastWords } from "../storage/replica-row.js";
import { ClusterMembers, type MetaAccess } from "./cluster-members.js";
import { type HostedMap, MapFollower } from "./map-follower.js";

/** Every group is looked at within so many ticks. */
const LOOK_TICKS = 8;
/** Groups that each tick looks at anyway. */
const LOOK_MIN = 64;

export interface Hosted {
  readonly replica: Replica;
  readonly group: Group;
  readonly retention: Retention;
  readonly level: GroupLevel;
}

export class GroupRegistry {
  readonly memtable: Memtable;
  private readonly list: Hosted[] = [];
  private readonly byPartition = new Map<PartitionId, Hosted>();
  private readonly groupHooks: ((group: Group) => void)[] = [];
  private readonly leftHooks: ((group: Group) => void)[] = [];
  private readonly addedHooks: ((replica: Replica) => void)[] = [];
  private owners: readonly GroupOwner[] = [];
  private follower: MapFollower | null = null;
  private metaAccess: MetaAccess | null = null;
  private identity: NodeIdentity | null = null;
  private isIn = false;
  private flusher: Flusher | null = null;
  private clusterMembers: ClusterMembers | null = null;
  private metaSeenAt = -1;
  private lookNext = 0;

  constructor(readonly shared: ReplicaDeps) {
    const { store, sorter } = shared.ports;
    this.memtable = new Memtable(sorter === undefined ? { store } : { store, sorter });
  }

  /** Meta first, then by partition id. */
  get all(): readonly Hosted[] {
    return this.list;
  }

  /** Data partitions of the cluster, hosted here or not; 0 until it is founded. */
  get dataPartitions(): number {
    return this.follower?.dataPartitions ?? 0;
  }

  get hostedMap(): HostedMap {
    return present(this.follower, "recovery made it").map;
  }

  /** Of the partition map that is followed; null before there is one. */
  get mapVersion(): MapVersion | null {
    return this.follower?.mapVersion ?? null;
  }

  /** Something waits for `look`. */
  get hasWork(): boolean {
    return this.follower?.hasWork ?? false;
  }

  /** Replicas that the map places here and that are still to be made. */
  get comingCount(): number {
    return this.follower?.comingCount ?? 0;
  }

  /** Replicas that were dropped to the end in this life of the node. */
  get drops(): number {
    return this.follower?.drops ?? 0;
  }

  find(partition: PartitionId): Hosted | null {
    return this.byPartition.get(partition) ?? null;
  }

  onGroup(hook: (group: Group) => void): void {
    this.groupHooks.push(hook);
    for (const { group } of this.list) hook(group);
  }

  /** `hook` is called for every group that leaves this node. */
  onGroupLeft(hook: (group: Group) => void): void {
    this.leftHooks.push(hook);
  }

  /** Everybody who keeps something of groups; before `recover`. */
  setOwners(owners: readonly GroupOwner[]): void {
    this.owners = owners;
  }

  /** The nodes that the cluster was founded with. */
  get founders(): readonly Founder[] {
    return this.identity?.founders ?? this.shared.settings.founders;
  }

  get founderIds(): readonly number[] {
    return this.founders.map((founder) => founder.nodeId);
  }

  /** What the member list of this node reaches beyond it; before `recover`. */
  connectMembers(metaAccess: MetaAccess): void {
    this.metaAccess = metaAccess;
  }

  /** `hook` is called for every group that is added from now on. */
  onAdded(hook: (replica: Replica) => void): void {
    this.addedHooks.push(hook);
  }

  /**
   * Takes up what log and store hold, or founds a new directory. Begins elections. `identified` is
   * called when it is durable whose directory this is, and that it was started once more: other
   * nodes hear of this one, and are heard, only then.
   */
  recover(
    flusher: Flusher,
    flushSoon: (done: () => void) => void,
    identified: (boot: PeerBoot) => void,
  ): Result<null, StartRefusal> {
    this.flusher = flusher;
    const { settings, ports } = this.shared;
    const follower = this.makeFollower(flushSoon);
    this.follower = follower;
    const recovered = ports.log.recovered();
    const partitions = new Set<PartitionId>([...recovered.keys(), ...storedGroups(ports.store)]);
    const known = knownIdentity(this.memtable.get(IDENTITY_KEY), settings);
    if (!known.ok) return known;
    const { identity, isAdopted } = known.value;
    const checked = checkIdentity(identity, settings.nodeId, partitions.size > 0);
    if (!checked.ok) return checked;
    const bootNumber = (identity?.bootNumber ?? 0) + 1;
    const earlierNonces = (identity?.bootNonces ?? []).slice(0, BOOTS_TOLD_MAX);
    const boot: PeerBoot = { bootNumber, bootNonce: ports.entropy.uint32(), earlierNonces };
    const bootNonces = [boot.bootNonce, ...earlierNonces];
    if (identity === null) {
      const founders = [...settings.founders].sort((a, b) => a.nodeId - b.nodeId);
      // Who founds a cluster knows addresses or, alone, its directory; a joiner was told ids only.
      const isJoiner = settings.founders.every(({ endpoint, storageId }) => {
        return endpoint === "" && storageId === "";
      });
      const { nodeId } = settings;
      this.found({ nodeId, founders, isJoiner, bootNumber, bootNonces }, () => identified(boot));
      return ok(null);
    }
    this.identify({ ...identity, bootNumber, bootNonces });
    const loaded = follower.load();
    if (!loaded.ok) return loaded;
    partitions.add(META_PARTITION);
    for (const partition of [...partitions].sort((a, b) => a - b)) {
      const found = recovered.get(partition) ?? null;
      const beginning = follower.recovers(partition, found);
      const added = beginning === null ? ok(null) : this.add(partition, beginning, found);
      if (!added.ok) return added;
    }
    const supported = this.checkLevels();
    if (!supported.ok) return supported;
    if (!isAdopted) this.begin();
    flusher.flushSoon(() => {
      if (isAdopted) this.begin();
      identified(boot);
    });
    return isAdopted ? adoptable(this.find(META_PARTITION)?.replica.machine ?? null) : ok(null);
  }

  private begin(): void {
    for (const { replica } of this.list) replica.start();
    this.refresh();
  }

  /** Follows the partition map: cheap when the meta group applied nothing since. */
  refresh(): void {
    const meta = this.find(META_PARTITION)?.replica;
    if (meta === undefined || meta.machine.appliedIndex === this.metaSeenAt) return;
    this.metaSeenAt = meta.machine.appliedIndex;
    if (!this.isIn && this.isCounted()) for (const { replica } of this.list) replica.mayLead();
    const serves = meta.leadership.isServing;
    if (serves) this.clusterMembers?.check(this.shared.ports.clock.monotonicMs());
    const cluster = meta.machine.meta.cluster();
    // A restored map is followed when it names this node again: until then it names nobody.
    if (cluster === null || cluster.membershipVersion === 0) return;
    this.shared.levelMark.covers(cluster.level);
    present(this.follower, "recovery made it").follow(meta.machine.meta, cluster);
  }

  private makeFollower(flushSoon: (done: () => void) => void): MapFollower {
    const { memtable, shared } = this;
    return new MapFollower({
      nodeId: shared.settings.nodeId,
      storageId: shared.settings.storageId,
      memtable,
      log: shared.ports.log,
      flushSoon,
      mayFill: () => memtable.rows < 2 * shared.settings.flushRows,
      founderIds: () => this.founderIds,
      isJoiner: () => this.identity?.isJoiner === true,
      reads: () => this.find(META_PARTITION)?.replica.machine.meta ?? null,
      isStopping: () => shared.isStopping(),
      find: (partition) => this.find(partition)?.replica ?? null,
      hosted: () => this.byPartition.keys(),
      host: (partition, beginning, recovered) => {
        const added = this.add(partition, beginning, recovered);
        assert(added.ok, "a group without any history can always begin");
        const { replica } = present(this.find(partition), "the group was added");
        replica.start();
        return replica;
      },
      retire: (partition) => this.remove(partition),
    });
  }

  private remove(partition: PartitionId): LastWords {
    assert(partition !== META_PARTITION, "the meta partition is on every node");
    const hosted = present(this.find(partition), "what is dropped is hosted");
    const { replica, group } = hosted;
    const last = replica.retire();
    this.list.splice(this.list.indexOf(hosted), 1);
    this.byPartition.delete(partition);
    for (const owner of this.owners) owner.removed(replica);
    for (const hook of this.leftHooks) hook(group);
    const fields = { partition, incarnation: last.incarnation };
    this.shared.ports.logger.log("info", "A replica leaves this node.", fields);
    return last;
  }

  /** The housekeeping of the groups. */
  look(nowMs: number): void {
    this.clusterMembers?.check(nowMs);
    this.follower?.tick();
    if (this.shared.isStopping()) return;
    this.lookAtGroups(nowMs);
  }

  /** Some of the groups in each tick: their pace is in seconds. */
  private lookAtGroups(nowMs: number): void {
    const { list } = this;
    const level = this.find(META_PARTITION)?.replica.machine.meta.cluster()?.level ?? FIRST_LEVEL;
    const count = Math.min(list.length, Math.max(LOOK_MIN, Math.ceil(list.length / LOOK_TICKS)));
    for (let done = 0; done < count; done++) {
      if (this.lookNext >= list.length) this.lookNext = 0;
      const hosted = list[this.lookNext++];
      hosted?.level.check(level, nowMs);
      hosted?.retention.check(nowMs);
    }
  }

  /**
   * How far this node is with belonging to a cluster. What the log still holds counts only when it
   * is applied: until then the directories of the founding say who may found (P-191).
   */
  standing(): PeerStanding | null {
    const { identity } = this;
    if (identity === null) return null;
    const meta = this.find(META_PARTITION)?.replica.machine.meta;
    if (identity.isJoiner || (meta?.cluster() ?? null) !== null) {
      return { state: "founded", founders: [] };
    }
    const founders = identity.founders.map(({ nodeId, storageId }) => ({ nodeId, storageId }));
    return { state: "founding", founders };
  }

  /** This node's role in the member list; null when it is not listed or nothing is known yet. */
  ownRole(): MemberRole | null {
    const meta = this.find(META_PARTITION)?.replica.machine.meta;
    return meta?.member(this.shared.settings.nodeId)?.role ?? null;
  }

  /** Whether the program supports the levels of the cluster and of all groups, as stored. */
  private checkLevels(): Result<null, StartRefusal> {
    const { program } = this.shared.settings;
    const cluster = this.find(META_PARTITION)?.replica.machine.meta.cluster() ?? null;
    const levels = this.list.map(({ replica }): number => replica.machine.level);
    levels.push(this.shared.levelMark.level, cluster?.level ?? FIRST_LEVEL);
    for (const level of levels) {
      // That a group is below is of no account: its leader is about to raise it.
      if (level <= program.levels.max) continue;
      const fault = levelFault({ level, version: "that wrote it" }, program);
      return failure("unsupported-level", fault ?? "");
    }
    return ok(null);
  }

  private identify(identity: NodeIdentity): void {
    this.memtable.put(IDENTITY_KEY, encodeIdentity(identity));
    this.identity = identity;
  }

  private found(identity: NodeIdentity, identified: () => void): void {
    this.identify(identity);
    const added = this.add(
      META_PARTITION,
      foundingBeginning(this.founderIds, identity.isJoiner),
      null,
    );
    assert(added.ok, "a new directory can always begin");
    const { replica } = present(this.find(META_PARTITION), "the meta group was added");
    const { levelMark, settings } = this.shared;
    levelMark.whenCovered(settings.entryLevel, () => {
      present(this.flusher, "recovery has the flusher").flushSoon(() => {
        replica.start();
        identified();
      });
    });
  }

  /**
   * The cluster counts on this data directory: a founder's, or one that the applied member list
   * names. Before that a joiner leads nothing (contract 5.2): a former life of its id may be what a
   * group counts on.
   */
  private isCounted(): boolean {
    if (this.isIn) return true;
    const { nodeId, storageId } = this.shared.settings;
    const meta = this.find(META_PARTITION)?.replica.machine.meta;
    this.isIn = this.identity?.isJoiner !== true || meta?.member(nodeId)?.storageId === storageId;
    return this.isIn;
  }

  private add(
    partition: PartitionId,
    beginning: Beginning,
    found: RecoveredGroupLog | null,
  ): Result<null, StartRefusal> {
    assert(!this.byPartition.has(partition), "a partition is hosted once");
    const { shared } = this;
    const { firstGeneration } = beginning;
    const machine = new Machine(
      this.memtable,
      partition,
      firstGeneration,
      this.isOfPool(partition),
    );
    const recovered = this.recoveredOf(partition, machine, found);
    if (!recovered.ok) return recovered;
    const restored = restoredState(recovered.value, machine, beginning);
    if (!restored.ok) return restored;
    const agrees = appliedTermAgrees(restored.value, machine);
    if (!agrees.ok) return agrees;
    const lives = new PeerLives(beginning.incarnation);
    const replica = new Replica(shared, machine, restored.value, lives);
    const group = new Group(shared, replica);
    const retention = new Retention(shared.settings, replica, group);
    const level = new GroupLevel(replica, group, shared.levelMark);
    const hosted = { replica, group, retention, level };
    this.byPartition.set(partition, hosted);
    this.insert(hosted);
    present(this.flusher, "recovery has the flusher").add(replica);
    if (partition === META_PARTITION) {
      const settings = { ...shared.settings, founders: this.founders };
      this.clusterMembers = new ClusterMembers(
        settings,
        shared.ports,
        replica,
        group,
        shared.levelMark,
      );
      if (this.metaAccess !== null) this.clusterMembers.connect(this.metaAccess);
    }
    if (!this.isCounted()) replica.core.setPassive(true);
    for (const hook of this.groupHooks) hook(group);
    for (const hook of this.addedHooks) hook(replica);
    return ok(null);
  }

  /** Whether keys are placed in the partition by their hash: those of the founding, and meta. */
  private isOfPool(partition: PartitionId): boolean {
    if (partition === META_PARTITION) return true;
    const cluster = this.find(META_PARTITION)?.replica.machine.meta.cluster() ?? null;
    return partition <= present(cluster, "data partitions come with the cluster").dataPartitions;
  }

  /** Keeps the order by partition. Groups come in that order but for the meta group at the most. */
  private insert(hosted: Hosted): void {
    const { list } = this;
    let at = list.length;
    while (
      at > 0 &&
      present(list[at - 1], "in range").replica.partition > hosted.replica.partition
    ) {
      at--;
    }
    list.splice(at, 0, hosted);
  }

  /**
   * What the log has of a group, after an install that a crash cut short was brought to its end.
   */
  private recoveredOf(
    partition: PartitionId,
    machine: Machine,
    recovered: RecoveredGroupLog | null,
  ): Result<RecoveredGroupLog | null, StartRefusal> {
    const { log } = this.shared.ports;
    const { appliedIndex, appliedTerm, installed } = machine;
    const found = installAtStart(
      { group: partition, appliedIndex, appliedTerm, installed },
      recovered,
    );
    if (found.kind === "none") return ok(recovered);
    if (found.kind === "mixed") return mixedState(partition, installed.index);
    log.resetGroup(partition, found.floor, found.hardState, () => undefined);
    return ok(found.recovered);
  }
}
