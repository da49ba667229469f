/**
 * What the links to the other nodes are opened with: addresses, identity, credentials, and every
 * time and size that bounds them.
 *
 * Invariants: 1. Nothing changes after the port was opened, but who this node is and what it proves
 * that with, which is asked for at each handshake and question. 2. A dead link is found before the
 * shortest election timeout ends. 3. Relations are asserted at open.
 */
import { assert } from "../base/assert.js";
import { PEER_FRAME_MAX_BYTES } from "../base/limits.js";
import type {
  ClockPort,
  EntropyPort,
  LoggerPort,
  PeerHello,
  PeerLane,
  PeerProfile,
  PeerStanding,
  TimerPort,
} from "../ports.js";
import type { PeerCredentials } from "./credentials.js";
import type { NameResolver } from "./resolve.js";

/** PEM texts; both sides of every connection verify each other against `ca`. */
export interface PeerTls {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
}

export interface PeerNetworkPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
  readonly names: NameResolver;
  readonly credentials: PeerCredentials;
  /** Told how long each echo of the lane "control" took (ms). */
  readonly echoed?: (nodeId: number, durationMs: number) => void;
}

/** Bounds of one lane. */
export interface LaneBounds {
  /** Bytes that may wait for the connection. */
  readonly queueBytes: number;
  /** What to do when they are too many: refuse the new frame, or let the oldest ones go. */
  readonly whenFull: "refuse" | "drop-oldest";
  /** Bytes handed to the connection and not yet taken, from which on frames wait in the queue. */
  readonly aheadBytes: number;
  /** Pause between two echoes. */
  readonly echoEveryMs: number;
  /** An echo that takes longer ends the connection. */
  readonly echoWithinMs: number;
  /** The connection is opened by the first frame, not with the link. */
  readonly lazy: boolean;
}

export interface PeerNetworkSettings {
  /** Address and port to listen on; port 0 = any free one. */
  readonly host: string;
  readonly port: number;
  /** What TLS handshakes are made with, as of now; null = without TLS, and then always. */
  readonly tls: () => PeerTls | null;
  /** Who this node is, as of now: addresses may be known later than the port is opened. */
  readonly profile: () => PeerProfile;
  /** How far it is with belonging to a cluster; null: that is not known yet, nobody is answered. */
  readonly standing: () => PeerStanding | null;
  readonly lanes: Readonly<Record<PeerLane, LaneBounds>>;
  /** From the first packet to the admitted link. */
  readonly handshakeWithinMs: number;
  /** Pauses between attempts grow from the first to the second, with chance. */
  readonly reconnectFirstMs: number;
  readonly reconnectLastMs: number;
  /** An accepted link on which nothing came for so long is ended. */
  readonly inboundSilenceMs: number;
  /** Connections accepted at a time; more are closed at accept. */
  readonly connectionsMax: number;
  /** How long the end waits for what is still queued. */
  readonly closeWithinMs: number;
  /** After other certificates were put in place, every link is renewed within this. */
  readonly linkRenewalMs: number;
  /** A join request is answered within this, or told to ask again. */
  readonly joinWithinMs: number;
}

/** What a link is opened with: the life of the data directory is known by then. */
export interface LinkSettings extends PeerNetworkSettings {
  readonly hello: () => PeerHello;
}

export const PEER_LANES: readonly PeerLane[] = ["control", "log", "bulk", "calls"];

/** High-water mark of a stream of the platform (bytes). */
const STREAM_MARK_BYTES = 16 * 1024;
const KIB = 1024;
const MIB = 1024 * KIB;

/** Times of the failure detection (ms), as the server has them from its flags. */
export interface PeerTimes {
  readonly pingIntervalMs: number;
  /** The shortest election timeout. */
  readonly electionMs: number;
}

/**
 * Bounds of all lanes. A control echo that began just after the link died is sent one ping interval
 * later and judged after three quarters of what is then left of an election timeout.
 */
export function laneBounds(times: PeerTimes): Record<PeerLane, LaneBounds> {
  const { pingIntervalMs, electionMs } = times;
  assert(pingIntervalMs >= 1 && pingIntervalMs < electionMs, "pings are faster than elections");
  const controlWithinMs = Math.max(1, Math.floor(((electionMs - pingIntervalMs) * 3) / 4));
  const slow = { echoEveryMs: Math.max(1000, pingIntervalMs), lazy: true } as const;
  const data = { queueBytes: 16 * MIB, aheadBytes: MIB, whenFull: "refuse" } as const;
  const dataWithinMs = Math.max(3000, 3 * electionMs);
  return {
    control: {
      queueBytes: 256 * KIB,
      whenFull: "drop-oldest",
      aheadBytes: 64 * KIB,
      echoEveryMs: pingIntervalMs,
      echoWithinMs: controlWithinMs,
      lazy: false,
    },
    log: { ...slow, ...data, echoWithinMs: dataWithinMs, lazy: false },
    bulk: { ...slow, ...data, aheadBytes: 256 * KIB, echoWithinMs: 10_000 },
    calls: { ...slow, ...data, echoWithinMs: dataWithinMs },
  };
}

/** Everything that is no business of the embedding program. */
export const PEER_NETWORK_DEFAULTS = {
  handshakeWithinMs: 1500,
  reconnectFirstMs: 50,
  reconnectLastMs: 300,
  inboundSilenceMs: 15_000,
  connectionsMax: 1024,
  closeWithinMs: 1000,
  linkRenewalMs: 50 * 60_000,
  joinWithinMs: 10_000,
} as const;

export function assertPeerSettings(settings: PeerNetworkSettings): void {
  const { reconnectFirstMs, reconnectLastMs, handshakeWithinMs } = settings;
  assert(reconnectFirstMs >= 1 && reconnectFirstMs <= reconnectLastMs, "back-off grows");
  assert(
    2 * handshakeWithinMs < settings.linkRenewalMs,
    "links that are renewed come back in time",
  );
  for (const lane of PEER_LANES) {
    const { queueBytes, aheadBytes, whenFull, echoEveryMs, echoWithinMs } = settings.lanes[lane];
    // A stream says that it is drained only when it once held more than its own mark.
    assert(aheadBytes >= STREAM_MARK_BYTES, `${lane}: a full connection says when it is drained`);
    assert(aheadBytes <= queueBytes, `${lane}: the queue is the larger part`);
    assert(echoEveryMs >= 1 && echoWithinMs >= 1, `${lane}: echoes take time`);
    assert(echoEveryMs < settings.inboundSilenceMs, `${lane}: a silent lane has lost its echoes`);
    if (whenFull === "drop-oldest") continue;
    assert(queueBytes >= PEER_FRAME_MAX_BYTES, `${lane}: an empty queue holds the largest frame`);
  }
}
