/**
 * Watches for the front ends: what the host tells, with the way to another node where one ends.
 *
 * Invariants: 1. Nothing is decided here.
 */
import { partitionId } from "../base/ids.js";
import type { WatchHub } from "../host/watching/hub.js";
import type { WatchStream } from "../host/watching/messages.js";
import type { WatchReceiver, Watches } from "./api/requests.js";
import type { Origins } from "./serving/origins.js";

export function watchesOf(hub: WatchHub, origins: Origins): Watches {
  return {
    tally: hub.tally,
    open(receiver: WatchReceiver): WatchStream {
      return hub.open({
        deliver(message) {
          const { partition } = message;
          const at = partition === null ? null : partitionId(partition);
          const { route } = origins.elsewhere(
            at === null ? null : { partition: at, generation: 0 },
          );
          receiver.deliver(message, route);
        },
        isFull: () => receiver.isFull(),
        mayRead: () => receiver.mayRead(),
      });
    },
  };
}
