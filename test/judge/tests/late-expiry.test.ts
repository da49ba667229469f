/** The checker of late expiry fires on a lost lease clock, and on nothing else (P-196). */
import t from "tap";
import { LateExpiry, type ServingSample } from "../checkers/nodes/late-expiry.js";

const OPTIONS = { drift: 0.05, slackMs: 2000, seenEveryMs: 1500, minimum: 1 };

function sample(node: number, term: number, atMs: number, leaseNowMs: number): ServingSample {
  const leasesUntilMs = 1_000_000;
  return {
    node,
    life: 1,
    partition: 1,
    term,
    atMs,
    leaseNowMs,
    leading: true,
    serving: true,
    leasesUntilMs,
  };
}

/** Node 1 leads from 1,000 to 61,000 ms; node 2 follows it with this lease clock. */
function after(leaseNowMs: number, heirSinceMs = 0, before = {}): LateExpiry {
  const checker = new LateExpiry(OPTIONS);
  checker.ran(2, 1, heirSinceMs);
  checker.sample({ ...sample(1, 1, 1000, 0), ...before });
  for (let atMs = 2000; atMs <= 61_000; atMs += 1000) checker.ran(1, 1, atMs);
  checker.sample(sample(2, 2, 63_000, leaseNowMs));
  return checker;
}

t.test("P-196 a clock that goes on passes, one that begins again fails", (t) => {
  t.equal(after(60_000).verdict().kind, "pass");
  t.equal(after(56_000).verdict().kind, "pass", "slower by what clocks and slack allow");
  t.equal(after(50_000).verdict().kind, "fail");
  t.equal(after(0).verdict().kind, "fail");
  t.match(after(0).verdict().violations[0], /node 1 led in term 1 for 60000 ms/);
  t.end();
});

t.test("P-196 what nobody could know, or no lease needs, is not judged", (t) => {
  t.equal(after(0, 60_500).verdict().kind, "vacuous", "the heir had only just started");
  t.equal(after(0, 0, { leasesUntilMs: 100 }).verdict().kind, "vacuous", "no lease ran");
  const blind = new LateExpiry(OPTIONS);
  blind.ran(2, 1, 0);
  blind.sample(sample(1, 1, 1000, 0));
  for (let atMs = 2000; atMs <= 61_000; atMs += 1000) blind.ran(1, 1, atMs);
  blind.sample({ ...sample(3, 2, 62_000, 0), serving: false });
  blind.sample(sample(2, 3, 63_000, 0));
  t.equal(blind.verdict().kind, "vacuous", "a leader in between may have decided");
  const paused = new LateExpiry(OPTIONS);
  paused.ran(2, 1, 0);
  paused.sample(sample(1, 1, 1000, 0));
  for (let atMs = 2000; atMs <= 10_000; atMs += 1000) paused.ran(1, 1, atMs);
  // It was paused, and finds out long after that another leads.
  paused.sample({ ...sample(1, 1, 60_000, 0), leading: false, serving: false });
  paused.sample(sample(2, 2, 61_000, 8000));
  t.equal(paused.verdict().kind, "pass");
  const woken = new LateExpiry(OPTIONS);
  woken.ran(2, 1, 0);
  woken.sample(sample(1, 1, 1000, 0));
  for (let atMs = 2000; atMs <= 10_000; atMs += 1000) woken.ran(1, 1, atMs);
  // It still takes itself for the leader when it wakes.
  woken.sample(sample(1, 1, 60_000, 50_000));
  woken.sample(sample(2, 2, 61_000, 8000));
  t.equal(woken.verdict().kind, "pass", "it reigned until its pause");
  t.end();
});
