/**
 * The port of a node whose program knows lanes over HTTP/2 only, as those of level 1: a front that
 * lets HTTP/2 through to a node of now, and gives everything else to the HTTP/2 of the platform, as
 * such a program does.
 */
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import { type Server, type Socket, connect, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { secretsOf } from "../../../src/net/dial.js";
import type { PeerTls } from "../../../src/net/settings.js";

/** First byte of what HTTP/2 begins with. */
const PREFACE_FIRST = "P".charCodeAt(0);

export class OlderPeer {
  /** Connections of the moment that were let through, by how they began. */
  readonly open = { http2: 0, sockets: 0 };
  /** Its program was replaced: everything is let through. */
  isUpgraded = false;
  private readonly sockets = new Set<Socket>();
  private readonly platform: Http2Server = createHttp2Server();
  private readonly server: Server;
  address = "";

  private constructor(
    private readonly target: string,
    tls: PeerTls | null,
  ) {
    this.platform.on("sessionError", () => undefined);
    this.platform.on("session", (session) => session.on("error", () => undefined));
    const met = (socket: Socket): void => this.meet(socket);
    this.server =
      tls === null
        ? createServer(met)
        : createTlsServer({ ...secretsOf(tls), ALPNProtocols: ["h2"] }, met);
  }

  static async open(target: string, tls: PeerTls | null): Promise<OlderPeer> {
    const peer = new OlderPeer(target, tls);
    await new Promise<void>((resolve) => peer.server.listen(0, "127.0.0.1", resolve));
    const bound = peer.server.address();
    if (bound === null || typeof bound === "string") throw new Error("it has a port");
    peer.address = `127.0.0.1:${bound.port}`;
    return peer;
  }

  /** Ends every connection of the moment. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private meet(near: Socket): void {
    this.watch(near);
    near.once("data", (first: Buffer) => {
      const isHttp2 = first[0] === PREFACE_FIRST;
      near.pause();
      near.unshift(first);
      if (isHttp2 || this.isUpgraded) this.pass(near, isHttp2 ? "http2" : "sockets");
      else this.platform.emit("connection", near);
    });
  }

  private pass(near: Socket, kind: "http2" | "sockets"): void {
    this.open[kind] += 1;
    near.on("close", () => (this.open[kind] -= 1));
    const [host, port] = this.target.split(":");
    const far = connect({ host: host ?? "", port: Number(port) });
    this.watch(far);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  }

  private watch(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => this.sockets.delete(socket));
  }
}
