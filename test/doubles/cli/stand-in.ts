/**
 * A stand-in node for tests of svc-cli: it speaks the messages of the service, and its answers are set by the test.
 * Batch streams are not offered, so every call arrives as a unary one.
 */
import { CALL_LIST } from "../../../src/api/calls.js";
import * as grpc from "@grpc/grpc-js";
import { encodeMessage, type Encodable, type MessageCodec } from "../../../src/proto/codec.js";

export type Reply =
  | { readonly bytes: Buffer }
  | { readonly status: grpc.status; readonly outcome?: string }
  /** Never answered. */
  | "silence";
/** A reply, or what makes one from the request and its number among the calls of this method (from 1). */
export type Answer = Reply | ((request: Buffer, number: number) => Reply | Promise<Reply>);

export function reply<T>(codec: MessageCodec<T>, message: Encodable<T>): Reply {
  return { bytes: encodeMessage(codec, message) };
}

export const LOST: Reply = { status: grpc.status.UNAVAILABLE };

const SERVICES: Readonly<Record<string, readonly string[]>> = {
  KeyValuer: [
    "TryDeleteKeyValue",
    "TrySetKeyValue",
    "ScanAllByPrefix",
    "GetByBucket",
    "GetByRange",
  ],
  Locker: ["TryLock", "TryExtendLock", "Unlock"],
  Sequencer: ["ReserveSequenceRange", "CreateSequence", "DeleteSequence", "NextSequenceValue"],
  "grpc.health.v1.Health": ["Check"],
};

export class StandIn {
  readonly answers = new Map<string, Answer>();
  /** The methods that were called, in order. */
  readonly asked: string[] = [];
  readonly requests: Buffer[] = [];
  endpoint = "";
  port = 0;
  private readonly server = new grpc.Server();

  async start(): Promise<this> {
    for (const [, call] of CALL_LIST) {
      const [, service = "", method = ""] = call.grpc.split("/");
      this.serve(service, method);
    }
    for (const [service, methods] of Object.entries(SERVICES)) {
      for (const method of methods) this.serve(service, method);
    }
    this.port = await new Promise<number>((resolve, reject) => {
      const credentials = grpc.ServerCredentials.createInsecure();
      this.server.bindAsync("127.0.0.1:0", credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    this.endpoint = `http://127.0.0.1:${this.port}`;
    return this;
  }

  count(method: string): number {
    return this.asked.filter((name) => name === method).length;
  }

  private serve(service: string, method: string): void {
    const handler = (
      call: grpc.ServerUnaryCall<Buffer, Buffer>,
      callback: grpc.sendUnaryData<Buffer>,
    ): void => {
      this.asked.push(method);
      this.requests.push(call.request);
      const answer = this.answers.get(method);
      const made = typeof answer === "function" ? answer(call.request, this.count(method)) : answer;
      void Promise.resolve(made).then((one) => this.answer(method, one, callback));
    };
    const plain = (bytes: Buffer): Buffer => bytes;
    this.server.addService(
      {
        [method]: {
          path: `/${service}/${method}`,
          requestStream: false,
          responseStream: false,
          requestSerialize: plain,
          requestDeserialize: plain,
          responseSerialize: plain,
          responseDeserialize: plain,
        },
      },
      { [method]: handler },
    );
  }

  private answer(
    method: string,
    made: Reply | undefined,
    callback: grpc.sendUnaryData<Buffer>,
  ): void {
    if (made === "silence") return;
    if (made !== undefined && "bytes" in made) return callback(null, made.bytes);
    const metadata = new grpc.Metadata();
    if (made?.outcome !== undefined) metadata.set("svc-backup-outcome", made.outcome);
    const code = made?.status ?? grpc.status.UNIMPLEMENTED;
    callback({ code, details: `no ${method}`, metadata });
  }

  stop(): void {
    this.server.forceShutdown();
  }
}
