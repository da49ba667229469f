/**
 * A gRPC server whose answers a test decides: counts messages and items, offers frames or not, has
 * streams or not.
 */
import * as grpc from "@grpc/grpc-js";
import { encodeMessage, protoReader, type Int64Halves } from "../../../src/proto/codec.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import * as locks from "../../../src/proto/generated/locks.js";

export interface FakeAnswer {
  readonly type: number;
  readonly value?: number;
}
export interface FakeCall {
  readonly kind: "next" | "reserve" | "lock" | "extend" | "unlock";
  /** Name or resource. */
  readonly name: string;
  readonly key: string | null;
  readonly owner: string;
  readonly count: number;
}
/** null = no answer at all. */
export type FakeBehaviour = (call: FakeCall, number: number) => FakeAnswer | null;

export interface FakeOptions {
  readonly frames?: boolean;
  readonly streams?: boolean;
  readonly behave: FakeBehaviour;
}

const identity = (bytes: Buffer): Buffer => bytes;
const halves = (value: number): Int64Halves => ({ low: value, high: 0, unsigned: false });
type Duplex = grpc.ServerDuplexStream<Buffer, Buffer>;

export class FakeServer {
  readonly calls: FakeCall[] = [];
  /** Items in each stream message; 1 for a message that is no frame. */
  readonly messages: number[] = [];
  unary = 0;
  streams = 0;
  address = "";
  private readonly server = new grpc.Server();
  private readonly options: FakeOptions;

  private constructor(options: FakeOptions) {
    this.options = options;
  }

  static async open(options: FakeOptions): Promise<FakeServer> {
    const fake = new FakeServer(options);
    fake.addStreams();
    fake.addUnary();
    const credentials = grpc.ServerCredentials.createInsecure();
    const port = await new Promise<number>((resolve, reject) => {
      fake.server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    fake.address = `127.0.0.1:${port}`;
    return fake;
  }

  close(): void {
    this.server.forceShutdown();
  }

  private behave(call: FakeCall): FakeAnswer | null {
    this.calls.push(call);
    return this.options.behave(call, this.calls.length);
  }

  private definition(path: string, streaming: boolean) {
    return {
      path,
      requestStream: streaming,
      responseStream: streaming,
      requestDeserialize: identity,
      requestSerialize: identity,
      responseDeserialize: identity,
      responseSerialize: identity,
    };
  }

  private addUnary(): void {
    this.server.addService(
      { next: this.definition("/Sequencer/NextSequenceValue", false) },
      {
        next: (
          call: grpc.ServerUnaryCall<Buffer, Buffer>,
          callback: grpc.sendUnaryData<Buffer>,
        ) => {
          this.unary += 1;
          const request = sequences.GrpcNextSequenceRequest.decode(protoReader(call.request));
          const answer = this.behave(nextCall(request));
          if (answer !== null) {
            callback(
              null,
              encodeMessage(sequences.GrpcSequenceAllocationResponse, allocation(answer)),
            );
          }
        },
      },
    );
  }

  private addStreams(): void {
    if (this.options.streams === false) return;
    const serve = (call: Duplex, take: (message: Buffer) => Buffer[]): void => {
      this.streams += 1;
      const headers = new grpc.Metadata();
      if (this.options.frames !== false) headers.set("svc-batch-frames", "1");
      call.sendMetadata(headers);
      call.on("data", (message: Buffer) => {
        for (const answer of take(message)) call.write(answer);
      });
      call.on("error", () => undefined);
      call.on("end", () => call.end());
    };
    this.server.addService(
      { batch: this.definition("/Sequencer/BatchClientSequenceRequests", true) },
      { batch: (call: Duplex) => serve(call, (message) => this.sequenceItems(message)) },
    );
    this.server.addService(
      { batch: this.definition("/Locker/BatchClientLockRequests", true) },
      { batch: (call: Duplex) => serve(call, (message) => this.lockItems(message)) },
    );
  }

  private sequenceItems(message: Buffer): Buffer[] {
    const one = sequences.GrpcBatchClientSequenceRequest.decode(protoReader(message));
    const items = one.Frame === null ? [one] : one.Frame.Items;
    this.messages.push(items.length);
    const answers: Buffer[] = [];
    for (const item of items) {
      const { NextSequenceValue: next, ReserveSequenceRange: reserve } = item;
      const call =
        next !== null
          ? nextCall(next)
          : {
              ...blank,
              kind: "reserve" as const,
              name: reserve?.Name ?? "",
              key: reserve?.IdempotencyKey ?? null,
              count: reserve?.Count ?? 0,
            };
      const answer = this.behave(call);
      if (answer === null) continue;
      const { Type, RequestId } = item;
      const fields = { Type, RequestId, Allocation: allocation(answer) };
      answers.push(encodeMessage(sequences.GrpcBatchClientSequenceResponse, fields));
    }
    return answers;
  }

  private lockItems(message: Buffer): Buffer[] {
    const one = locks.GrpcBatchClientLockRequest.decode(protoReader(message));
    const items = one.Frame === null ? [one] : one.Frame.Items;
    this.messages.push(items.length);
    const answers: Buffer[] = [];
    for (const item of items) {
      const { TryLock, ExtendLock, Unlock } = item;
      const request = TryLock ?? ExtendLock ?? Unlock;
      const kind = TryLock !== null ? "lock" : ExtendLock !== null ? "extend" : "unlock";
      const owner = Buffer.from(request?.Owner ?? []).toString();
      const answer = this.behave({ ...blank, kind, name: request?.Resource ?? "", owner });
      if (answer === null) continue;
      const body = { Type: answer.type, FencingToken: halves(answer.value ?? 0) };
      const payload =
        kind === "lock"
          ? { TryLock: body }
          : kind === "extend"
            ? { ExtendLock: body }
            : { Unlock: { Type: answer.type } };
      const fields = { Type: item.Type, RequestId: item.RequestId, ...payload };
      answers.push(encodeMessage(locks.GrpcBatchClientLockResponse, fields));
    }
    return answers;
  }
}

const blank = { key: null, owner: "", count: 1 };

function nextCall(request: sequences.GrpcNextSequenceRequest): FakeCall {
  return { ...blank, kind: "next", name: request.Name, key: request.IdempotencyKey };
}

function allocation({ type, value = 0 }: FakeAnswer) {
  const given = {
    Name: "s",
    Start: halves(value),
    End: halves(value),
    Count: 1,
    Revision: halves(1),
  };
  return { Type: type, Allocation: type === 0 ? given : null };
}
