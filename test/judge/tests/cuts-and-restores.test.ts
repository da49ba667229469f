/**
 * The checkers of backups and restores: each passes, fires, and is vacuous where it saw too little.
 */
import t from "tap";
import { AcknowledgedIncluded } from "../checkers/backups/acknowledged-included.js";
import { ChainHonest, type SeenIncrement } from "../checkers/backups/chain-honest.js";
import { CutClosed } from "../checkers/backups/cut-closed.js";
import { CutIsPrefix } from "../checkers/backups/cut-is-prefix.js";
import { DigestEqual } from "../checkers/backups/digest-equal.js";
import { ForcedMap } from "../checkers/backups/forced-map.js";
import { GcSafe } from "../checkers/backups/gc-safe.js";
import { HoldsEnd } from "../checkers/backups/holds-end.js";
import { IncarnationsApart } from "../checkers/backups/incarnations-apart.js";
import { PauseBounded } from "../checkers/backups/pause-bounded.js";
import { PublishedWhole } from "../checkers/backups/published-whole.js";
import { RestoredHistory } from "../checkers/backups/restored-history.js";
import type { SeenBackup, SeenEntry, SeenWrite } from "../checkers/backups/seen-backups.js";
import { StampsSplit } from "../checkers/backups/stamps-split.js";
import { StrangersApart } from "../checkers/backups/strangers-apart.js";
import { TargetUntouched } from "../checkers/backups/target-untouched.js";
import { TokensRise } from "../checkers/backups/tokens-rise.js";
import { LINEARIZABILITY, checkLinearizability } from "../checkers/clients/linearizability.js";
import { HistoryRecorder } from "../history.js";
import type { FirstStates } from "../models/first-states.js";

const AT = { n: 1, l: 1000, c: 7 };

/** Entries 1 to 60 of every group, stamped by their index. */
function applied(_partition: number, index: number): SeenEntry | undefined {
  if (index < 1 || index > 60) return undefined;
  return { index, term: 2, digest: `d${index}`, stamp: { n: 1, l: 980 + index, c: 0 } };
}

function entriesOf(from: number, to: number): SeenEntry[] {
  const entries: SeenEntry[] = [];
  for (let index = from; index <= to; index++) entries.push(applied(1, index) as SeenEntry);
  return entries;
}

/** Entries 11 to 20 of one group behind an image, of another one 1 to 20. */
function backup(change: Partial<SeenBackup> = {}): SeenBackup {
  const part = (partition: number, before: number): SeenBackup["parts"][number] => ({
    ...{ partition, before, end: 20, endTerm: 2, chain: "c20" },
    entries: entriesOf(before + 1, 20),
  });
  return { id: "b", at: AT, askedMs: 500, parts: [part(1, 10), part(2, 0)], ...change };
}

/** The same with one part changed. */
function other(change: Partial<SeenBackup["parts"][number]>): SeenBackup {
  const [first, ...rest] = backup().parts;
  return backup({ parts: [{ ...(first as SeenBackup["parts"][number]), ...change }, ...rest] });
}

function write(value: string, calledMs: number, seenMs: number, index: number): SeenWrite {
  return { value, calledMs, seenMs, partition: 1 + (index % 2), index };
}

t.test("P-132 P-133 a backup is a prefix of each log", (t) => {
  const said = (seen: SeenBackup, partitions = [1, 2]): string[] => {
    const checker = new CutIsPrefix();
    checker.backup(seen, partitions, applied);
    return [...checker.verdict().violations];
  };
  t.same(said(backup()), []);
  t.match(said(backup(), [1, 2, 3]), [/lacks partition 3/]);
  t.match(said(backup(), [1]), [/has partition 2, which there was not/]);
  t.match(said(other({ entries: entriesOf(11, 19) })), [/log ends at 19, its mark is 20/]);
  t.match(said(other({ entries: entriesOf(12, 20) })), [/entry 12 comes where 11 belongs/]);
  const strange = entriesOf(11, 20).map((entry) => ({ ...entry, digest: "x" }));
  t.equal(said(other({ entries: strange })).length, 10, "other content");
  t.match(said(other({ before: 60, end: 61, entries: [{ index: 61, term: 2, digest: "" }] })), [
    /nobody applied entry 61/,
  ]);
  t.match(said(other({ endTerm: 3 })), [/the mark is of term 2, not of 3/]);
  const checker = new CutIsPrefix();
  checker.backup(backup(), [1, 2], applied);
  t.equal(checker.verdict().kind, "vacuous", "no image was looked at");
  const rows = new Map([
    ["0a", "one"],
    ["0b", "two"],
  ]);
  checker.image("b", 1, 10, rows, rows);
  t.equal(checker.verdict().kind, "pass");
  checker.image("b", 1, 10, new Map([["0a", "one"]]), rows);
  checker.image("b", 1, 10, new Map([...rows, ["0c", "three"]]), rows);
  checker.image("b", 1, 10, new Map([...rows, ["0b", "three"]]), rows);
  t.match(checker.verdict().violations, [/is missing/, /is too much/, /is another one/]);
  t.end();
});

