/** A gRPC stream of watches as a caller sees it that knows only the wire. */
import type { GrpcCaller, GrpcStream, Json } from "../wire.js";

export const Kind = { key: 1, prefix: 2, bucket: 3, lock: 4, lockPrefix: 5, sequence: 6 } as const;
export const Answer = { events: 0, created: 1, mark: 2, synced: 3, ended: 4 } as const;

/** A stream of watches, and what each was told. */
export class Told {
  readonly stream: GrpcStream;
  private readonly used = new Set<string>();

  constructor({ grpc }: { readonly grpc: GrpcCaller }) {
    this.stream = grpc.stream("Watcher", "Watch");
  }

  create(WatchId: number, kind: number, Name: string, more: Json = {}): void {
    this.stream.send({ Create: { WatchId, Kind: kind, Name, ...more } });
  }

  /** The next answer of that type, for that watch; 0: for any. Each comes once for each. */
  async next(type: number, watchId = 0): Promise<Json> {
    const { received } = this.stream;
    for (let at = 0; ; at++) {
      await this.stream.arrived(at + 1);
      const answer = received[at];
      if (answer === undefined) throw new Error(`the stream ended before an answer ${type}`);
      const ids = answer["WatchIds"] as readonly number[];
      const isFor = watchId === 0 || ids.includes(watchId);
      const use = `${at} ${watchId}`;
      if (answer["Type"] !== type || !isFor || this.used.has(use)) continue;
      this.used.add(use);
      return answer;
    }
  }

  async created(...watch: Parameters<Told["create"]>): Promise<void> {
    this.create(...watch);
    await this.next(Answer.created, watch[0]);
  }

  /** Events of a watch, in order, until there are so many. */
  async events(count: number, watchId = 0): Promise<Json[]> {
    const all: Json[] = [];
    while (all.length < count) {
      all.push(...((await this.next(Answer.events, watchId))["Events"] as Json[]));
    }
    return all;
  }
}
