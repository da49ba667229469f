/**
 * Structured logs by pino, on stderr, as text for people or JSON for machines.
 *
 * Invariants: 1. Logging never blocks the loop for long and never grows memory without bound:
 * beyond BUFFER_MAX_BYTES lines are dropped and counted. 2. The fatal path writes synchronously by
 * itself and does not come through here.
 */
import { Writable } from "node:stream";
import { pino, type Logger } from "pino";
import type { LogFields, LoggerPort, LogLevel } from "../ports.js";
import { LogRing } from "./log-ring.js";
import type { LogLines } from "./metrics/log-lines.js";

const BUFFER_MAX_BYTES = 1024 * 1024;

/** Writes lines to `target` and drops them, counting, while too much waits there. */
class BoundedStream extends Writable {
  /** Lines are kept for whoever asks what happened. */
  isKeeping = true;
  private dropped = 0;

  constructor(
    private readonly target: Writable,
    private readonly lines: LogLines,
    private readonly ring: LogRing,
  ) {
    super({ decodeStrings: false, highWaterMark: BUFFER_MAX_BYTES });
  }

  override _write(line: string, _encoding: string, done: () => void): void {
    if (this.isKeeping) this.ring.add(line.trimEnd());
    if (this.target.writableLength > BUFFER_MAX_BYTES) {
      this.dropped += 1;
      this.lines.dropped += 1;
    } else {
      if (this.dropped > 0) {
        const time = new Date().toISOString();
        const notice = { level: "warn", time, msg: "log lines dropped", count: this.dropped };
        this.target.write(this.shown(`${JSON.stringify(notice)}\n`));
        this.dropped = 0;
      }
      this.target.write(this.shown(line));
    }
    done();
  }

  /** A line as it is written. */
  protected shown(line: string): string {
    return line;
  }
}

/** `2026-01-31T12:00:00.000Z info name event key=value …` from pino's JSON line. */
function textLine(line: string, name: string): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(fields)
    .map(
      ([key, value]) =>
        ` ${key}=${typeof value === "string" ? JSON.stringify(value) : String(value)}`,
    )
    .join("");
  return `${String(time)} ${String(level).padEnd(5)} ${name} ${String(msg)}${details}\n`;
}

class TextStream extends BoundedStream {
  constructor(
    target: Writable,
    lines: LogLines,
    ring: LogRing,
    private readonly name: string,
  ) {
    super(target, lines, ring);
  }

  protected override shown(line: string): string {
    return textLine(line, this.name);
  }
}

/** A logger whose level may change. */
export interface LeveledLogger extends LoggerPort {
  changeLevel(level: LogLevel): void;
  /** The last lines, as JSON. */
  lastLines(): readonly string[];
  /** The same log for lines that are not among the last ones. */
  readonly unkept: LoggerPort;
}

/**
 * A logger that writes to `target`, which is stderr. `name`, the node's, is on every line. No field
 * of a line has a name that the line has already (see LogFields).
 */
export function makeLogger(
  level: LogLevel,
  format: "text" | "json",
  name: string,
  lines: LogLines,
  target: Writable = process.stderr,
): LeveledLogger {
  const ring = new LogRing();
  const stream =
    format === "json"
      ? new BoundedStream(target, lines, ring)
      : new TextStream(target, lines, ring, name);
  const logger: Logger = pino(
    {
      level,
      base: format === "json" ? { name } : null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  const log = (lineLevel: LogLevel, event: string, fields?: LogFields): void => {
    if (logger.isLevelEnabled(lineLevel)) lines.made[lineLevel] += 1;
    if (fields === undefined) logger[lineLevel](event);
    else logger[lineLevel](fields, event);
  };
  let isDebug = level === "debug";
  return {
    log,
    // Asked for by every request: the logger itself works its level out each time.
    get wantsDebug(): boolean {
      return isDebug;
    },
    changeLevel(wanted: LogLevel): void {
      logger.level = wanted;
      isDebug = wanted === "debug";
    },
    lastLines: () => ring.lines(),
    unkept: {
      log(lineLevel, event, fields): void {
        stream.isKeeping = false;
        log(lineLevel, event, fields);
        stream.isKeeping = true;
      },
    },
  };
}
