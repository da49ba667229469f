/**
 * Brings the cluster's own records into being and keeps them true: founds the cluster, keeps this
 * node's line (endpoint and data directory), and, where this node leads the meta partition, moves
 * members on: learners that vote everywhere to voters, leaving ones that vote nowhere out. Of a
 * restored cluster, which has nobody, it makes this node the first member.
 *
 * Invariants: 1. Acts on applied state, through commands; founding and moving only as the serving
 * leader of the meta group. 2. One command is on its way at a time; what came to nothing is tried
 * again later. 3. What is due follows from committed records and the groups' memberships alone, so
 * that it goes on under any leader (P-094).
 */
import { level as levelOf } from "../../base/ids.js";
import { type Program, listedProgram } from "../../base/levels.js";
import { type ClusterView, nextMemberChange } from "../../control/membership.js";
import { commandSizeBytes } from "../../machine/commands/codec.js";
import type { Member, MetaCommand, NewMember } from "../../machine/commands/command.js";
import { type MemberCommand, isSameProgram } from "../../machine/meta/meta-members.js";
import type { EntropyPort, Founder, LoggerPort } from "../../ports.js";
import type { Replica } from "../group/replica.js";
import type { Group } from "../group/group.js";
import type { LevelMark } from "../storage/level-mark.js";
import type { MetaResult } from "./meta-proposals.js";
import type { ProposeOnMeta } from "./meta-proposer.js";
import type { ProposalResult } from "../requests/results.js";

const PATIENCE_MS = 10_000;
/** Pause after a try that came to nothing (ms). */
const RETRY_MS = 1000;
/**
 * A removal has been due for so long before it is proposed (ms): the leader of a group may hear of
 * the role later than this node, and make a voter of the node that leaves.
 */
const REMOVE_AFTER_MS = 500;
const REMOVE_AFTER_HEARTBEATS = 3;

export interface ClusterMembersSettings {
  readonly nodeId: number;
  readonly endpoint: string;
  readonly clusterId: string;
  readonly storageId: string;
  readonly program: Program;
  readonly founders: readonly Founder[];
  readonly initialPartitions: number;
  readonly replicationFactor: number;
  readonly givenReplicationFactor: number | null;
  readonly heartbeatMs: number;
}

export interface ClusterMembersPorts {
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
}

/** What leads beyond this node; a node without a network has none of it. */
export interface MetaAccess {
  /** Has a command decided by whoever leads the meta partition. */
  readonly proposeOnMeta: ProposeOnMeta;
  /**
   * The whole cluster as this node's replicas and records see it; null unless it hosts all groups
   * that are on every node.
   */
  clusterView(): ClusterView | null;
}

export class ClusterMembers {
  private onItsWay = false;
  private notBeforeMs = 0;
  private metaAccess: MetaAccess | null = null;
  /** Since when a member is to be removed; Infinity: none is. */
  private removalDueMs = Infinity;
  private version = -1;
  private members: readonly Member[] = [];

  constructor(
    private readonly settings: ClusterMembersSettings,
    private readonly ports: ClusterMembersPorts,
    private readonly replica: Pick<Replica, "leadership" | "machine">,
    private readonly group: Pick<Group, "proposeFinal">,
    private readonly levelMark: Pick<LevelMark, "level">,
  ) {}

  /** Once, when the other nodes can be reached. */
  connect(metaAccess: MetaAccess): void {
    this.metaAccess = metaAccess;
  }

  /**
   * Proposes what the records lack. Called by the housekeeping and when the meta group begins to
   * serve.
   */
  check(nowMs: number): void {
    if (this.onItsWay || nowMs < this.notBeforeMs) return;
    const serves = this.replica.leadership.isServing;
    if (this.replica.machine.meta.cluster() === null) {
      if (serves) this.propose(this.founding(), nowMs);
      return;
    }
    this.follow();
    if (this.members.length === 0) {
      if (serves) this.propose(this.refounding(), nowMs);
      return;
    }
    const command = this.ownLine() ?? (serves ? this.nextStep(nowMs) : null);
    if (command === null) return;
    const { leader } = this.replica.leadership;
    if (serves) this.propose(command, nowMs);
    else if (leader !== 0 && leader !== this.settings.nodeId) this.send(command, nowMs);
  }

  /** Reads the member list anew when it changed. */
  private follow(): void {
    const { meta } = this.replica.machine;
    const version = meta.cluster()?.membershipVersion ?? 0;
    if (version === this.version) return;
    if (this.version < 0) this.compareFactor(meta.cluster()?.replicationFactor ?? 0);
    this.version = version;
    this.members = meta.members();
  }

