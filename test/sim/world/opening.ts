/**
 * The opening of one life of a node, as the server does it: whose cluster it is, the log, whether
 * it has to ask to join, the host, the operations.
 *
 * Everything from the operations down to the log is what ships; only the ports are false. Invariant:
 * nothing goes on when the life ended meanwhile.
 */
import { SILENT_METER } from "../../doubles/silent-meter.js";
import { BudgetedFiles } from "../../../src/disk/budget.js";
import { FIRST_LEVEL } from "../../../src/base/ids.js";
import { LevelFile } from "../../../src/disk/level-file.js";
import { openLog } from "../../../src/disk/log/recovery.js";
import type { WriteAheadLog } from "../../../src/disk/log/wal.js";
import { Entering, foundersOf as foundersOfEntered } from "../../../src/host/cluster/entering.js";
import { IDENTITY_KEY } from "../../../src/host/storage/identity.js";
import { Node } from "../../../src/host/node.js";
import type { HostPorts, HostSettings } from "../../../src/host/settings.js";
import { KernelSorter } from "../../../src/machine/store/kernel-sorter.js";
import { Operations } from "../../../src/operations/operations.js";
import { RequestTally } from "../../../src/operations/admission/tally.js";
import type {
  EntropyPort,
  Founder,
  LogEntry,
  PeerAddress,
  PeerProfile,
} from "../../../src/ports.js";
import { SimFiles } from "../disk/files.js";
import { freshLogKernels, sharedKernels } from "./kernelpool.js";
import { LogMirror } from "./logmirror.js";
import { GroupWatch } from "./observe.js";
import { endpointOf, hostSettingsOf, operationsSettingsOf } from "../plan/plan.js";
import type { SimPeers } from "../net/peers.js";
import type { Life } from "./process.js";
import { SimQuestions } from "../net/questions.js";
import type { Server } from "./server.js";

const DIRECTORY = "/wal";
const HOME = "/home";
/** Where the level of a node's data is written. */
export const LEVEL_PATH = `${HOME}/level.json`;
const SPACE_RETRY_MS = 1000;

/** Opens the node of `server` in its new life. */
export function openNode(server: Server, life: Life): void {
  const { isJoiner, hasLog } = server;
  server.runs = server.program;
  const parts = { server, life, entropy: entropyOf(server, life) };
  const opening: Opening = { ...parts, entering: enteringOf(parts) };
  if (!isJoiner || hasLog) return open(opening);
  // A new joiner asks first which cluster it is about to join.
  opening.entering.findCluster((clusterId) => {
    const isOwn = clusterId === server.home.clusterId;
    if (!isOwn) server.events.violation(`a seed is of cluster ${clusterId}`);
    open(opening);
  });
}

interface Opening {
  readonly server: Server;
  readonly life: Life;
  readonly entropy: EntropyPort;
  readonly entering: Entering;
}

function entropyOf({ world, nodeId, home }: Server, life: Life): EntropyPort {
  const prng = world.prng(`entropy ${nodeId} ${life.number}${home.suffix}`);
  return { uint32: () => prng.nextUint32() };
}

function enteringOf({ server, life, entropy }: Omit<Opening, "entering">): Entering {
  const { nodeId, network, isJoiner } = server;
  return new Entering({
    nodeId,
    endpoint: endpointOf(nodeId),
    storage: "lmdb",
    program: server.runs,
    founders: isJoiner ? [] : foundersOf(server),
    seeds: () => (server.seeds?.() ?? []).map(endpointOf),
    mayFound: !isJoiner,
    ask: new SimQuestions(network, life, nodeId),
    clock: life.clock,
    timer: life,
    entropy,
    logger: server.logger(),
  });
}

/** The level first; worlds without upgrades have one program, and no file of it. */
function open(opening: Opening): void {
  const { server, life } = opening;
  if (server.plan.upgrades === null) return openStorage(opening, null);
  const files = new SimFiles(server.disk, life);
  const isNew = !server.hasLog;
  LevelFile.open(HOME, server.runs, files, isNew, (judged) => {
    if (!judged.ok) return server.refused(`the level: ${judged.message}`, judged.code);
    files.syncDirectory(HOME, (synced) => {
      if (synced.ok) openStorage(opening, judged.value);
      else server.refused(`the level: ${synced.message}`, synced.code);
    });
  });
}

