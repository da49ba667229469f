/** Changes of one grant alone, and notes: on the host and machine of one node, and across nodes. */
import t from "tap";
import { level } from "../../../../src/base/ids.js";
import { Int64 } from "../../../../src/base/int64.js";
import { LockType } from "../../../../src/base/result-types.js";
import type { DataRequest, LockAnswer } from "../../../../src/operations/api/requests.js";
import { Bench, extendLock, info, lock, unlock } from "../../../doubles/operations/fixture.js";
import { Trio } from "../../../doubles/operations/trio.js";

const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString();

for (const durability of [0, 1]) {
  const kind = durability === 0 ? "ephemeral" : "persistent";

  t.test(`Q13 ${kind}: a late repeat ends or extends no later grant of its owner`, (t) => {
    const bench = new Bench();
    const first = bench.ask(lock("r", "a", 60_000, durability)) as LockAnswer;
    const named = { fencingToken: first.fencingToken };
    t.match(bench.ask({ ...extendLock("r", "a", 60_000, durability), ...named }), { type: 2 });
    t.match(bench.ask({ ...unlock("r", "a", durability), ...named }), { type: 3 });
    t.match(bench.ask({ ...unlock("r", "a", durability), ...named }), { type: 102 }, "free");
    bench.ask(lock("r", "a", 60_000, durability));
    const late = bench.ask({ ...unlock("r", "a", durability), ...named });
    t.match(late, { type: LockType.invalidOwner, fencingToken: Int64.ZERO });
    t.match(bench.ask({ ...extendLock("r", "a", 1, durability), ...named }), { type: 103 });
    bench.world.pass(1000);
    t.match(bench.ask(info("r", durability)), { type: LockType.got }, "it is held as before");
    t.end();
  });

  t.test(
    `Q13 ${kind}: with who waits, such a release is the next one's grant, or nobody's`,
    (t) => {
      const bench = new Bench();
      const { fencingToken } = bench.ask(lock("r", "a", 60_000, durability)) as LockAnswer;
      const answers: LockAnswer[] = [];
      const context = { deadlineMs: bench.nowMs + 1e7, forwardHops: 0, requestId: "t" };
      const wait = {
        ...lock("r", "b", 60_000, durability),
        waitMs: 30_000,
        note: Buffer.from("n"),
      };
      bench.operations.execute(wait, context, (answer) => void answers.push(answer));
      bench.world.settle();
      const other = { fencingToken: Int64.fromBigInt(fencingToken.toBigInt() + 1n) };
      t.match(bench.ask({ ...unlock("r", "a", durability), ...other }), { type: 103, waiters: 1 });
      t.equal(answers.length, 0);
      t.match(bench.ask({ ...unlock("r", "a", durability), fencingToken }), { type: 3 });
      t.match(answers, [{ type: LockType.locked }]);
      t.equal(
        text((bench.ask(info("r", durability)) as LockAnswer).note),
        "n",
        "Q17 of who waited",
      );
      t.end();
    },
  );

  t.test(`Q17 ${kind}: a note is shown until an extend gives another, and no longer`, (t) => {
    const bench = new Bench();
    const note = (): string | null => text((bench.ask(info("r", durability)) as LockAnswer).note);
    bench.ask({ ...lock("r", "a", 60_000, durability), note: Buffer.from("one") });
    t.equal(note(), "one");
    bench.ask(extendLock("r", "a", 60_000, durability));
    t.equal(note(), "one");
    bench.ask({ ...extendLock("r", "a", 60_000, durability), note: Buffer.from("two") });
    t.equal(note(), "two");
    bench.ask(unlock("r", "a", durability));
    t.equal(note(), null);
    bench.ask(lock("r", "b", 60_000, durability));
    t.equal(note(), null, "another grant has its own");
    const long = { note: Buffer.alloc(1025) };
    t.match(bench.ask({ ...lock("s", "a", 1, durability), ...long }), { type: 100 });
    t.match(bench.ask({ ...extendLock("r", "b", 1, durability), ...long }), { type: 100 });
    t.end();
  });
}

t.test("Q13 Q17 U8 what level 1 does not know is refused there, at every node", (t) => {
  const trio = new Trio({}, { entryLevel: 1 });
  const note = Buffer.from("n");
  const fencingToken = Int64.ZERO;
  for (const durability of [0, 1]) {
    trio.ask(1, lock("r", "a", 60_000, durability));
    const early: readonly DataRequest[] = [
      { ...lock("s", "a", 60_000, durability), note },
      { ...extendLock("r", "a", 60_000, durability), note },
      { ...extendLock("r", "a", 60_000, durability), fencingToken },
      { ...unlock("r", "a", durability), fencingToken },
    ];
    for (const at of [1, 2, 3]) {
      for (const request of early) {
        const { refusal } = trio.ask(at, request);
        t.equal(refusal, "not-available-at-level", `${request.kind} ${durability} at node ${at}`);
      }
      t.match(trio.ask(at, extendLock("r", "a", 60_000, durability)), { type: 2, refusal: null });
    }
    t.match(trio.ask(2, info("s", durability)), { type: 102 }, "no effect");
  }
  for (const group of trio.host.groups()) {
    const command = { kind: "set-level", level: level(2) } as const;
    group.propose(command, 32, trio.world.timer.nowMs + 1000, () => undefined);
  }
  trio.world.settle();
  const leader = trio.leaderOf(trio.partitionOf("r"));
  t.match(trio.ask(leader, { ...unlock("r", "a"), fencingToken }), { type: 3 }, "at the leader");
  t.equal(trio.open, 0);
  t.end();
});
