/**
 * Which cluster this node belongs to, and with whom its groups begin: by its data directory, else
 * by what it is told and hears (contract 5.6).
 *
 * Invariants: 1. A directory that belongs to a cluster is never asked about again. 2. The id of a
 * cluster comes from the directory, else from the list of founders, else from the members that are
 * asked, else it is drawn. 3. While an empty directory waits, others hear that it is empty.
 */
import { FIRST_LEVEL, META_PARTITION } from "../../base/ids.js";
import { PROGRAM } from "../../base/levels.js";
import { failure, ok, type Result } from "../../base/result.js";
import { storedCluster, type Disk, type DiskCode } from "../../disk/open.js";
import { type Entered, foundersOf } from "../../host/cluster/entering.js";
import { IDENTITY_KEY } from "../../host/storage/identity.js";
import type { Node } from "../../host/node.js";
import { fromByteKey } from "../../machine/store/keys.js";
import type { Founder, LoggerPort } from "../../ports.js";
import { systemTimers } from "../../sys.js";
import { clusterIdOf } from "../flags/cluster-flags.js";
import type { ServerConfig } from "../flags/config.js";
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
  const stored = storedCluster({ adapter, path, revision });
  if (!stored.ok) return stored;
  if (stored.value !== null) return ok(stored.value);
  if (isAlone(config)) return ok(randomHex(32));
  if (initialClusterState === "new" && peers.entering.isFounder) {
    return ok(clusterIdOf(initialCluster, config.partitions));
  }
  logger.log("info", "asking which cluster to join", { seeds: join.join(",") });
  return ok(await new Promise((resolve) => peers.entering.findCluster(resolve)));
}

/** What the groups of an empty data directory begin with. */
export interface Beginning {
  readonly founders: readonly Founder[];
  /** Level of the cluster: that it is founded at, or stood at when this node was taken in. */
  readonly entryLevel: number;
  /** A restore made the directory, and no node was started on it yet: it has groups. */
  readonly adopts: boolean;
}

/**
 * The nodes that the groups of an empty data directory begin with; none where it belongs to a
 * cluster already. A joiner's come from the cluster, with ids only: its member list brings the
 * addresses.
 */
export async function findFounders(
  config: ServerConfig,
  peers: Peers,
  disk: Disk,
  logger: LoggerPort,
): Promise<Result<Beginning, "usage">> {
  const { endpoint, self, entering } = peers;
  const adopts = false;
  if (disk.store.get(fromByteKey(IDENTITY_KEY)) !== null) {
    return ok({ founders: [], entryLevel: FIRST_LEVEL, adopts });
  }
  const { clusterId, storageId } = self;
  const itself = [{ nodeId: config.nodeId, endpoint, storageId }];
  if (disk.isRestored) {
    // It has a roster in all but name (contract 7.5).
    const event = "a restored directory begins a cluster of its own: whom to join is not looked at";
    if (!isAlone(config)) logger.log("warn", event, { clusterId });
    return ok({ founders: itself, entryLevel: FIRST_LEVEL, adopts: true });
  }
  if (isAlone(config)) {
    return ok({ founders: itself, entryLevel: PROGRAM.levels.max, adopts });
  }
  self.standing = () => ({ state: "empty", founders: [] });
  const entered = await new Promise<Entered>((resolve) => {
    entering.enter(clusterId, storageId, resolve);
  });
  if (entered.kind === "refused") {
    return failure("usage", `--join: the cluster refused this node: ${entered.reason}`);
  }
  const event = entered.kind === "joined" ? "taken in by the cluster" : "founding the cluster";
  const founders = entered.kind === "joined" ? entered.founders : entered.founders.map(idOf);
  const { level } = entered;
  logger.log("info", event, { clusterId, featureLevel: level, founders: founders.join(",") });
  return ok({ founders: foundersOf(entered), entryLevel: level, adopts });
}

/** How often the log is looked at while it is applied (ms). */
const LOOK_EVERY_MS = 10;

function othersOf(nodeId: number, node: Node): string | null {
  const meta = node.group(META_PARTITION)?.machine.meta;
  const members = meta?.members() ?? [];
  // Of a restored cluster, which is about to have this node as its only member.
  if (members.length === 0 && (meta?.cluster() ?? null) !== null) return null;
  const standing = node.standing();
  const listed = members.length > 0 ? members : (standing?.founders ?? []);
  if (listed.some((member) => member.nodeId !== nodeId)) {
    return `is of a cluster of ${listed.length} members`;
  }
  // A node that was taken in, and has not got the member list yet.
  return listed.length === 0 && standing?.state === "founded" ? "joined a cluster" : null;
}

/**
 * Why a node without a peer listener cannot go on with its data directory; null when it can. What
 * the log says of the member list counts too, so it waits until all of it is applied.
 */
export async function peersMissed(
  { peerPort, nodeId }: ServerConfig,
  node: Node,
): Promise<string | null> {
  while (peerPort === null) {
    const others = othersOf(nodeId, node);
    if (others !== null) {
      return `--peer-port is off, which is a single node without peers, but the data directory ${others}: give it a port`;
    }
    if (node.group(META_PARTITION)?.facts().serving === true) break;
    await new Promise<void>((resolve) => systemTimers.after(LOOK_EVERY_MS, resolve));
  }
  return null;
}

function idOf({ nodeId }: Founder): number {
  return nodeId;
}
