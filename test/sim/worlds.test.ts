/**
 * The worlds that are made for one thing each: what they are for happens in them, and nothing else goes wrong.
 */
import t from "tap";
import { type Profile, PROFILES, expectedOf } from "./plan/profiles.js";
import { runSeed } from "./run/seedrun.js";

t.setTimeout(560_000);

/** Seeds of each; what must have happened is counted over all of them. */
const WORLDS = {
  rude: 2,
  hasty: 1,
  images: 1,
  wiped: 3,
  "rolled-back": 1,
  heavy: 2,
  stuck: 3,
  tombs: 3,
  placed: 8,
  levels: 5,
  waiting: 5,
  watching: 7,
  "watching-blackouts": 2,
} as const;

t.test("a profile is found under its name", (t) => {
  for (const [name, profile] of Object.entries(PROFILES)) t.equal(profile.name, name);
  t.end();
});

for (const [name, seeds] of Object.entries(WORLDS)) {
  t.test(`P-166 the world "${name}" holds what it is for`, (t) => {
    const seen: Record<string, number> = {};
    for (let seed = 1; seed <= seeds; seed++) {
      const { violations, evidence, replay } = runSeed(seed, name, {});
      t.same(violations, [], replay);
      for (const [what, count] of Object.entries(evidence)) seen[what] = (seen[what] ?? 0) + count;
    }
    const profile = PROFILES[name] as Profile;
    const needs = Object.entries(profile.needs ?? {}).map(([what, least]) => {
      return [`the world of ${name}: ${what}`, least] as const;
    });
    const expected = Object.entries(expectedOf(profile, seeds));
    t.ok(needs.length + expected.length > 0, "it says what it needs");
    for (const [what, least] of [...needs, ...expected]) {
      const count = seen[what] ?? 0;
      t.ok(count >= least, `${what}: ${count} of ${least}`);
    }
    t.end();
  });
}
