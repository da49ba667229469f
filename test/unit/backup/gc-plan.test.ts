/**
 * What the collection of old backups takes away, against a naive second version, on catalogues made
 * by chance.
 */
import t from "tap";
import { LEASE_STALE_MS, ORPHAN_AGE_MS } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import { failure } from "../../../src/base/result.js";
import type { Catalogue, CatalogueEntry } from "../../../src/backup/catalogue.js";
import {
  type CollectionPlan,
  type RetentionRules,
  planCollection,
} from "../../../src/backup/gc-plan.js";
import type { Protection } from "../../../src/backup/lease.js";
import type { Manifest } from "../../../src/backup/manifest.js";
import { catalogueName } from "../../../src/backup/names.js";
import { sampleId } from "../../doubles/backup/sample-backup.js";

const NOW = 2_000_000_000_000;
const NOBODY: Protection = { everything: false, backups: new Set() };
const UNBOUNDED: RetentionRules = { maxChains: 0, maxAgeMs: 0, maxBytes: 0 };
const DAMAGE = failure("CorruptArtifact", "it is damaged");

interface Made {
  readonly number: number;
  readonly parent: number | null;
  readonly ageMs: number;
  readonly sizeBytes?: number;
  /** The manifest cannot be read; "lost": nor can anybody tell its parent. */
  readonly unreadable?: "told" | "lost";
  readonly damaged?: boolean;
}

function entry({
  number,
  parent,
  ageMs,
  sizeBytes = 100,
  unreadable,
  damaged,
}: Made): CatalogueEntry {
  const id = sampleId(number);
  const parentBackupId = parent === null ? null : sampleId(parent);
  const manifest =
    unreadable === undefined ? ({ backupId: id, parentBackupId, type: "Full" } as Manifest) : null;
  const isWhole = manifest !== null && damaged !== true;
  return {
    ...{ id, manifest, isIncomplete: false, sizeBytes, isUnchecked: false, artifacts: null },
    fault: isWhole ? null : DAMAGE,
    told: unreadable === "lost" ? null : { parent: parentBackupId },
    createdAtMs: NOW - ageMs,
    coverage: parent === null && isWhole ? { minMs: 1, maxMs: 2 } : null,
  };
}

function catalogue(entries: readonly CatalogueEntry[]): Catalogue {
  return { entries, rest: [] };
}

function gone({ chains }: CollectionPlan): number[][] {
  return chains.map((chain) => chain.map(({ entry: { id } }) => Number.parseInt(id, 16)));
}

const MINUTE = 60_000;
/** Three chains, ids 1 to 2, 3 to 5 and 6; the last one is the newest. */
const THREE = [
  entry({ number: 1, parent: null, ageMs: 60 * MINUTE }),
  entry({ number: 2, parent: 1, ageMs: 50 * MINUTE }),
  entry({ number: 3, parent: null, ageMs: 40 * MINUTE }),
  entry({ number: 4, parent: 3, ageMs: 30 * MINUTE }),
  entry({ number: 5, parent: 3, ageMs: 25 * MINUTE }),
  entry({ number: 6, parent: null, ageMs: 10 * MINUTE }),
];

t.test("7.4 whole chains go, leaves first, oldest chain first, and never the newest", (t) => {
  const plan = (rules: Partial<RetentionRules>, protection = NOBODY): number[][] =>
    gone(planCollection(catalogue(THREE), protection, { ...UNBOUNDED, ...rules }, NOW));
  t.same(plan({}), [], "without a bound nothing goes");
  t.same(plan({ maxChains: 2 }), [[2, 1]]);
  t.same(plan({ maxChains: 1 }), [
    [2, 1],
    [5, 4, 3],
  ]);
  t.same(plan({ maxAgeMs: 26 * MINUTE }), [[2, 1]], "the age is that of the newest entry");
  t.same(plan({ maxAgeMs: MINUTE }), [
    [2, 1],
    [5, 4, 3],
  ]);
  t.same(plan({ maxBytes: 400 }), [[2, 1]]);
  t.same(plan({ maxBytes: 1 }), [
    [2, 1],
    [5, 4, 3],
  ]);
  const leased = (id: number): Protection => ({ ...NOBODY, backups: new Set([sampleId(id)]) });
  t.same(plan({ maxChains: 1 }, leased(4)), [[2, 1]], "a lease holds the whole chain");
  t.same(plan({ maxChains: 1 }, { ...NOBODY, everything: true }), []);
  const { chains } = planCollection(
    catalogue(THREE),
    NOBODY,
    { maxChains: 2, maxAgeMs: 26 * MINUTE, maxBytes: 1 },
    NOW,
  );
  t.same(
    chains.map(([first]) => first?.reason),
    ["MaxAge", "MaxBytes"],
  );
  t.end();
});