t.test("P-134 a coordinated cut is closed", (t) => {
  const checker = new CutClosed();
  t.equal(checker.verdict().kind, "vacuous");
  const inside = write("v1", 100, 110, 18);
  const behind = write("v2", 120, 130, 21);
  checker.cut(backup(), [inside, behind]);
  t.equal(checker.verdict().kind, "pass");
  const unseen = write("v3", 90, Infinity, 22);
  checker.cut(backup(), [inside, unseen]);
  t.equal(checker.verdict().kind, "pass", "what nobody knew of may be lacking");
  const known = write("v4", 80, 99, 23);
  checker.cut(backup(), [inside, known]);
  t.match(checker.verdict().violations, [/has v1 .* called after v4/]);
  const merged = { ...write("v5", 200, 210, 40), partition: 3 };
  const gone = new CutClosed();
  gone.cut(backup({ gone: new Set([3]) }), [merged, write("v6", 190, 201, 21)]);
  t.equal(gone.verdict().kind, "pass", "of a partition that was no more all is in it");
  gone.cut(backup({ gone: new Set([3]) }), [merged, write("v7", 190, 199, 21)]);
  t.match(gone.verdict().violations, [/has v5 .* called after v7/]);
  const three = [19, 20, 21].map((index, at) => ({
    ...write(`c${index}`, 10 * at, 10 * at + 5, index),
    partition: 1 + at,
  }));
  const wide = backup({ parts: [1, 2, 3].map((partition) => ({ ...part(), partition })) });
  checker.cut(wide, three, [three]);
  t.equal(checker.verdict().seen["chains over three groups"], 1);
  t.end();
});

function part(): SeenBackup["parts"][number] {
  return backup().parts[0] as SeenBackup["parts"][number];
}

t.test("P-134 stamps say what is in a coordinated backup", (t) => {
  const checker = new StampsSplit();
  checker.cut(backup({ at: null }), () => entriesOf(1, 60));
  t.equal(checker.verdict().kind, "vacuous", "of others they say nothing");
  checker.cut(backup(), () => entriesOf(1, 60));
  t.equal(checker.verdict().kind, "pass");
  checker.cut(other({ end: 19 }), () => entriesOf(1, 60));
  t.match(checker.verdict().violations, [/entry 20, stamped 1000.0 .* is not in it/]);
  checker.cut(other({ end: 21 }), () => entriesOf(1, 60));
  t.match(checker.verdict().violations[1], /entry 21.* is in it/);
  t.end();
});

t.test("7.1 what was acknowledged before is in a backup", (t) => {
  const checker = new AcknowledgedIncluded();
  const before = Array.from({ length: 20 }, (_, at) => write(`v${at}`, 10, 20, at + 1));
  checker.backup(backup({ at: null }), before.slice(1));
  t.equal(checker.verdict().kind, "vacuous");
  checker.backup(backup(), [...before, write("v30", 400, 501, 30)]);
  t.equal(checker.verdict().kind, "pass", "what came later may be lacking");
  checker.backup(backup(), [write("v31", 400, 499, 31)]);
  t.match(checker.verdict().violations, [/lacks v31/]);
  t.end();
});

