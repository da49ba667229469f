/** Forced releases in apply: compare, effect and row; which rows are kept; pages of locks and of rows. */
import t from "tap";
import type {
  Command,
  ForceUnlockCommand,
  Outcome,
} from "../../../src/machine/commands/command.js";
import type { AuditPosition } from "../../../src/machine/locks/lock-audit.js";
import { Bench, bytes, lock, lockNoted, unlock } from "../../doubles/machine/bench.js";

function force(
  resource: string,
  token: bigint,
  more: Partial<ForceUnlockCommand> = {},
): ForceUnlockCommand {
  const who = { actor: "ops", reason: "why", requestId: "q", nodeId: 2 };
  const told = { owner: null, ...who, waitersDropped: 0, retained: 1024 };
  return { kind: "force-unlock", resource, token, ...told, ...more };
}

const said = (outcome: Outcome): string =>
  outcome.kind === "forced" ? `${outcome.type} ${outcome.token} ${outcome.auditId}` : outcome.kind;

function audit(bench: Bench, prefix = "", below: AuditPosition | null = null, limit = 100) {
  return bench.machine.reads.lockAudit(prefix, below, limit, 1000);
}

t.test("F3 F4 F5 exactly that grant is ended, and told of in the same entry", (t) => {
  const bench = new Bench();
  bench.apply(0, lock("r", "a", 10));
  t.equal(said(bench.one(1, force("r", 1n))), "103 0 0", "another token");
  t.equal(said(bench.one(1, force("s", 0n))), "102 0 0", "never held");
  const wrong: readonly Partial<ForceUnlockCommand>[] = [
    { reason: "" },
    { reason: "x".repeat(1025) },
    { retained: 0 },
    { retained: 100_001 },
    { owner: bytes("") },
    { resource: "" },
  ];
  for (const more of wrong) t.equal(said(bench.one(1, force("r", 0n, more))), "100 0 0");
  t.equal(audit(bench).items.length, 0, "a refusal writes nothing");
  const digest = bench.machine.stateDigest;
  const [freed, next] = bench.apply(2, force("r", 0n), lock("r", "b", 10)) as [Outcome, Outcome];
  t.match(freed, { type: 3, token: 0n, owner: bytes("a"), auditId: 1 });
  t.match(next, { type: 0, token: 1n }, "F4 the next one, above it");
  t.not(bench.machine.stateDigest, digest);
  t.equal(said(bench.one(3, force("r", 0n))), "103 0 0", "F6 a repeat");
  t.equal(said(bench.one(12, force("r", 1n))), "102 0 0", "its lease is over");
  bench.apply(12, lock("r", "c", 10), unlock("r", "c"));
  t.equal(said(bench.one(13, force("r", 2n))), "102 0 0", "released by its holder");
  t.match(audit(bench), {
    items: [
      {
        ...{ id: 1, resource: "r", isEphemeral: false, owner: bytes("a"), token: 0n },
        ...{ actor: "ops", reason: "why", requestId: "q", nodeId: 2, waitersDropped: 0 },
        stamp: { n: 1, l: 1000 + 1 + 2 + wrong.length + 1, c: 0 },
      },
    ],
    next: null,
  });
  t.equal(audit(bench).items.length, 1);
  t.end();
});

t.test("F5 of an ephemeral lock the row alone is written, whatever the persistent one is", (t) => {
  const bench = new Bench();
  bench.apply(0, lock("r", "a", 10));
  const noted = force("r", 7n, { owner: bytes("e"), waitersDropped: 3 });
  t.match(bench.one(1, noted), { type: 3, token: 7n, owner: bytes("e"), auditId: 1 });
  t.match(bench.machine.reads.getLock("r", 1), { type: 4, token: 0n });
  const [row] = audit(bench).items;
  t.match(row, { isEphemeral: true, token: 7n, waitersDropped: 3 });
  t.end();
});

