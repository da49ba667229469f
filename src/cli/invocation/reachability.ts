/**
 * Says which endpoint cannot be reached, and why, while a command waits and when it fails.
 *
 * Owns a timer. Invariants: 1. Nothing happens within the first second (or half of a shorter time
 * limit). 2. It never keeps the process alive, and its own failure is none of the command's.
 */
import type { TlsOptions } from "../../client/mod.js";
import { explainFailure } from "./failures.js";

const FIRST_MS = 1000;
const STEP_MS = 2000;
const PROBE_MS = 1000;

export class Reachability {
  private readonly endpoints: readonly string[];
  private readonly tls: () => TlsOptions;
  private readonly onFound: (text: string) => void;
  private timer: NodeJS.Timeout | null = null;
  private isEnded = false;
  private found: string | null = null;

  /**
   * `limitMs`: time limit of the command, null = none. `onFound` gets what a person should know.
   */
  constructor(
    endpoints: readonly string[],
    tls: () => TlsOptions,
    limitMs: number | null,
    onFound: (text: string) => void,
  ) {
    this.endpoints = endpoints;
    this.tls = tls;
    this.onFound = onFound;
    this.schedule(Math.min(FIRST_MS, (limitMs ?? FIRST_MS * 2) / 2));
  }

  end(): void {
    this.isEnded = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /** Adds what was found to the message of `error`. */
  explain(error: unknown): void {
    if (this.found !== null && error instanceof Error) explainFailure(error, this.found);
  }

  private schedule(waitMs: number): void {
    this.timer = setTimeout(() => {
      // A file that vanished meanwhile: then there is no hint.
      this.look().catch(() => undefined);
    }, waitMs);
    this.timer.unref();
  }

  private async look(): Promise<void> {
    const { probe } = await import("./probe.js");
    const tls = this.tls();
    const reasons = await Promise.all(
      this.endpoints.map((endpoint) => probe(endpoint, tls, PROBE_MS)),
    );
    if (this.isEnded) return;
    const parts = this.endpoints.map((endpoint, at) => {
      const reason = reasons[at] ?? null;
      return reason === null
        ? `${endpoint} accepts connections`
        : `cannot reach ${endpoint}: ${reason}`;
    });
    const isAnyOut = reasons.some((reason) => reason !== null);
    this.found = isAnyOut ? parts.join("; ") : null;
    this.onFound(parts.join("; "));
    this.schedule(STEP_MS);
  }
}