t.test("P-130 P-132 what is restored is the live state", (t) => {
  const checker = new DigestEqual();
  checker.backup(backup(), () => undefined);
  t.equal(checker.verdict().kind, "vacuous");
  checker.backup(backup(), () => "c20");
  const rows = new Map([["0a", "one"]]);
  checker.restored("r", 1, rows, rows);
  checker.leaseClock("r", 1, 500, 500);
  t.equal(checker.verdict().kind, "pass");
  checker.backup(backup(), (partition) => (partition === 1 ? "c21" : "c20"));
  checker.restored("r", 1, new Map(), rows);
  checker.leaseClock("r", 1, 0, 500);
  t.match(checker.verdict().violations, [/digest at 20/, /is missing/, /begins at 0 ms/]);
  t.end();
});

t.test("7.7 a forced map gives each key one owner", (t) => {
  const low = { startKey: null, endKey: "s/m" };
  const high = { startKey: "s/m", endKey: null };
  const at = (interval: typeof low | typeof high, partition: number) => ({
    ...interval,
    partition,
  });
  const mapped = [at(low, 1), at(high, 3)];
  const fine = { keySpace: "s", mapped, owned: [at(high, 3), at(low, 1)], open: 0 };
  const told = (other: Partial<typeof fine>): readonly string[] => {
    const checker = new ForcedMap();
    checker.settled("forced", [{ ...fine, ...other }]);
    return checker.verdict().violations;
  };
  t.same(told({}), []);
  t.match(told({ open: 1 }), [/1 moves are under way/]);
  t.match(told({ owned: [at(low, 1)] }), [/the map says .*@3/], "nobody has the upper keys");
  t.match(told({ owned: [at(low, 1), at(high, 3), at(high, 1)] }), [/the partitions/], "two do");
  t.match(told({ mapped: [at(low, 1)], owned: [at(low, 1)] }), [/the map ends at s\/m/]);
  t.match(told({ mapped: [at(high, 3)], owned: [at(high, 3)] }), [/a gap before s\/m/]);
  t.end();
});

/** One object, as a restore left it: 400 ms of its lease are left. */
const LEFT: FirstStates = {
  lock: (resource) => {
    if (resource !== "held") return null;
    const lease = { leaseMs: 400, startMinMs: 0, startMaxMs: 0, seenOver: false };
    return { grant: { owner: "a", token: 7n, lease, released: false }, floor: 7n, term: null };
  },
  key: (key) => ({
    ...{ revision: 3n, isTombstone: false, value: key, isPassing: false, lease: null },
    ...{ older: null, term: null },
  }),
  sequence: () => ({
    ...{ initialValue: 0n, increment: 1n, maxValue: null, blockSize: 10, incarnation: 9n },
    ...{ revision: 2n, served: 20n, blockEnd: 20n, keys: null },
    blockSharedUntil: Number.NEGATIVE_INFINITY,
  }),
};

t.test("L14 S6 a restored cluster goes on from its state", (t) => {
  const history = new HistoryRecorder();
  const lock = (owner: string, atMs: number, type: "Locked" | "Busy", token: bigint): void => {
    const operation = { kind: "try-lock", resource: "held", ephemeral: false } as const;
    const id = history.call("p", 1, { ...operation, owner, expiresMs: 1000 }, atMs);
    const result = { type, token, owner: null, expiresInMs: null };
    history.answered(id, { kind: "ok", result }, atMs + 10);
  };
  const judged = (): string[] => {
    const options = { ...LINEARIZABILITY, minimum: {}, first: LEFT };
    const checker = new RestoredHistory();
    checker.cluster("r", checkLinearizability(history.history(), options));
    return [...checker.verdict().violations];
  };
  const read = (value: string, revision: bigint, atMs: number): void => {
    const operation = { kind: "kv-get", key: "k", ephemeral: false, expiresMs: 0 } as const;
    const id = history.call("p", 1, { ...operation, revision: -1n }, atMs);
    history.answered(id, { kind: "ok", result: { type: "Got", value, revision } }, atMs + 10);
  };
  const next = (start: bigint, revision: bigint, atMs: number): void => {
    const operation = { kind: "allocate", name: "s", count: 1, idempotencyKey: null } as const;
    const id = history.call("p", 1, operation, atMs);
    const result = { type: "Success", start, end: start, count: 1, revision } as const;
    history.answered(id, { kind: "ok", result }, atMs + 10);
  };
  lock("b", 100, "Busy", 0n);
  lock("b", 500, "Locked", 1n << 44n);
  read("k", 3n, 100);
  next(21n, 3n, 100);
  t.same(judged(), []);
  read("k", 0n, 200);
  t.match(judged(), [/linearizable keys/], "a revision of before");
  next(20n, 4n, 300);
  t.match(judged().join("\n"), /linearizable sequences/, "a value of the open block");
  t.equal(new RestoredHistory().verdict().kind, "vacuous");
  const early = new HistoryRecorder();
  const operation = { kind: "try-lock", resource: "held", ephemeral: false } as const;
  const id = early.call("p", 1, { ...operation, owner: "b", expiresMs: 1000 }, 100);
  const result = { type: "Locked", token: 1n << 44n, owner: null, expiresInMs: null } as const;
  early.answered(id, { kind: "ok", result }, 110);
  const checker = new RestoredHistory();
  const options = { ...LINEARIZABILITY, minimum: {}, first: LEFT };
  checker.cluster("r", checkLinearizability(early.history(), options));
  t.match(checker.verdict().violations, [/linearizable locks/], "the lease is shorter");
  t.end();
});

