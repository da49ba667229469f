/**
 * One connection to one endpoint over gRPC.
 *
 * Owns a channel of the gRPC package. Invariants: 1. Nothing is sent before the connection stands:
 * a call that fails before that certainly had no effect. 2. A replaced or closed channel leaves no
 * timer behind.
 */
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { UnavailableError, type SvcError } from "./errors.js";
import type { ClientSettings, Endpoint } from "./options.js";

type PackageChannel = ReturnType<grpc.Client["getChannel"]>;
type Ready = (failure: SvcError | null) => void;

const HEALTH_PATH = "/grpc.health.v1.Health/Check";
const plainBytes = (bytes: Buffer): Buffer => bytes;
const RECONNECT_FIRST_MS = 20;
const RECONNECT_LAST_MS = 1000;

function bytes(pem: string | Uint8Array | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}

function credentials(endpoint: Endpoint, settings: ClientSettings): grpc.ChannelCredentials {
  if (!endpoint.secure) return grpc.credentials.createInsecure();
  const { ca, key, cert, insecure } = settings.tls;
  const address = addressOf(endpoint);
  const verify: grpc.VerifyOptions =
    insecure === true
      ? { rejectUnauthorized: false, checkServerIdentity: () => undefined }
      : { rejectUnauthorized: true };
  if (insecure !== true && address !== null) {
    // The name sent to the server is no address; what it shows must be valid for the address.
    verify.checkServerIdentity = (_name, certificate) => checkServerIdentity(address, certificate);
  }
  return grpc.credentials.createSsl(bytes(ca), bytes(key), bytes(cert), verify);
}

/** The host when it is an IP address, without brackets. */
function addressOf({ host }: Endpoint): string | null {
  const bare = host.replace(/[[\]]/g, "");
  return isIP(bare) === 0 ? null : bare;
}

export class GrpcChannel {
  private readonly endpoint: Endpoint;
  private readonly settings: ClientSettings;
  private readonly onUnreachable: () => void;
  private client: grpc.Client | null = null;
  private waiting: Ready[] = [];
  private closed = false;
  private aliveMs = Number.NEGATIVE_INFINITY;
  private renewals = 0;

  constructor(endpoint: Endpoint, settings: ClientSettings, onUnreachable: () => void) {
    this.endpoint = endpoint;
    this.settings = settings;
    this.onUnreachable = onUnreachable;
  }

  /** The client of the package; made when first needed. */
  open(): grpc.Client {
    if (this.client !== null) return this.client;
    const { host, port } = this.endpoint;
    const { keepAliveMs } = this.settings;
    this.client = new grpc.Client(`${host}:${port}`, credentials(this.endpoint, this.settings), {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.enable_http_proxy": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      "grpc.initial_reconnect_backoff_ms": RECONNECT_FIRST_MS,
      "grpc.min_reconnect_backoff_ms": RECONNECT_FIRST_MS,
      "grpc.max_reconnect_backoff_ms": RECONNECT_LAST_MS,
      "grpc.keepalive_time_ms": keepAliveMs,
      "grpc.keepalive_timeout_ms": Math.max(1, Math.floor(keepAliveMs / 2)),
      "grpc.primary_user_agent": "svc-client",
      ...this.serverName(),
    });
    return this.client;
  }

  /** An address is no server name (RFC 6066): another one is sent, and the address verified. */
  private serverName(): grpc.ChannelOptions {
    if (!this.endpoint.secure || addressOf(this.endpoint) === null) return {};
    return { "grpc.ssl_target_name_override": "localhost" };
  }

  /** Calls back once: null when the connection stands, else why it does not. */
  whenReady(ready: Ready): void {
    if (this.closed) return ready(this.unreachable("the client is closed"));
    const channel = this.open().getChannel();
    if (channel.getConnectivityState(true) === grpc.connectivityState.READY) return ready(null);
    this.waiting.push(ready);
    if (this.waiting.length > 1) return;
    this.watch(channel, Date.now() + this.settings.connectTimeoutMs);
  }

  /** True while the connection stands. */
  get ready(): boolean {
    const { client } = this;
    if (client === null) return false;
    return client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY;
  }

  /** Which connection it is on: another number, another connection. */
  get connection(): number {
    return this.renewals;
  }

  /** Something came just now on `connection`; of one that was given up that says nothing. */
  alive(connection: number): void {
    if (connection === this.renewals) this.aliveMs = performance.now();
  }

  /** Whether something came on it since `sinceMs` (of performance.now). */
  aliveSince(sinceMs: number): boolean {
    return this.aliveMs > sinceMs;
  }

  private watch(channel: PackageChannel, untilMs: number): void {
    // Asking it to connect would bring a channel that is being closed back to life.
    const state = channel.getConnectivityState(false);
    if (state === grpc.connectivityState.READY) return this.tell(null);
    if (state === grpc.connectivityState.TRANSIENT_FAILURE) return this.tellWhy(channel);
    if (state === grpc.connectivityState.SHUTDOWN) {
      return this.tell(this.unreachable("the connection was given up"));
    }
    if (state === grpc.connectivityState.IDLE) channel.getConnectivityState(true);
    channel.watchConnectivityState(state, untilMs, (error) => {
      if (error === undefined || error === null) return this.watch(channel, untilMs);
      this.tell(this.unreachable("no connection in time"));
    });
  }

  /** The reason is known to calls only: one that is not sent without a connection asks for it. */
  private tellWhy(channel: PackageChannel): void {
    const { client } = this;
    if (client === null || client.getChannel() !== channel) {
      return this.tell(this.unreachable("the connection was given up"));
    }
    const done = (error: grpc.ServiceError | null): void => {
      if (error === null) return this.tell(null);
      const text = /Last error: (.*?)\.?$/.exec(error.details)?.[1] ?? error.details;
      this.tell(this.unreachable(text));
    };
    const none = Buffer.alloc(0);
    client.makeUnaryRequest(HEALTH_PATH, plainBytes, plainBytes, none, done);
  }

  private tell(failure: SvcError | null): void {
    const { waiting } = this;
    this.waiting = [];
    if (failure !== null && !this.closed) this.onUnreachable();
    for (const ready of waiting) ready(failure);
  }

  private unreachable(why: string): SvcError {
    return new UnavailableError("unreachable", `${this.endpoint.url}: ${why}`);
  }

  /** Metadata of a call; throws SvcError when the token function fails. */
  metadata(): grpc.Metadata {
    const metadata = new grpc.Metadata();
    const { token } = this.settings;
    if (token !== null) metadata.set("authorization", `Bearer ${token()}`);
    return metadata;
  }

  /** Gives the connection up; the next use makes a new one. */
  renew(): void {
    this.renewals += 1;
    this.client?.close();
    this.client = null;
  }

  close(): void {
    this.closed = true;
    this.renew();
    this.tell(this.unreachable("the client is closed"));
  }
}
