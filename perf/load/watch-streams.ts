/**
 * Watches for the measurements: so many on so many streams, shared among connections that go to all
 * nodes in turn.
 *
 * Owns its connections. Invariants: 1. They are open when every watch was said to be created. 2. A
 * stream, watch or connection that ends before it is closed here ends the process: what it would
 * have counted is nothing to go on with.
 */
import { type Address, headersFor } from "./grpc-options.js";
import { MessageCutter } from "./grpc-tally.js";
import { type HeaderFields, LeanConnection } from "./lean-http2.js";
import type { WatchService } from "./watch-items.js";

/** Streams that one connection carries, at most. */
const STREAMS_PER_CONNECTION = 100;

export interface WatchShape {
  readonly service: WatchService;
  readonly addresses: readonly Address[];
  readonly watchers: number;
  readonly streams: number;
  readonly isPrefix: boolean;
  /** What watch number `watch` of all is for. */
  nameOf(watch: number): string;
}

export class WatchStreams {
  private readonly connections: LeanConnection[] = [];
  private missing: number;
  private begun = 0;
  private isClosed = false;
  private readonly opened: Promise<void>;
  private whenOpened = (): void => undefined;

  private constructor(
    private readonly shape: WatchShape,
    private readonly told: (set: number, watches: number) => void,
  ) {
    this.missing = shape.watchers;
    this.opened = new Promise((resolve) => (this.whenOpened = resolve));
  }

  static async open(
    shape: WatchShape,
    told: (set: number, watches: number) => void,
  ): Promise<WatchStreams> {
    const opening = new WatchStreams(shape, told);
    const { streams, addresses } = shape;
    const count = Math.max(Math.min(streams, addresses.length), Math.ceil(streams / 100));
    for (let at = 0; at < count; at++) {
      const own = Math.floor((streams * (at + 1)) / count) - Math.floor((streams * at) / count);
      if (own > STREAMS_PER_CONNECTION) throw new Error("a connection has too many streams");
      await opening.connect(addresses[at % addresses.length] as Address, own);
    }
    await opening.opened;
    return opening;
  }

  close(): void {
    this.isClosed = true;
    for (const connection of this.connections) connection.close();
  }

  private async connect({ host, port }: Address, streams: number): Promise<void> {
    const { service, watchers, isPrefix } = this.shape;
    const cutters = new Map<number, MessageCutter>();
    const listener = {
      created: (): void => {
        this.missing -= 1;
        if (this.missing === 0) this.whenOpened();
      },
      told: this.told,
      ended: (): void => this.failed("a watch ended"),
    };
    const connection = await LeanConnection.open(host, port, false, {
      onData: (stream, bytes) => {
        const cutter = cutters.get(stream) as MessageCutter;
        for (const message of cutter.messages(bytes)) service.read(message, listener);
      },
      onEnd: () => this.failed("a stream ended"),
      onClose: (reason) => this.failed(reason),
    });
    this.connections.push(connection);
    const fields: HeaderFields = headersFor(
      { host, port, tls: false, token: "" },
      service.streamPath,
    );
    for (let at = 0; at < streams; at++) {
      const stream = connection.request(fields);
      cutters.set(stream, new MessageCutter());
      const first = this.watchesBefore(this.begun);
      const own = this.watchesBefore((this.begun += 1)) - first;
      const bodies = Array.from({ length: own }, (_, index) =>
        service.create(index + 1, this.shape.nameOf((first + index) % watchers), isPrefix),
      );
      connection.data(stream, Buffer.concat(bodies));
    }
    connection.flush();
  }

  private watchesBefore(stream: number): number {
    return Math.floor((this.shape.watchers * stream) / this.shape.streams);
  }

  private failed(reason: string): void {
    if (this.isClosed) return;
    process.stderr.write(`watches of a measurement: ${reason}\n`);
    process.exit(1);
  }
}
