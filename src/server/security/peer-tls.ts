/**
 * Certificate, key and CA of the peers, and their renewal while the node runs.
 *
 * Owns what is in force. Invariants: 1. All of it is read and checked before any of it is used; a
 * mistake keeps what there is. 2. Who uses it is told only of what is different.
 */
import { type Result, ok } from "../../base/result.js";
import type { PeerTls } from "../../net/settings.js";
import type { ServerConfig } from "../flags/config.js";
import type { Metrics } from "../metrics/metrics.js";
import { expirySeconds, peerTlsFiles, peerTlsTexts } from "./tls-files.js";
import { WatchedFiles } from "./watched-files.js";

/** Who is told of reloads. */
export interface PeerTlsReports {
  /** A mistake, or null. */
  readonly reloaded: (what: "peer-certificate", mistake: string | null) => void;
  readonly metrics: Pick<Metrics, "certificateExpires" | "peerEchoed">;
}

export class PeerCertificates {
  private readonly files: WatchedFiles;
  /** Called when what is in force became different. */
  renewed: () => void = () => undefined;

  private constructor(
    private readonly config: ServerConfig,
    private inForce: PeerTls,
    private readonly reports: PeerTlsReports,
  ) {
    this.files = new WatchedFiles(peerTlsFiles(config), () => this.reload());
    this.measure();
  }

  /** Null: peers speak without TLS. */
  static open(
    config: ServerConfig,
    reports: PeerTlsReports,
  ): Result<PeerCertificates | null, "usage"> {
    const texts = peerTlsTexts(config);
    if (!texts.ok) return texts;
    return ok(texts.value === null ? null : new PeerCertificates(config, texts.value, reports));
  }

  get current(): PeerTls {
    return this.inForce;
  }

  reload(): void {
    this.files.taken();
    const texts = peerTlsTexts(this.config);
    if (texts.ok && texts.value !== null) this.put(texts.value);
    this.reports.reloaded("peer-certificate", texts.ok ? null : texts.message);
  }

  close(): void {
    this.files.close();
  }

  private put(tls: PeerTls): void {
    const { certificate, key, ca } = this.inForce;
    if (tls.certificate === certificate && tls.key === key && tls.ca === ca) return;
    this.inForce = tls;
    this.measure();
    this.renewed();
  }

  private measure(): void {
    this.reports.metrics.certificateExpires("peer", expirySeconds(this.inForce.certificate));
  }
}
