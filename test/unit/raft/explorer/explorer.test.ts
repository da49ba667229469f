/**
 * The explorer and the walks, for as long as the daily tests allow; `npm run explore` goes on from here.
 */
import t from "tap";
import { defaultConfig } from "../../../../src/raft/state/config.js";
import { RaftCore } from "../../../../src/raft/core.js";
import { addCounts, noCounts, vacuous } from "./counts.js";
import { explore } from "./explore.js";
import type { Library } from "./node.js";
import { plans } from "./plans.js";
import { replayInWords } from "./replay.js";
import { shrink } from "./shrink.js";
import { swarmOf } from "./swarm.js";
import { walk, walks } from "./walk.js";
import type { Event } from "./events.js";

const library: Library = { RaftCore, defaultConfig };
t.setTimeout(300_000);

t.test("P-001 P-002 P-003 P-018 P-021 P-023 P-045 P-083 every order of a few events", (t) => {
  const total = noCounts();
  for (const plan of plans) {
    const found = explore(library, { ...plan, depth: plan.depth - 1 });
    const trace =
      found.violation === null ? "" : replayInWords(library, plan.settings, found.trace, plan);
    t.equal(found.violation, null, `${plan.name}: nothing is violated ${trace}`);
    t.equal(found.complete, true, `${plan.name}: all ${found.states} states`);
    t.ok(found.states > 500, `${plan.name}: that is not next to nothing`);
    addCounts(total, found.counts);
  }
  const least = { elections: 1000, committed: 1000, truncations: 10, lostWrites: 500 };
  const more = { snapshots: 10, changesApplied: 100, readsAnswered: 100, transferCampaigns: 100 };
  t.strictSame(vacuous(total, { ...least, ...more, priorTermCommits: 10 }), [], "not vacuous");
  t.end();
});

t.test(
  "P-005 P-020 P-022 P-024 P-038 P-084 P-088 P-167 P-175 random walks, and life after them",
  (t) => {
    const { total, found } = walks(library, 1, 800_000, 5000);
    const told =
      found === null ? "" : `walk ${found.seed}, step ${found.steps}: ${found.violation}`;
    t.equal(told, "", "nothing is violated");
    t.strictSame(
      vacuous(total, {
        elections: 400,
        leaderChanges: 200,
        committed: 3000,
        priorTermCommits: 500,
        truncations: 50,
        lostWrites: 200,
        staleReceipts: 500,
        crashes: 500,
        snapshots: 30,
        compactions: 200,
        changesApplied: 200,
        jointEntered: 20,
        stepDownsOnRemoval: 3,
        readsAnswered: 1000,
        readsDropped: 50,
        transferCampaigns: 15,
        duplicated: 1000,
        dropped: 5000,
        refusedAppends: 500,
        recoveries: 40,
        renewals: 50,
      }),
      [],
      "not vacuous",
    );
    t.end();
  },
);

t.test("P-088 P-089 replicas that come again: walks of many lives", (t) => {
  const { total, found } = walks(library, 1, 700_000, 5000, {
    only: ["change", "crash", "drop", "duplicate", "flush", "compact", "campaign"],
    more: [
      ["renew", 60],
      ["change", 40],
      ["duplicate", 40],
    ],
    leases: false,
    preVote: true,
  });
  const told = found === null ? "" : `walk ${found.seed}, step ${found.steps}: ${found.violation}`;
  t.equal(told, "", "nothing is violated");
  const least = { renewals: 500, snapshotsNeeded: 20, strays: 100, snapshots: 20, recoveries: 10 };
  t.strictSame(vacuous(total, least), [], "not vacuous");
  t.end();
});

t.test("P-171 a walk is the same for the same seed, and its events replay it", (t) => {
  const first = walk(library, 77, 2000, {}, true);
  t.strictSame(walk(library, 77, 2000, {}, true), first);
  t.not(walk(library, 78, 2000).counts, first.counts);
  t.end();
});

t.test("a found violation is told and shortened", (t) => {
  // A core whose commit index runs ahead of what is written: the judge must see it.
  class Broken extends RaftCore {
    override get commitIndex(): number {
      return this.lastIndex;
    }
  }
  const broken: Library = { RaftCore: Broken, defaultConfig };
  const found = walk(broken, 5, 5000, { founders: 3 }, true);
  t.match(found.violation, /commits/);
  const { settings } = swarmOf(5, { founders: 3 });
  const short: readonly Event[] = shrink(broken, settings, found.events, 60);
  t.ok(short.length <= found.events.length, "not longer");
  t.match(replayInWords(broken, settings, short), /commits/, "the shorter one breaks it too");
  t.end();
});
