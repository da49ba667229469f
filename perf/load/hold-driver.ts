/**
 * Watches or waiters that only wait, in a process of their own: it opens them, says "ready" on its
 * output, and holds them until its input ends.
 *
 * node dist/perf/load/hold-driver.js --address 127.0.0.1:8083 --service own --watchers 1000 --streams
 * 10 --names own; or --waiters 4096 --locks 1 --owner O
 *
 * Invariants: 1. "ready" means that every watch is created, or every ask for a lock written. 2.
 * Waiters are persistent try-locks of batch streams, one stream to a connection; `--owner` holds each
 * lock.
 */
import { parseArgs } from "node:util";
import { encodeMessage } from "../../src/proto/codec.js";
import * as locks from "../../src/proto/generated/locks.js";
import { prefixed } from "./grpc-items.js";
import { addressesOf, headersFor } from "./grpc-options.js";
import { LeanConnection } from "./lean-http2.js";
import { ETCD_WATCHES, OWN_WATCHES } from "./watch-items.js";
import { WatchStreams } from "./watch-streams.js";

const WAITERS_PER_STREAM = 1024;
const LEASE_MS = 3_600_000;
const PERSISTENT = 1;

const text = (fallback: string) => ({ type: "string", default: fallback }) as const;
const { values } = parseArgs({
  options: {
    address: text("127.0.0.1:8083"),
    service: text("own"),
    watchers: text("0"),
    streams: text("1"),
    /** one: all of one key; own: each of its own; prefix: each of a prefix of its own. */
    names: text("one"),
    waiters: text("0"),
    locks: text("1"),
    prefix: text("held"),
    owner: text("holder"),
  },
});
const addresses = addressesOf(values.address);
const waiters = Number(values.waiters);
const watchers = Number(values.watchers);

function tryLock(id: number, lock: number, owner: string, WaitMs: number): Buffer {
  const Resource = `${values.prefix}/lock-${lock}`;
  const TryLock = {
    ...{ Resource, Owner: Buffer.from(owner), ExpiresMs: LEASE_MS, Durability: PERSISTENT },
    WaitMs,
  };
  const Type = locks.GrpcLockClientBatchType.TYPE_TRY_LOCK;
  const item = { Type, RequestId: id, TryLock };
  return prefixed(encodeMessage(locks.GrpcBatchClientLockRequest, item));
}

/** One stream with these requests; resolves when `answers` of them came back. */
async function stream(at: number, requests: readonly Buffer[], answers: number): Promise<void> {
  const { host, port } = addresses[at % addresses.length] as (typeof addresses)[number];
  let missing = answers;
  await new Promise<void>((resolve, reject) => {
    const over = (): void => reject(new Error("a stream of waiters ended"));
    const handlers = {
      onData: (): void => {
        missing -= 1;
        if (missing <= 0) resolve();
      },
      onEnd: over,
      onClose: over,
    };
    LeanConnection.open(host, port, false, handlers).then((connection) => {
      const fields = { host, port, tls: false, token: "" };
      const id = connection.request(headersFor(fields, "/Locker/BatchClientLockRequests"));
      connection.data(id, Buffer.concat(requests));
      connection.flush();
      if (answers === 0) resolve();
    }, reject);
  });
}

if (waiters > 0) {
  const count = Number(values.locks);
  for (let lock = 0; lock < count; lock++) await stream(0, [tryLock(1, lock, values.owner, 0)], 1);
  for (let first = 0; first < waiters; first += WAITERS_PER_STREAM) {
    const size = Math.min(WAITERS_PER_STREAM, waiters - first);
    const asks = Array.from({ length: size }, (_, at) =>
      tryLock(at + 1, (first + at) % count, `waiter-${first + at}`, LEASE_MS),
    );
    await stream(first / WAITERS_PER_STREAM, asks, 0);
  }
}
if (watchers > 0) {
  const service = values.service === "etcd" ? ETCD_WATCHES : OWN_WATCHES;
  const { names, prefix } = values;
  const shape = { service, addresses, watchers, streams: Number(values.streams) };
  const nameOf = (watch: number): string => (names === "one" ? prefix : `${prefix}/${watch}-a`);
  await WatchStreams.open({ ...shape, isPrefix: names === "prefix", nameOf }, () => undefined);
}
process.stdout.write("ready\n");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
