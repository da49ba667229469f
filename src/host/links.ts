/**
 * What the host hears from the other nodes, and who they are: judges handshakes, hands frames to
 * groups, keeps the port's list of peers in step with the roster.
 *
 * May call: base, ports, this folder. Invariants: 1. Nothing is stepped here: frames only fill
 * inboxes and ask for a turn. 2. Only nodes of this cluster are let in, and none that came back
 * without its data (P-090). 3. A message never creates a group (P-097).
 */
import { type PartitionId, partitionId } from "../base/ids.js";
import { MEMBERS_MAX, PEER_PROTOCOL } from "../base/limits.js";
import type { MetaReads } from "../machine/meta-reads.js";
import type {
  JoinAnswer,
  JoinRequest,
  LoggerPort,
  FatalPort,
  PeerAddress,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerRefusal,
} from "../ports.js";
import type { GroupDriver } from "./driver.js";
import { KnownPeers, type KnownPeersWorld } from "./known-peers.js";
import type { PeerOutbox } from "./peer-outbox.js";
import { readRaftFrame } from "./raft-frames.js";
import type { PeerNodeFacts } from "./results.js";
import type { HostSettings } from "./settings.js";

/** What the other floors hear of the links. */
export interface PeerListener {
  linkUp(node: number): void;
  linkDown(node: number): void;
}

export interface LinksWorld {
  readonly settings: HostSettings;
  readonly logger: LoggerPort;
  readonly fatal: FatalPort;
  readonly outbox: PeerOutbox;
  /** null on a node without a network. */
  readonly port: PeerPort | null;
  /** Rows of the node itself. */
  readonly rows: KnownPeersWorld;
  driver(partition: PartitionId): GroupDriver | null;
  /** The records of the meta partition as applied here; null before there are any, and after. */
  roster(): MetaReads | null;
  /** The rows are being closed, or are: other nodes only get the last answers. */
  isClosing(): boolean;
  /** The index that they stand at; 0 before. */
  rosterIndex(): number;
  bulk(from: number, bytes: Uint8Array): void;
  /** Takes a frame of the lane "control" that is no frame of Raft messages; false: it is one. */
  errand(from: number, bytes: Uint8Array): boolean;
  /** A turn is wanted. */
  request(): void;
  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void;
  refusedAsStranger(): void;
  /** The cluster knows this node with the data that it has. */
  isKnownAsIs(): boolean;
}

export class Links implements PeerEvents {
  private readonly hellos = new Map<number, PeerHello>();
  private readonly known: KnownPeers;
  /** Linked nodes that a newer roster would not let in any more. */
  private readonly banned = new Set<number>();
  private readonly listeners: PeerListener[] = [];
  private callHandler: ((from: number, bytes: Uint8Array) => void) | null = null;
  private rosterVersion = -1;
  private rosterIndex = -1;
  /** Nodes that called and are not in the roster that is known here. */
  private readonly callers = new Map<number, PeerHello>();
  private hasNewCallers = false;
  /** Items of frames that could not be read, and frames of groups that are not here. */
  badItems = 0;
  strayItems = 0;

  constructor(private readonly world: LinksWorld) {
    this.known = new KnownPeers(world.rows);
  }

  start(): void {
    this.known.load();
    this.world.port?.setPeers(this.others(this.world.settings.founders));
    this.refresh();
    this.world.port?.start(this);
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
    return this.world.port?.send(to, "calls", bytes) ?? false;
  }

  /** Base URL under which clients reach a node; "" while unknown. */
  clientEndpointOf(node: number): string {
    return this.hellos.get(node)?.clientEndpoint ?? "";
  }

  /** The nodes that were ever linked in this life. */
  facts(): PeerNodeFacts[] {
    const { outbox } = this.world;
    return [...this.hellos.values()].map(({ nodeId: node, endpoint, clientEndpoint }) => {
      return { node, linked: outbox.isUp(node), endpoint, clientEndpoint };
    });
  }

  /** Follows the roster: cheap while it does not change. */
  refresh(): void {
    const index = this.world.rosterIndex();
    if (index === this.rosterIndex && !this.hasNewCallers) return;
    this.rosterIndex = index;
    const roster = this.world.roster();
    const cluster = roster?.cluster() ?? null;
    if (roster === null || cluster === null) return this.refreshUnlisted();
    const isNews = cluster.membershipVersion !== this.rosterVersion;
    if (!isNews && !this.hasNewCallers) return;
    this.hasNewCallers = false;
    this.rosterVersion = cluster.membershipVersion;
    for (const [node, hello] of this.callers) {
      if (roster.member(node) !== null || this.judge(hello) !== null) this.callers.delete(node);
    }
    this.world.port?.setPeers(this.others([...roster.members(), ...this.callers.values()]));
    if (!isNews) return;
    // Who belongs to the cluster is worth a flush of its own: a start judges by it at once.
    this.world.rows.flushSoon(() => undefined);
    for (const hello of this.hellos.values()) this.judgeAgain(hello);
  }

  private judgeAgain(hello: PeerHello): void {
    const { nodeId: node } = hello;
    // Who was removed may hear of it to the end; who lost its data is not listened to.
    if (this.judge(hello) !== "storage-lost") this.banned.delete(node);
    else if (!this.banned.has(node)) {
      if (this.world.outbox.isUp(node)) this.linkDown(node);
      this.banned.add(node);
      this.world.logger.log("error", "A linked node is not listened to any more.", { node });
    }
  }