t.test("L12 L14 L15 P-137 tokens rise over restores", (t) => {
  const grant = (token: bigint, ephemeral = false, lock = "l") => ({ lock, ephemeral, token });
  const checker = new TokensRise();
  checker.cluster("first", [grant(5n), grant(900n), grant(8n, true)]);
  t.equal(checker.verdict().kind, "vacuous");
  const own = [grant(901n), grant(902n), grant(1n, false, "m"), grant(9n, true), grant(903n)];
  checker.cluster("second", [...own, grant(7n)], ({ token }) => token === 7n);
  t.equal(checker.verdict().kind, "pass", "a lock that is held keeps its token");
  checker.cluster("third", [grant(902n)]);
  t.match(checker.verdict().violations, [/third granted token 902 .* second had granted 903/]);
  checker.cluster("fourth", [grant(9n, true)]);
  t.equal(checker.verdict().violationCount, 2, "ephemeral ones too");
  t.end();
});

t.test("S6 P-137 restored sequences have incarnations of their own", (t) => {
  const checker = new IncarnationsApart();
  checker.sequence("first", "s", [0n, 1n], false);
  t.equal(checker.verdict().kind, "vacuous");
  checker.sequence("second", "s", [1n << 20n], true);
  checker.sequence("second", "fresh", [0n], false);
  checker.sequence("third", "fresh", [0n], false);
  t.equal(checker.verdict().kind, "pass", "what is made anew begins anew");
  checker.sequence("third", "s", [1n << 20n], true);
  checker.sequence("fourth", "s", [1n], true);
  t.match(checker.verdict().violations, [/in third, which it had in second/, /in fourth/]);
  t.end();
});

t.test("P-136 P-140 what is published is whole", (t) => {
  const checker = new PublishedWhole();
  t.equal(checker.verdict().kind, "vacuous");
  checker.looked("published", "b", null);
  checker.looked("crashed", "b", null);
  checker.spoilt("c", true);
  checker.restored("b", null);
  t.equal(checker.verdict().kind, "pass");
  checker.looked("crashed", "b", "CorruptArtifact: a file is missing");
  checker.spoilt("c", false);
  checker.restored("b", "CorruptChain");
  t.equal(checker.verdict().violationCount, 3);
  t.end();
});

