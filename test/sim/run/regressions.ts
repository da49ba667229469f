/**
 * Seeds that once failed, with what they found. A seed means what plan and draws make of it: when
 * those change, it is an ordinary seed, and the scenario named with it guards the fix.
 */
export interface Regression {
  readonly seed: number;
  readonly profile: string;
  readonly ticks?: number;
  /** What was wrong, and where a test of its own guards it. */
  readonly found: string;
}

export const REGRESSIONS: readonly Regression[] = [
  {
    seed: 8100,
    profile: "three",
    found: "a keyless allocation that was carried to the next leader skips a block",
  },
  {
    seed: 64350,
    profile: "members",
    ticks: 30_000,
    found: "a reset of a log that waits for space counted as durable (promises.test.ts)",
  },
  {
    seed: 64339,
    profile: "members",
    ticks: 30_000,
    found: "who had left was wiped, started by mistake, joined anew and was taken away",
  },
  {
    seed: 64035,
    profile: "members",
    ticks: 30_000,
    found: "a block lost with a leader, and others before its caller (linearizability.test.ts)",
  },
  {
    seed: 502079,
    profile: "stranded",
    ticks: 8000,
    found:
      "proposals cut off by a new leader's shorter log stayed counted (unit/host/parts.test.ts)",
  },
  {
    seed: 200027,
    profile: "members",
    ticks: 30_000,
    found:
      "a stop left those who wait for another node unanswered (unit/operations/forward.test.ts)",
  },
  {
    seed: 117,
    profile: "rolled-back",
    found:
      "who applied member lists of the past went on ignoring a living link (unit/host/cluster.test.ts)",
  },
  {
    seed: 7,
    profile: "placed",
    found: "who was left of two voters asked a dropped replica for its vote (come-and-go.test.ts)",
  },
  {
    seed: 4,
    profile: "placed",
    found: "a request for what nobody led waited beyond its deadline (operations/hosting.test.ts)",
  },
  {
    seed: 3700010,
    profile: "placed",
    ticks: 16_000,
    found: "an heir that was cut off began with an old lease clock (unit/host/moves.test.ts)",
  },
  {
    seed: 3700058,
    profile: "placed",
    ticks: 45_000,
    found: "who had left and was started by mistake lost its disk, and was replaced without end",
  },
  {
    seed: 3600034,
    profile: "placed",
    found: "peace ended before a replica on its way to a lost machine was given up (peace.test.ts)",
  },
  {
    seed: 3800060,
    profile: "placed",
    found:
      "a removed partition kept who was on its list from leaving (unit/host/hosting/born.test.ts)",
  },
  {
    seed: 3900128,
    profile: "placed",
    found: "a machine that perhaps was removed went, although a replica had come to it meanwhile",
  },
  {
    seed: 3900320,
    profile: "placed",
    found: "a drain that waited for a lost machine was asked for again before that was removed",
  },
  {
    seed: 1128,
    profile: "levels",
    found: "a founder that joined anew led groups whose only founder it had been (joins.test.ts)",
  },
  {
    seed: 9025,
    profile: "levels",
    found: "a finalize waited for a full disk beyond the stop (unit/host/levels/upgrade.test.ts)",
  },
  {
    seed: 7220304,
    profile: "backup",
    found: "forced in the middle of a merge, keys were nobody's (machine/settled-ranges.test.ts)",
  },
];
