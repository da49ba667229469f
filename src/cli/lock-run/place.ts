/** Tells whoever waits for a lock at a terminal how many are before it. */
import type { LockInfoOptions, SvcClient } from "../../client/mod.js";
import { tellMeanwhile, type Showing } from "../terminal/meanwhile.js";

/** Carries `wait` out, and shows meanwhile which place it has in the queue of `resource`. */
export function tellPlace<Value>(
  showing: Showing,
  client: SvcClient,
  resource: string,
  asked: Pick<LockInfoOptions, "owner" | "durability">,
  wait: () => Promise<Value>,
): Promise<Value> {
  return tellMeanwhile(
    showing,
    async (calling) => {
      const info = await client.locks.info(resource, { ...asked, ...calling });
      if (info === null || info.position === 0) return null;
      return `waiting for the lock ${resource}: place ${info.position} of ${info.waiters}`;
    },
    wait,
  );
}
