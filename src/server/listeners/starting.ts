/**
 * What a node says of its health while it starts: alive, not ready, and how far it is.
 *
 * Invariants: 1. Nothing here waits or asks anybody.
 */
import type { HealthAnswer, HealthCheck } from "../../operations/api/administration.js";
import type { HealthSource } from "../../rest/routes/node-routes.js";

const WAITING: readonly HealthCheck["name"][] = ["leaders", "applied"];

export class Starting implements HealthSource {
  private readonly startedMs: number;
  /** What the start is at, for `?verbose`. */
  phase = "reading the configuration";
  /** What an empty data directory waits for; "" when nothing. */
  waitingFor: () => string = () => "";

  constructor(
    private readonly version: string,
    private readonly monotonicMs: () => number,
  ) {
    this.startedMs = monotonicMs();
  }

  health(): HealthAnswer {
    return {
      ready: false,
      initialized: false,
      reason: "not-initialized",
      localRole: "not-member",
      hostedPartitions: 0,
      partitionsWithoutLeader: 0,
      version: this.version,
      uptimeMs: Math.floor(this.monotonicMs() - this.startedMs),
    };
  }

  healthChecks(): readonly HealthCheck[] {
    const membership = this.waitingFor();
    return [
      { name: "initialized", failure: `starting: ${this.phase}` },
      { name: "membership", failure: membership === "" ? "starting" : membership },
      ...WAITING.map((name) => ({ name, failure: "starting" })),
      { name: "storage", failure: null },
      { name: "shutdown", failure: null },
    ];
  }

  /** A fault during the start ends the process before anybody could ask. */
  fatalFault(): null {
    return null;
  }
}
