/**
 * The load driver against a stand-in for an etcd node, which decodes with a definition of etcd's
 * public messages and keeps keys, leases and locks as etcd does: the comparison measures what it
 * says, although etcd itself is not needed here.
 */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import t from "tap";

const DEFINITION = `
syntax = "proto3";
message ResponseHeader { uint64 cluster_id = 1; uint64 member_id = 2; int64 revision = 3; uint64 raft_term = 4; }
message KeyValue { bytes key = 1; int64 create_revision = 2; int64 mod_revision = 3; int64 version = 4; bytes value = 5; int64 lease = 6; }
message RangeRequest { bytes key = 1; bytes range_end = 2; int64 limit = 3; int64 revision = 4; bool serializable = 7; }
message RangeResponse { ResponseHeader header = 1; repeated KeyValue kvs = 2; bool more = 3; int64 count = 4; }
message PutRequest { bytes key = 1; bytes value = 2; int64 lease = 3; bool prev_kv = 4; }
message PutResponse { ResponseHeader header = 1; KeyValue prev_kv = 2; }
message RequestOp { oneof request { RangeRequest request_range = 1; PutRequest request_put = 2; } }
message ResponseOp { oneof response { RangeResponse response_range = 1; PutResponse response_put = 2; } }
message Compare {
  enum CompareResult { EQUAL = 0; GREATER = 1; LESS = 2; NOT_EQUAL = 3; }
  enum CompareTarget { VERSION = 0; CREATE = 1; MOD = 2; VALUE = 3; LEASE = 4; }
  CompareResult result = 1; CompareTarget target = 2; bytes key = 3;
  oneof target_union { int64 version = 4; int64 create_revision = 5; int64 mod_revision = 6; bytes value = 7; int64 lease = 8; }
}
message TxnRequest { repeated Compare compare = 1; repeated RequestOp success = 2; repeated RequestOp failure = 3; }
message TxnResponse { ResponseHeader header = 1; bool succeeded = 2; repeated ResponseOp responses = 3; }
message LeaseGrantRequest { int64 TTL = 1; int64 ID = 2; }
message LeaseGrantResponse { ResponseHeader header = 1; int64 ID = 2; int64 TTL = 3; string error = 4; }
message LockRequest { bytes name = 1; int64 lease = 2; }
message LockResponse { ResponseHeader header = 1; bytes key = 2; }
message UnlockRequest { bytes key = 1; }
message UnlockResponse { ResponseHeader header = 1; }
`;
const { root } = protobuf.parse(DEFINITION, { keepCase: true });

interface Range {
  readonly key: Buffer;
  readonly range_end: Buffer;
  readonly serializable: boolean;
}
interface Put {
  readonly key: Buffer;
  readonly value: Buffer;
}
interface Operation {
  readonly request?: "request_range" | "request_put";
  readonly request_range?: Range;
  readonly request_put?: Put;
}
interface Comparison {
  readonly target: string;
  readonly result: string;
  readonly key: Buffer;
  readonly target_union?: string;
  readonly mod_revision?: string;
}
interface Swap {
  readonly compare: readonly Comparison[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}

/** Ids of leases are as large as etcd's: no double holds them. */
const FIRST_LEASE = 7_587_862_073_419_836_421n;
const TO_OBJECT = { longs: String, enums: String, defaults: true, arrays: true, oneofs: true };

class StandIn {
  readonly keys = new Map<string, { value: string; mod: number }>();
  readonly counts = new Map<string, number>();
  /** Requests that a real node would have understood otherwise, or not at all. */
  readonly wrong: string[] = [];
  readonly leases = new Set<string>();
  /** Keys of held locks, by the name of the lock. */
  readonly locks = new Map<string, string>();
  swapped = 0;
  missed = 0;
  isRefusing = false;
  private revision = 1;
  private readonly server = new grpc.Server();

