/**
 * Fuzzing of watches and of waits at the front ends: streams of gRPC, well formed and not, the paths
 * of REST, and items of a batch that wait and are cancelled.
 *
 * What is answered is typed, no fault is met, each watch ends once and each item is answered once.
 * The seed is printed, and can be set by SVC_FUZZ_SEED; the number of inputs by SVC_FUZZ_INPUTS.
 */
import fc from "fast-check";
import t, { type Test } from "tap";
import { level } from "../../src/base/ids.js";
import { LockType } from "../../src/base/result-types.js";
import type { Command } from "../../src/machine/commands/command.js";
import type { Watches } from "../../src/operations/api/requests.js";
import { bigIntToHalves, decodeMessage, encodeMessage } from "../../src/proto/codec.js";
import * as locks from "../../src/proto/generated/locks.js";
import * as watch from "../../src/proto/generated/watch.js";
import { blankAnswer } from "../doubles/front/operations.js";
import { WatchBench } from "../doubles/host/watch-bench.js";
import { eventually, openStream, start } from "../unit/grpc/harness.js";
import { startRig } from "../unit/rest/harness.js";
import { Account, type Asked, COMMANDS, asked, cursorOf } from "./watch-inputs.js";

const seed = Number(process.env["SVC_FUZZ_SEED"] ?? Date.now() % 1_000_000_000);
const INPUTS = Number(process.env["SVC_FUZZ_INPUTS"] ?? 300);
t.setTimeout(300_000);
t.comment(`seed ${seed}, ${INPUTS} inputs`);

/** A hub as front ends see it, in which something happens all the time. */
function running(t: Test): { readonly bench: WatchBench; readonly watches: Watches } {
  const bench = new WatchBench(2, { historyBytes: 3000, watchersMax: 20_000 });
  bench.apply(1, { kind: "set-level", level: level(2) });
  const { hub } = bench;
  const open: Watches["open"] = (receiver) =>
    hub.open({
      deliver: (message) => receiver.deliver(message, null),
      isFull: () => receiver.isFull(),
      mayRead: () => receiver.mayRead(),
    });
  let at = 0;
  const timer = setInterval(() => {
    bench.timer.nowMs += 20;
    bench.apply(1, COMMANDS[at++ % COMMANDS.length]?.() as Command);
  }, 2);
  t.teardown(() => clearInterval(timer));
  return { bench, watches: { tally: hub.tally, open } };
}

// gRPC -------------------------------------------------------------------------------------------

type Said =
  | { readonly say: "create"; readonly asked: Asked }
  | { readonly say: "cancel" | "sync"; readonly id: number }
  | { readonly say: "noise"; readonly bytes: Uint8Array };

const said: fc.Arbitrary<Said> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ say: fc.constant("create" as const), asked }) },
  {
    weight: 4,
    arbitrary: fc.record({
      say: fc.constantFrom("cancel" as const, "sync" as const),
      id: fc.constantFrom(0, 1, 2, 3, -1, 2 ** 31 - 1),
    }),
  },
);
const noise = fc.record({ say: fc.constant("noise" as const), bytes: fc.uint8Array() });

function requestBytes(each: Said, account: Account): Buffer {
  switch (each.say) {
    case "noise":
      return Buffer.from(each.bytes);
    case "cancel":
      return encodeMessage(watch.GrpcWatchRequest, { Cancel: { WatchId: each.id } });
    case "sync": {
      const Sync = { SyncId: account.sync(), WatchId: each.id };
      return encodeMessage(watch.GrpcWatchRequest, { Sync });
    }
    case "create": {
      const { id, kind, name, fromRevision, initial, noValues, only, progressMs } = each.asked;
      account.ask(id);
      const cursor = cursorOf(each.asked, account.cursors);
      const Create = {
        ...{ WatchId: id, Kind: kind, Name: name, Initial: initial, NoValues: noValues },
        ...{ Only: only, ProgressMs: progressMs },
        ...(cursor === null ? {} : { Cursor: cursor }),
        ...(fromRevision === null ? {} : { FromRevision: bigIntToHalves(fromRevision) }),
      };
      return encodeMessage(watch.GrpcWatchRequest, { Create });
    }
  }
}

function take(account: Account, bytes: Buffer): void {
  const message = decodeMessage(watch.GrpcWatchResponse, bytes);
  if (message === null) throw new Error("a malformed response");
  const { Type: type, WatchIds: watchIds, Cursor, End: end, SyncId: syncId } = message;
  account.told({ type, watchIds, cursor: Cursor ?? null, end, syncId });
}

