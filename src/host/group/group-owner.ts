/**
 * Who keeps something of groups beside the groups themselves, and is told when one leaves this
 * node.
 *
 * Types only. Invariant: whatever holds a replica, or something by its partition, is one of these
 * (`NodeParts.owners`), so that nothing of a former life is found by the next one (P-042).
 */
import type { Replica } from "./replica.js";

export interface GroupOwner {
  /** `replica` left this node: nothing of it, nor by its partition, is kept. Inside a turn. */
  removed(replica: Replica): void;
}
