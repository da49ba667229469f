/**
 * Settings that change while the node runs: read anew from the files that stand for them (contract
 * 10.8).
 *
 * Owns its watch. Invariants: 1. A mistake keeps the old value of its flag, and is told; other
 * flags go on. 2. What did not change is not told.
 */
import { FLAGS } from "./flags/flag-table.js";
import { readValue } from "./flags/flags.js";
import { LIVE_FLAGS, type LiveFlag, liveMistake, liveText } from "./flags/live-flags.js";
import type { ServerConfig } from "./flags/server-config.js";
import { WatchedFiles } from "./security/watched-files.js";
import type { LogLevel } from "../ports.js";

/** Where values go. */
export interface LiveTargets {
  logLevel(level: LogLevel): void;
  slowRequestMs(thresholdMs: number): void;
  callerRateLimit(perSecond: number): void;
}

/** Hears of a change, or why there is none. */
type Reloaded = (what: string, mistake: string | null, fields?: { readonly value: string }) => void;

export class LiveSettings {
  private readonly watches: readonly WatchedFiles[];
  private readonly texts = new Map<LiveFlag, string>();

  constructor(
    private readonly files: ServerConfig["liveFiles"],
    private readonly targets: LiveTargets,
    private readonly reloaded: Reloaded,
  ) {
    const given = LIVE_FLAGS.filter((flag) => files[flag] !== undefined);
    this.watches = given.map((flag) => {
      const path = files[flag] as string;
      const text = liveText(path);
      if (text.ok) this.texts.set(flag, text.value);
      return new WatchedFiles([path], () => this.read(flag, path));
    });
  }

  reload(): void {
    for (const watch of this.watches) watch.taken();
    for (const flag of LIVE_FLAGS) {
      const path = this.files[flag];
      if (path !== undefined) this.read(flag, path);
    }
  }

  close(): void {
    for (const watch of this.watches) watch.close();
  }

  private read(flag: LiveFlag, path: string): void {
    const what = flag.slice(2);
    const text = liveText(path);
    if (!text.ok) return this.reloaded(what, `${flag}: ${text.message}`);
    if (text.value === this.texts.get(flag)) return;
    const row = FLAGS.find(({ name }) => name === flag);
    const value = row === undefined ? null : readValue(row, text.value);
    if (value?.ok !== true) {
      return this.reloaded(what, `${flag}: ${path}: "${text.value}" is not ${value?.message}`);
    }
    const mistake = liveMistake(flag, value.value as string | number);
    if (mistake !== null) return this.reloaded(what, mistake);
    this.texts.set(flag, text.value);
    this.apply(flag, value.value as string | number);
    this.reloaded(what, null, { value: text.value });
  }

  private apply(flag: LiveFlag, value: string | number): void {
    const { targets } = this;
    if (flag === "--log-level") targets.logLevel(value as LogLevel);
    else if (flag === "--slow-request-threshold") targets.slowRequestMs(value as number);
    else targets.callerRateLimit(value as number);
  }
}
