/**
 * Properties W13, W15, W16: what watches keep is bounded at every look, a full stream is given nothing
 * but ends, and nothing is left of them once nobody watches any more.
 */
import { Findings, type Verdict } from "../verdict.js";

export const WATCH_BOUNDED = { "looks at nodes": 20, "full streams": 1 };
export const NO_WATCHERS = { "nodes without watches": 1 };

/** What a node keeps for watches. */
export interface WatchSizes {
  readonly node: number;
  readonly historyBytes: number;
  readonly historyMaxBytes: number;
  readonly watches: number;
  readonly streams: number;
  /** That the clients of the world have at it, or are about to end. */
  readonly watchesMost: number;
  readonly streamsMost: number;
}

export class WatchBounded {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = WATCH_BOUNDED) {
    this.findings = new Findings("what watches keep is bounded", minimum);
  }

  look(sizes: WatchSizes): void {
    const { node, historyBytes, historyMaxBytes, watches, streams } = sizes;
    this.findings.count("looks at nodes");
    const over = (what: string, count: number, most: number): void => {
      if (count > most) this.findings.violation(`node ${node} has ${count} ${what} of ${most}`);
    };
    over("bytes of history", historyBytes, historyMaxBytes);
    over("watches", watches, sizes.watchesMost);
    over("streams", streams, sizes.streamsMost);
  }

  /** A message was given to a stream. */
  delivered(who: string, isFull: boolean, isEnd: boolean, sizeBytes: number, most: number): void {
    if (isFull && !isEnd) this.findings.violation(`${who} is full and is given a message`);
    if (sizeBytes > most) this.findings.violation(`${who} is given ${sizeBytes} bytes at once`);
  }

  full(): void {
    this.findings.count("full streams");
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

/** A node after the last watch and the time in which what happened is kept. */
export interface UnwatchedNode {
  readonly node: number;
  readonly filters: number;
  readonly leases: number;
  readonly historyBytes: number;
  /** Groups whose applying is looked at. */
  readonly taps: number;
  /** Events that were made meanwhile. */
  readonly events: number;
}

export class NoWatchers {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = NO_WATCHERS) {
    this.findings = new Findings("without watchers watching costs nothing", minimum);
  }

  look({ node, ...kept }: UnwatchedNode): void {
    this.findings.count("nodes without watches");
    for (const [what, count] of Object.entries(kept)) {
      if (count > 0) this.findings.violation(`node ${node} has ${count} ${what} for nobody`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
