/**
 * The members of the node debug (contract 5.7) that are at hand, each read from where it is kept.
 *
 * Invariants: 1. Names of stored data are in none of them: what is listed is numbers, states,
 * addresses, paths and partitions. 2. Reading changes nothing.
 */
import { PROGRAM } from "../base/levels.js";
import { VERSION } from "../base/generated/version.js";
import type { Disk } from "../disk/open.js";
import type { Node } from "../host/node.js";
import type { Operations } from "../operations/operations.js";
import type { ServerConfig } from "./flags/server-config.js";
import { processFacts } from "./node-debug.js";

interface Parts {
  readonly config: ServerConfig;
  readonly node: Node;
  readonly disk: Disk;
  readonly operations: Operations;
}

/** An answer that is given in the turn of the call. */
function answerOf(operations: Operations, name: keyof Operations["administration"]): unknown {
  let found: unknown = null;
  const call = operations.administration[name] as (
    request: object,
    context: object,
    done: (end: { readonly answer?: unknown }) => void,
  ) => void;
  const context = { deadlineMs: Infinity, forwardHops: 0, requestId: "node-debug" };
  call({}, context, (end) => (found = end.answer ?? null));
  return found;
}

function logFacts({ node }: Parts): object {
  const { logBytes, logFull, unwrittenBytes, refusedAppends, logCuts, backupLog } = node.facts();
  return { logBytes, logFull, unwrittenBytes, refusedAppends, logCuts, backupLog };
}

function storeFacts({ node, disk, config }: Parts): object {
  const { storeBytes, storeFull, unflushedBytes, flushes, heldGroups } = node.facts();
  const volumes = Object.fromEntries(disk.space?.volumes() ?? []);
  const maxBytes = config.storageMaxBytes;
  const written = { storeBytes, storeFull, unflushedBytes, flushes, heldGroups };
  return { ...written, maxBytes, ...disk.figures(), volumes };
}

function linkFacts({ node }: Parts): object {
  const { peers, droppedFrames, oversizedMessages, badItems, strays, transfers } = node.facts();
  return { peers, droppedFrames, oversizedMessages, badItems, strays, transfers };
}

/** By the names that the members have. */
export function debugFacts(parts: Parts): Readonly<Record<string, () => unknown>> {
  const { config, node, operations } = parts;
  return {
    config: () => config,
    version: () => VERSION,
    level: () => ({ ...node.levels(), program: PROGRAM }),
    health: () => ({ ...operations.health(), checks: operations.healthChecks() }),
    membership: () => answerOf(operations, "cluster.membership"),
    placement: () => answerOf(operations, "cluster.placement"),
    partitions: () => node.groups().map((group) => group.facts()),
    links: () => linkFacts(parts),
    log: () => logFacts(parts),
    store: () => storeFacts(parts),
    process: processFacts,
  };
}
