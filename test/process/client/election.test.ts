/** Elections of the client against a real node, over both transports. */
import t from "tap";
import { InvalidInputError, LockLostError, LockNotAcquiredError } from "../../../src/client/mod.js";
import { failure } from "../../doubles/client/failure.js";
import { sleep } from "../cluster/server-process.js";
import { clientOf, direct } from "./one-node.js";

t.setTimeout(120_000);

for (const transport of ["grpc", "rest"] as const) {
  t.test(`E1 ${transport}: campaign, leader, proclaim, resign; the next one leads`, async (t) => {
    const [one, two] = [clientOf(transport), clientOf(transport)];
    const election = one.election(`a-${transport}`);
    t.equal(await election.leader(), null, "E2 absence is told");
    const first = await election.campaign({ value: "host-1", leaseMs: 5000 });
    t.same([first.leads, first.signal.aborted, first.name], [true, false, election.name]);
    t.match(await election.leader(), {
      epoch: first.epoch,
      ownerText: first.ownerText,
      valueText: "host-1",
    });
    t.equal((await direct.locks.info(`elections/a-${transport}`))?.noteText, "host-1");
    const vain = await failure(two.election(election.name).campaign({ waitMs: 50 }));
    t.type(vain, LockNotAcquiredError);
    const next = two.election(election.name).campaign({ value: new Uint8Array([255]) });
    t.equal(await first.proclaim("host-1 at 80 %"), true);
    t.match(await two.election(election.name).leader(), { valueText: "host-1 at 80 %" });
    t.equal(await first.resign(), true);
    t.same([first.leads, first.signal.aborted, await first.proclaim("late")], [false, true, false]);
    t.throws(() => first.assertLeads(), LockLostError);
    const second = await next;
    t.ok(second.epoch > first.epoch, "E3");
    const leader = await election.leader();
    t.same(
      [leader?.epoch, leader?.value, leader?.valueText],
      [second.epoch, Buffer.from([255]), null],
    );
    await second[Symbol.asyncDispose]();
    t.equal(await election.leader(), null);
    await Promise.all([one.close(), two.close()]);
  });
}

t.test("E1 who gives up while waiting leads nothing, whenever it gives up", async (t) => {
  const client = clientOf("grpc");
  for (const afterMs of [0, 20, 100]) {
    const election = client.election("given-up");
    const first = await direct.election("given-up").campaign();
    const stop = new AbortController();
    const waiting = failure(election.campaign({ signal: stop.signal }));
    await sleep(afterMs);
    stop.abort();
    t.match(await waiting, { code: "cancelled" });
    await first.resign();
    const next = await direct.election("given-up").campaign({ waitMs: 10_000 });
    t.equal((await election.leader())?.ownerText, next.ownerText);
    await next.resign();
  }
  await client.close();
});

t.test("E1 leading ends with the lock: a forced release ends it at the next extend", async (t) => {
  const client = clientOf("grpc");
  const leadership = await client.election("forced").campaign({ leaseMs: 1500 });
  const step = { fencingToken: leadership.epoch, reason: "hangs" };
  t.equal((await direct.locks.forceUnlock("elections/forced", step)).unlocked, true);
  await new Promise((resolve) => leadership.signal.addEventListener("abort", resolve));
  t.match(leadership.signal.reason, { code: "lock-lost" });
  t.equal(await leadership.resign(), false);
  t.equal(await client.election("forced").leader(), null);
  await client.close();
});

t.test("F4 a handle that watches its lock hears of a forced release at once", async (t) => {
  for (const transport of ["grpc", "rest"] as const) {
    const client = clientOf(transport);
    const resource = `watched-${transport}`;
    const lease = { leaseMs: 3_600_000 };
    const held = await client.locks.acquire(resource, { ...lease, watchLoss: true });
    await held.extend(lease.leaseMs);
    t.equal(held.held, true);
    const { fencingToken } = held;
    await direct.locks.forceUnlock(resource, { fencingToken, reason: "hangs" });
    // Its next extend would be in twenty minutes.
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    // What was before its watch stood is not told by whom.
    const message = /released by force|held by nobody/;
    t.match(held.signal.reason, { code: "lock-lost", message });
    const other = await client.locks.acquire(resource, { ...lease, watchLoss: true });
    await other.release();
    t.match(other.signal.reason, { code: "lock-released" });
    await client.close();
  }
});

t.test("E1 a client that closes resigns", async (t) => {
  const client = clientOf("grpc");
  const leadership = await client.election("closed").campaign({ leaseMs: 60_000 });
  const next = direct.election("closed").campaign({ waitMs: 30_000 });
  await client.close();
  t.equal(leadership.signal.aborted, true);
  t.ok((await next).epoch > leadership.epoch);
});

t.test("Q11 whoever waits for a lock is told its place", async (t) => {
  for (const transport of ["grpc", "rest"] as const) {
    const client = clientOf(transport);
    const resource = `place-${transport}`;
    const held = await direct.locks.acquire(resource, { leaseMs: 60_000 });
    const waiting = ["w1", "w2"].map((owner) =>
      direct.locks.tryLock(resource, { owner, leaseMs: 1000, waitMs: 60_000 }),
    );
    while ((await client.locks.info(resource))?.waiters !== 2) await sleep(10);
    const places = await Promise.all(
      ["w1", "w2", "other"].map((owner) => client.locks.info(resource, { owner })),
    );
    t.same(places.map((info) => info?.position).sort(), [0, 1, 2]);
    t.equal(places[2]?.position, 0);
    await held.release();
    const first = places[0]?.position === 1 ? "w1" : "w2";
    await waiting[first === "w1" ? 0 : 1];
    await direct.locks.unlock(resource, { owner: first });
    await Promise.all(waiting);
    await client.close();
  }
});

t.test("P-202 elections refuse values of wrong types by name", async (t) => {
  const wrong = (value: unknown): never => value as never;
  t.throws(() => direct.election(wrong(5)), InvalidInputError);
  const election = direct.election("typed");
  for (const [options, name] of [
    [5, "options"],
    [{ value: 5 }, "value"],
    [{ owner: 5 }, "owner"],
    [{ leaseMs: "1" }, "leaseMs"],
    [{ waitMs: "1" }, "waitMs"],
    [{ signal: {} }, "signal"],
  ] as const) {
    const error = await failure(election.campaign(wrong(options)));
    t.match(error, { code: "invalid-input", outcome: "none", message: new RegExp(name) });
  }
  const leadership = await election.campaign();
  await t.rejects(leadership.proclaim(wrong(5)), InvalidInputError);
  await t.rejects(leadership.resign(wrong(5)), InvalidInputError);
  t.equal(leadership.leads, true);
  await leadership.resign();
});
