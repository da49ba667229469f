/**
 * Real peer ports on loopback for tests: settings, endpoints that a restarted node keeps, and a
 * world that goes on by itself.
 */
import { PROGRAM } from "../../../src/base/levels.js";
import type {
  JoinAnswer,
  JoinRequest,
  LogFields,
  LoggerPort,
  PeerPort,
} from "../../../src/ports.js";
import { PeerQuestions } from "../../../src/net/asking.js";
import { PeerNetwork } from "../../../src/net/network.js";
import { PeerCredentials } from "../../../src/net/credentials.js";
import { NameResolver } from "../../../src/net/resolve.js";
import {
  PEER_NETWORK_DEFAULTS,
  type PeerNetworkPorts,
  type PeerNetworkSettings,
  laneBounds,
} from "../../../src/net/settings.js";
import { systemClock, systemEntropy, systemTimers } from "../../../src/sys.js";
import { CLUSTER, type PeerHarness } from "../../conformance/peers.js";

export interface Told {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields | undefined;
}

export function realPorts(told: Told[] = []): PeerNetworkPorts {
  const logger: LoggerPort = {
    log: (level, event, fields) => void told.push({ level, event, fields }),
  };
  return {
    clock: systemClock,
    timer: systemTimers,
    entropy: systemEntropy,
    names: new NameResolver(systemTimers),
    logger,
    credentials: new PeerCredentials({ secret: null, requireNodeId: false }, logger),
  };
}

export const TIMES = { pingIntervalMs: 200, electionMs: 1000 } as const;

export function peerSettings(
  nodeId: number,
  endpoint: () => string,
  changes: Partial<PeerNetworkSettings> = {},
  clusterId = CLUSTER,
): PeerNetworkSettings {
  return {
    ...PEER_NETWORK_DEFAULTS,
    host: "127.0.0.1",
    port: 0,
    tls: () => null,
    lanes: laneBounds(TIMES),
    standing: () => ({ state: "founded", founders: [] }),
    profile: () => ({
      clusterId,
      nodeId,
      storageId: `storage-${nodeId}`,
      endpoint: endpoint(),
      clientEndpoint: "",
      program: PROGRAM,
      storage: "lmdb",
    }),
    ...changes,
  };
}

export function openNetwork(
  settings: PeerNetworkSettings,
  ports: PeerNetworkPorts = realPorts(),
): Promise<PeerNetwork> {
  return new Promise((resolve, reject) => {
    PeerNetwork.open(settings, ports, (result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(result.message));
    });
  });
}

export function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

const PATIENCE_MS = 20_000;

export async function until(what: string, condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  do {
    await sleep(2);
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
  } while (!condition());
}

const closed = new Set<PeerPort>();

/** Closes a port unless that was done already. */
export function closePort(port: PeerPort): Promise<void> {
  if (closed.has(port)) return Promise.resolve();
  closed.add(port);
  return new Promise((resolve) => port.close(resolve));
}

export class RealHarness implements PeerHarness {
  private readonly bound = new Map<number, number>();

  constructor(private readonly changes: Partial<PeerNetworkSettings> = {}) {}

  async open(nodeId: number, clusterId?: string): Promise<PeerPort> {
    const endpoint = (): string => this.endpointOf(nodeId);
    const port = this.bound.get(nodeId) ?? 0;
    const changes = { ...this.changes, port };
    const network = await openNetwork(peerSettings(nodeId, endpoint, changes, clusterId));
    this.bound.set(nodeId, network.port);
    return network;
  }

  endpointOf(nodeId: number): string {
    return `127.0.0.1:${this.bound.get(nodeId) ?? 0}`;
  }

  until(what: string, condition: () => boolean): Promise<void> {
    return until(what, condition);
  }

  settle(): Promise<void> {
    return sleep(400);
  }

  close(port: PeerPort): Promise<void> {
    return closePort(port);
  }

  askToJoin(seed: number, request: JoinRequest, done: (answer: JoinAnswer) => void): void {
    const options = { tls: this.changes.tls ?? (() => null), ports: realPorts() };
    const ask = (): void => {
      new PeerQuestions(options).join(this.endpointOf(seed), request, (result) => {
        if (result.ok && result.value.status !== "retry") done(result.value);
        else setTimeout(ask, 50);
      });
    };
    ask();
  }

  async finish(): Promise<void> {
    await sleep(0);
  }
}