t.test("7.1 P-132 chains go on from their parents", (t) => {
  const ends = [{ partition: 1, index: 20, term: 2 }];
  const seen: SeenIncrement = {
    ...{ id: "b", substitution: null, topology: 1, parentTopology: 1, parentEnds: ends },
    isOwnParent: true,
    begins: new Map([[1, 20]]),
  };
  const said = (change: Partial<SeenIncrement>, hasAllLogs = false): string[] => {
    const checker = new ChainHonest();
    checker.increment({ ...seen, ...change }, applied, hasAllLogs);
    return [...checker.verdict().violations];
  };
  t.equal(new ChainHonest().verdict().kind, "vacuous");
  t.same(said({}), []);
  t.match(said({ begins: new Map([[1, 19]]) }), [/begins behind 19, its parent ends at 20/]);
  t.match(said({ parentTopology: 2 }), [/not its own/]);
  const fork = [{ partition: 1, index: 20, term: 9 }];
  t.match(said({ parentEnds: fork }), [/not its own/], "a fork of a restored cluster");
  const changed = "TopologyChangedSinceParent";
  t.same(said({ substitution: changed, parentTopology: 2 }), []);
  t.same(said({ substitution: changed, parentEnds: fork }), []);
  t.match(said({ isOwnParent: false }), [/not its own/], "of a cluster that counts alike");
  t.same(said({ substitution: changed, isOwnParent: false }), []);
  t.match(said({ substitution: changed }), [/it has not/]);
  t.same(said({ substitution: "ParentLogCompacted" }), []);
  t.match(said({ substitution: "ParentLogCompacted" }, true), [/all of it was there/]);
  t.end();
});

t.test("P-134 P-135 pauses are bounded, and nothing is held in peace", (t) => {
  const pauses = new PauseBounded(2100);
  t.equal(pauses.verdict().kind, "vacuous");
  pauses.paused(1, 2, 2099);
  t.equal(pauses.verdict().kind, "pass");
  pauses.paused(1, 2, 2500);
  t.match(pauses.verdict().violations, [/for 2500 ms/]);
  const holds = new HoldsEnd();
  t.equal(holds.verdict().kind, "vacuous");
  holds.node({ node: 1, holds: 0, pauses: 0, isWorking: false });
  holds.common([], []);
  t.equal(holds.verdict().kind, "pass");
  holds.node({ node: 1, holds: 1, pauses: 1, isWorking: true });
  holds.common([".lease_x"], ["backup b"]);
  t.equal(holds.verdict().violationCount, 5);
  t.end();
});

t.test("7.4 P-141 the collection takes nothing that is reachable", (t) => {
  const checker = new GcSafe();
  t.equal(checker.verdict().kind, "vacuous");
  const root = { id: "a", parent: null, createdMs: 1, filesMissing: [] };
  const leaf = { id: "b", parent: "a", createdMs: 2, filesMissing: [] };
  checker.looked([root, leaf], new Set(), new Set());
  checker.looked([leaf], new Set(["a"]), new Set());
  checker.removed("a", "b");
  checker.dryRun(["a"], ["a"]);
  t.equal(checker.verdict().kind, "pass");
  checker.looked([leaf], new Set(), new Set());
  checker.looked([{ ...root, filesMissing: ["log/p00000.log"] }], new Set(), new Set());
  checker.looked([leaf], new Set(), new Set(["b"]));
  checker.removed("b", "b");
  checker.dryRun(["a"], []);
  t.match(checker.verdict().violations, [
    /goes on from a, which is gone/,
    /lacks log/,
    /the newest one/,
    /a dry run told a; taken were/,
  ]);
  t.end();
});

t.test("7.5 P-138 P-140 restores leave alone what is not theirs, and clusters never meet", (t) => {
  const targets = new TargetUntouched();
  t.equal(targets.verdict().kind, "vacuous");
  const asked = new Set(["r1"]);
  const own = ["", "r1", "r1/v1/restored.json", "r1.staging_0123abcd/v1", "restore_3.claim"];
  for (const path of [...own, ...own]) targets.changed(path, asked);
  targets.changedCatalogue("restore_1.claim");
  targets.changedCatalogue(".lease_0123");
  targets.ended("r1", true, true);
  targets.ended("r2", false, false);
  t.equal(targets.verdict().kind, "pass");
  targets.changed("live/data", asked);
  targets.changedCatalogue("b/log/p00000.log");
  targets.ended("r1", true, false);
  targets.ended("r2", false, true);
  t.equal(targets.verdict().violationCount, 4);
  const strangers = new StrangersApart();
  strangers.began("new", ["old"]);
  t.equal(strangers.verdict().kind, "vacuous", "nobody came near anybody");
  strangers.met("new", "old", false);
  t.equal(strangers.verdict().kind, "pass");
  strangers.met("old", "new", true);
  strangers.began("old", ["old"]);
  t.equal(strangers.verdict().violationCount, 2);
  t.end();
});
