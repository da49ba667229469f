/**
 * The opening of one life of a node, as the server does it: whose cluster it is, the log, whether
 * it has to ask to join, the host, the operations.
 *
 * Everything from the operations down to the log is what ships; only the ports are false. Invariant:
 * nothing goes on when the life ended meanwhile.
 */
import { PEER_PROTOCOL } from "../../src/base/limits.js";
import { BudgetedFiles } from "../../src/disk/budget.js";
import { openLog } from "../../src/disk/recovery.js";
import type { WriteAheadLog } from "../../src/disk/wal.js";
import { IDENTITY_KEY } from "../../src/host/identity.js";
import { Node } from "../../src/host/node.js";
import type { HostPorts } from "../../src/host/settings.js";
import { KernelSorter } from "../../src/machine/kernel-sorter.js";
import { Operations } from "../../src/operations/operations.js";
import { RequestTally } from "../../src/operations/tally.js";
import type { Founder, MeterPort, PeerProfile } from "../../src/ports.js";
import { SimFiles } from "./files.js";
import { askIdentity, askToJoin } from "./joiner.js";
import { freshLogKernels, sharedKernels } from "./kernelpool.js";
import { LogMirror } from "./logmirror.js";
import { GroupWatch } from "./observe.js";
import { CLUSTER_ID, type Plan, endpointOf, hostSettingsOf, operationsSettingsOf } from "./plan.js";
import type { Life } from "./process.js";
import type { Server } from "./server.js";

const DIRECTORY = "/wal";
const SPACE_RETRY_MS = 1000;

/** Opens the node of `server` in its new life. */
export function openNode(server: Server, life: Life): void {
  const { seeds, hasLog, nodeId, network } = server;
  if (seeds === null || hasLog) return open(server, life);
  // A new joiner asks first which cluster it is about to join.
  askIdentity({ network, life, nodeId, seeds }, (clusterId) => {
    if (clusterId !== CLUSTER_ID) server.events.violation(`a seed is of cluster ${clusterId}`);
    open(server, life);
  });
}

function open(server: Server, life: Life): void {
  const { nodeId, plan } = server;
  const identity = { storageId: server.storageId, clusterId: CLUSTER_ID, nodeId };
  const options = {
    directory: DIRECTORY,
    identity,
    segmentBytes: plan.segmentBytes,
    spaceRetryMs: SPACE_RETRY_MS,
    mayCreate: !server.hasLog,
  };
  const ports = {
    files: new BudgetedFiles(new SimFiles(server.disk, life)),
    timers: life,
    logger: server.logger(),
    fatal: server.fatal(life),
    clock: life.clock,
    meter: { logSyncMs: () => undefined },
  };
  openLog(options, ports, freshLogKernels(nodeId), (opened) => {
    if (!opened.ok) {
      return server.refused(`the log: ${opened.code}: ${opened.message}`, opened.code);
    }
    server.logFound();
    findFounders(server, life, (founders) => openHost(server, life, opened.value, founders));
  });
}

/** The identity row of the store is what tells a member from a joiner. */
function findFounders(
  server: Server,
  life: Life,
  found: (founders: readonly Founder[]) => void,
): void {
  const { nodeId, seeds, network, storageId, plan } = server;
  const endpoint = endpointOf(nodeId);
  if (seeds === null) return found(foundersOf(plan));
  if (server.rows.get(IDENTITY_KEY) !== undefined)
    return found([{ nodeId, endpoint, storageId: "" }]);
  const request = { nodeId, storageId, endpoint, storage: "lmdb" } as const;
  askToJoin({ network, life, nodeId, seeds }, request, (answer) => {
    if (answer.status === "refused") return server.joinRefused(answer.reason);
    server.admitted();
    found(answer.founders.map((founder) => ({ nodeId: founder, endpoint: "", storageId: "" })));
  });
}

function foundersOf(plan: Plan): Founder[] {
  return Array.from({ length: plan.nodes }, (_, at) => {
    return { nodeId: at + 1, endpoint: endpointOf(at + 1), storageId: "" };
  });
}

function openHost(
  server: Server,
  life: Life,
  real: WriteAheadLog,
  founders: readonly Founder[],
): void {
  const { nodeId, plan, network, world } = server;
  const log = new LogMirror(real, (...entry) => server.events.entry(nodeId, ...entry));
  const shared = sharedKernels();
  const entropy = world.prng(`entropy ${nodeId} ${life.number}`);
  const port = network.port(life, profileOf(server));
  port.onSend = (to, lane, bytes) => {
    if (lane === "control" || lane === "log") server.events.sent?.(nodeId, to, bytes, log);
  };
  server.events.recovered?.(nodeId, log);
  const fatal = server.fatal(life);
  const ports: HostPorts = {
    clock: life.clock,
    timer: life,
    log,
    store: server.rows.port(life, fatal),
    entropy: { uint32: () => entropy.nextUint32() },
    logger: server.logger(),
    fatal,
    meter: SILENT_METER,
    peers: port,
    sorter: new KernelSorter(shared.compact),
  };
  const own = { ...hostSettingsOf(plan, nodeId, server.storageId), founders };
  const opened = Node.open(own, ports);
  if (!opened.ok) return server.refused(`the node: ${opened.code}: ${opened.message}`, opened.code);
  const node = opened.value;
  const settings = operationsSettingsOf(plan, nodeId);
  const calls = { send: (to: number, bytes: Uint8Array) => node.links.sendCall(to, bytes) };
  const operations = new Operations(
    node,
    settings,
    { ...ports, calls },
    shared,
    new RequestTally(),
  );
  node.links.handleCalls((from, bytes) => operations.callFrame(from, bytes));
  node.links.listen(operations);
  server.opened({ life, node, operations, watch: new GroupWatch(nodeId, life.number, log), port });
}

function profileOf({ nodeId, storageId }: Server): PeerProfile {
  return {
    clusterId: CLUSTER_ID,
    nodeId,
    storageId,
    endpoint: endpointOf(nodeId),
    clientEndpoint: `http://node-${nodeId}:8083`,
    protocol: PEER_PROTOCOL,
    storage: "lmdb",
  };
}

const SILENT_METER: MeterPort = {
  batchEntries: () => undefined,
  logSyncMs: () => undefined,
  commitMs: () => undefined,
  flushMs: () => undefined,
  lockGranted: () => undefined,
  sequenceValues: () => undefined,
  leaderChanged: () => undefined,
};