  admit(hello: PeerHello): PeerRefusal | null {
    const { settings } = this.world;
    if (hello.protocol !== PEER_PROTOCOL) return "protocol";
    if (hello.clusterId !== settings.clusterId) return "other-cluster";
    if (hello.nodeId === settings.nodeId) return "other-node";
    const refusal = this.judge(hello);
    if (refusal !== null || this.world.isClosing()) return refusal;
    this.known.learn(hello.nodeId, hello.storageId);
    this.meet(hello);
    return null;
  }

  /**
   * By the roster; where it does not know the data directory of a member, the first one met counts.
   */
  private judge({ nodeId, storageId }: PeerHello): PeerRefusal | null {
    // Of whoever calls a node that closes its rows, nothing but the refusal of calls comes of it.
    if (this.world.isClosing()) return null;
    const roster = this.world.roster();
    const member = roster?.member(nodeId) ?? null;
    const former = roster?.formerMember(nodeId) ?? null;
    if (member === null && former?.storageIds.includes(storageId) === true) return "not-a-member";
    const isListed = member !== null || (roster?.cluster() ?? null) === null;
    const met = isListed ? this.known.storageIdOf(nodeId) : "";
    const known = member === null || member.storageId === "" ? met : member.storageId;
    return known !== "" && known !== storageId ? "storage-lost" : null;
  }

  refused(by: PeerAddress, refusal: PeerRefusal): void {
    const fields = { node: by.nodeId, endpoint: by.endpoint, refusal };
    // To a node with an old roster, one that left and came back empty looks as if it lost its data.
    const isLost = refusal === "storage-lost" && !this.world.isClosing();
    if (isLost && !this.world.isKnownAsIs()) {
      const why = "The cluster knows this node with data that is not here any more.";
      const remedy = "Remove it from the cluster, then join under another node id.";
      this.world.fatal.fatal(`${why} ${remedy}`, fields);
      return;
    }
    this.world.logger.log("error", "Another node refuses this one.", fields);
    if (refusal === "not-a-member") this.world.refusedAsStranger();
  }

  linkUp(hello: PeerHello): void {
    const { nodeId: node, endpoint } = hello;
    this.hellos.set(node, hello);
    if (this.judge(hello) === "storage-lost") {
      this.banned.add(node);
      return;
    }
    this.banned.delete(node);
    this.world.outbox.linkUp(node);
    this.world.logger.log("info", "A node is linked.", { node, endpoint });
    for (const listener of this.listeners) listener.linkUp(node);
  }

  linkDown(node: number): void {
    if (this.banned.delete(node)) return;
    this.world.outbox.linkDown(node);
    this.world.logger.log("warn", "The link to a node is down.", { node });
    for (const listener of this.listeners) listener.linkDown(node);
  }

  frame(from: number, lane: PeerLane, bytes: Uint8Array): void {
    if (this.banned.has(from) || !this.known.isDurable(from)) return;
    if (this.world.isClosing() && lane !== "calls") return;
    if (lane === "calls") return this.callHandler?.(from, bytes);
    if (lane === "bulk") return this.world.bulk(from, bytes);
    if (lane === "control" && this.world.errand(from, bytes)) return;
    const bad = readRaftFrame(bytes, from, this.world.settings.nodeId, (item) => {
      const driver = this.world.driver(partitionId(item.group));
      if (driver === null) this.strayItems++;
      else driver.receive(item);
    });
    if (bad !== 0) this.badItems += Math.abs(bad);
  }

  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    this.world.joinAsked(request, answer);
  }

  /**
   * Whoever calls and is not in the roster is called back: a joiner knows no addresses before it
   * has the roster, and a member that was away may be fed by a leader that joined meanwhile.
   */
  private meet(hello: PeerHello): void {
    const { nodeId, endpoint } = hello;
    const roster = this.world.roster();
    if ((roster?.cluster() ?? null) !== null && roster?.member(nodeId) !== null) return;
    const known = this.callers.get(nodeId);
    if (known === undefined && this.callers.size >= MEMBERS_MAX) return;
    if (known?.endpoint === endpoint && known.storageId === hello.storageId) return;
    this.callers.set(nodeId, hello);
    this.hasNewCallers = true;
    this.world.request();
  }

  private refreshUnlisted(): void {
    if (!this.hasNewCallers) return;
    this.hasNewCallers = false;
    const known = new Map(this.world.settings.founders.map((peer) => [peer.nodeId, peer.endpoint]));
    for (const { nodeId, endpoint } of this.callers.values()) known.set(nodeId, endpoint);
    const peers = [...known].map(([nodeId, endpoint]) => ({ nodeId, endpoint }));
    this.world.port?.setPeers(this.others(peers));
  }

  private others(members: readonly PeerAddress[]): PeerAddress[] {
    const own = this.world.settings.nodeId;
    const others = members.filter(({ nodeId, endpoint }) => nodeId !== own && endpoint !== "");
    return others.map(({ nodeId, endpoint }) => ({ nodeId, endpoint }));
  }
}