  async open(): Promise<string> {
    this.serve<Range>("etcdserverpb.KV/Range", "Range", (range) => this.range(range));
    this.serve<Put>("etcdserverpb.KV/Put", "Put", (put) => this.put(put));
    this.serve<Swap>("etcdserverpb.KV/Txn", "Txn", (swap) => this.swap(swap));
    this.serve<{ TTL: string }>("etcdserverpb.Lease/LeaseGrant", "LeaseGrant", ({ TTL }) => {
      const ID = String(FIRST_LEASE + BigInt(this.leases.size));
      this.leases.add(ID);
      return { ID, TTL };
    });
    this.serve<{ name: Buffer; lease: string }>("v3lockpb.Lock/Lock", "Lock", (lock) => {
      const name = lock.name.toString();
      if (!this.leases.has(lock.lease)) this.wrong.push(`no such lease: ${lock.lease}`);
      if (this.locks.has(name)) this.wrong.push(`it is held: ${name}`);
      const key = `${name}/${BigInt(lock.lease).toString(16)}`;
      this.locks.set(name, key);
      this.revision += 1;
      return { key: Buffer.from(key) };
    });
    this.serve<{ key: Buffer }>("v3lockpb.Lock/Unlock", "Unlock", ({ key }) => {
      const held = [...this.locks].find(([, other]) => other === key.toString());
      if (held === undefined) this.wrong.push(`it is not held: ${key.toString()}`);
      else this.locks.delete(held[0]);
      this.revision += 1;
      return {};
    });
    const credentials = grpc.ServerCredentials.createInsecure();
    const port = await new Promise<number>((resolve, reject) => {
      this.server.bindAsync("127.0.0.1:0", credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    return `127.0.0.1:${port}`;
  }

  close(): void {
    this.server.forceShutdown();
  }

  count(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  /** Registers one method; a request must be exactly what its decoded form encodes to. */
  private serve<Request>(
    path: string,
    name: string,
    answer: (request: Request) => Readonly<Record<string, unknown>>,
  ): void {
    const request = root.lookupType(`${name}Request`);
    const response = root.lookupType(`${name}Response`);
    const definition = {
      path: `/${path}`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (bytes: Buffer) => bytes,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    };
    const handle: grpc.handleUnaryCall<Buffer, Buffer> = (call, done) => {
      if (this.isRefusing) return done({ code: grpc.status.UNAVAILABLE, details: "no leader" });
      this.counts.set(name, this.count(name) + 1);
      const decoded = request.decode(call.request);
      if (!call.request.equals(request.encode(decoded).finish())) {
        this.wrong.push(`${name}: ${call.request.toString("hex")}`);
      }
      const content = answer(request.toObject(decoded, TO_OBJECT) as Request);
      const header = { cluster_id: "14841639068965178418", member_id: "1", raft_term: 2 };
      const message = { header: { ...header, revision: this.revision }, ...content };
      done(null, Buffer.from(response.encode(response.fromObject(message)).finish()));
    };
    this.server.addService({ [name]: definition }, { [name]: handle });
  }

  private range({ key, range_end, serializable }: Range): { kvs: unknown[]; count: number } {
    if (serializable || range_end.length > 0) this.wrong.push("not one key, linearizable");
    const kept = this.keys.get(key.toString());
    if (kept === undefined) return { kvs: [], count: 0 };
    const { value, mod } = kept;
    const kv = { key, create_revision: 2, mod_revision: mod, version: 1 };
    return { kvs: [{ ...kv, value: Buffer.from(value) }], count: 1 };
  }

  private put({ key, value }: Put): Readonly<Record<string, never>> {
    this.revision += 1;
    this.keys.set(key.toString(), { value: value.toString(), mod: this.revision });
    return {};
  }

  private swap({ compare, success, failure }: Swap): Readonly<Record<string, unknown>> {
    const succeeded = compare.every(({ target, result, key, target_union, mod_revision }) => {
      const isMeant = target === "MOD" && result === "EQUAL" && target_union === "mod_revision";
      if (!isMeant) this.wrong.push(`a comparison of ${target} by ${String(target_union)}`);
      return String(this.keys.get(key.toString())?.mod ?? 0) === mod_revision;
    });
    if (compare.length !== 1) this.wrong.push("it compares something");
    if (succeeded) this.swapped += 1;
    else this.missed += 1;
    const responses = (succeeded ? success : failure).map(({ request_range, request_put }) =>
      request_put === undefined
        ? { response_range: this.range(request_range as Range) }
        : { response_put: this.put(request_put) },
    );
    return { succeeded, responses };
  }
}

const driver = join(
  dirname(fileURLToPath(import.meta.url)),
  "..",
  "..",
  "..",
  "perf",
  "load",
  "grpc-driver.js",
);

interface Report {
  readonly code: number | null;
  readonly operations: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly errors: number;
}

function drive(address: string, kind: string): Promise<Report> {
  const flags = ["--address", address, "--kind", kind, "--mode", "unary", "--inflight", "8"];
  const times = ["--objects", "1", "--seconds", "0.4", "--warmup-seconds", "0.1"];
  return new Promise((resolve, reject) => {
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, [driver, ...flags, ...times], { stdio: [...stdio] });
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.on("close", (code) => {
      if (output === "") reject(new Error(`the driver ended with ${String(code)}`));
      else resolve({ ...(JSON.parse(output) as Omit<Report, "code">), code });
    });
  });
}

t.test("the load driver speaks to etcd as etcd's own definition reads it", async (t) => {
  const etcd = new StandIn();
  const address = await etcd.open();
  t.teardown(() => etcd.close());
  const clean = (kind: string, report: Report, outcome: number): void => {
    t.same([report.code, report.errors], [0, 0], `${kind}: no errors`);
    t.ok(report.operations > 0, `${kind}: ${report.operations} operations`);
    t.strictSame(report.outcomes, { [outcome]: report.operations }, `${kind}: outcomes`);
  };

  clean("etcd-get", await drive(address, "etcd-get"), 1);
  clean("etcd-put", await drive(address, "etcd-put"), 0);
  const names = Array.from({ length: 8 }, (_, slot) => `perf/0/${slot}/key-${slot}`);
  t.strictSame([...etcd.keys.keys()].sort(), names, "keys as those of svc's own shapes");
  t.ok([...etcd.keys.values()].every(({ value }) => value === "a".repeat(100)));
  clean("etcd-get", await drive(address, "etcd-get"), 0);

  const counted = await drive(address, "etcd-counter");
  clean("etcd-counter", counted, 0);
  t.equal(etcd.keys.get("perf/counter-0")?.value, String(etcd.swapped), "no count is lost");
  t.ok(etcd.missed > 0 && etcd.swapped >= counted.operations, "a missed swap is no operation");

  const locked = await drive(address, "etcd-lock");
  clean("etcd-lock", locked, 0);
  t.equal(etcd.leases.size, 8, "a lease for each client");
  const apart = etcd.count("Lock") - etcd.count("Unlock");
  t.ok(apart >= 0 && apart <= 8, "locks and unlocks in turns");
  t.ok(etcd.count("Lock") + etcd.count("Unlock") >= locked.operations);
  t.strictSame(etcd.wrong, []);

  etcd.isRefusing = true;
  const refused = await drive(address, "etcd-put");
  t.equal(refused.operations, 0, "a refusal is no operation");
  t.ok(refused.errors > 0 && refused.code === 1, `${refused.errors} errors`);
});
