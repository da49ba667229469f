/**
 * A TCP proxy that can stop forwarding, forward late, and cut: the network of the client's tests.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

export class Proxy {
  private readonly server: Server;
  private readonly pairs = new Set<Pair>();
  private target: string;
  private stalled = false;
  private delayMs = 0;
  /** Address of the proxy: host:port. */
  address = "";
  accepted = 0;

  private constructor(target: string) {
    this.target = target;
    this.server = createServer((near) => this.accept(near));
  }

  static async open(target: string): Promise<Proxy> {
    const proxy = new Proxy(target);
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    const address = proxy.server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has a port");
    proxy.address = `127.0.0.1:${address.port}`;
    return proxy;
  }

  private accept(near: Socket): void {
    this.accepted += 1;
    const [host, port] = this.target.split(":");
    const far = connect({ host: host ?? "", port: Number(port) });
    const pair = { near, far };
    this.pairs.add(pair);
    const end = (): void => {
      this.pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk: Buffer) => {
      if (this.delayMs === 0) near.write(chunk);
      else setTimeout(() => near.destroyed || near.write(chunk), this.delayMs);
    });
    if (this.stalled) this.hold(pair, true);
  }

  private hold({ near, far }: Pair, held: boolean): void {
    for (const socket of [near, far]) {
      if (held) socket.pause();
      else socket.resume();
    }
  }

  /** Nothing is forwarded; connections stay open. */
  stall(): void {
    this.stalled = true;
    for (const pair of this.pairs) this.hold(pair, true);
  }

  /** Forwards again, also what waited. */
  resume(): void {
    this.stalled = false;
    for (const pair of this.pairs) this.hold(pair, false);
  }

  /** Answers arrive later by this (ms). */
  delayAnswers(delayMs: number): void {
    this.delayMs = delayMs;
  }

  /** Where new connections go. */
  retarget(target: string): void {
    this.target = target;
  }

  /** Ends all connections. */
  cut(): void {
    for (const { near, far } of [...this.pairs]) {
      near.destroy();
      far.destroy();
    }
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
