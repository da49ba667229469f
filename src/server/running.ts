/**
 * A node that runs: where it listens, and how it is taken apart.
 *
 * Owns the parts. Invariants: 1. A node that is to stop says at once that it is not ready, and may
 * serve on for a while. What this takes beyond the delay, and beyond leaving the cluster, is part
 * of the shutdown timeout. 2. The stop ends intake first, then answers what was accepted and hands
 * leaderships over, then closes log and store, then the links, and gives the directory back last.
 * 3. A stop that does not end ends the process.
 */
import type { Disk } from "../disk/open.js";
import type { Node } from "../host/node.js";
import type { Operations } from "../operations/operations.js";
import type { FatalPort, LoggerPort } from "../ports.js";
import { systemClock, systemTimers } from "../sys.js";
import type { ServerConfig } from "./flags/config.js";
import type { AuditLog } from "./security/audit.js";
import type { HealthListener } from "./listeners/health-listener.js";
import type { ListenAddresses, Listeners } from "./listeners/listeners.js";
import type { LiveSettings } from "./live-settings.js";
import type { Metrics } from "./metrics/metrics.js";
import type { Peers } from "./listeners/peers.js";
import type { TokenFile } from "./security/tokens.js";
import type { SpanExporter } from "./tracing/exporter.js";
import { VERSION } from "../base/generated/version.js";

export interface RunningServer {
  readonly addresses: ListenAddresses;
  /** The one line for stdout. */
  readonly listeningLine: string;
  /** Reads again what may change while the node runs. */
  reload(): void;
  /** Graceful stop; `done` is called when everything is closed. */
  stop(done: () => void): void;
}

/** After the deadline of the stop, connections get this long to take their last bytes (ms). */
const CLOSE_GRACE_MS = 500;
/**
 * A disk that never answers cannot hold the process: this long after the deadline it is ended (ms).
 */
const HARD_STOP_MS = 5000;

/** Looks at what this node still leads (ms). */
const WITHDRAW_LOOK_MS = 10;

/** Beside the drain, a node that leaves gets this long to have it committed (ms). */
const LEAVE_CONFIRM_MS = 30_000;

/** What stands below the operations. */
export interface Stack {
  readonly peers: Peers;
  readonly disk: Disk;
  readonly node: Node;
}

export interface Parts extends Stack {
  readonly operations: Operations;
  readonly listeners: Listeners;
  readonly tokens: TokenFile | null;
  readonly health: HealthListener | null;
  readonly audit: AuditLog;
  readonly live: LiveSettings;
  readonly traces: SpanExporter | null;
}

export class Assembled implements RunningServer {
  constructor(
    private readonly config: ServerConfig,
    private readonly parts: Parts,
    private readonly metrics: Metrics,
    private readonly logger: LoggerPort,
    private readonly fatal: FatalPort,
  ) {}

  get addresses(): ListenAddresses {
    return this.parts.listeners.addresses;
  }

  get listeningLine(): string {
    const { grpc, https, http } = this.addresses;
    const clients = `grpc=${grpc ?? "off"} https=${https ?? "off"} http=${http ?? "off"}`;
    const shown = `${clients} peer=${this.parts.peers.address ?? "off"}`;
    const { health } = this.parts;
    const probes = health === null ? "" : ` health=${health.address}`;
    const { console: own } = this.addresses;
    const pages = own === null ? "" : ` console=${own}`;
    return `svc-server ${VERSION} listening ${shown} node=${this.config.nodeId}${probes}${pages}`;
  }

  reload(): void {
    this.parts.audit.reopen();
    this.parts.tokens?.reload();
    this.parts.listeners.reload();
    this.parts.peers.reload();
    this.parts.live.reload();
  }

  stop(done: () => void): void {
    const { shutdownDelayMs, shutdownTimeoutMs, gracefulLeave } = this.config;
    let servesUntilMs = systemClock.monotonicMs() + shutdownDelayMs;
    this.logger.log("info", "stopping", { shutdownDelayMs });
    this.parts.audit.happened("stopping", { shutdownDelayMs });
    // Whoever waits for a lock would hold the stop up, and finds its place at another node.
    this.parts.operations.endWaits();
    let open = 3;
    const next = (): void => {
      open -= 1;
      if (open === 0) this.end(servesUntilMs + shutdownTimeoutMs, done);
    };
    // Unready at once, and soon leading nothing; whoever has not learned of it yet is served, and
    // what arrives for a group on its way goes on to the next leader.
    this.withdraw(next);
    systemTimers.after(shutdownDelayMs, next);
    if (!gracefulLeave) return next();
    this.leave(() => {
      servesUntilMs = Math.max(servesUntilMs, systemClock.monotonicMs());
      next();
    });
  }

  /** Gives the leaderships away, within half of the time that the stop has. */
  private withdraw(done: () => void): void {
    const { node } = this.parts;
    const untilMs = systemClock.monotonicMs() + this.config.shutdownTimeoutMs / 2;
    node.withdraw();
    const look = (): void => {
      if (!node.hasHeirs || systemClock.monotonicMs() >= untilMs) return done();
      systemTimers.after(WITHDRAW_LOOK_MS, look);
    };
    look();
  }

  private leave(done: () => void): void {
    const { drainTimeoutMs } = this.config;
    const deadlineMs = systemClock.monotonicMs() + drainTimeoutMs + LEAVE_CONFIRM_MS;
    this.parts.node.leave(deadlineMs, drainTimeoutMs, (outcome) => {
      const left = outcome === "Committed" || outcome === "NotAMember";
      this.logger.log(left ? "info" : "warn", "leaving the cluster before the stop", { outcome });
      done();
    });
  }

  private end(deadlineMs: number, done: () => void): void {
    const graceMs = Math.max(0, deadlineMs - systemClock.monotonicMs());
    const hardStop = systemTimers.after(graceMs + HARD_STOP_MS, () => {
      this.fatal.fatal("the stop did not end: log or state store do not answer");
    });
    let open = 2;
    const ended = (): void => {
      open -= 1;
      if (open > 0) return;
      hardStop.cancel();
      this.parts.tokens?.close();
      this.parts.live.close();
      this.parts.health?.close();
      this.parts.traces?.close();
      this.parts.audit.happened("stopped", {});
      this.parts.audit.close();
      this.metrics.close();
      this.logger.log("info", "stopped");
      done();
    };
    // The node hands its leaderships over and closes log and store; what other nodes were asked is
    // answered; then nobody is to be heard any more, and the locks of the directory go last.
    const { node, operations, peers, disk, traces } = this.parts;
    operations.endBackups();
    node.stop(deadlineMs, () => {
      operations.finish(deadlineMs, () => {
        // Nobody waits for it: what the collector has not taken when the rest is closed is lost.
        traces?.flush();
        peers.close(() => disk.close(ended));
      });
    });
    this.parts.listeners.drain();
    this.parts.listeners.close(graceMs + CLOSE_GRACE_MS).then(ended, ended);
  }
}
