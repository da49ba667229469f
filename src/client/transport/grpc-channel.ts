/**
 * One connection to one endpoint over gRPC.
 *
 * Owns a channel of the gRPC package. Invariants: 1. Nothing is sent before the connection stands:
 * a call that fails before that certainly had no effect. 2. A replaced or closed channel leaves no
 * timer and no socket behind. 3. Who accepts a connection and says nothing on it is tried anew.
 */
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { ChannelSockets } from "./channel-sockets.js";
import { ConnectionWatch, type Watched } from "./connection-watch.js";
import { localFailure, UnavailableError, type SvcError } from "../values/errors.js";
import type { ClientSettings, Endpoint } from "../values/options.js";
import { inTime } from "../time/pause.js";
import type { ClientPlatform } from "../time/platform.js";

type PackageChannel = ReturnType<grpc.Client["getChannel"]>;
type Ready = (failure: SvcError | null) => void;

const HEALTH_PATH = "/grpc.health.v1.Health/Check";
const plainBytes = (bytes: Buffer): Buffer => bytes;
/** A connection without calls is probed this seldom. */
const IDLE_KEEP_ALIVE_MS = 30_000;
const REFUSED = "connection refused";
const RECONNECT_FIRST_MS = 20;
const RECONNECT_LAST_MS = 1000;
/**
 * A connection that does not stand after so many of a call's limits for it is tried anew: not after
 * one, lest a slow server is asked again and again for what it is about to give.
 */
const CONNECT_PATIENCE = 3;

function bytes(pem: string | Uint8Array | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}

