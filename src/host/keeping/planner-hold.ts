/**
 * The hold of the planners for a backup: nothing is moved without need while it is taken.
 *
 * Invariant: it is renewed until it is released, and ends by itself where its renewals stop.
 */
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import type { KeeperWorld } from "./keeper-world.js";

const HOLD_MS = 60_000;
const RENEW_MS = 20_000;
const PATIENCE_MS = 5000;

export class PlannerHold {
  private state: "none" | "held" | "released" = "none";

  constructor(
    private readonly world: Pick<KeeperWorld, "nowMs" | "waits">,
    private readonly proposeOnMeta: ProposeOnMeta,
    private readonly holder: string,
  ) {}

  hold(): void {
    if (this.state === "released") return;
    this.state = "held";
    this.propose(HOLD_MS);
    this.world.waits.after(RENEW_MS, () => this.hold());
  }

  release(): void {
    if (this.state === "held") this.propose(0);
    this.state = "released";
  }

  private propose(forMs: number): void {
    const command = { kind: "hold-planner", holder: this.holder, forMs } as const;
    this.proposeOnMeta(command, this.world.nowMs() + PATIENCE_MS, () => undefined);
  }
}
