/** When the groups of a node that is gone elect another leader. */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import type { Replica } from "../../../src/host/group/replica.js";
import { Failover } from "../../../src/host/leaders/failover.js";

void t.test("P-095 an election gets more time with every attempt", (t) => {
  let nowMs = 0;
  const campaignsMs: number[] = [];
  const leadership = { leader: 2 };
  const core = {
    forgetLeader: () => (leadership.leader = 0),
    campaign: () => campaignsMs.push(nowMs),
  };
  const replica = { leadership, core, isVoter: true } as unknown as Replica;
  const ignore = (): void => undefined;
  const failover = new Failover(new Prng(1), () => [replica], ignore, ignore);
  failover.linkDown(2, nowMs);
  for (; nowMs < 30_000; nowMs += 10) failover.check(nowMs);
  const pausesMs = campaignsMs.slice(1).map((atMs, at) => atMs - (campaignsMs[at] ?? 0));
  t.ok(pausesMs.length >= 3, `${campaignsMs.length} attempts`);
  const sorted = [...new Set(pausesMs)].sort((a, b) => a - b);
  t.same(pausesMs, sorted, "each is longer than the one before");
  t.end();
});
