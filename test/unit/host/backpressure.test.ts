/**
 * Backpressure ends: who was held back goes on as soon as there is room, and what was counted
 * against a bound is given back. Planted bugs of both kinds had survived every other test.
 */
import t from "tap";
import type { ProposalResult } from "../../../src/host/group/group.js";
import { KvType } from "../../../src/machine/commands/command.js";
import type { KvSetRequest } from "../../../src/operations/api/requests.js";
import { Bench, scanAll, set } from "../../doubles/operations/fixture.js";
import { World, propose } from "../../doubles/host/world.js";

t.test("P-155 intake opens again when a flush begins, not when it ends", async (t) => {
  const world = new World({ flushRows: 20, unflushedRowsMax: 50, heartbeatMs: 20_000 });
  const node = world.ready({ electionMs: 100_000 });
  const group = world.group(node);
  world.store.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 200; at++) {
    propose(group, `key-${at}`, results);
    world.settle();
  }
  const before = results.length;
  t.ok(before < 100, `the rest waits: ${before}`);
  t.not(world.store.pending, null, "a flush is under way");
  // The flush ends, the next one begins and hangs. Time stands still: nothing else wakes anybody.
  world.store.finish();
  world.settle();
  t.not(world.store.pending, null, "the next one is under way");
  const after = results.length;
  t.ok(after > before, `what the new flush made room for is in: ${after}`);
  world.store.automatic = true;
  world.store.finish();
  world.pass(1000);
  t.equal(results.length, 200);
  t.ok(results.every((result) => result.status === "applied"));
});

t.test("P-153 what reads in slices hold is given back when they end", async (t) => {
  const bench = new Bench();
  const value = new Uint8Array(256 * 1024);
  for (let at = 0; at < 12; at++) {
    const request: KvSetRequest = { ...set(`wide/${at}`, ""), value };
    t.match(bench.ask(request), { type: KvType.set });
  }
  // Each holds some 2 MiB before its last slice; the node grants 256 MiB to all that are open.
  const bucket = { kind: "kv-bucket" as const, bucket: "wide", durability: 1, plain: true };
  const told = { whole: 0, refused: 0 };
  for (let read = 0; read < 200; read++) {
    const answer = bench.ask(bucket);
    if (answer.type === KvType.got && answer.items.length === 12) told.whole++;
    else told.refused++;
  }
  t.same(told, { whole: 200, refused: 0 }, "one after the other, all find room");
  for (let read = 0; read < 20; read++) {
    const late = bench.send(bucket, [], 3);
    bench.world.timer.nowMs += 5;
    bench.world.settle();
    t.equal(late.length, 1, "also those that end at their deadline");
  }
  let scanned = 0;
  for (let read = 0; read < 200; read++) {
    if (bench.ask(scanAll("wide/", { limit: 100 })).items.length > 0) scanned++;
  }
  t.equal(scanned, 200);
});