t.test("P-164 W16 streams of watches over gRPC: one end each, and typed codes", async (t) => {
  const { bench, watches } = running(t);
  const { client, operations, faults } = await start(t);
  Object.assign(operations, { watches });
  const codes = new Map<number, number>();
  let ended = 0;
  const orderly = fc.asyncProperty(fc.array(said, { maxLength: 25, size: "max" }), async (all) => {
    const stream = openStream(client, "/Watcher/Watch");
    const account = new Account();
    let heard = 0;
    const listen = (): void => {
      while (heard < stream.messages.length) take(account, stream.messages[heard++] as Buffer);
    };
    for (const each of all) {
      stream.call.write(requestBytes(each, account));
      if (account.cursors.length === 0) await new Promise((resolve) => setImmediate(resolve));
      listen();
    }
    // Whoever is asked for in the end ends as well.
    for (const id of account.ids) {
      stream.call.write(requestBytes({ say: "cancel", id }, account));
    }
    stream.call.end();
    const code = await stream.ended;
    listen();
    if (code !== 0) throw new Error(`an orderly stream ended with ${code}`);
    account.close();
    ended += account.count;
  });
  await fc.assert(orderly, { seed, numRuns: INPUTS });
  t.ok(ended > INPUTS, `${ended} messages`);
  const disorderly = fc.asyncProperty(
    fc.array(fc.oneof(said, noise), { maxLength: 12, size: "max" }),
    fc.boolean(),
    async (all, isCut) => {
      const stream = openStream(client, "/Watcher/Watch");
      const account = new Account();
      for (const each of all) stream.call.write(requestBytes(each, account));
      // The client's library forgets the streams that are cancelled before they stand.
      if (isCut) await stream.headers;
      if (isCut) stream.call.cancel();
      else {
        stream.call.write(Buffer.from([0xff]));
        stream.call.end();
      }
      const code = await stream.ended;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    },
  );
  await fc.assert(disorderly, { seed, numRuns: INPUTS });
  // CANCELLED by the client, INVALID_ARGUMENT.
  t.strictSame([...codes.keys()].sort(), [1, 3]);
  await eventually(() => bench.hub.count === 0 && watches.tally.streams === 0);
  t.equal(watches.tally.bufferBytes, 0, "nothing counts as unsent");
  t.strictSame(faults, []);
});

// REST -------------------------------------------------------------------------------------------

const KINDS = ["key", "prefix", "bucket", "lock", "lock-prefix", "sequence", "", "keys", "KEY"];
const kindName = fc.constantFrom(...KINDS.slice(0, 6), ...KINDS);
const only = fc.constantFrom([], [], ["set"], ["lock-expired", "set"], ["sets"], [""]);

t.test("P-164 polls: typed answers, no 5xx, and nothing is left", async (t) => {
  const { bench, watches } = running(t);
  const rig = await startRig();
  t.teardown(() => rig.close());
  Object.assign(rig.port, { watches });
  const statuses = new Map<number, number>();
  const cursors: string[] = [];
  const property = fc.asyncProperty(
    asked,
    kindName,
    only,
    fc.constantFrom(0, 1, 20, -1, 60_001),
    fc.constantFrom(0, 1, 3, 1000, -1, 10_001),
    async (each, kind, types, waitMs, limit) => {
      const { name, fromRevision, initial, noValues } = each;
      const cursor = cursorOf({ ...each, kind: KINDS.indexOf(kind) + 1 }, cursors);
      const body = {
        ...{ kind, name, initial, noValues, only: types, waitMs, limit },
        ...(cursor === null ? {} : { cursor }),
        ...(fromRevision === null ? {} : { fromRevision: String(fromRevision) }),
      };
      const { status, body: answer, text } = await rig.post("/v1/watch/poll", body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 200) {
        if (typeof answer?.["cursor"] !== "string") throw new Error(`no cursor: ${text}`);
        cursors.push(answer["cursor"]);
      } else if (status !== 400) throw new Error(`${status}: ${text}`);
    },
  );
  await fc.assert(property, { seed, numRuns: INPUTS });
  t.comment(JSON.stringify([...statuses]));
  t.ok((statuses.get(200) ?? 0) > INPUTS / 20 && (statuses.get(400) ?? 0) > INPUTS / 20);
  await eventually(() => bench.hub.count === 0 && watches.tally.streams === 0);
  t.strictSame(rig.faults, []);
});

