/**
 * The part of the ports that leads to the other nodes of the cluster, as types only. Read together
 * with `ports.ts`, which hands it on.
 *
 * Invariants: 1. A callback is never called in the turn of the call that took it. 2. Bytes are
 * immutable once handed to a port. 3. No port decides anything: whether a peer is let in is asked.
 */

import type { Program } from "./base/levels.js";

/**
 * How a frame travels. Each lane has a connection of its own, so that nothing small waits behind
 * something large (P-154): "control" heartbeats, votes and read rounds; "log" entries and their
 * acknowledgements; "bulk" snapshots; "calls" forwarded requests and their answers.
 */
export type PeerLane = "control" | "log" | "bulk" | "calls";

/** Where a node keeps its data: "memory" is gone with the process. */
export type PeerStorage = "lmdb" | "memory";

/** Who a node is, as it says to whoever asks. */
export interface PeerProfile {
  readonly clusterId: string;
  readonly nodeId: number;
  /** Made with the data directory: a node that lost its disk comes with another one (P-090). */
  readonly storageId: string;
  /** Advertised peer endpoint, host:port. */
  readonly endpoint: string;
  /** Base URL for route hints; "" when it advertises none. */
  readonly clientEndpoint: string;
  readonly storage: PeerStorage;
  /** What its program supports. */
  readonly program: Program;
}

/**
 * One start of a data directory. The number grows by one with each, and the nonce is drawn anew;
 * both are durable before anything is sent. A copy of the directory as it was earlier comes with a
 * number that was seen, or, started often enough, without the nonces that were (P-190).
 */
export interface PeerBoot {
  readonly bootNumber: number;
  readonly bootNonce: number;
  /** Nonces of the starts before, the latest first; at most `BOOTS_TOLD_MAX`. */
  readonly earlierNonces: readonly number[];
}

/** What a node says of itself in each handshake. */
export interface PeerHello extends PeerProfile, PeerBoot {}

/** A founder, with the data directory that it had when the cluster was founded. */
export interface FounderDirectory {
  readonly nodeId: number;
  readonly storageId: string;
}

/** A founder, and where it is. Of a joiner's founders only the ids are known: texts are "". */
export interface Founder extends FounderDirectory, PeerAddress {}

/**
 * How far a node is with belonging to a cluster. "empty": its directory belongs to none.
 * "founding": it counts on the founders, and whether they stand together already it does not know.
 * "founded": it belongs to a cluster that runs or ran.
 */
export interface PeerStanding {
  readonly state: "empty" | "founding" | "founded";
  /** Whom it founds with, by ascending id; none unless it is founding. */
  readonly founders: readonly FounderDirectory[];
}

/** What a node answers to the question who it is. */
export interface PeerIdentity extends PeerProfile, PeerStanding {}

export interface PeerAddress {
  readonly nodeId: number;
  readonly endpoint: string;
}

/** Why a handshake was refused; "storage-lost": the node came back without its data. */
export type PeerRefusal =
  | "other-cluster"
  | "other-node"
  | "other-identity"
  | "storage-lost"
  /** Both programs have no version of the peer protocol in common. */
  | "protocol"
  /** One of both programs does not support the level that the other one needs (contract 5.5). */
  | "level"
  | "not-a-member"
  /** One of both keeps its data in memory only, the other does not (contract 5.2). */
  | "other-storage";

/** A node that belongs to no cluster yet asks to be taken in as a learner. */
export interface JoinRequest {
  readonly nodeId: number;
  readonly storageId: string;
  readonly endpoint: string;
  readonly storage: PeerStorage;
  readonly program: Program;
}

export type JoinAnswer =
  | {
      readonly status: "accepted";
      readonly clusterId: string;
      /** Level of the cluster. */
      readonly level: number;
      /** Ids of the nodes that the cluster was founded with: what its groups' logs begin with. */
      readonly founders: readonly number[];
    }
  /** Asked somebody who cannot tell now; another member, or the same one later, may. */
  | { readonly status: "retry"; readonly reason: string }
  | { readonly status: "refused"; readonly reason: string };

/** What the peer port tells the host. Called in turns of their own, never inside a call to it. */
export interface PeerEvents {
  /**
   * What `admit` would say of a greeting that is not confirmed yet: null to go on. It may be a
   * recording, so nothing is noted of it. The other side is told the refusal.
   */
  judge(hello: PeerHello): PeerRefusal | null;
  /**
   * Judges who proved that it takes part in this very handshake, from either side, and notes that
   * it was let in: null to go on, before any frame of it.
   */
  admit(hello: PeerHello): PeerRefusal | null;
  /** Another node refused this one; `program` is what that node supports. */
  refused(by: PeerAddress, refusal: PeerRefusal, program: Program): void;
  /** What is sent to this node from now on reaches it, as far as anybody can tell. */
  linkUp(hello: PeerHello): void;
  /** The link of `linkUp` is gone, or nothing came back over it for too long. */
  linkDown(nodeId: number): void;
  /** A frame came, whole, from a node whose handshake was admitted. */
  frame(from: number, lane: PeerLane, bytes: Uint8Array): void;
  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void;
}

export interface PeerPort {
  /** Begins to link and to listen, in this life of the data directory. Once. */
  start(events: PeerEvents, boot: PeerBoot): void;
  /** The nodes to be linked with from now on, without this one; others are let go. */
  setPeers(peers: readonly PeerAddress[]): void;
  /**
   * Queues a frame. False: it was dropped, because the link is down or the queue of its lane is
   * full. Frames of one lane arrive in order, or not at all.
   */
  send(to: number, lane: PeerLane, bytes: Uint8Array): boolean;
  /** Bytes queued and not yet taken by the connection. */
  queuedBytes(to: number, lane: PeerLane): number;
  close(done: () => void): void;
}