t.test(
  "F5 the newest are kept, also when fewer are to be; numbers go on; a restart finds them",
  (t) => {
    const bench = new Bench();
    const one = (at: number, retained: number): Outcome => {
      const name = at % 2 === 0 ? "even" : "odd";
      const [, outcome] = bench.apply(
        at,
        lock(name, `o${at}`, 1000),
        force(name, BigInt(Math.floor(at / 2)), { retained, reason: `${at}` }),
      );
      if (at % 5 === 0) bench.flush();
      return outcome as Outcome;
    };
    for (let at = 0; at < 200; at++) t.match(one(at, 150), { type: 3, auditId: at + 1 });
    const ids = (): number[] => audit(bench, "", null, 1000).items.map(({ id }) => id);
    t.same(
      ids(),
      Array.from({ length: 150 }, (_, at) => 200 - at),
    );
    one(200, 10);
    t.equal(ids().length, 150 + 1 - 64, "a bounded number goes at once");
    for (let at = 201; at < 204; at++) one(at, 10);
    t.same(ids(), [204, 203, 202, 201, 200, 199, 198, 197, 196, 195]);
    t.same(
      audit(bench, "odd").items.map(({ id }) => id),
      [204, 202, 200, 198, 196],
    );
    bench.flush();
    const source = bench.machine.openSnapshot(1 << 20);
    const chunk = source.next(1 << 20);
    if (chunk === "overrun") throw new Error("nothing changes meanwhile");
    const other = new Bench();
    const sink = other.machine.beginRestore();
    t.ok(sink.take(chunk.bytes).ok);
    other.machine.install(sink);
    t.same(audit(other).items, audit(bench).items, "of a snapshot");
    const position = { index: other.machine.appliedIndex + 1, term: 1 };
    const stamp = { n: 1, l: 1e6, c: 0 };
    const commands = [lock("new", "o", 10), force("new", 0n)];
    other.machine.apply({ ...position, leaseMs: 300, stamp }, commands, []);
    t.equal(audit(other).items[0]?.id, 205, "numbers go on there, too");
    const again = new Bench(bench.store);
    t.same(
      audit(again, "even").items.map(({ reason }) => reason),
      ["202", "200", "198", "196", "194"],
    );
    t.end();
  },
);

t.test("F5 pages go back from the newest, each row once, wherever they begin", (t) => {
  const bench = new Bench();
  // Rows of one entry have one stamp.
  for (let at = 0; at < 30; at++) {
    const commands: Command[] = [];
    for (const name of ["a", "b", "c"]) {
      commands.push(lock(name, "o", 1000), force(name, BigInt(at)));
    }
    bench.apply(at, ...commands);
  }
  for (const limit of [1, 2, 7, 90, 91]) {
    const seen: number[] = [];
    let below: AuditPosition | null = null;
    for (;;) {
      const page = audit(bench, "", below, limit);
      seen.push(...page.items.map(({ id }) => id));
      below = page.next;
      if (below === null) break;
    }
    t.same(
      seen,
      Array.from({ length: 90 }, (_, at) => 90 - at),
      `${limit} a page`,
    );
  }
  const { stamp } = audit(bench, "", null, 46).items.at(-1) ?? { stamp: { n: 0, l: 0, c: 0 } };
  const from = (id: number): number[] =>
    audit(bench, "", { stamp, id }, 2).items.map((item) => item.id);
  t.same(from(Number.MAX_SAFE_INTEGER), [45, 44], "all of that stamp");
  t.same(from(0), [42, 41], "none of that stamp");
  t.match(bench.machine.reads.lockAudit("none", null, 5, 4).next, { id: 87 }, "visits are bounded");
  t.end();
});

t.test("F2 pages of locks: in order, by prefix, held ones alone, bounded", (t) => {
  const bench = new Bench();
  const all = ["a", "a/1", "a/2", "b", "é", "é/x"];
  for (const name of all) bench.apply(0, lockNoted(name, "o", 100, `n-${name}`));
  bench.apply(1, unlock("a/1", "o"), lock("a/2", "o", 1));
  const page = (more: object, nowMs = 1) => {
    const query = { prefix: "", after: null, heldOnly: false, limit: 100, maxBytes: 1e6 };
    return bench.machine.reads.lockPage({ ...query, maxVisits: 100, ...more }, nowMs);
  };
  const names = (more: object, nowMs = 1) => page(more, nowMs).items.map((one) => one.resource);
  t.same(names({}), all);
  t.same(names({ prefix: "a" }), ["a", "a/1", "a/2"]);
  t.same(names({ prefix: "é" }), ["é", "é/x"]);
  t.same(names({ prefix: "a/3" }), []);
  t.same(names({ heldOnly: true }), ["a", "a/2", "b", "é", "é/x"]);
  t.same(names({ heldOnly: true }, 100), [], "all are over");
  t.match(page({ prefix: "a/" }).items, [
    { owner: null, note: null, token: 0n, leaseEndMs: 0 },
    { owner: bytes("o"), note: bytes("n-a/2"), token: 0n, leaseEndMs: 100 },
  ]);
  t.same(page({ limit: 2 }).next, bytes("a/1"));
  t.same(names({ after: bytes("a/1"), limit: 2 }), ["a/2", "b"]);
  t.same(page({ after: bytes("é"), limit: 2 }).next, null);
  t.same(names({ prefix: "a/", after: bytes("é") }), [], "behind the prefix");
  t.same(page({ maxVisits: 1, prefix: "a/", heldOnly: true }), { items: [], next: bytes("a/1") });
  t.equal(page({ maxBytes: 1 }).items.length, 1, "one at least");
  t.end();
});
