/**
 * Several false worlds joined by a false network: nodes of one cluster that share a clock which only
 * the test moves. Frames arrive in order, or are lost where a link is cut.
 *
 * Invariants: 1. Nothing happens by itself. 2. A cut link drops what is sent over it; both sides
 * hear of it only when told (`cut` with `notice`). 3. Frames are within their bound, as real links ask.
 */
import { assert } from "../../../src/base/assert.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { PEER_FRAME_MAX_BYTES } from "../../../src/base/limits.js";
import type { Node } from "../../../src/host/node.js";
import {
  FrameRoom,
  RaftFrameWriter,
  readRaftFrame,
} from "../../../src/host/replication/raft-frames.js";
import type { HostPorts, HostSettings } from "../../../src/host/settings.js";
import type {
  Founder,
  JoinRequest,
  PeerAddress,
  PeerBoot,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerProfile,
} from "../../../src/ports.js";
import { type ManualTimer, World } from "./world.js";

/** A frame without the messages of the groups that `isLost` names; null: nothing else was in it. */
export function withoutGroups(
  bytes: Uint8Array,
  isLost: (group: number) => boolean,
): Uint8Array | null {
  const writer = new RaftFrameWriter(new FrameRoom());
  const bad = readRaftFrame(bytes, 1, 2, ({ group, message, entries, sign }) => {
    if (!isLost(group)) writer.add(group, message, entries, sign);
  });
  return bad === 0 ? writer.take() : bytes;
}

export class FalseNetwork {
  readonly ends = new Map<number, FalsePeers>();
  private readonly cuts = new Set<string>();
  frames = 0;
  /** What becomes of a frame on its way; null = lost. */
  filter: (from: number, bytes: Uint8Array, lane: PeerLane) => Uint8Array | null = (_from, bytes) =>
    bytes;

  isCut(from: number, to: number): boolean {
    return this.cuts.has(`${from}-${to}`);
  }

  /** Frames from `from` to `to` are lost from now on; with `notice` the sender's link goes down. */
  cut(from: number, to: number, notice = true): void {
    this.cuts.add(`${from}-${to}`);
    if (notice) this.ends.get(from)?.down(to);
  }

  heal(from: number, to: number): void {
    this.cuts.delete(`${from}-${to}`);
    this.ends.get(from)?.link(to);
  }

  cutOff(node: number, notice = true): void {
    for (const other of this.ends.keys()) {
      if (other === node) continue;
      this.cut(node, other, notice);
      this.cut(other, node, notice);
    }
  }

  healAll(): void {
    for (const from of this.ends.keys()) {
      for (const to of this.ends.keys()) if (from !== to) this.heal(from, to);
    }
  }
}

/** The port of one node. */
export class FalsePeers implements PeerPort {
  events: PeerEvents | null = null;
  private readonly up = new Set<number>();
  private peers: readonly PeerAddress[] = [];
  private boot: PeerBoot = { bootNumber: 0, bootNonce: 0, earlierNonces: [] };

  constructor(
    private readonly network: FalseNetwork,
    readonly timer: ManualTimer,
    private readonly profile: PeerProfile,
  ) {}

  get hello(): PeerHello {
    return { ...this.profile, ...this.boot };
  }

  start(events: PeerEvents, boot: PeerBoot): void {
    this.events = events;
    this.boot = boot;
    this.network.ends.set(this.id, this);
    for (const to of this.network.ends.keys()) {
      this.link(to);
      this.network.ends.get(to)?.link(this.id);
    }
  }

  setPeers(peers: readonly PeerAddress[]): void {
    this.peers = peers;
    for (const { nodeId } of peers) this.link(nodeId);
  }

  link(to: number): void {
    this.timer.soon(() => {
      const other = this.network.ends.get(to);
      const wanted = this.peers.some((peer) => peer.nodeId === to);
      if (this.up.has(to) || !wanted || other === undefined || this.network.isCut(this.id, to)) {
        return;
      }
      if (this.events?.admit(other.hello) !== null || other.events === null) return;
      const refusal = other.events.admit(this.hello);
      if (refusal !== null) return this.events.refused(address(to), refusal, other.hello.program);
      this.up.add(to);
      this.events.linkUp(other.hello);
    });
  }

  down(to: number): void {
    if (!this.up.delete(to)) return;
    this.timer.soon(() => this.events?.linkDown(to));
  }

  send(to: number, lane: PeerLane, bytes: Uint8Array): boolean {
    assert(bytes.length <= PEER_FRAME_MAX_BYTES, "a frame is within its bound");
    if (!this.up.has(to)) return false;
    this.network.frames++;
    const other = this.network.ends.get(to);
    const carried = this.network.filter(this.id, bytes, lane);
    other?.timer.soon(() => {
      if (carried === null || this.network.isCut(this.id, to)) return;
      other?.events?.frame(this.id, lane, carried);
    });
    return true;
  }

  queuedBytes(): number {
    return 0;
  }

  close(done: () => void): void {
    this.events = null;
    this.timer.soon(done);
  }

  /** The process is gone: the others notice. */
  die(): void {
    this.events = null;
    this.network.ends.delete(this.id);
    for (const other of this.network.ends.values()) other.down(this.id);
  }