function credentialsOf(endpoint: Endpoint, settings: ClientSettings): grpc.ChannelCredentials {
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

/** Ends of a health check that come from this side. */
const NO_SIGN_OF_LIFE: ReadonlySet<number> = new Set([
  grpc.status.DEADLINE_EXCEEDED,
  grpc.status.UNAVAILABLE,
  grpc.status.CANCELLED,
]);

const FAILURES: readonly (readonly [code: string, words: string])[] = [
  ["ECONNREFUSED", REFUSED],
  ["ENOTFOUND", "no such host"],
  ["ECONNRESET", "the connection was reset"],
];

/** What the package says of a failed connection, for people: often it is the wrong port. */
function reasonOf(details: string): string {
  const text = /Last error: (.*?)\.?$/s.exec(details)?.[1] ?? details;
  const bare = text
    .replace(/ ?\([^()]*\d{4}[^()]*\)/g, "")
    .replace(/\.? *Resolution note:.*$/s, "");
  for (const [code, words] of FAILURES) if (bare.includes(code)) return words;
  if (/protocol error|ERR_HTTP2|Parse Error/i.test(bare)) {
    return `${bare} (this port does not speak gRPC in clear text: is it the one of REST or TLS?)`;
  }
  if (/wrong version number|packet length too long|EPROTO|unsupported protocol/i.test(bare)) {
    return "this port does not speak TLS (is it an http:// endpoint?)";
  }
  return bare;
}

export class GrpcChannel implements Watched {
  readonly platform: ClientPlatform;
  private readonly endpoint: Endpoint;
  private readonly settings: ClientSettings;
  private readonly onUnreachable: () => void;
  private client: grpc.Client | null = null;
  private sockets = new ChannelSockets();
  /** Since when it is waited for; null = it stands, or ended by itself. */
  private awaitedSinceMs: number | null = null;
  private waiting: Ready[] = [];
  private closed = false;
  private lastAliveMs = Number.NEGATIVE_INFINITY;
  private renewals = 0;
  private readonly onSilent: (() => void)[] = [];
  /** To be told of calls that wait on this connection. */
  readonly watch: ConnectionWatch;

  constructor(
    platform: ClientPlatform,
    endpoint: Endpoint,
    settings: ClientSettings,
    onUnreachable: () => void,
  ) {
    this.platform = platform;
    this.endpoint = endpoint;
    this.settings = settings;
    this.onUnreachable = onUnreachable;
    this.watch = new ConnectionWatch(platform, this, settings.keepAliveMs);
  }

  /** `listener`: called when the connection was given up because nothing came on it. */
  whenSilent(listener: () => void): void {
    this.onSilent.push(listener);
  }

  /** The client of the package; made when first needed. */
  open(): grpc.Client {
    if (this.client !== null) return this.client;
    const { host, port } = this.endpoint;
    const { keepAliveMs } = this.settings;
    this.sockets = new ChannelSockets();
    const credentials = this.sockets.watch(credentialsOf(this.endpoint, this.settings));
    this.client = new grpc.Client(`${host}:${port}`, credentials, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.enable_http_proxy": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      "grpc.initial_reconnect_backoff_ms": RECONNECT_FIRST_MS,
      "grpc.min_reconnect_backoff_ms": RECONNECT_FIRST_MS,
      "grpc.max_reconnect_backoff_ms": RECONNECT_LAST_MS,
      "grpc.keepalive_time_ms": Math.max(IDLE_KEEP_ALIVE_MS, keepAliveMs),
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
    if (channel.getConnectivityState(true) === grpc.connectivityState.READY) {
      this.awaitedSinceMs = null;
      return ready(null);
    }
    this.waiting.push(ready);
    if (this.waiting.length > 1) return;
    this.awaitedSinceMs ??= this.platform.nowMs();
    this.follow(channel, this.platform.wallMs() + this.settings.connectTimeoutMs);
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
    if (connection === this.renewals) this.lastAliveMs = this.platform.nowMs();
  }

  get aliveMs(): number {
    return this.lastAliveMs;
  }

  /** Whether something came on it since `sinceMs`. */
  aliveSince(sinceMs: number): boolean {
    return this.lastAliveMs > sinceMs;
  }

  /** Any answer to a health check is a sign of life, whatever it says. */
  probe(limitMs: number, done: () => void): void {
    const { client, connection } = this;
    if (client === null) return done();
    const deadline = this.platform.wallMs() + limitMs;
    const none = Buffer.alloc(0);
    const answered = (error: grpc.ServiceError | null): void => {
      const code = error?.code ?? grpc.status.OK;
      if (!NO_SIGN_OF_LIFE.has(code)) this.alive(connection);
      done();
    };
    client.makeUnaryRequest(HEALTH_PATH, plainBytes, plainBytes, none, { deadline }, answered);
  }

  silent(): void {
    this.renew();
    for (const listener of this.onSilent) listener();
  }

  private follow(channel: PackageChannel, untilMs: number): void {
    // Asking it to connect would bring a channel that is being closed back to life.
    const state = channel.getConnectivityState(false);
    if (state === grpc.connectivityState.READY) {
      this.awaitedSinceMs = null;
      return this.tell(null);
    }
    if (state === grpc.connectivityState.TRANSIENT_FAILURE) {
      this.awaitedSinceMs = null;
      return this.tellWhy(channel);
    }
    if (state === grpc.connectivityState.SHUTDOWN) {
      return this.tell(this.unreachable("the connection was given up"));
    }
    if (state === grpc.connectivityState.IDLE) channel.getConnectivityState(true);
    channel.watchConnectivityState(state, untilMs, (error) => {
      if (error === undefined || error === null) return this.follow(channel, untilMs);
      const awaitedMs = this.platform.nowMs() - (this.awaitedSinceMs ?? this.platform.nowMs());
      if (awaitedMs >= CONNECT_PATIENCE * this.settings.connectTimeoutMs) this.renew();
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
      this.tell(this.unreachable(reasonOf(error.details)));
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
    const message = `cannot reach ${this.endpoint.url}: ${why}`;
    return new UnavailableError("unreachable", message, { refused: why === REFUSED });
  }

  /**
   * Hands over the metadata of a call, at once unless the token is still to come; or what the token
   * function failed with.
   */
  withMetadata(take: (metadata: grpc.Metadata | null, failure: SvcError | null) => void): void {
    const metadata = new grpc.Metadata();
    const taken = (token: string): void => {
      metadata.set("authorization", `Bearer ${token}`);
      take(metadata, null);
    };
    const failed = (error: unknown): void => take(null, localFailure(error));
    const { token, connectTimeoutMs } = this.settings;
    if (token === null) return take(metadata, null);
    let given: string | Promise<string>;
    try {
      given = token();
    } catch (error) {
      return failed(error);
    }
    if (typeof given === "string") return taken(given);
    const late = "the token function gave no token in time";
    inTime(this.platform, given, connectTimeoutMs, late).then(taken, failed);
  }

  /** Gives the connection up; the next use makes a new one. */
  renew(): void {
    const stands = this.ready;
    this.renewals += 1;
    this.awaitedSinceMs = null;
    this.client?.close();
    this.client = null;
    if (!stands) this.sockets.destroy();
  }

  close(): void {
    this.closed = true;
    this.watch.close();
    this.renew();
    this.tell(this.unreachable("the client is closed"));
  }
}
