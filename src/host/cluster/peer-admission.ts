/**
 * What the host hears from the other nodes, and who they are: judges handshakes, hands frames to
 * groups, keeps the port's list of peers in step with the member list.
 *
 * Invariants: 1. Nothing is stepped here: frames only fill inboxes and ask for a turn. 2. Only
 * nodes of this cluster are let in, and none that came back without its data (P-090). 3. A message
 * never creates a group (P-097).
 */
import { type PartitionId, partitionId } from "../../base/ids.js";
import type { Program } from "../../base/levels.js";
import { MEMBERS_MAX } from "../../base/limits.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type {
  JoinAnswer,
  JoinRequest,
  LogEntry,
  LoggerPort,
  Founder,
  PeerAddress,
  PeerBoot,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerRefusal,
} from "../../ports.js";
import type { Replica } from "../group/replica.js";
import { KnownPeers, type KnownPeersDeps } from "./known-peers.js";
import { PeerPrograms } from "./peer-programs.js";
import type { StrayReason } from "../replication/peer-lives.js";
import type { PeerOutbox } from "../replication/peer-outbox.js";
import { readRaftFrame } from "../replication/raft-frames.js";
import type { PeerNodeFacts } from "../requests/results.js";
import type { HostSettings } from "../settings.js";

/** What the other floors hear of the links. */
export interface PeerListener {
  linkUp(node: number): void;
  linkDown(node: number): void;
}

export interface PeerAdmissionDeps {
  readonly settings: HostSettings;
  readonly logger: LoggerPort;
  readonly outbox: PeerOutbox;
  /** null on a node without a network. */
  readonly port: PeerPort | null;
  /** Rows of the node itself. */
  readonly rows: KnownPeersDeps;
  /** The nodes that the cluster was founded with; of a joiner the ids only. */
  founders(): readonly Founder[];
  replica(partition: PartitionId): Replica | null;
  /** The records of the meta partition as applied here; null before there are any, and after. */
  metaReads(): MetaReads | null;
  /** The rows are being closed, or are: other nodes only get the last answers. */
  isClosing(): boolean;
  /** The index that they stand at; 0 before. */
  metaIndex(): number;
  /** Entries may be written here; false: not yet, and their leader sends them again. */
  mayHold(entries: readonly LogEntry[]): boolean;
  bulk(from: number, bytes: Uint8Array): void;
  /** Takes a frame of the lane "control" that is no frame of Raft messages; false: it is one. */
  metaProposal(from: number, bytes: Uint8Array): boolean;
  /** A turn is wanted. */
  request(): void;
  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void;
  refusedAsRemoved(): void;
}

export class PeerAdmission implements PeerEvents {
  private readonly hellos = new Map<number, PeerHello>();
  private readonly known: KnownPeers;
  private readonly programs: PeerPrograms;
  /** Linked nodes that a newer member list would not let in any more. */
  private readonly banned = new Set<number>();
  /** Who refuses this node, and why it did last. */
  private readonly refusals = new Map<number, PeerRefusal>();
  private readonly listeners: PeerListener[] = [];
  private callHandler: ((from: number, bytes: Uint8Array) => void) | null = null;
  private membershipVersion = -1;
  private metaIndex = -1;
  /** Nodes that called and are not in the member list that is known here. */
  private readonly callers = new Map<number, PeerHello>();
  /** Callers or departed nodes came or went. */
  private hasNewlyRemoved = false;
  /** Nodes that left the member list while they were linked: served until their link ends. */
  private readonly departed = new Map<number, PeerHello>();
  /** The member list that is known here does not list this node. */
  isOutside = false;
  /** It lists this node alone. */
  isSole = false;
  private isStarted = false;
  /** Starts of this data directory; 0 before it is known that this one is durable. */
  bootNumber = 0;
  /** Items of frames that could not be read. */
  badItems = 0;
  /** Those that are for no replica of here, by reason. */
  readonly strays: Record<StrayReason, number> = {
    unhosted: 0,
    "receiver-life": 0,
    "sender-life": 0,
  };

