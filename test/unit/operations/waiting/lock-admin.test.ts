/** Lists of locks, forced release and who did it: at one node with who waits, and over three. */
import t from "tap";
import { type Hlc, compareHlc } from "../../../../src/base/hlc.js";
import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import type {
  ForceUnlockRequest,
  ForcedAnswer,
  ListLockAuditRequest,
  ListLocksRequest,
  LockAnswer,
  LockAuditAnswer,
  LockPageAnswer,
} from "../../../../src/operations/api/requests.js";
import { Bench, info, lock, unlock } from "../../../doubles/operations/fixture.js";
import { Trio } from "../../../doubles/operations/trio.js";

function force(
  resource: string,
  token: bigint,
  more: Partial<ForceUnlockRequest> = {},
): ForceUnlockRequest {
  const fencingToken = Int64.fromBigInt(token);
  const asked = { resource, durability: 1, fencingToken, reason: "why", dropWaiters: false };
  return { kind: "force-unlock", ...asked, actor: "", nodeId: 0, ...more };
}

function list(prefix: string, more: Partial<ListLocksRequest> = {}): ListLocksRequest {
  const query = { durability: 1, heldOnly: false, limit: 0, cursor: null };
  return { kind: "list-locks", prefix, ...query, ...more };
}

function audit(prefix = "", more: Partial<ListLockAuditRequest> = {}): ListLockAuditRequest {
  return { kind: "list-lock-audit", prefix, limit: 0, cursor: null, ...more };
}

function wait(bench: Bench, owner: string, durability: number): LockAnswer[] {
  const answers: LockAnswer[] = [];
  const context = { deadlineMs: bench.nowMs + 1e7, forwardHops: 0, requestId: "t" };
  const request = { ...lock("r", owner, 60_000, durability), waitMs: 30_000 };
  bench.operations.execute(request, context, (answer) => void answers.push(answer));
  bench.world.settle();
  return answers;
}

for (const durability of [0, 1]) {
  const kind = durability === 0 ? "ephemeral" : "persistent";

  t.test(`F3 F4 ${kind}: that grant alone is ended, and the next waiter has the lock`, (t) => {
    const bench = new Bench();
    const held = bench.ask(lock("r", "a", 60_000, durability)) as LockAnswer;
    const token = held.fencingToken.toBigInt();
    const [b, c] = [wait(bench, "b", durability), wait(bench, "c", durability)];
    t.match(bench.ask(force("r", token + 1n, { durability })), { type: LockType.invalidOwner });
    t.equal(b.length, 0, "a refusal is nobody's grant");
    const released = bench.ask(force("r", token, { durability })) as ForcedAnswer;
    t.match(released, { type: LockType.unlocked, owner: Buffer.from("a"), auditId: 1 });
    t.match(b, [{ type: LockType.locked, waiters: 1 }]);
    t.equal(c.length, 0);
    t.match(bench.ask(force("r", token, { durability })), { type: LockType.invalidOwner }, "F6");
    t.match(bench.ask(info("r", durability)), { owner: Buffer.from("b"), waiters: 1 });
    const { items } = bench.ask(audit()) as LockAuditAnswer;
    t.match(items, [{ resource: "r", durability, owner: Buffer.from("a"), actor: "anonymous" }]);
    t.equal(items.length, 1);
    t.end();
  });

  t.test(`F4 ${kind}: who waits is dropped and holds nothing, and the lock is free`, (t) => {
    const bench = new Bench();
    const held = bench.ask(lock("r", "a", 60_000, durability)) as LockAnswer;
    const waits = ["b", "c", "d"].map((owner) => wait(bench, owner, durability));
    const token = held.fencingToken.toBigInt();
    const other = force("r", token + 1n, { durability, dropWaiters: true });
    t.match(bench.ask(other), { type: LockType.invalidOwner });
    t.same(
      waits.map(({ length }) => length),
      [0, 0, 0],
      "a refusal drops nobody",
    );
    const released = bench.ask(force("r", token, { durability, dropWaiters: true }));
    t.match(released, { type: LockType.unlocked });
    for (const answers of waits) t.match(answers, [{ type: LockType.aborted }]);
    t.match(bench.ask(info("r", durability)), { type: LockType.doesNotExist, waiters: 0 });
    t.match((bench.ask(audit()) as LockAuditAnswer).items, [{ waitersDropped: 3 }]);
    const next = bench.ask(lock("r", "e", 60_000, durability)) as LockAnswer;
    t.equal(next.fencingToken.toBigInt(), token + 1n, "nobody had it in between");
    t.end();
  });

  t.test(`F3 ${kind}: a lease that is over is not an administrator's to end`, (t) => {
    const bench = new Bench();
    bench.ask(lock("r", "a", 1000, durability));
    bench.world.pass(1000);
    t.match(bench.ask(force("r", 0n, { durability })), { type: LockType.doesNotExist, auditId: 0 });
    t.match(bench.ask(audit()), { type: LockType.got, items: [], hasMore: false });
    t.end();
  });
}

