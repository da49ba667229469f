/**
 * Which groups were run since the last tick: nothing of the others has changed, so that whoever
 * looks after all groups looks at these alone.
 *
 * Invariants: 1. A group that was run is in it until the end of a tick that came after. 2. A group
 * is in it once.
 */
import type { GroupOwner } from "./group-owner.js";
import type { Replica } from "./replica.js";

export class ActiveGroups implements GroupOwner {
  private readonly replicas = new Set<Replica>();
  private readonly hooks: ((replicas: readonly Replica[]) => void)[] = [];

  /** A turn ran these groups. */
  add(replicas: readonly Replica[]): void {
    for (const replica of replicas) this.replicas.add(replica);
    for (const hook of this.hooks) hook(replicas);
  }

  /** In the order in which they were first run. */
  all(): Iterable<Replica> {
    return this.replicas;
  }

  /** Everybody who looks at a tick has looked. */
  clear(): void {
    this.replicas.clear();
  }

  removed(replica: Replica): void {
    this.replicas.delete(replica);
  }

  /** `hook` is called in each turn, after it ran groups. */
  listen(hook: (replicas: readonly Replica[]) => void): void {
    this.hooks.push(hook);
  }
}
