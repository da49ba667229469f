/**
 * One lane to one peer: its connection of the moment, and the pauses between two of them.
 *
 * Invariants: 1. At most one connection at a time. 2. Pauses grow up to a bound near a heartbeat,
 * vary by chance, and begin anew at any sign of life of the peer. 3. Frames that wait for a lazy
 * lane to open are bounded like the queue of an open one.
 */
import type { PeerAddress, PeerHello, PeerLane, TimerHandle } from "../ports.js";
import { LaneConnection, type ConnectionOwner } from "./connection.js";
import { packetSizeBytes } from "./messages.js";
import type { LaneBounds, PeerNetworkPorts, LinkSettings } from "./settings.js";

export interface LaneOwner extends Pick<ConnectionOwner, "admit" | "refused"> {
  laneUp(lane: PeerLane, hello: PeerHello): void;
  laneDown(lane: PeerLane, reason: string): void;
  /** The lane was closed and nothing of it is left. */
  laneClosed(lane: PeerLane): void;
  /** Address that the peer itself comes from, if it is there. */
  readonly source: string | null;
  /** Where the peer is looked for, after so many tries without success. */
  endpointOf(attempt: number): string;
}

/** A peer that refused is asked again, but not at the pace of one that is starting (ms). */
const REFUSED_PAUSE_MS = 2000;

type State = "idle" | "connecting" | "up" | "waiting" | "closing" | "closed";

export class Lane {
  private state: State = "idle";
  private connection: LaneConnection | null = null;
  private timer: TimerHandle | null = null;
  private pauseMs: number;
  private early: Uint8Array[] = [];
  private earlyBytes = 0;
  private wasRefused = false;
  /** When the connection of the moment was begun. */
  private beganMs = 0;
  /** Tries since the lane was last up. */
  private attempt = 0;
  private readonly bounds: LaneBounds;
  private readonly connectionOwner: ConnectionOwner;

  constructor(
    private readonly peer: PeerAddress,
    readonly name: PeerLane,
    private readonly settings: LinkSettings,
    private readonly ports: PeerNetworkPorts,
    private readonly owner: LaneOwner,
  ) {
    this.bounds = settings.lanes[name];
    this.pauseMs = settings.reconnectFirstMs;
    this.connectionOwner = {
      admit: (hello) => owner.admit(hello),
      refused: (...note) => {
        this.wasRefused = true;
        owner.refused(...note);
      },
      up: (hello) => this.connectionUp(hello),
      ended: (reason) => this.connectionEnded(reason),
    };
  }

  get isUp(): boolean {
    return this.state === "up";
  }

  /** Whether there is a connection, or one on its way, that began before `timeMs`. */
  beganBefore(timeMs: number): boolean {
    return this.connection !== null && this.beganMs < timeMs;
  }

  get queuedBytes(): number {
    return this.earlyBytes + (this.connection?.queuedBytes ?? 0);
  }

  open(): void {
    if (this.state === "idle") this.connect();
  }

  /** The peer shows life: no reason to wait any longer. */
  wake(): void {
    this.pauseMs = this.settings.reconnectFirstMs;
    if (this.state !== "waiting") return;
    this.timer?.cancel();
    this.connect();
  }

  send(bytes: Uint8Array): boolean {
    if (this.state === "up") return this.connection?.send(bytes) ?? false;
    if (!this.bounds.lazy || this.state === "closing" || this.state === "closed") return false;
    const size = packetSizeBytes(bytes.length);
    if (this.earlyBytes + size > this.bounds.queueBytes) return false;
    this.early.push(bytes);
    this.earlyBytes += size;
    this.open();
    return true;
  }

  /** Ends the connection of the moment, if any; the lane opens again by itself. */
  reset(reason: string): void {
    this.dropEarly();
    if (this.state === "up" || this.state === "connecting") this.connection?.end(reason);
  }

  /** For good; what was sent gets `withinMs` to leave. `laneClosed` follows. */
  close(withinMs: number): void {
    if (this.state === "closing" || this.state === "closed") return;
    this.timer?.cancel();
    this.dropEarly();
    const { connection } = this;
    this.state = "closing";
    if (connection !== null) return connection.finish(withinMs);
    this.ports.timer.soon(() => this.closed());
  }

  private connect(): void {
    this.state = "connecting";
    this.beganMs = this.ports.clock.monotonicMs();
    const { peer, name, settings, ports } = this;
    const { attempt, owner } = this;
    const way = { attempt, source: owner.source, endpoint: owner.endpointOf(attempt) };
    this.attempt += 1;
    this.connection = new LaneConnection(peer, name, settings, ports, this.connectionOwner, way);
  }

  private connectionUp(hello: PeerHello): void {
    if (this.state !== "connecting") return;
    this.state = "up";
    this.attempt = 0;
    this.pauseMs = this.settings.reconnectFirstMs;
    const { early } = this;
    this.dropEarly();
    for (const bytes of early) this.connection?.send(bytes);
    this.owner.laneUp(this.name, hello);
  }

  private connectionEnded(reason: string): void {
    this.connection = null;
    this.dropEarly();
    if (this.state === "closing") return this.closed();
    this.state = "idle";
    if (!this.bounds.lazy) this.wait();
    this.wasRefused = false;
    this.owner.laneDown(this.name, reason);
  }

  private wait(): void {
    this.state = "waiting";
    const { reconnectLastMs } = this.settings;
    // Between half of the pause and all of it: nodes that lost each other do not meet in step.
    const chance = this.ports.entropy.uint32() / 0x1_0000_0000;
    const fullMs = this.wasRefused ? REFUSED_PAUSE_MS : this.pauseMs;
    const pauseMs = fullMs * (0.5 + chance / 2);
    this.pauseMs = Math.min(this.pauseMs * 2, reconnectLastMs);
    this.timer = this.ports.timer.after(pauseMs, () => this.connect());
  }

  private closed(): void {
    this.state = "closed";
    this.owner.laneClosed(this.name);
  }

  private dropEarly(): void {
    this.early = [];
    this.earlyBytes = 0;
  }
}