t.test("F4 the release and the next grant are in the same entry, with the row", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 60_000));
  wait(bench, "b", 1);
  const { machine } = bench.group(bench.partitionOf("r"));
  const before = machine.appliedIndex;
  bench.ask(force("r", 0n));
  t.equal(machine.appliedIndex, before + 1);
  t.match(machine.reads.getLock("r", 0), { token: 1n });
  t.equal(machine.reads.lockAudit("", null, 1, 1).items.length, 1);
  t.end();
});

t.test("F2 P-051 a list tells of no end that the log has not seen, and of who waits first", (t) => {
  const bench = new Bench();
  bench.ask(lock("r", "a", 1000));
  bench.ask(lock("s", "a", 1000));
  const waited = wait(bench, "b", 1);
  t.match(bench.ask(list("")), {
    items: [
      { resource: "r", held: true, waiters: 1, expiresInMs: 1000 },
      { resource: "s", held: true, waiters: 0 },
    ],
  });
  bench.world.pass(1000);
  const { items } = bench.ask(list("")) as LockPageAnswer;
  t.match(items, [
    { resource: "r", held: true, owner: Buffer.from("b") },
    { resource: "s", held: false, owner: null, expiresInMs: 0 },
  ]);
  t.match(waited, [{ type: LockType.locked }]);
  t.match(bench.ask(list("", { heldOnly: true })), { items: [{ resource: "r" }] });
  t.end();
});

t.test("F2 F5 over three nodes: pages of all partitions, at every node, through moves", (t) => {
  const trio = new Trio();
  const names = Array.from({ length: 40 }, (_, at) => `n/${String(at).padStart(2, "0")}`);
  for (const name of names) trio.ask(1, lock(name, "o", 60_000));
  for (const name of names.slice(0, 5)) {
    trio.world.pass(10);
    trio.ask(2, force(name, 0n, { reason: name }));
  }
  trio.ask(1, unlock("n/39", "o"));
  for (const at of [1, 2, 3]) {
    for (const limit of [0, 1, 3, 17]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page = trio.ask(at, list("n/", { limit, cursor })) as LockPageAnswer;
        t.equal(page.type, LockType.got);
        seen.push(...page.items.map(({ resource }) => resource));
        cursor = page.nextCursor;
        if (limit === 3) trio.moveAll((seen.length % 3) + 1);
      } while (cursor !== null);
      t.same(seen, names, `${limit} a page at node ${at}`);
    }
    const reasons: string[] = [];
    const stamps: Hlc[] = [];
    let cursor: string | null = null;
    do {
      const page = trio.ask(at, audit("n/", { limit: 2, cursor })) as LockAuditAnswer;
      reasons.push(...page.items.map(({ reason }) => reason));
      stamps.push(...page.items.map(({ stamp }) => stamp));
      cursor = page.nextCursor;
    } while (cursor !== null);
    t.same([...reasons].sort(), names.slice(0, 5), `each once, at node ${at}`);
    t.same(
      reasons,
      (trio.ask(at, audit("n/")) as LockAuditAnswer).items.map(({ reason }) => reason),
      "in the order of all of them",
    );
    const isBelow = (stamp: Hlc, n: number): boolean => {
      const above = stamps[n - 1];
      return above === undefined || compareHlc(stamp, above) <= 0;
    };
    t.ok(stamps.every(isBelow), "the newest first");
  }
  const [row] = (trio.ask(3, audit("n/04")) as LockAuditAnswer).items;
  t.match(row, { nodeId: 2, actor: "anonymous" }, "the node that took it in");
  t.match(trio.ask(1, list("n/", { cursor: "bad" })), { type: LockType.invalidInput });
  t.equal(trio.open, 0);
  t.end();
});

t.test("F1 F2 F5 U8 a cluster of level 1 has none of it", (t) => {
  const trio = new Trio({}, { entryLevel: 1 });
  trio.ask(1, lock("r", "a", 60_000));
  for (const at of [1, 2, 3]) {
    for (const request of [list(""), audit(), force("r", 0n)]) {
      t.equal(trio.ask(at, request).refusal, "not-available-at-level", `${request.kind} at ${at}`);
    }
  }
  t.match(trio.ask(1, info("r")), { type: LockType.got });
  t.end();
});
