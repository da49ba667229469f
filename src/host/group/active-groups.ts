/**
 * Which groups were run since the last beat: nothing of the others has changed, so that whoever
 * looks after all groups looks at these alone.
 *
 * Invariants: 1. A group that was run is in it until the end of a beat that came after. 2. A group
 * is in it once.
 */
import type { GroupDriver } from "./driver.js";

export class ActiveGroups {
  private readonly drivers = new Set<GroupDriver>();
  private readonly hooks: ((drivers: readonly GroupDriver[]) => void)[] = [];

  /** A turn ran these groups. */
  add(drivers: readonly GroupDriver[]): void {
    for (const driver of drivers) this.drivers.add(driver);
    for (const hook of this.hooks) hook(drivers);
  }

  /** In the order in which they were first run. */
  all(): Iterable<GroupDriver> {
    return this.drivers;
  }

  /** Everybody who looks at a beat has looked. */
  clear(): void {
    this.drivers.clear();
  }

  /** `hook` is called in each turn, after it ran groups. */
  listen(hook: (drivers: readonly GroupDriver[]) => void): void {
    this.hooks.push(hook);
  }
}
