/**
 * What an answer names as its origin: who executed it, or where to go instead.
 *
 * Invariants: 1. Nobody is sent to a node that this one just failed to reach (P-150).
 */
import type { PartitionId } from "../../base/ids.js";
import type { ClockPort } from "../../ports.js";
import type { GroupAccess } from "../api/host-view.js";
import { type RouteHint, RouteProvenance } from "../api/answers.js";
import type { OperationsSettings } from "../api/settings.js";
import { NOWHERE, type Origin } from "../api/shapes.js";
import type { Calls } from "../forwarding/calls.js";
import type { Leaders } from "../forwarding/leaders.js";

export class Origins {
  constructor(
    private readonly settings: OperationsSettings,
    private readonly clock: ClockPort,
    private readonly leaders: Leaders,
    private readonly calls: Calls,
  ) {}

  /** Named in answers of `group` on this node. `generation`: of the range; 0 = by hash. */
  executed(group: GroupAccess, generation = 0): Origin {
    const { clientEndpoint: endpoint, routingHints } = this.settings;
    const { partition: partitionId } = group;
    const { executed: provenance } = RouteProvenance;
    const route = routingHints ? { partitionId, endpoint, provenance, generation } : null;
    return { servedFrom: endpoint, route };
  }

  /** Named in a MustRetry of `group`: where to go next, which need not be this node. */
  retry(group: GroupAccess): Origin {
    if (group.isLeader()) return this.executed(group);
    return { servedFrom: this.settings.clientEndpoint, route: this.hint(group.partition, 0) };
  }

  /** Named when nothing was done here and another node may know more; null when nobody does. */
  elsewhere(
    route: { readonly partition: PartitionId; readonly generation: number } | null,
  ): Origin {
    if (route === null) return NOWHERE;
    return { ...NOWHERE, route: this.hint(route.partition, route.generation) };
  }

  private hint(partition: PartitionId, generation: number): RouteHint | null {
    const nowMs = this.clock.monotonicMs();
    const isReachable = (node: number): boolean => this.calls.isReachable(node, nowMs);
    return this.leaders.hint(partition, generation, isReachable);
  }
}