  constructor(private readonly deps: PeerAdmissionDeps) {
    this.known = new KnownPeers(deps.rows);
    this.programs = new PeerPrograms(deps.settings.program, deps.logger);
  }

  /** `boot`: this start of the data directory, durable by now. */
  start(boot: PeerBoot): void {
    this.known.load();
    this.deps.port?.setPeers(this.others(this.deps.founders()));
    this.isStarted = true;
    this.bootNumber = boot.bootNumber;
    this.refresh();
    this.deps.port?.start(this, boot);
  }

  listen(listener: PeerListener): void {
    this.listeners.push(listener);
  }

  /** `handler` gets the frames of the lane "calls". */
  handleCalls(handler: (from: number, bytes: Uint8Array) => void): void {
    this.callHandler = handler;
  }

  /** False: the call did not leave. */
  sendCall(to: number, bytes: Uint8Array): boolean {
    return this.deps.port?.send(to, "calls", bytes) ?? false;
  }

  /** Base URL under which clients reach a node; "" while unknown. */
  clientEndpointOf(node: number): string {
    return this.hellos.get(node)?.clientEndpoint ?? "";
  }

  /** What is spoken with a linked node; 0 = nothing. */
  protocolWith(node: number): number {
    const program = this.programOf(node);
    return program === null ? 0 : this.programs.protocolWith(program);
  }

  /** What a linked node supports; null when it is not linked. */
  programOf(node: number): Program | null {
    return this.deps.outbox.isUp(node) ? (this.hellos.get(node)?.program ?? null) : null;
  }

  /** The nodes that were ever linked in this life. */
  facts(): PeerNodeFacts[] {
    const { outbox } = this.deps;
    return [...this.hellos.values()].map(({ nodeId: node, endpoint, clientEndpoint, program }) => {
      const protocol = this.programs.protocolWith(program);
      return { node, linked: outbox.isUp(node), endpoint, clientEndpoint, program, protocol };
    });
  }

  /** Follows the member list: cheap while it does not change. */
  refresh(): void {
    if (!this.isStarted) return;
    const index = this.deps.metaIndex();
    if (index === this.metaIndex && !this.hasNewlyRemoved) return;
    this.metaIndex = index;
    const metaReads = this.deps.metaReads();
    const cluster = metaReads?.cluster() ?? null;
    if (metaReads === null || cluster === null) return this.refreshUnlisted();
    const isNews = cluster.membershipVersion !== this.membershipVersion;
    if (!isNews && !this.hasNewlyRemoved) return;
    this.hasNewlyRemoved = false;
    this.membershipVersion = cluster.membershipVersion;
    for (const [node, hello] of this.callers) {
      const isMember = metaReads.member(node) !== null;
      if (isMember || this.judgeDirectory(hello) !== null) this.callers.delete(node);
    }
    const members = metaReads.members();
    this.isOutside = !members.some(({ nodeId }) => nodeId === this.deps.settings.nodeId);
    this.isSole = members.length === 1 && !this.isOutside;
    this.noteDeparted(metaReads);
    const unlisted = [...this.callers.values(), ...this.departed.values()];
    this.deps.port?.setPeers(this.others([...members, ...unlisted]));
    if (!isNews) return;
    this.known.keep((node) => metaReads.member(node) !== null);
    // Who belongs to the cluster is worth a flush of its own: a start judges by it at once.
    this.deps.rows.flushSoon(() => undefined);
    for (const hello of this.hellos.values()) this.judgeAgain(hello);
  }

  /**
   * A member that was removed keeps its link: it learns the member list that does not list it any
   * more, and what its clients ask is carried out until its operator stops it (contract 5.3).
   */
  private noteDeparted(metaReads: MetaReads): void {
    for (const [node, hello] of this.hellos) {
      const former = metaReads.member(node) === null ? metaReads.formerMember(node) : null;
      const isGone = former?.storageIds.includes(hello.storageId) === true;
      if (isGone && this.deps.outbox.isUp(node)) this.departed.set(node, hello);
      else this.departed.delete(node);
    }
  }

