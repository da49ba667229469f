/**
 * This node among the others: opens the peer listener, if there is to be one, with what the node
 * says of itself.
 *
 * Invariants: 1. The listener is bound before the disk is opened. Until the host begins it answers
 * who this node is, as soon as the data directory is known, and nothing else.
 */
import { PROGRAM } from "../../base/levels.js";
import { failure, ok, type Result } from "../../base/result.js";
import { Entering } from "../../host/cluster/entering.js";
import { PeerQuestions } from "../../net/asking.js";
import { PeerNetwork } from "../../net/network.js";
import { PeerCredentials } from "../../net/credentials.js";
import { NameResolver } from "../../net/resolve.js";
import {
  PEER_NETWORK_DEFAULTS,
  type PeerNetworkPorts,
  type PeerNetworkSettings,
  type PeerTls,
  laneBounds,
} from "../../net/settings.js";
import type { LoggerPort, PeerProfile, PeerStanding } from "../../ports.js";
import { systemClock, systemEntropy, systemTimers } from "../../sys.js";
import { hostAndPort, isLoopback } from "../flags/addresses.js";
import { type ServerConfig, needsCredentials } from "../flags/config.js";
import { PeerCertificates, type PeerTlsReports } from "../security/peer-tls.js";
import { readSecretFile } from "../security/secret-file.js";

/** The node as the others know it; what is not known yet is "". */
export interface PeerSelf {
  clusterId: string;
  storageId: string;
  endpoint: string;
  clientEndpoint: () => string;
  standing: () => PeerStanding | null;
}

export interface Peers {
  /** Null: the node accepts no peers and has none. */
  readonly network: PeerNetwork | null;
  /** host:port that is listened on; null = nowhere. */
  readonly address: string | null;
  /** Advertised endpoint; "" = none. */
  readonly endpoint: string;
  readonly self: PeerSelf;
  /** How an empty data directory comes to belong to a cluster, and what it waits for. */
  readonly entering: Entering;
  readonly ports: PeerNetworkPorts;
  /** Reads certificate, key and CA anew: new connections use them, links are renewed in turn. */
  reload(): void;
  /** Nobody is heard any more; `done` when nothing is open. */
  close(done: () => void): void;
}

/** What others hear of this node, and what it proves that with. */
type Identity = Pick<PeerNetworkSettings, "profile" | "standing" | "tls">;

export function randomHex(digits: number): string {
  let text = "";
  while (text.length < digits) text += systemEntropy.uint32().toString(16).padStart(8, "0");
  return text.slice(0, digits);
}

function peerPorts(
  logger: LoggerPort,
  credentials: PeerCredentials,
  { metrics }: PeerTlsReports,
): PeerNetworkPorts {
  const names = new NameResolver(systemTimers);
  const system = { clock: systemClock, timer: systemTimers, entropy: systemEntropy };
  const echoed = metrics.peerEchoed.bind(metrics);
  return { ...system, logger, names, credentials, echoed };
}

const SECRET_MIN_CHARACTERS = 32;

/** What peers prove themselves with, beside their certificates. */
function peerCredentials(
  config: ServerConfig,
  logger: LoggerPort,
): Result<PeerCredentials, "usage"> {
  const { peerSecretFile: path, peerTlsRequireNodeId: requireNodeId } = config;
  if (path === null) return ok(new PeerCredentials({ secret: null, requireNodeId }, logger));
  const text = readSecretFile(path, "--peer-secret-file");
  if (!text.ok) return text;
  const secret = text.value.trim();
  if (secret.length < SECRET_MIN_CHARACTERS) {
    const wanted = `it must be at least ${SECRET_MIN_CHARACTERS}`;
    return failure(
      "usage",
      `--peer-secret-file ${path} has ${secret.length} characters; ${wanted}`,
    );
  }
  return ok(new PeerCredentials({ secret: Buffer.from(secret, "utf8"), requireNodeId }, logger));
}

/** Says what the peer listener lacks, where it was opened all the same. */
function warnUnprotected(config: ServerConfig, logger: LoggerPort, isSecured: boolean): void {
  const { peerHost } = config;
  if (isSecured) return;
  if (!isLoopback(peerHost)) {
    logger.log("warn", "the peer listener is open off loopback without TLS", { peerHost });
  }
  if (needsCredentials(config) && config.peerSecretFile === null) {
    const event = "clients need credentials, but whoever reaches the peer listener needs none";
    logger.log("warn", event, { peerHost });
  }
}