t.test("P-164 parameters of event streams: typed answers, no 5xx, nothing is left", async (t) => {
  const { bench, watches } = running(t);
  const rig = await startRig();
  t.teardown(() => rig.close());
  Object.assign(rig.port, { watches });
  const statuses = new Map<number, number>();
  const cursors: string[] = [];
  const extra = fc.constantFrom(
    "",
    "",
    "&",
    "&initial=true",
    "&only=set,",
    "&x=1",
    "&name=b",
    "&%",
    "&=",
  );
  const property = fc.asyncProperty(
    asked,
    kindName,
    only,
    extra,
    fc.boolean(),
    async (each, kind, types, rest, isHeader) => {
      const cursor = cursorOf({ ...each, kind: KINDS.indexOf(kind) + 1 }, cursors);
      const query = new URLSearchParams({ kind, name: each.name, noValues: `${each.noValues}` });
      if (types.length > 0) query.set("only", types.join());
      if (each.fromRevision !== null) query.set("fromRevision", String(each.fromRevision));
      // A header takes no other letters.
      const inHeader = isHeader && cursor !== null && /^[\x21-\x7e]+$/.test(cursor);
      if (cursor !== null && !inHeader) query.set("cursor", cursor);
      const answer = await rig.client.request({
        method: "GET",
        path: `/v1/watch/stream?${query}${rest}`,
        headers: inHeader ? { "last-event-id": cursor } : {},
      });
      const { statusCode: status } = answer;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status !== 200) {
        const text = await answer.body.text();
        // A request whose line, or head, is too long is not read.
        if (![400, 414, 431].includes(status)) throw new Error(`${status}: ${text}`);
        return;
      }
      for await (const chunk of answer.body) {
        const id = /^id: (.*)$/m.exec(String(chunk))?.[1];
        if (id !== undefined) cursors.push(id);
        break;
      }
    },
  );
  await fc.assert(property, { seed, numRuns: INPUTS });
  t.comment(JSON.stringify([...statuses]));
  t.ok((statuses.get(200) ?? 0) > INPUTS / 20 && (statuses.get(400) ?? 0) > INPUTS / 20);
  await eventually(() => bench.hub.count === 0 && watches.tally.streams === 0);
  t.strictSame(rig.faults, []);
});

// Waits ------------------------------------------------------------------------------------------

type Item =
  | { readonly item: "wait" | "try" | "cancel"; readonly id: number; readonly of: number }
  | { readonly item: "answer"; readonly at: number };
const item: fc.Arbitrary<Item> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      item: fc.constantFrom("wait" as const, "wait" as const, "try" as const, "cancel" as const),
      id: fc.nat(6),
      of: fc.nat(6),
    }),
  },
  fc.record({ item: fc.constant("answer" as const), at: fc.nat(9) }),
);

t.test("B7 Q9 waits and cancels of a batch: each item is answered once", async (t) => {
  const { client, operations, faults } = await start(t);
  operations.script = () => null;
  let cancelled = 0;
  const property = fc.asyncProperty(fc.array(item, { maxLength: 30, size: "max" }), async (all) => {
    const stream = openStream(client, "/Locker/BatchClientLockRequests");
    const { recorded } = operations;
    recorded.length = 0;
    const due = new Map<number, number>();
    const open = new Set<number>();
    let sent = 0;
    for (const each of all) {
      if (each.item === "answer") {
        const at = [...open][each.at];
        if (at === undefined) continue;
        open.delete(at);
        recorded[at]?.done(blankAnswer("try-lock", LockType.busy));
        continue;
      }
      const { id, of } = each;
      due.set(id, (due.get(id) ?? 0) + 1);
      const WaitMs = each.item === "wait" ? 60_000 : 0;
      const TryLock = {
        Resource: "r",
        Owner: Buffer.from("o"),
        ExpiresMs: 1,
        Durability: 1,
        WaitMs,
      };
      const message =
        each.item === "cancel"
          ? { Type: 5, RequestId: id, CancelWait: { RequestId: of } }
          : { Type: 1, RequestId: id, TryLock };
      stream.call.write(encodeMessage(locks.GrpcBatchClientLockRequest, message));
      if (each.item === "cancel") continue;
      sent++;
      await eventually(() => recorded.length === sent);
      open.add(sent - 1);
    }
    for (const at of open) recorded[at]?.done(blankAnswer("try-lock", LockType.locked));
    let count = 0;
    for (const each of due.values()) count += each;
    await stream.until(() => stream.messages.length >= count);
    stream.call.end();
    const code = await stream.ended;
    if (code !== 0) throw new Error(`the stream ended with ${code}`);
    for (const bytes of stream.messages) {
      const answer = decodeMessage(locks.GrpcBatchClientLockResponse, bytes);
      if (answer === null) throw new Error("a malformed response");
      if (answer.CancelWait?.Cancelled === true) cancelled++;
      due.set(answer.RequestId, (due.get(answer.RequestId) ?? 0) - 1);
    }
    const odd = [...due].filter(([, left]) => left !== 0);
    if (odd.length > 0) throw new Error(`answered too often, or not: ${JSON.stringify(odd)}`);
  });
  await fc.assert(property, { seed, numRuns: INPUTS });
  t.ok(cancelled > INPUTS / 5, `${cancelled} cancelled`);
  t.strictSame(faults, []);
});