function openStorage(opening: Opening, level: LevelFile | null): void {
  const { server, life } = opening;
  const { nodeId, plan } = server;
  const { clusterId } = server.home;
  const identity = { storageId: server.storageId, clusterId, nodeId };
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
    const port = server.network.port(life, profileOf(server));
    findFounders(opening, port, (founders, entryLevel, adopts = false) => {
      openHost(opening, opened.value, port, level, { founders, entryLevel, adopts });
    });
  });
}

/** The identity row of the store is what tells a member from a node that belongs to no cluster. */
function findFounders(
  { server, entering }: Opening,
  port: SimPeers,
  found: (founders: readonly Founder[], entryLevel: number, adopts?: boolean) => void,
): void {
  // What a directory says of its level outlives a start; without such a file its one program does.
  const known = server.plan.upgrades === null ? server.runs.levels.max : FIRST_LEVEL;
  if (server.rows.get(IDENTITY_KEY) !== undefined) return found([], known);
  const { nodeId, storageId } = server;
  if (server.isRestored) {
    return found([{ nodeId, endpoint: endpointOf(nodeId), storageId }], FIRST_LEVEL, true);
  }
  port.standing = () => ({ state: "empty", founders: [] });
  entering.enter(server.home.clusterId, storageId, (entered) => {
    if (entered.kind === "refused") return server.joinRefused(entered.reason);
    if (entered.kind === "joined") server.admitted(entered.level);
    else server.founds(entered.founders);
    found(foundersOfEntered(entered), entered.level);
  });
}

function foundersOf({ home }: Server): PeerAddress[] {
  return home.founders.map((nodeId) => ({ nodeId, endpoint: endpointOf(nodeId) }));
}

function openHost(
  { server, life, entropy }: Opening,
  real: WriteAheadLog,
  port: SimPeers,
  level: LevelFile | null,
  beginning: Pick<HostSettings, "founders" | "entryLevel" | "adopts">,
): void {
  const { nodeId, plan } = server;
  const { written } = server.events;
  const isRead = plan.upgrades !== null || plan.waits !== null;
  const reads = isRead && written !== undefined;
  const { appended } = server.events;
  const onPayload =
    reads || appended !== undefined
      ? (group: number, entry: LogEntry): void => {
          if (reads) written(server, group, entry);
          appended?.(group, entry);
        }
      : null;
  const log = new LogMirror(
    real,
    (...entry) => server.events.entry(nodeId, ...entry),
    onPayload,
    (group) => server.events.dropped?.(nodeId, group),
  );
  const shared = sharedKernels();
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
    entropy,
    logger: server.logger(),
    fatal,
    meter: SILENT_METER,
    peers: port,
    ...(level === null ? {} : { level }),
    sorter: new KernelSorter(shared.compact),
  };
  const { runs: program } = server;
  const { clusterId } = server.home;
  const settled = hostSettingsOf(plan, nodeId, server.storageId);
  const own = { ...settled, clusterId, program, ...beginning };
  const opened = Node.open(own, ports);
  if (!opened.ok) return server.refused(`the node: ${opened.code}: ${opened.message}`, opened.code);
  const node = opened.value;
  port.standing = () => node.standing();
  const settings = operationsSettingsOf(plan, nodeId);
  const calls = { send: (to: number, bytes: Uint8Array) => node.links.sendCall(to, bytes) };
  const operations = new Operations(
    node,
    settings,
    {
      ...ports,
      calls,
      ...(server.backupsOf === null ? {} : { backups: server.backupsOf(life, node) }),
    },
    shared,
    new RequestTally(),
  );
  node.links.handleCalls((from, bytes) => operations.callFrame(from, bytes));
  node.links.listen(operations);
  server.opened({ life, node, operations, watch: new GroupWatch(nodeId, life.number, log), port });
}

function profileOf({ nodeId, storageId, runs, home }: Server): PeerProfile {
  return {
    clusterId: home.clusterId,
    nodeId,
    storageId,
    endpoint: endpointOf(nodeId),
    clientEndpoint: `http://node-${nodeId}:8083`,
    program: runs,
    storage: "lmdb",
  };
}
