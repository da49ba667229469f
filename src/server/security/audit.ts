/**
 * The audit log: who called what needs the role admin, who was refused, and what happened to the
 * node itself.
 *
 * Owns the file. Invariants: 1. A line is written whole, in the turn of what it tells: nothing that
 * was done is missing after a crash of the process. 2. Refusals, which removed members can cause,
 * are bounded per second; how many were left out, the next line says. 3. A file that cannot be
 * written is told in the ordinary log and stops nothing.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { failure, ok, type Result } from "../../base/result.js";
import type { AuditEntry, AuditPort } from "../../operations/api/audit.js";
import type { LogFields, LoggerPort } from "../../ports.js";
import type { ServerConfig } from "../flags/config.js";

const DENIED_PER_SECOND = 20;
/** Only its owner and group may read what callers did. */
const FILE_MODE = 0o640;

export class AuditLog implements AuditPort {
  private descriptor = -1;
  private secondMs = 0;
  private deniedInSecond = 0;
  private leftOut = 0;

  private constructor(
    private readonly target: string,
    private readonly node: string,
    private readonly logger: LoggerPort,
    private readonly nowMs: () => number,
  ) {}

  /** `target`: off, stderr, or the path of a file to append to. */
  static open(
    target: string,
    node: string,
    logger: LoggerPort,
    nowMs: () => number,
  ): Result<AuditLog, "usage"> {
    const log = new AuditLog(target, node, logger, nowMs);
    if (!log.isFile) return ok(log);
    try {
      log.descriptor = openSync(target, "a", FILE_MODE);
      return ok(log);
    } catch (error) {
      return failure("usage", `--audit-log: cannot append to ${target}: ${String(error)}`);
    }
  }

  private get isFile(): boolean {
    return this.target !== "off" && this.target !== "stderr";
  }

  administered(entry: AuditEntry): void {
    this.write("info", "administrative call", { ...entry });
  }

  denied(entry: AuditEntry): void {
    const nowMs = this.nowMs();
    if (nowMs >= this.secondMs + 1000) {
      this.secondMs = nowMs;
      this.deniedInSecond = 0;
    }
    this.deniedInSecond += 1;
    if (this.deniedInSecond > DENIED_PER_SECOND) {
      this.leftOut += 1;
      return;
    }
    const more = this.leftOut > 0 ? { leftOut: this.leftOut } : {};
    this.leftOut = 0;
    this.write("warn", "call refused", { ...entry, ...more });
  }

  /** Something of the node itself. The ordinary log tells it already, so it is no line there. */
  happened(event: string, fields: LogFields): void {
    if (this.target !== "off") this.write("info", event, fields);
  }

  /** Goes on in a file of the same name: the old one was moved away. */
  reopen(): void {
    if (!this.isFile) return;
    try {
      const descriptor = openSync(this.target, "a", FILE_MODE);
      this.close();
      this.descriptor = descriptor;
    } catch (error) {
      this.failed(error);
    }
  }

  close(): void {
    if (this.descriptor >= 0) closeSync(this.descriptor);
    this.descriptor = -1;
  }

  private write(level: "info" | "warn", event: string, fields: LogFields): void {
    if (this.target === "off") return this.logger.log(level, event, fields);
    const time = new Date().toISOString();
    const line = `${JSON.stringify({ time, node: this.node, event, ...fields })}\n`;
    if (this.target === "stderr") {
      process.stderr.write(line);
      return;
    }
    try {
      writeSync(this.descriptor, line);
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    const fields = { path: this.target, error: String(error) };
    this.logger.log("error", "the audit log cannot be written", fields);
  }
}

/** Tells two configurations apart, and nothing of what is in them. */
export function configDigest(config: ServerConfig): string {
  return createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 16);
}
