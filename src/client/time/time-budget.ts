/**
 * One deadline for an operation that makes several calls.
 *
 * Owns the instant at which it ends. Invariants: 1. No call is given more than what is left, nor
 * more than it would have had alone.
 */
import { TimeoutError } from "../values/errors.js";
import { checkDeadline, type CallOptions } from "../values/options.js";
import type { ClientPlatform } from "./platform.js";

export class TimeBudget {
  private readonly platform: ClientPlatform;
  private readonly name: string;
  private readonly durationMs: number;
  private readonly untilMs: number;

  /** Begins now. `durationMs`: may be Infinity. Throws InvalidInputError, naming `option`. */
  constructor(platform: ClientPlatform, name: string, durationMs: number, option = "deadlineMs") {
    this.platform = platform;
    this.name = name;
    this.durationMs = checkDeadline(durationMs, option);
    this.untilMs = platform.nowMs() + this.durationMs;
  }

  /** `options` for the next call. `callMs`: the most for it. Throws TimeoutError when the time is over. */
  rest<Options extends CallOptions>(
    options: Options | undefined,
    callMs = Number.POSITIVE_INFINITY,
  ): Options & { readonly deadlineMs: number } {
    checkDeadline(callMs);
    const leftMs = this.untilMs - this.platform.nowMs();
    if (leftMs <= 0) {
      const message = `${this.name}: not finished within ${Math.round(this.durationMs)} ms`;
      throw new TimeoutError(message);
    }
    return { ...(options as Options), deadlineMs: Math.min(leftMs, callMs) };
  }
}
