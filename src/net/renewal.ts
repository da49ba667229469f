/**
 * Renews the links after the certificates of their TLS connections changed, so that whoever would
 * not be let in any more does not stay.
 *
 * Owns its timer. Invariants: 1. Connections that began before the change are ended within
 * `linkRenewalMs`. 2. One link at a time: the next follows when the last is back, for as long as
 * there is time to wait for it. 3. Pauses and order vary by chance: nodes that read the same change
 * do not act in step.
 */
import type { TimerHandle } from "../ports.js";
import type { PeerNetworkPorts, PeerNetworkSettings } from "./settings.js";

export interface RenewalOwner {
  /** Nodes with a connection, in either direction, that began before `timeMs`. */
  linkedBefore(timeMs: number): readonly number[];
  /** The link to it stands, or is not wanted any more. */
  isBack(nodeId: number): boolean;
  /** Ends the connections to and from a node; they begin anew by themselves. */
  renewLink(nodeId: number): void;
}

/** What was told to end is gone after this (ms). */
const PAUSE_MIN_MS = 100;
/** A link that does not come back is waited for until this share of the time is left. */
const KEPT_SHARE = 0.25;

export class LinkRenewal {
  private timer: TimerHandle | null = null;
  /** Every connection that is known by then and began before is an old one. */
  private beforeMs = 0;
  private untilMs = 0;
  private last = 0;

  constructor(
    private readonly settings: Pick<PeerNetworkSettings, "handshakeWithinMs" | "linkRenewalMs">,
    private readonly ports: PeerNetworkPorts,
    private readonly owner: RenewalOwner,
  ) {}

  /** The certificates are other ones from now on. */
  begin(): void {
    const { handshakeWithinMs, linkRenewalMs } = this.settings;
    const nowMs = this.ports.clock.monotonicMs();
    // A handshake on its way is one with the old certificates: TLS first, then that of the link.
    this.beforeMs = nowMs + 2 * handshakeWithinMs;
    // One that runs goes on, and ends no later for it.
    if (this.timer !== null) return;
    this.untilMs = nowMs + linkRenewalMs;
    this.last = 0;
    this.plan();
  }

  stop(): void {
    this.timer?.cancel();
  }

  private plan(): void {
    const nowMs = this.ports.clock.monotonicMs();
    const left = this.owner.linkedBefore(this.beforeMs).length;
    if (left === 0 && nowMs >= this.beforeMs) {
      this.timer = null;
      return;
    }
    const chance = this.ports.entropy.uint32() / 0x1_0000_0000;
    const shareMs = (this.untilMs - nowMs) / (left + 1);
    const pauseMs = Math.max(shareMs * (0.5 + chance / 2), this.beforeMs - nowMs, PAUSE_MIN_MS);
    this.timer = this.ports.timer.after(pauseMs, () => this.turn());
  }

  private turn(): void {
    const nowMs = this.ports.clock.monotonicMs();
    const { owner, settings } = this;
    const mayWait = this.untilMs - nowMs > settings.linkRenewalMs * KEPT_SHARE;
    const isFree = this.last === 0 || owner.isBack(this.last) || !mayWait;
    const old = owner.linkedBefore(this.beforeMs);
    const next = old[this.ports.entropy.uint32() % Math.max(1, old.length)];
    // A change while this runs: what is renewed now could still be of the old.
    if (next !== undefined && isFree && nowMs >= this.beforeMs) {
      this.last = next;
      const event = "Renewing the link with a peer: the certificates changed.";
      this.ports.logger.log("info", event, { peer: next, left: old.length - 1 });
      owner.renewLink(next);
    }
    this.plan();
  }
}