  private judgeAgain(hello: PeerHello): void {
    const { nodeId: node } = hello;
    if (this.judgeDirectory(hello) === null && this.isListed(node) && this.deps.outbox.isUp(node)) {
      this.known.learn(hello);
    }
    const refusal = this.judgeDirectory(hello);
    // Only a member list of the past, as a late node applies it, knew another directory. The link
    // stood.
    if (refusal === null && this.banned.has(node)) this.linkUp(hello);
    // Who was removed may hear of it to the end; who lost its data is not listened to.
    else if (refusal !== "storage-lost") this.banned.delete(node);
    else if (!this.banned.has(node)) {
      if (this.deps.outbox.isUp(node)) this.linkDown(node);
      this.banned.add(node);
      this.deps.logger.log("error", "A linked node is not listened to any more.", { node });
    }
  }

  admit(hello: PeerHello): PeerRefusal | null {
    const refusal = this.judge(hello);
    if (refusal !== null || this.deps.isClosing()) return refusal;
    if (this.isListed(hello.nodeId)) this.known.learn(hello);
    this.meet(hello);
    return null;
  }

  judge(hello: PeerHello): PeerRefusal | null {
    const { settings } = this.deps;
    if (hello.clusterId !== settings.clusterId) return "other-cluster";
    if (hello.nodeId === settings.nodeId) return "other-node";
    const level = this.deps.metaReads()?.cluster()?.level ?? hello.program.levels.min;
    const mismatch = this.programs.judge(hello, hello.program, level);
    if (mismatch !== null) return mismatch;
    if (hello.storage !== settings.storage) return "other-storage";
    const refusal = this.judgeDirectory(hello);
    if (refusal !== null || this.deps.isClosing() || !this.isListed(hello.nodeId)) return refusal;
    // An older copy of what it was: it may have voted, and acknowledged, what it does not know.
    if (this.known.isOvertaken(hello)) return "storage-lost";
    return null;
  }

  /** As far as is known here: before there is a member list, everybody may be. */
  private isListed(node: number): boolean {
    const metaReads = this.deps.metaReads();
    return (metaReads?.cluster() ?? null) === null || (metaReads?.member(node) ?? null) !== null;
  }

  /**
   * By the member list, and before there is one by the founding; where neither knows the data
   * directory of a node, the first one met counts.
   */
  private judgeDirectory({ nodeId, storageId }: PeerHello): PeerRefusal | null {
    // Of whoever calls a node that closes its rows, nothing but the refusal of calls comes of it.
    if (this.deps.isClosing()) return null;
    const metaReads = this.deps.metaReads();
    const member = metaReads?.member(nodeId) ?? null;
    const former = metaReads?.formerMember(nodeId) ?? null;
    if (member === null && former?.storageIds.includes(storageId) === true) {
      return this.departed.get(nodeId)?.storageId === storageId ? null : "not-a-member";
    }
    const isFounded = (metaReads?.cluster() ?? null) !== null;
    const isListed = member !== null || !isFounded;
    const founder = isFounded ? undefined : this.founder(nodeId);
    const met = isListed ? this.known.storageIdOf(nodeId) : "";
    const known = (member ?? founder)?.storageId ?? "";
    const wanted = known === "" ? met : known;
    return wanted !== "" && wanted !== storageId ? "storage-lost" : null;
  }

  private founder(nodeId: number): Founder | undefined {
    return this.deps.founders().find((founder) => founder.nodeId === nodeId);
  }

  /**
   * Nobody ends for what another node believes: a node with an old member list may take one that
   * left and came back empty for one that lost its data.
   */
  refused(by: PeerAddress, refusal: PeerRefusal, program: Program): void {
    const isNews = this.refusals.get(by.nodeId) !== refusal;
    this.refusals.set(by.nodeId, refusal);
    if (refusal === "protocol" || refusal === "level") {
      return this.programs.refused(by, refusal, program);
    }
    const fields = { node: by.nodeId, endpoint: by.endpoint, refusal };
    const event =
      refusal === "storage-lost"
        ? "Another node knows this one with newer or other data: remove it and start it empty."
        : "Another node refuses this one.";
    if (isNews) this.deps.logger.log("error", event, fields);
    if (refusal === "not-a-member") this.deps.refusedAsRemoved();
  }

