/** Planned moves of leaderships between real processes: rolling restarts, and the leader balancer at a short interval. */
import t from "tap";
import { Rolling } from "./rolling.js";
import { endAll, sleep } from "./server-process.js";

t.setTimeout(120_000);
t.teardown(endAll);

t.test(
  "P-197 C12 C13 a rolling restart under 64 callers refuses nothing and loses no lock",
  async (t) => {
    const rolling = new Rolling([
      "--initial-cluster-partitions=4",
      "--raft-leader-balancer-interval=1s",
    ]);
    t.teardown(() => rolling.end());
    await rolling.start();
    const held = { Resource: "held", Owner: Buffer.from("a"), ExpiresMs: 600_000, Durability: 0 };
    const granted = await rolling.call("Locker", "TryLock", held, 0);
    for (let at = 0; at < 8; at++) {
      const sequence = { Name: `sequence ${at}`, Increment: 1, Durability: 1 };
      await rolling.call("Sequencer", "CreateSequence", sequence, 0);
    }
    const before = await rolling.terms();
    rolling.load(64);
    for (const id of [1, 2, 3]) {
      await rolling.restart(id);
      await sleep(300);
    }
    await rolling.halt();
    t.same([...rolling.refusals], []);
    t.ok(rolling.answered > 1000, `${rolling.answered} calls`);
    t.ok((await rolling.terms()) - before >= 3, "leaderships moved");
    const found = await rolling.call("Locker", "GetLock", { Resource: "held" }, 0);
    t.match(
      found,
      { Type: 4, FencingToken: granted?.["FencingToken"] },
      "the ephemeral lock is held",
    );
  },
);
