/**
 * Ports of a real process for tests that open a real disk. A fatal fault throws.
 */
import type { DiskPorts } from "../../../src/disk/open.js";
import type { LogFields } from "../../../src/ports.js";
import { systemTimers } from "../../../src/sys.js";

export interface Told {
  readonly event: string;
  readonly fields: LogFields | undefined;
}

export function diskPorts(told: Told[] = []): DiskPorts {
  return {
    timers: {
      after(delayMs, callback) {
        const timer = setTimeout(callback, delayMs);
        timer.unref();
        return { cancel: () => clearTimeout(timer) };
      },
      soon: systemTimers.soon,
    },
    clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
    logger: { log: (_level, event, fields) => void told.push({ event, fields }) },
    fatal: {
      fatal(reason, fields) {
        throw new Error(`${reason} ${JSON.stringify(fields)}`);
      },
    },
    meter: { logSyncMs: () => undefined },
  };
}