  /** Nodes that take the data directory of this one for an older copy, or for another one. */
  get takenForLost(): number[] {
    const refusals = [...this.refusals].filter(([, refusal]) => refusal === "storage-lost");
    return refusals.map(([node]) => node);
  }

  linkUp(hello: PeerHello): void {
    const { nodeId: node, endpoint } = hello;
    this.hellos.set(node, hello);
    if (this.judgeDirectory(hello) === "storage-lost") {
      this.banned.add(node);
      return;
    }
    // It may have become a member since its handshake.
    if (this.isListed(node) && !this.deps.isClosing()) this.known.learn(hello);
    this.banned.delete(node);
    this.refusals.delete(node);
    this.deps.outbox.linkUp(node);
    this.deps.logger.log("info", "A node is linked.", { node, endpoint });
    for (const listener of this.listeners) listener.linkUp(node);
  }

  linkDown(node: number): void {
    if (this.banned.delete(node)) return;
    this.deps.outbox.linkDown(node);
    this.deps.logger.log("warn", "The link to a node is down.", { node });
    if (this.departed.delete(node)) {
      this.hasNewlyRemoved = true;
      this.deps.request();
    }
    for (const listener of this.listeners) listener.linkDown(node);
  }

  frame(from: number, lane: PeerLane, bytes: Uint8Array): void {
    if (this.banned.has(from)) return;
    // Requests and their answers rest on no vote. And an answer that is lost without the link says
    // that its request was never taken, as soon as its node says farewell.
    if (lane === "calls") return this.callHandler?.(from, bytes);
    // In this order: for each frame of a known node no row of the member list is read.
    if (!this.known.isDurable(from) && this.isListed(from)) return;
    if (this.deps.isClosing()) return;
    if (lane === "bulk") return this.deps.bulk(from, bytes);
    if (lane === "control" && this.deps.metaProposal(from, bytes)) return;
    const bad = readRaftFrame(bytes, from, this.deps.settings.nodeId, (item) => {
      const replica = this.deps.replica(partitionId(item.group));
      const stray =
        replica === null ? "unhosted" : replica.lives.strayReason(from, item.fromLife, item.toLife);
      if (stray !== null) this.strays[stray]++;
      else if (this.deps.mayHold(item.entries)) replica?.receive(item);
    });
    if (bad !== 0) this.badItems += Math.abs(bad);
  }

  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    this.deps.joinAsked(request, answer);
  }

  /**
   * Whoever calls and is not in the member list is called back: a joiner knows no addresses before
   * it has the member list, and a member that was away may be fed by a leader that joined
   * meanwhile.
   */
  private meet(hello: PeerHello): void {
    const { nodeId, endpoint } = hello;
    const metaReads = this.deps.metaReads();
    if ((metaReads?.cluster() ?? null) !== null && metaReads?.member(nodeId) !== null) return;
    if (this.departed.has(nodeId)) return;
    const known = this.callers.get(nodeId);
    if (known === undefined && this.callers.size >= MEMBERS_MAX) return;
    if (known?.endpoint === endpoint && known.storageId === hello.storageId) return;
    this.callers.set(nodeId, hello);
    this.hasNewlyRemoved = true;
    this.deps.request();
  }

  private refreshUnlisted(): void {
    if (!this.hasNewlyRemoved) return;
    this.hasNewlyRemoved = false;
    const known = new Map(this.deps.founders().map((peer) => [peer.nodeId, peer.endpoint]));
    for (const { nodeId, endpoint } of this.callers.values()) known.set(nodeId, endpoint);
    const peers = [...known].map(([nodeId, endpoint]) => ({ nodeId, endpoint }));
    this.deps.port?.setPeers(this.others(peers));
  }

  private others(members: readonly PeerAddress[]): PeerAddress[] {
    const own = this.deps.settings.nodeId;
    const others = members.filter(({ nodeId, endpoint }) => nodeId !== own && endpoint !== "");
    return others.map(({ nodeId, endpoint }) => ({ nodeId, endpoint }));
  }
}