function bind(
  config: ServerConfig,
  port: number,
  who: Identity,
  ports: PeerNetworkPorts,
): Promise<Result<PeerNetwork, "cannot-listen">> {
  const times = {
    pingIntervalMs: config.peerPingIntervalMs,
    electionMs: config.startElectionTimeoutMs,
  };
  const settings = {
    ...PEER_NETWORK_DEFAULTS,
    host: config.peerHost,
    port,
    ...who,
    lanes: laneBounds(times),
  };
  return new Promise((resolve) => PeerNetwork.open(settings, ports, resolve));
}

/** The listener; null where there is to be none. */
async function listen(
  config: ServerConfig,
  logger: LoggerPort,
  who: Identity,
  ports: PeerNetworkPorts,
): Promise<Result<PeerNetwork | null, "usage">> {
  const { peerHost, peerPort } = config;
  if (peerPort === null) return ok(null);
  let bound = await bind(config, peerPort, who, ports);
  if (!bound.ok && isFreeToMove(config)) {
    logger.log("warn", "the default peer port is taken; a free one is used", { peerPort });
    bound = await bind(config, 0, who, ports);
  }
  if (!bound.ok) {
    return failure("usage", `--peer-port: cannot listen on ${peerHost}: ${bound.message}`);
  }
  warnUnprotected(config, logger, who.tls() !== null);
  return bound;
}

function identityOf(config: ServerConfig, self: PeerSelf, tls: Identity["tls"]): Identity {
  const { nodeId, storage } = config;
  return {
    profile: (): PeerProfile => {
      const { clusterId, storageId, endpoint, clientEndpoint } = self;
      const known = { nodeId, clusterId, storageId, endpoint, storage };
      return { ...known, clientEndpoint: clientEndpoint(), program: PROGRAM };
    },
    standing: (): PeerStanding | null => self.standing(),
    tls,
  };
}

function enteringOf(
  config: ServerConfig,
  endpoint: string,
  tls: Identity["tls"],
  ports: PeerNetworkPorts,
): Entering {
  return new Entering({
    nodeId: config.nodeId,
    endpoint,
    storage: config.storage,
    program: PROGRAM,
    founders: config.initialCluster,
    seeds: () => config.join,
    mayFound: config.initialClusterState === "new",
    ask: new PeerQuestions({ tls, ports }),
    ...ports,
  });
}

/** Binds the peer listener, or says which flag to change. */
export async function openPeers(
  config: ServerConfig,
  logger: LoggerPort,
  reports: PeerTlsReports,
): Promise<Result<Peers, "usage">> {
  const credentials = peerCredentials(config, logger);
  if (!credentials.ok) return credentials;
  const opened = PeerCertificates.open(config, reports);
  if (!opened.ok) return opened;
  const certificates = opened.value;
  const tls = (): PeerTls | null => certificates?.current ?? null;
  const first = tls();
  const ports = peerPorts(logger, credentials.value, reports);
  const self: PeerSelf = {
    clusterId: "",
    storageId: "",
    endpoint: "",
    clientEndpoint: () => "",
    standing: () => null,
  };
  const bound = await listen(config, logger, identityOf(config, self, tls), ports);
  if (!bound.ok) {
    certificates?.close();
    return bound;
  }
  const network = bound.value;
  // Others are told where clients find this node, and that is known once the listeners are open.
  network?.hold();
  const address = network === null ? null : hostAndPort(config.peerHost, network.port);
  const endpoint = address === null ? "" : (config.advertisedPeerEndpoint ?? address);
  self.endpoint = endpoint;
  if (certificates !== null && network !== null) {
    certificates.renewed = () => network.renew();
    // The listener was made with what there was before it was bound.
    if (certificates.current !== first) network.renew();
  }
  const entering = enteringOf(config, endpoint, tls, ports);
  const reload = (): void => certificates?.reload();
  const close = (done: () => void): void => {
    certificates?.close();
    if (network === null) done();
    else network.close(done);
  };
  return ok({ network, address, endpoint, self, entering, ports, reload, close });
}

/** Nobody was told where this node would be: it is alone, and its port is only the default. */
function isFreeToMove(config: ServerConfig): boolean {
  const isAlone = config.initialCluster.length === 0 && config.join.length === 0;
  return isAlone && !config.peerPortGiven && config.advertisedPeerEndpoint === null;
}
