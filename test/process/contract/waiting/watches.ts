/**
 * Contract 2.8, 3.9 and 4.9: what changes is told, over the gRPC stream, by polls and as server-sent events. Contract 4.11:
 * elections are locks with notes, waits and watches.
 */
import type { Test } from "tap";
import { sleep } from "../../cluster/server-process.js";
import type { Node } from "../node.js";
import { http1, type Json, post } from "../wire.js";
import { Answer, Kind, Told } from "./told.js";

const LEASE_MS = 60_000;

type Call = (path: string, body: object) => Promise<Json>;

function caller(node: Node): Call {
  return async (path, body) => (await post(node.http, `/v1/${path}`, body)).body as Json;
}

const typesOf = (events: readonly Json[]): unknown[] => events.map((event) => event["Type"]);
const base64 = (text: string): string => Buffer.from(text).toString("base64");

export async function watches(t: Test, node: Node): Promise<void> {
  const call = caller(node);
  const set = (key: string, text: string, more = {}) =>
    call("kv/try-set", { key, value: base64(text), ...more });

  await t.test("2.8, W1, W2, W4 over gRPC: every kind, in the order of the changes", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.key, "wk/a");
    await told.created(2, Kind.prefix, "wk/");
    await told.created(3, Kind.bucket, "wk");
    await told.created(4, Kind.lock, "wk");
    await told.created(5, Kind.lockPrefix, "wk");
    await told.created(6, Kind.sequence, "wk");
    const first = await set("wk/a", "one");
    await set("wk/a", "two");
    await set("wk/a", "no", { flags: 8 });
    await set("wk/a", "lost", { durability: 0 });
    await call("kv/try-delete", { key: "wk/a" });
    const owner = { resource: "wk", owner: "host", expiresMs: LEASE_MS };
    await call("locks/try-lock", { ...owner, note: "busy" });
    await call("locks/try-extend", owner);
    await call("locks/try-unlock", owner);
    await call("sequences/create", { name: "wk", blockSize: 10 });
    await call("sequences/reserve", { name: "wk", count: 1 });
    await call("sequences/delete", { name: "wk" });
    told.stream.send({ Sync: { SyncId: 9, WatchId: 0 } });
    const of = new Map<number, Json[]>([1, 2, 3, 4, 5, 6].map((id) => [id, []]));
    for (;;) {
      await told.stream.arrived(1);
      const synced = told.stream.received.find((answer) => answer["Type"] === Answer.synced);
      if (synced !== undefined) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    for (const answer of told.stream.received) {
      if (answer["Type"] !== Answer.events) continue;
      for (const id of answer["WatchIds"] as number[]) {
        of.get(id)?.push(...(answer["Events"] as Json[]));
      }
    }
    for (const id of [1, 2, 3]) {
      const events = of.get(id) ?? [];
      t.same(typesOf(events), [1, 1, 2], "SET, SET, DELETED; neither refused nor ephemeral");
      t.match(events[0], { Name: "wk/a", Value: Buffer.from("one") });
      t.equal(events[0]?.["Revision"], String(first["revision"]));
      const stamps = events.map((event) => BigInt(event["StampPhysical"] as string));
      t.ok(stamps.every((stamp, at) => at === 0 || stamp >= (stamps[at - 1] as bigint)));
    }
    for (const id of [4, 5]) {
      const events = of.get(id) ?? [];
      t.same(typesOf(events), [4, 5], "LOCKED, UNLOCKED; an extend is none");
      t.match(events[0], { Owner: Buffer.from("host"), Note: Buffer.from("busy"), Forced: false });
      t.equal(events[0]?.["FencingToken"], events[1]?.["FencingToken"]);
    }
    const sequence = of.get(6) ?? [];
    t.same([typesOf(sequence)[0], typesOf(sequence).at(-1)], [7, 9], "CREATED first, DELETED last");
    t.ok(typesOf(sequence).includes(10), "W12");
    told.stream.cancel();
  });

  await t.test(
    "W4 the state first: as events marked Initial, then a mark, also of nothing",
    async (t) => {
      for (let at = 0; at < 3; at++) await set(`wi/${at}`, `v${at}`);
      const told = new Told(node);
      told.create(1, Kind.prefix, "wi/", { Initial: true });
      const names: unknown[] = [];
      while (names.length < 3) {
        const answer = await told.next(Answer.events, 1);
        t.equal(answer["Initial"], true);
        names.push(...(answer["Events"] as Json[]).map((event) => event["Name"]));
      }
      t.same(names.sort(), ["wi/0", "wi/1", "wi/2"]);
      t.type((await told.next(Answer.mark))["Cursor"], "string");
      told.create(2, Kind.key, "wi/none", { Initial: true });
      t.type((await told.next(Answer.mark, 2))["Cursor"], "string", "of nothing");
      await set("wi/0", "x");
      t.match(await told.next(Answer.events, 1), { Initial: false, Events: [{ Name: "wi/0" }] });
      told.stream.cancel();
    },
  );

  await t.test("W5, W7 a cursor goes on exactly; a bad one is INVALID_INPUT", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.key, "wc/a");
    await set("wc/a", "1");
    let cursor: unknown = null;
    while (cursor === null) cursor = (await told.next(Answer.events))["Cursor"] ?? null;
    told.stream.cancel();
    for (const value of ["2", "3"]) await set("wc/a", value);
    await call("kv/try-delete", { key: "wc/a" });
    const again = new Told(node);
    again.create(1, Kind.key, "wc/a", { Cursor: cursor });
    const events = await again.events(3);
    t.same(typesOf(events), [1, 1, 2]);
    t.match(events, [{ Value: Buffer.from("2") }, { Value: Buffer.from("3") }, {}]);
    again.create(2, Kind.key, "wc/other", { Cursor: cursor });
    t.match(await again.next(Answer.ended), { WatchIds: [2], End: 2 }, "of another name");
    again.create(3, Kind.key, "wc/a", { Cursor: "not a cursor" });
    t.match(await again.next(Answer.ended), { WatchIds: [3], End: 2 });
    again.stream.cancel();
  });

  await t.test(
    "W8 FromRevision tells the retained revisions above it, then live ones",
    async (t) => {
      const revisions: unknown[] = [];
      for (const value of ["1", "2", "3"]) revisions.push((await set("wr/a", value))["revision"]);
      const told = new Told(node);
      told.create(1, Kind.key, "wr/a", { FromRevision: revisions[0] });
      const past = await told.events(2);
      t.same(
        past.map((event) => event["Revision"]),
        revisions.slice(1).map(String),
      );
      await set("wr/a", "4");
      t.match(await told.events(1), [{ Value: Buffer.from("4") }]);
      told.create(2, Kind.prefix, "wr/", { FromRevision: 1 });
      t.match(await told.next(Answer.ended), { WatchIds: [2], End: 2 }, "of a key only");
      told.stream.cancel();
    },
  );

  await t.test("W9 SYNCED comes behind all that was answered before", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.prefix, "ws/");
    for (let round = 1; round <= 10; round++) {
      await set(`ws/${round}`, "v");
      told.stream.send({ Sync: { SyncId: round, WatchId: 1 } });
      t.match(await told.next(Answer.synced), { SyncId: round });
      const events = told.stream.received.flatMap((answer) => answer["Events"] as Json[]);
      t.equal(events.filter(({ Name }) => Name === `ws/${round}`).length, 1, "once, and before");
    }
    told.stream.cancel();
  });

  await t.test(
    "W10 marks; Only, NoValues; what is refused ends one watch, not the stream",
    async (t) => {
      const told = new Told(node);
      await told.created(1, Kind.key, "wm/a", { ProgressMs: 100 });
      const mark = await told.next(Answer.mark);
      t.type(mark["Cursor"], "string");
      t.ok((mark["StaleMs"] as number) < 30_000);
      await told.created(2, Kind.key, "wm/a", { Only: 1 << 2, NoValues: true });
      await told.created(3, Kind.key, "wm/a", { NoValues: true });
      await set("wm/a", "v");
      await call("kv/try-delete", { key: "wm/a" });
      t.same(typesOf(await told.events(1, 2)), [2], "DELETED only");
      const bare = told.stream.received
        .filter(({ WatchIds }) => (WatchIds as number[]).includes(3))
        .flatMap((answer) => answer["Events"] as Json[]);
      t.notOk(bare.some((event) => "Value" in event && event["Value"] !== undefined));
      for (const [id, watch] of [
        [1, [Kind.key, "wm/a", {}]],
        [0, [Kind.key, "wm/a", {}]],
        [4, [0, "wm/a", {}]],
        [5, [99, "wm/a", {}]],
        [6, [Kind.key, "", {}]],
        [7, [Kind.key, "k".repeat(70_000), {}]],
        [8, [Kind.key, "wm/a", { ProgressMs: 1 }]],
      ] as const) {
        const [kind, name, more] = watch;
        told.create(id, kind, name, more);
        t.match(await told.next(Answer.ended), { End: 2 }, `${id}, kind ${kind}`);
      }
      told.stream.send({ Cancel: { WatchId: 3 } });
      t.match(await told.next(Answer.ended), { WatchIds: [3], End: 1 }, "CANCELLED");
      await set("wm/a", "w");
      t.ok((await told.events(1, 1)).length > 0, "the stream goes on");
      told.stream.cancel();
    },
  );

  await t.test("W11 ends of leases are told, not before they are over; F5 Forced", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.key, "we/a");
    await told.created(2, Kind.lock, "we");
    const beganMs = performance.now();
    await set("we/a", "v", { expiresMs: 300 });
    await call("locks/try-lock", { resource: "we", owner: "a", expiresMs: 300 });
    const ends = [...(await told.events(2, 1)), ...(await told.events(2, 2))];
    t.ok(performance.now() - beganMs >= 300, "not before");
    t.same(typesOf(ends).sort(), [1, 3, 4, 6], "EXPIRED, LOCK_EXPIRED");
    const held = await call("locks/try-lock", { resource: "we", owner: "b", expiresMs: LEASE_MS });
    const { fencingToken } = held;
    await call("locks/force-unlock", { resource: "we", fencingToken, reason: "hangs" });
    const forced = await told.events(2, 2);
    t.match(forced[1], { Type: 5, Forced: true, FencingToken: String(fencingToken) });
    told.stream.cancel();
  });

  await t.test("W3 of one partition in the order of the log", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.prefix, "wo/");
    const written = new Map<unknown, unknown[]>();
    for (let at = 0; at < 60; at++) {
      const key = `wo/${at}`;
      const { partitionId } = (await set(key, "v"))["route"] as Json;
      written.set(partitionId, [...(written.get(partitionId) ?? []), key]);
    }
    const names = (await told.events(60)).map((event) => event["Name"]);
    for (const keys of written.values()) {
      t.same(
        names.filter((name) => keys.includes(name)),
        keys,
      );
    }
    told.stream.cancel();
  });

  await t.test("W16 beyond the bounds of a stream a new watch is OVERLOADED", async (t) => {
    const told = new Told(node);
    for (let id = 1; id <= 4096; id++) told.create(id, Kind.key, `wb/${id % 7}`);
    told.create(4097, Kind.key, "wb/0");
    t.match(await told.next(Answer.ended), { WatchIds: [4097], End: 3 });
    await told.next(Answer.created, 4096);
    await set("wb/1", "v");
    const { WatchIds } = await told.next(Answer.events);
    t.same((WatchIds as number[]).length, Math.ceil(4096 / 7), "the others go on: one message");
    told.stream.send({ Cancel: { WatchId: 1 } });
    await told.next(Answer.ended, 1);
    await told.created(5000, Kind.key, "wb/0");
    told.stream.cancel();
  });

  await t.test("W15 nobody watches: nothing is made, kept or written", async (t) => {
    const metric = async (name: string): Promise<number> => {
      const { text } = await http1(node.http, "/metrics");
      const lines = text.split("\n").filter((line) => line.startsWith(name));
      t.ok(lines.length > 0, name);
      return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    };
    const isSilent = async (): Promise<boolean> => (await metric("svc_watchers{")) === 0;
    while (!(await isSilent())) await sleep(10);
    const told = ["svc_watch_events_total", "svc_watch_sent_bytes_total", "svc_lock_waiters"];
    const counts = () => Promise.all(told.map(metric));
    const before = await counts();
    // Every ten seconds groups delete what has expired: that falls into one look, or between two.
    let written = Infinity;
    for (let at = 0; at < 3 && written > 0; at++) {
      await set(`wn/${at}`, "v", { expiresMs: 200 });
      await call("locks/try-lock", { resource: `wn/${at}`, owner: "a", expiresMs: 200 });
      const index = await metric("svc_raft_commit_index");
      await sleep(600);
      written = (await metric("svc_raft_commit_index")) - index;
    }
    t.equal(written, 0, "an end that nobody hears is not written");
    t.same(await counts(), before);
  });

  await t.test("3.9 polls", async (t) => {
    const poll = (body: object) => call("watch/poll", { kind: "key", name: "wp/a", ...body });
    const now = await poll({});
    t.same(Object.keys(now).sort(), [
      ...["cursor", "events", "initial", "merged", "more", "reset", "servedFrom", "staleMs"],
    ]);
    t.match(now, { events: [], initial: false, cursor: String }, "at once, with the cursor of now");
    const { cursor } = now;
    const waiting = poll({ cursor, waitMs: 30_000 });
    const { revision } = await set("wp/a", "v");
    const answer = await waiting;
    t.same(Object.keys((answer["events"] as Json[])[0] as Json).sort(), [
      ...["fencingToken", "forced", "name", "note", "owner", "revision", "sequence", "stamp"],
      ...["type", "value"],
    ]);
    t.match(answer, {
      events: [{ type: "set", name: "wp/a", value: "dg==", revision, owner: null, note: null }],
    });
    t.match(await poll({ cursor: answer["cursor"], waitMs: 1 }), { events: [] }, "none in time");
    t.match(await poll({ cursor }), { events: [{ type: "set" }] }, "a cursor may be used again");
    t.match(await poll({ initial: true }), { initial: true, events: [{ value: "dg==" }] });
    for (const wrong of [
      { kind: "nothing" },
      { cursor: "x" },
      { name: "" },
      { only: ["never"] },
      { waitMs: -1 },
      { limit: -1 },
    ]) {
      const { status, body } = await post(node.http, "/v1/watch/poll", {
        ...{ kind: "key", name: "wp/a", ...wrong },
      });
      t.match([status, body["code"]], [400, "invalid-argument"], JSON.stringify(wrong));
    }
  });

  await t.test("3.9 server-sent events, and Last-Event-ID", async (t) => {
    const path = `${node.http}/v1/watch/stream?kind=key&name=wv%2Fa`;
    /** Reads until `wanted` is there; returns all that came. */
    const follow = async (
      headers: Record<string, string>,
      wanted: RegExp,
      then?: () => unknown,
    ) => {
      const stop = new AbortController();
      const response = await fetch(path, { headers, signal: stop.signal });
      t.equal(response.headers.get("content-type"), "text/event-stream");
      let text = "";
      const reader = response.body?.getReader();
      for (let isBegun = false; !wanted.test(text);) {
        const { value, done } = (await reader?.read()) as { value: Uint8Array; done: boolean };
        if (done) break;
        text += Buffer.from(value).toString();
        if (!isBegun && text.includes("event: created")) {
          isBegun = true;
          await then?.();
        }
      }
      stop.abort();
      return text;
    };
    const text = await follow({}, /"type":"set".*\n(id: .*\n)?\n/, () => set("wv/a", "v"));
    t.match(text, /^retry: 1000$/m);
    const id = [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] as string;
    t.ok(id.length > 0, "each block that has a cursor has it as its id");
    await set("wv/a", "w");
    const on = await follow({ "last-event-id": id }, /"type":"set"/);
    t.match(on, new RegExp(`"value":"${base64("w")}"`));
    t.notMatch(on, new RegExp(`"value":"${base64("v")}"`), "what was seen is not repeated");
    const bad = await fetch(path, { headers: { "last-event-id": "x" } });
    t.equal(bad.status, 400);
    await bad.text();
  });
}

