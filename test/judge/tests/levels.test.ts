/** The checkers of levels fire, stay silent, and notice when they saw nothing. */
import t from "tap";
import { LevelSteps } from "../checkers/levels/level-steps.js";
import { PermittedEntries } from "../checkers/levels/permitted-entries.js";
import { SpokenProtocols } from "../checkers/levels/spoken-protocols.js";
import { UpgradeSteps } from "../checkers/levels/upgrade-steps.js";
import type { Verdict } from "../checkers/verdict.js";

/** What a checker says after `act`. */
function kindOf<C extends { verdict(): Verdict }>(checker: C, act: (checker: C) => void): string {
  act(checker);
  const { kind, violations } = checker.verdict();
  return violations.length === 0 ? kind : `${kind}: ${violations[0] as string}`;
}

function raised(steps: LevelSteps): void {
  steps.clusterAt(1, 1, 5, 1);
  steps.groupAt(1, 1, 1, 9, 1);
  steps.clusterAt(1, 1, 6, 2);
  steps.groupAt(1, 1, 1, 10, 2);
}

t.test("U2 levels rise together", (t) => {
  const of = (act: (steps: LevelSteps) => void): string => kindOf(new LevelSteps(), act);
  t.equal(of(raised), "pass");
  t.equal(
    of(() => undefined),
    "vacuous",
  );
  t.equal(
    of((steps) => steps.clusterAt(1, 1, 5, 1)),
    "vacuous",
    "nothing rose",
  );
  const after = (act: (steps: LevelSteps) => void): string => {
    return of((steps) => {
      raised(steps);
      act(steps);
    });
  };
  t.equal(
    after((steps) => {
      // Another life begins with what was durable.
      steps.clusterAt(1, 2, 5, 1);
      steps.groupAt(2, 1, 1, 9, 1);
      steps.groupAt(2, 1, 1, 12, 2);
    }),
    "pass",
  );
  t.match(
    after((steps) => steps.groupAt(2, 1, 1, 10, 1)),
    /^fail: group 1: node 2: at index 10 it is 1, and 2 elsewhere/,
  );
  t.match(
    after((steps) => steps.groupAt(1, 1, 1, 11, 1)),
    /^fail: group 1: node 1: at index 11 it falls from 2 to 1/,
  );
  t.match(
    after((steps) => steps.groupAt(1, 1, 2, 3, 3)),
    /^fail: group 2: node 1: it is at level 3, and the cluster is at 2/,
  );
  t.match(
    after((steps) => steps.clusterAt(2, 1, 6, 1)),
    /^fail: the level of the cluster: node 2: at index 6 it is 1, and 2 elsewhere/,
  );
  t.match(
    after((steps) => steps.clusterAt(1, 1, 7, 1)),
    /^fail: the level of the cluster: node 1: at index 7 it falls/,
  );
  t.end();
});

t.test("U1 U2 nothing is written above a level", (t) => {
  const of = (act: (entries: PermittedEntries) => void): string => {
    return kindOf(new PermittedEntries({ "entries of a raised level": 1 }), act);
  };
  const entry = { group: 1, index: 5, needs: 1, sets: 0, raises: 0 };
  const good = (entries: PermittedEntries): void => {
    entries.written(1, 1, 1, entry);
    entries.written(1, 2, 2, { ...entry, index: 6, sets: 2 });
    entries.written(1, 2, 2, { ...entry, index: 7, needs: 2 });
    entries.written(2, 2, 2, { ...entry, index: 7, needs: 2 });
  };
  t.equal(of(good), "pass");
  t.equal(
    of((entries) => entries.written(1, 1, 1, entry)),
    "vacuous",
  );
  for (const raise of [{ needs: 2 }, { sets: 2 }, { raises: 2 }]) {
    t.match(
      of((entries) => {
        good(entries);
        entries.written(3, 1, 2, { ...entry, index: 8, ...raise });
      }),
      /^fail: node 3 writes entry 8 of group 1: it is of level 2, and supports 1/,
    );
  }
  t.match(
    of((entries) => {
      good(entries);
      entries.written(3, 2, 1, { ...entry, index: 6, sets: 2 });
    }),
    /^fail: .*it is of level 2, and its directory of 1/,
  );
  t.match(
    of((entries) => {
      good(entries);
      entries.written(1, 2, 2, { ...entry, index: 6, needs: 2 });
    }),
    /^fail: .*entry 6 of group 1: it needs level 2, which the group was not set to/,
  );
  t.match(
    of((entries) => {
      good(entries);
      entries.written(1, 2, 2, { ...entry, group: 2, index: 9, needs: 2 });
    }),
    /^fail: .*group 2: it needs level 2/,
  );
  t.end();
});

t.test("U7 a link speaks what both know", (t) => {
  const of = (act: (links: SpokenProtocols) => void): string => {
    return kindOf(new SpokenProtocols({ "links of two programs": 1 }), act);
  };
  const [older, newer] = [
    { min: 4, max: 4 },
    { min: 4, max: 5 },
  ];
  t.equal(
    of((links) => links.linked(1, older, 2, newer, 4)),
    "pass",
  );
  t.equal(
    of((links) => links.linked(1, newer, 2, newer, 5)),
    "vacuous",
  );
  t.match(
    of((links) => links.linked(1, older, 2, newer, 5)),
    /^fail: node 1 speaks 5 with node 2/,
  );
  t.match(
    of((links) => links.linked(1, newer, 2, newer, 4)),
    /^fail/,
  );
  t.end();
});

t.test("U4 U5 rolled back before a raise only", (t) => {
  const of = (act: (steps: UpgradeSteps) => void): string => kindOf(new UpgradeSteps(), act);
  const good = (steps: UpgradeSteps): void => {
    steps.rolled("forward");
    steps.rolled("back");
    steps.opened(1, 1, 1);
    steps.opened(1, 2, 1);
    steps.refused(1, 1, 2);
    steps.admitted(3, 1, 1);
    steps.admitted(3, 2, 2);
    steps.finalized(29_000);
  };
  t.equal(of(good), "pass");
  t.equal(
    of((steps) => steps.rolled("forward")),
    "vacuous",
  );
  const after = (act: (steps: UpgradeSteps) => void): string => {
    return of((steps) => {
      good(steps);
      act(steps);
    });
  };
  t.match(
    after((steps) => steps.opened(2, 1, 2)),
    /^fail: node 2 supports level 1, and starts on 2/,
  );
  t.match(
    after((steps) => steps.refused(2, 2, 2)),
    /^fail: node 2 supports level 2, and refuses 2/,
  );
  t.match(
    after((steps) => steps.admitted(3, 1, 2)),
    /^fail: node 3 supports level 1, and joins one of 2/,
  );
  t.match(
    after((steps) => steps.wrote(3)),
    /^fail: node 3 writes before/,
  );
  t.match(
    after((steps) => steps.leftBehind(3)),
    /^fail: the level is raised over node 3/,
  );
  t.match(
    after((steps) => steps.finalized(31_000)),
    /^fail: the last group follows after 31000 ms/,
  );
  t.end();
});
