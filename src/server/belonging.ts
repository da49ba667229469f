/**
 * Which cluster this node belongs to, and with whom its groups begin: by its data directory, else
 * by what it is told and hears (contract 5.6).
 *
 * Invariants: 1. A directory that belongs to a cluster is never asked about again. 2. The id of a
 * cluster comes from the directory, else from the list of founders, else from the members that are
 * asked, else it is drawn. 3. While an empty directory waits, others hear that it is empty.
 */
import { failure, ok, type Result } from "../base/result.js";
import { storedIdentity, type Disk, type DiskCode } from "../disk/open.js";
import { type Entered, foundersOf } from "../host/entering.js";
import { IDENTITY_KEY } from "../host/identity.js";
import { fromByteKey } from "../machine/keys.js";
import type { Founder, LoggerPort } from "../ports.js";
import { clusterIdOf } from "./cluster-flags.js";
import type { ServerConfig } from "./config.js";
import { type Peers, randomHex } from "./peers.js";

function isAlone({ initialCluster, join }: ServerConfig): boolean {
  return initialCluster.length === 0 && join.length === 0;
}

/** The cluster that the data directory belongs to, or will belong to. */
export async function findClusterId(
  config: ServerConfig,
  peers: Peers,
  logger: LoggerPort,
): Promise<Result<string, DiskCode>> {
  const { storage: adapter, storagePath: path, storageRevision: revision } = config;
  const { initialCluster, initialClusterState, join } = config;
  const stored = storedIdentity({ adapter, path, revision });
  if (!stored.ok) return stored;
  if (stored.value !== null) return ok(stored.value.clusterId);
  if (isAlone(config)) return ok(randomHex(32));
  if (initialClusterState === "new" && peers.entering.isFounder) {
    return ok(clusterIdOf(initialCluster, config.partitions));
  }
  logger.log("info", "asking which cluster to join", { seeds: join.join(",") });
  return ok(await new Promise((resolve) => peers.entering.findCluster(resolve)));
}

/**
 * The nodes that the groups of an empty data directory begin with; none where it belongs to a
 * cluster already. A joiner's come from the cluster, with ids only: its roster brings the addresses.
 */
export async function findFounders(
  config: ServerConfig,
  peers: Peers,
  disk: Disk,
  logger: LoggerPort,
): Promise<Result<readonly Founder[], "usage">> {
  const { endpoint, self, entering } = peers;
  if (disk.store.get(fromByteKey(IDENTITY_KEY)) !== null) return ok([]);
  const { clusterId, storageId } = self;
  if (isAlone(config)) return ok([{ nodeId: config.nodeId, endpoint, storageId }]);
  self.standing = () => ({ state: "empty", founders: [] });
  const entered = await new Promise<Entered>((resolve) => {
    entering.enter(clusterId, storageId, resolve);
  });
  if (entered.kind === "refused") {
    return failure("usage", `--join: the cluster refused this node: ${entered.reason}`);
  }
  const event = entered.kind === "joined" ? "taken in by the cluster" : "founding the cluster";
  const founders = entered.kind === "joined" ? entered.founders : entered.founders.map(idOf);
  logger.log("info", event, { clusterId, founders: founders.join(",") });
  return ok(foundersOf(entered));
}

function idOf({ nodeId }: Founder): number {
  return nodeId;
}