  private get id(): number {
    return this.profile.nodeId;
  }
}

class MemberWorld extends World {
  peers: FalsePeers | null = null;

  override ports(): HostPorts {
    const ports = super.ports();
    return this.peers === null ? ports : { ...ports, peers: this.peers };
  }
}

/** A cluster of `size` nodes with ids from 1. */
export class Cluster {
  readonly worlds = new Map<number, MemberWorld>();
  readonly nodes = new Map<number, Node>();
  readonly network: FalseNetwork;
  private readonly founders: Founder[];

  constructor(
    size: number,
    private readonly settings: Partial<HostSettings> = {},
  ) {
    this.founders = Array.from({ length: size }, (_, at) => founder(at + 1));
    this.network = new FalseNetwork();
    for (const { nodeId } of this.founders) this.start(nodeId);
  }

  world(id: number): MemberWorld {
    const world = this.worlds.get(id);
    assert(world !== undefined, `node ${id} exists`);
    return world;
  }

  node(id: number): Node {
    const node = this.nodes.get(id);
    assert(node !== undefined, `node ${id} runs`);
    return node;
  }

  /** Starts a node, with the disk that it had. `extra`: a joiner's settings, say. */
  start(id: number, extra: Partial<HostSettings> = {}): Node {
    const { nodeId, endpoint } = address(id);
    const clusterId = this.settings.clusterId ?? "c";
    const own = { nodeId, endpoint, clusterId, storageId: `s${id}` };
    const settings = {
      founders: this.founders,
      initialPartitions: 3,
      ...this.settings,
      ...own,
      ...extra,
    };
    const world = this.worlds.get(id) ?? new MemberWorld(settings, id);
    this.worlds.set(id, world);
    world.timer.nowMs = this.nowMs;
    const storageId = extra.storageId ?? own.storageId;
    world.peers = new FalsePeers(this.network, world.timer, {
      clusterId,
      nodeId,
      storageId,
      endpoint,
      clientEndpoint: `http://client-${id}`,
      program: settings.program ?? PROGRAM,
      storage: "lmdb",
    });
    const node = world.open(extra);
    this.nodes.set(id, node);
    return node;
  }

  /** The process of a node dies; what was durable stays. */
  kill(id: number): void {
    this.world(id).peers?.die();
    this.world(id).crash();
    this.nodes.delete(id);
  }

  get nowMs(): number {
    let nowMs = 1000;
    for (const { timer } of this.worlds.values()) nowMs = Math.max(nowMs, timer.nowMs);
    return nowMs;
  }

  /** Runs what is due on every node until nothing is. */
  settle(): void {
    for (let moved = true; moved;) {
      moved = false;
      for (const world of this.worlds.values()) while (world.timer.step()) moved = true;
    }
  }

  pass(durationMs: number, stepMs = 10): void {
    const endMs = this.nowMs + durationMs;
    for (let nowMs = this.nowMs + stepMs; nowMs <= endMs; nowMs += stepMs) {
      for (const world of this.worlds.values()) world.timer.nowMs = nowMs;
      this.settle();
    }
  }

  /** Passes time until `until` holds; how long it took (ms). */
  passUntil(until: () => boolean, limitMs = 20_000): number {
    const startMs = this.nowMs;
    while (!until()) {
      assert(this.nowMs - startMs < limitMs, "it comes true in time");
      this.pass(10);
    }
    return this.nowMs - startMs;
  }

  ready(): this {
    this.passUntil(() => [...this.nodes.values()].every((node) => node.health().ready));
    return this;
  }

  /** The node that serves a partition, if any does. */
  serverOf(partition: number): number | null {
    for (const [id, node] of this.nodes) {
      const group = node.groups().find((each) => each.partition === partition);
      if (group?.isServing() === true) return id;
    }
    return null;
  }
}

export function address(nodeId: number): PeerAddress {
  return { nodeId, endpoint: `host${nodeId}:8084` };
}

/** As its founding lists it. */
export function founder(nodeId: number): Founder {
  return { ...address(nodeId), storageId: `s${nodeId}` };
}

/** A founder as a joiner hears of it. */
export function farFounder(nodeId: number): Founder {
  return { nodeId, endpoint: "", storageId: "" };
}

/** What a node asks with that wants to join, as `Cluster` has it. */
export function joinRequest(nodeId: number, changes: Partial<JoinRequest> = {}): JoinRequest {
  const { endpoint } = address(nodeId);
  const own = { nodeId, storageId: `s${nodeId}`, endpoint };
  return { ...own, storage: "lmdb", program: PROGRAM, ...changes };
}

/** What a node says in a handshake, as `Cluster` has it. */
export function helloOf(nodeId: number, changes: Partial<PeerHello> = {}): PeerHello {
  return {
    clusterId: "c",
    nodeId,
    storageId: `s${nodeId}`,
    endpoint: address(nodeId).endpoint,
    clientEndpoint: "",
    program: PROGRAM,
    storage: "lmdb",
    bootNumber: 1,
    bootNonce: 1,
    earlierNonces: [],
    ...changes,
  };
}