  /** The factor is that of the founding, whatever a node is started with (contract 5.4). */
  private compareFactor(committed: number): void {
    const { givenReplicationFactor: given } = this.settings;
    if (given === null || given === committed) return;
    const event = "The replication factor that this node was started with is not the cluster's.";
    this.ports.logger.log("warn", event, { given, committed });
  }

  private founding(): MetaCommand {
    const { settings } = this;
    const { nodeId, endpoint, storageId, founders, program } = settings;
    const others = founders.some((founder) => founder.nodeId === nodeId)
      ? founders.filter((founder) => founder.nodeId !== nodeId)
      : [];
    // Each with the directory that it had when the founding was agreed on (P-191).
    const all: Founder[] = [...others, { nodeId, endpoint, storageId }];
    const level = levelOf(this.levelMark.level);
    // What the others support they say in their own lines: until then it is this level alone.
    const least = { levelMin: level, levelMax: level, version: "" };
    const members = all.map((founder): NewMember => {
      return { ...founder, ...(founder.nodeId === nodeId ? listedProgram(program) : least) };
    });
    return {
      kind: "found-cluster",
      clusterId: settings.clusterId === "" ? this.newClusterId() : settings.clusterId,
      dataPartitions: settings.initialPartitions,
      replicationFactor: settings.replicationFactor,
      level,
      members: members.sort((a, b) => a.nodeId - b.nodeId),
    };
  }

  /** Of a restored cluster, which has no member yet. */
  private refounding(): MetaCommand {
    const { nodeId, endpoint, storageId, clusterId, program } = this.settings;
    const member = { nodeId, endpoint, storageId, ...listedProgram(program) };
    return { kind: "refound-cluster", clusterId, member };
  }

  /** What this node's own line lacks. */
  private ownLine(): MemberCommand | null {
    const { nodeId, endpoint, storageId } = this.settings;
    const program = listedProgram(this.settings.program);
    const member = this.members.find((listed) => listed.nodeId === nodeId);
    if (member === undefined) return null;
    const isKnown = storageId === "" || member.storageId === storageId;
    if (isKnown && member.endpoint === endpoint && isSameProgram(member, program)) return null;
    // The line is that of another data directory: this node is not the member that it names.
    if (!isKnown && member.storageId !== "") return null;
    return { kind: "update-member", nodeId, endpoint, storageId, ...program };
  }

  private nextStep(nowMs: number): MemberCommand | null {
    if (this.members.every((member) => member.role === "voter")) return null;
    const view = this.metaAccess?.clusterView() ?? null;
    const step = view === null ? null : nextMemberChange(this.members, view);
    if (step?.kind !== "remove-member") {
      this.removalDueMs = Infinity;
      return step;
    }
    this.removalDueMs = Math.min(this.removalDueMs, nowMs);
    const heardMs = REMOVE_AFTER_HEARTBEATS * this.settings.heartbeatMs;
    return nowMs >= this.removalDueMs + Math.max(REMOVE_AFTER_MS, heardMs) ? step : null;
  }

  private newClusterId(): string {
    let id = "";
    for (let at = 0; at < 4; at++) id += this.ports.entropy.uint32().toString(16).padStart(8, "0");
    return id;
  }

  private propose(command: MetaCommand, nowMs: number): void {
    this.onItsWay = true;
    const sizeBytes = commandSizeBytes(command);
    this.group.proposeFinal(command, sizeBytes, nowMs + PATIENCE_MS, (result: ProposalResult) => {
      const isApplied = result.status === "applied";
      this.finish(command, isApplied ? 0 : nowMs + RETRY_MS, result.status);
    });
  }

  private send(command: MemberCommand, nowMs: number): void {
    if (this.metaAccess === null) return;
    this.onItsWay = true;
    this.metaAccess.proposeOnMeta(command, nowMs + PATIENCE_MS, (result: MetaResult) => {
      // The change comes back through the log: until then it is not proposed again and again.
      this.finish(command, nowMs + RETRY_MS, result.status);
    });
  }

  private finish(command: MetaCommand, notBeforeMs: number, result: string): void {
    this.onItsWay = false;
    this.notBeforeMs = notBeforeMs;
    const fields = { command: command.kind, result };
    this.ports.logger.log("info", "The roster was brought up to date.", fields);
  }
}