t.test("P-141 what cannot be read is needed", (t) => {
  const rules = { ...UNBOUNDED, maxChains: 1 };
  const plan = (more: readonly CatalogueEntry[]): CollectionPlan =>
    planCollection(catalogue([...THREE, ...more]), NOBODY, rules, NOW);
  const told = entry({ number: 7, parent: 2, ageMs: 45 * MINUTE, unreadable: "told" });
  t.same(gone(plan([told])), [[5, 4, 3]], "its own chain stays");
  const lost = entry({ number: 8, parent: null, ageMs: 90 * MINUTE, unreadable: "lost" });
  t.same(gone(plan([lost])), [], "it may belong to any chain");
  t.same(plan([lost]).unplaced, [sampleId(8)]);
  const newest = entry({ number: 9, parent: null, ageMs: 1, damaged: true });
  t.same(gone(plan([newest])), [
    [2, 1],
    [5, 4, 3],
  ]);
  const circle = [
    entry({ number: 10, parent: 11, ageMs: 80 * MINUTE }),
    entry({ number: 11, parent: 10, ageMs: 80 * MINUTE }),
  ];
  t.equal(gone(plan(circle))[0]?.length, 2, "a circle is a chain like another one");
  t.end();
});

/** The same rules, said once more and slowly. */
function naive(
  entries: readonly CatalogueEntry[],
  { everything, backups }: Protection,
  { maxChains, maxAgeMs, maxBytes }: RetentionRules,
): Set<string> {
  const kept = new Set<string>();
  const all = new Set(entries.map(({ id }) => id));
  if (everything || entries.some(({ told }) => told === null)) return kept;
  let groups = entries.map((one) => new Set([one.id]));
  for (const one of entries) {
    const parent = one.told?.parent ?? "";
    if (!all.has(parent)) continue;
    const [a, b] = [groups.find((g) => g.has(one.id)), groups.find((g) => g.has(parent))];
    if (a === b || a === undefined || b === undefined) continue;
    groups = groups.filter((g) => g !== a && g !== b).concat(new Set([...a, ...b]));
  }
  const membersOf = (group: ReadonlySet<string>): CatalogueEntry[] =>
    entries.filter(({ id }) => group.has(id));
  const newestOf = (group: ReadonlySet<string>): CatalogueEntry =>
    membersOf(group).reduce((a, b) =>
      a.createdAtMs > b.createdAtMs || (a.createdAtMs === b.createdAtMs && a.id > b.id) ? a : b,
    );
  groups.sort((a, b) => {
    const [x, y] = [newestOf(a), newestOf(b)];
    return y.createdAtMs - x.createdAtMs || (x.id < y.id ? 1 : -1);
  });
  const isWhole = (group: ReadonlySet<string>): boolean =>
    membersOf(group).every(({ fault }) => fault === null) &&
    membersOf(group).some(({ coverage }) => coverage !== null);
  const newestWhole = groups.findIndex(isWhole);
  const out = new Set<string>();
  for (const [at, group] of groups.entries()) {
    const bytes = groups
      .slice(0, at + 1)
      .flatMap(membersOf)
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const isOld = maxAgeMs > 0 && NOW - newestOf(group).createdAtMs > maxAgeMs;
    const isMany = maxChains > 0 && at >= maxChains;
    const isMuch = maxBytes > 0 && bytes > maxBytes;
    if (!isOld && !isMany && !isMuch) continue;
    if (at === 0 || at === newestWhole) continue;
    if (membersOf(group).some(({ id, manifest }) => manifest === null || backups.has(id))) continue;
    for (const id of group) out.add(id);
  }
  return out;
}

