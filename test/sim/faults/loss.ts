/**
 * Faults that take the data of one node away, in worlds where somebody replaces it: an emptied disk,
 * and one that is put back as it was some restarts ago.
 *
 * The atlas was asked before. Invariant: a disk is put back only where every other whole node knows
 * of a start that the copy does not: nothing else tells the copy from the disk (P-190).
 */
import type { Prng } from "../../../src/base/prng.js";
import { IDENTITY_KEY, decodeIdentity } from "../../../src/host/storage/identity.js";
import { KnownPeers } from "../../../src/host/cluster/known-peers.js";
import type { DataCopy, Server } from "../world/server.js";
import { SimRows } from "../disk/store.js";

/** A nonce that no start ever drew, but for a chance of one in 4 billion. */
const OTHER_NONCE = 0xdead_beef;

/** False: nothing was done. */
export function loseDisk(server: Server): boolean {
  server.isDamaged = true;
  server.wipe();
  return true;
}

/** False: there is no copy that all others would know. */
export function rollBack(server: Server, servers: readonly Server[], prng: Prng): boolean {
  const others = servers.filter((other) => other !== server && !other.isDamaged && !other.isLost);
  const able = server.copies.filter((copy) => {
    return others.every((other) => knowsBetter(other, server, copy));
  });
  const copy = able[prng.below(Math.max(1, able.length))];
  if (copy === undefined) return false;
  server.isDamaged = true;
  server.rollBack(copy);
  return true;
}

/** Whether the disk of `other` tells a start from `copy` from the starts that it met. */
function knowsBetter(other: Server, server: Server, copy: DataCopy): boolean {
  const known = new KnownPeers({
    get: (key) => other.rows.value(key),
    put: () => undefined,
    flushSoon: () => undefined,
  });
  known.load();
  const rows = new SimRows(server.world, server.nodeId, server.rows.prng, { commitMs: 0 });
  rows.restore(copy.rows);
  const bytes = rows.value(IDENTITY_KEY);
  const identity = bytes === null ? null : decodeIdentity(bytes);
  if (identity === null) return false;
  const { bootNumber, bootNonces } = identity;
  return known.isOvertaken({
    nodeId: server.nodeId,
    storageId: server.storageId,
    bootNumber: bootNumber + 1,
    bootNonce: OTHER_NONCE,
    earlierNonces: bootNonces,
  });
}