export async function elections(t: Test, node: Node): Promise<void> {
  const call = caller(node);
  await t.test("E1 to E3: campaign, observe, proclaim, resign", async (t) => {
    const told = new Told(node);
    await told.created(1, Kind.lock, "elections/e");
    const campaign = (owner: string, note: string) =>
      call("locks/try-lock", {
        ...{ resource: "elections/e", owner, note, expiresMs: LEASE_MS, waitMs: 60_000 },
      });
    const first = await campaign("a", "host-a");
    t.match(first, { type: 0 });
    const second = campaign("b", "host-b");
    for (let waiters: unknown = 0; waiters !== 1;) {
      ({ waiters } = await call("locks/get-info", { resource: "elections/e" }));
    }
    const extend = { resource: "elections/e", owner: "a", expiresMs: LEASE_MS };
    const { fencingToken } = first;
    await call("locks/try-extend", { ...extend, fencingToken, note: "host-a, half way" });
    const leader = await call("locks/get-info", { resource: "elections/e" });
    t.match(leader, { owner: "a", note: "host-a, half way", fencingToken }, "proclaimed");
    await call("locks/try-unlock", { ...extend, fencingToken });
    const next = await second;
    t.match(next, { type: 0 });
    t.ok((next["fencingToken"] as number) > (fencingToken as number), "E3");
    await call("locks/try-unlock", { resource: "elections/e", owner: "b" });
    const events = await told.events(4);
    t.same(typesOf(events), [4, 5, 4, 5], "E2, and that nobody leads");
    t.match(events[2], { Owner: Buffer.from("b"), Note: Buffer.from("host-b") });
    t.equal(events[2]?.["FencingToken"], String(next["fencingToken"]), "the epoch");
    told.stream.cancel();
  });
}