t.test("P-141 any catalogue: what goes is what a naive reading of the rules says", (t) => {
  const prng = new Prng(15);
  const chance = (part: number): boolean => prng.nextUint32() % part === 0;
  let deleted = 0;
  let spared = 0;
  for (let round = 0; round < 3000; round++) {
    const count = 1 + (prng.nextUint32() % 12);
    const entries: CatalogueEntry[] = [];
    for (let number = 1; number <= count; number++) {
      const isRoot = number === 1 || chance(3);
      // Now and then a parent that is not there, or one that comes later.
      const parent = isRoot ? null : 1 + (prng.nextUint32() % (chance(10) ? 14 : number - 1));
      const ageMs = (prng.nextUint32() % 50) * MINUTE;
      const sizeBytes = 1 + (prng.nextUint32() % 100);
      const made = { number, parent: parent === number ? null : parent, ageMs, sizeBytes };
      const unreadable = chance(60) ? ("lost" as const) : ("told" as const);
      entries.push(entry({ ...made, ...(chance(25) ? { unreadable } : {}), damaged: chance(12) }));
    }
    const rules = {
      maxChains: prng.nextUint32() % 4,
      maxAgeMs: (prng.nextUint32() % 3) * 20 * MINUTE,
      maxBytes: chance(2) ? 0 : prng.nextUint32() % 600,
    };
    const leased = entries.filter(() => chance(12)).map(({ id }) => id);
    const protection = { everything: chance(40), backups: new Set(leased) };
    const isBounded = rules.maxChains + rules.maxAgeMs + rules.maxBytes > 0;
    const { chains } = planCollection(catalogue(entries), protection, rules, NOW);
    const expected = isBounded ? naive(entries, protection, rules) : new Set<string>();
    const found = chains.flat().map(({ entry: { id } }) => id);
    if (new Set(found).size !== found.length) t.fail(`round ${round}: one goes twice`);
    const same = found.length === expected.size && found.every((id) => expected.has(id));
    if (!same) t.fail(`round ${round}: ${found.join()} and not ${[...expected].join()}`);
    const children = new Map<string, string>();
    for (const { id, told } of entries)
      if (told !== null && told.parent !== null) children.set(id, told.parent);
    for (const [at, id] of found.entries()) {
      const parent = children.get(id);
      const isCircle = children.get(parent ?? "") !== undefined && found.length > 0;
      if (
        parent !== undefined &&
        found.includes(parent) &&
        found.indexOf(parent) < at &&
        !isCircle
      ) {
        t.fail(`round ${round}: ${parent} goes before ${id}, which needs it`);
      }
    }
    deleted += found.length;
    spared += entries.length - found.length;
  }
  t.ok(deleted > 2000 && spared > 2000, `${deleted} deleted, ${spared} spared`);
  t.end();
});

t.test("7.4 orphans: old leftovers and directories without manifest, unless leased", (t) => {
  const id = sampleId(1);
  const thing = (name: string, ageMs: number, isDirectory = false) => ({
    ...{ name, is: catalogueName(name), isDirectory, sizeBytes: 5, modifiedMs: NOW - ageMs },
  });
  const old = ORPHAN_AGE_MS;
  const rest = [
    thing(`${id}.manifest.tmp_1`, old),
    thing(`${id}.staging_12`, old, true),
    thing(`${sampleId(2)}.manifest.quarantine_1`, old),
    thing("x.merge_y", old - 1),
    thing("notes.txt", old * 9),
    thing("restore_1.claim", old * 9),
    thing(".lease_0123456789ab", old),
    thing(".lease_gc", LEASE_STALE_MS + 1),
  ];
  const bare: CatalogueEntry = {
    ...entry({ number: 3, parent: null, ageMs: old }),
    ...{ manifest: null, fault: DAMAGE, isIncomplete: true, told: null, coverage: null },
    artifacts: thing(sampleId(3), old, true),
  };
  const made = { entries: [bare], rest };
  const names = (protection: Protection): string[] =>
    planCollection(made, protection, UNBOUNDED, NOW).orphans.map(({ name }) => name);
  t.same(names(NOBODY), [
    ".lease_0123456789ab",
    `${id}.manifest.tmp_1`,
    `${id}.staging_12`,
    `${sampleId(2)}.manifest.quarantine_1`,
    sampleId(3),
  ]);
  t.same(names({ ...NOBODY, backups: new Set([id, sampleId(3)]) }), [
    ".lease_0123456789ab",
    `${sampleId(2)}.manifest.quarantine_1`,
  ]);
  t.same(names({ ...NOBODY, everything: true }), [".lease_0123456789ab"]);
  t.match(planCollection(made, NOBODY, UNBOUNDED, NOW).orphans.at(-1), {
    ...{ isDirectory: true, reason: "NoManifest", sizeBytes: 5 },
  });
  t.end();
});
