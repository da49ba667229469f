/**
 * Fetches the routing metadata in the background, when answers show that it is missing or old.
 *
 * Owns when it may ask again. Invariants: 1. One question at a time, and pauses between them that
 * grow while they fail. 2. A failure is nobody's error: requests go on by hints.
 */
import type { ClientPlatform } from "../time/platform.js";
import type { RoutingMetadata } from "./results.js";

const AGAIN_MS = 10_000;
const FAILED_FIRST_MS = 1000;
const FAILED_LAST_MS = 60_000;

export class MetadataRefresh {
  private readonly platform: ClientPlatform;
  private readonly ask: () => Promise<RoutingMetadata>;
  private readonly take: (metadata: RoutingMetadata) => void;
  private asking = false;
  private notBeforeMs = Number.NEGATIVE_INFINITY;
  private failedMs = FAILED_FIRST_MS;

  constructor(
    platform: ClientPlatform,
    ask: () => Promise<RoutingMetadata>,
    take: (metadata: RoutingMetadata) => void,
  ) {
    this.platform = platform;
    this.ask = ask;
    this.take = take;
  }

  /** A request took a detour. */
  wanted(nowMs: number): void {
    if (this.asking || nowMs < this.notBeforeMs) return;
    this.asking = true;
    void this.fetch();
  }

  private async fetch(): Promise<void> {
    let pauseMs = AGAIN_MS;
    try {
      this.take(await this.ask());
      this.failedMs = FAILED_FIRST_MS;
    } catch {
      // A server without this question, or none that answers: hints do without.
      pauseMs = this.failedMs;
      this.failedMs = Math.min(FAILED_LAST_MS, this.failedMs * 2);
    }
    this.asking = false;
    const { platform } = this;
    this.notBeforeMs = platform.nowMs() + pauseMs * (0.5 + platform.random() / 2);
  }
}
