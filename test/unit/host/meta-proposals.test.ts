/** What may be sent to the leader of the meta partition: the table against the commands, and who is let. */
import t from "tap";
import {
  attempt,
  configIndex,
  level,
  membershipVersion,
  moveId,
  placementGeneration,
  rangeGeneration,
} from "../../../src/base/ids.js";
import { ByteReader, ByteWriter } from "../../../src/base/codec.js";
import {
  LEVEL_NUMBER_MAX,
  MEMBERS_MAX,
  NAME_MAX_BYTES,
  NODE_ID_MAX,
  PARTITION_ID_MAX,
  PLACEMENT_ITEMS_MAX,
  PLANNER_HOLD_MAX_MS,
  PROGRAM_VERSION_MAX_BYTES,
  VOTERS_MAX,
} from "../../../src/base/limits.js";
import {
  META_PROPOSALS,
  META_PROPOSAL_MAX_BYTES,
  type MetaProposal,
  type MetaResult,
  maySend,
  readMetaResult,
  writeMetaResult,
} from "../../../src/host/cluster/meta-proposals.js";
import { commandSizeBytes } from "../../../src/machine/commands/codec.js";
import type { MetaCommand } from "../../../src/machine/commands/command.js";
import { META_COMMANDS } from "../../../src/machine/commands/meta-codec.js";
import { founded } from "../../doubles/host/member-world.js";
import { newMember } from "../../doubles/machine/members.js";
import { MetaBench, orders, place, report } from "../../doubles/machine/placement.js";

/** Proposed by the node alone that leads the meta partition, or on a call of its own. */
const AT_HOME: readonly MetaCommand["kind"][] = [
  "found-cluster",
  "set-replication-factor",
  "register-range",
  "refound-cluster",
];

const ids = (count: number): number[] => {
  return Array.from({ length: count }, (_, at) => NODE_ID_MAX - at);
};

/** The largest of each kind that apply would accept. */
function largest(): readonly MetaProposal[] {
  const name = "x".repeat(NAME_MAX_BYTES);
  const version = "v".repeat(PROGRAM_VERSION_MAX_BYTES);
  const member = {
    ...newMember(NODE_ID_MAX, name, name),
    levelMax: level(LEVEL_NUMBER_MAX),
    version,
  };
  const all = Array.from({ length: PLACEMENT_ITEMS_MAX }, (_, at) => at + 1);
  const generation = placementGeneration(Number.MAX_SAFE_INTEGER);
  const config = {
    configIndex: configIndex(Number.MAX_SAFE_INTEGER),
    voters: ids(VOTERS_MAX + 1),
    learners: [1],
  };
  const change = { kind: "add", nodeId: NODE_ID_MAX, replaces: NODE_ID_MAX } as const;
  return [
    { kind: "update-member", ...member },
    { kind: "add-member", ...member },
    { kind: "set-member-role", nodeId: NODE_ID_MAX, role: "leaving" },
    { kind: "evict-member", nodeId: NODE_ID_MAX },
    { kind: "remove-member", nodeId: NODE_ID_MAX },
    {
      kind: "raise-level",
      to: level(LEVEL_NUMBER_MAX),
      membershipVersion: membershipVersion(Number.MAX_SAFE_INTEGER),
    },
    {
      kind: "change-replicas",
      items: all.map((partitionId) => ({ partitionId, generation, change })),
    },
    {
      kind: "report-replicas",
      items: all.map((partitionId) => ({ partitionId, ...config, restsOn: generation })),
    },
    report(7, ids(VOTERS_MAX), ids(MEMBERS_MAX).slice(VOTERS_MAX)),
    {
      kind: "place-partition",
      items: all.map((partitionId) => ({ partitionId, ...config, generation })),
    },
    place(1, 7, ids(VOTERS_MAX), ids(MEMBERS_MAX).slice(VOTERS_MAX)),
    ...largestMoves(name),
  ];
}

function largestMoves(name: string): readonly MetaProposal[] {
  const of = { keySpace: name, moveId: moveId(Number.MAX_SAFE_INTEGER) };
  const last = attempt(Number.MAX_SAFE_INTEGER);
  return [
    {
      ...{ kind: "begin-move", move: "merge", keySpace: name, startKey: name, endKey: name },
      ...{ source: PARTITION_ID_MAX, target: PARTITION_ID_MAX - 1 },
      generation: rangeGeneration(Number.MAX_SAFE_INTEGER),
    },
    { kind: "unregister-range", keySpace: name },
    { kind: "hold-planner", holder: name, forMs: PLANNER_HOLD_MAX_MS },
    { kind: "retry-move", ...of, attempt: last },
    { kind: "cut-range", ...of, attempt: last },
    { kind: "abort-move", ...of, reason: "transfer-failed" },
    { kind: "finish-move", ...of, side: "target" },
  ];
}

t.test("P-128 the table has every command that travels, with room for the largest of it", (t) => {
  const kinds = [...Object.keys(META_PROPOSALS), ...AT_HOME].sort();
  t.strictSame(kinds, Object.keys(META_COMMANDS).sort(), "each kind is in one of two lists");
  const samples = largest();
  t.strictSame(
    [...new Set(samples.map(({ kind }) => kind))].sort(),
    Object.keys(META_PROPOSALS).sort(),
  );
  for (const command of samples) {
    const { maxBytes } = META_PROPOSALS[command.kind];
    const sizeBytes = commandSizeBytes(command);
    t.ok(sizeBytes <= maxBytes, `${command.kind}: ${sizeBytes} of ${maxBytes}`);
    t.ok(maxBytes <= META_PROPOSAL_MAX_BYTES);
    t.ok(maxBytes <= Math.max(64, 3 * sizeBytes), `${command.kind}: no more than needed`);
  }
  t.end();
});

t.test("P-094 what may always be repeated changes nothing later; what may not, would", (t) => {
  const role = (to: "voter" | "leaving"): MetaCommand => {
    return { kind: "set-member-role", nodeId: 3, role: to };
  };
  const line = (endpoint: string): MetaCommand => {
    return { kind: "update-member", ...newMember(3, endpoint, "s3") };
  };
  const again = newMember(4, "h4:1", "s4");
  const add = (endpoint: string): MetaCommand => ({ kind: "add-member", ...again, endpoint });
  const remove: MetaCommand = { kind: "remove-member", nodeId: 4 };
  const comes = orders(1, { kind: "add", nodeId: 3, replaces: 0 });
  const wide = (nodeId: number, endpoint: string): MetaCommand => {
    const node = newMember(nodeId, endpoint, `s${nodeId}`);
    return { kind: "update-member", ...node, levelMax: level(3) };
  };
  const widen = [1, 2, 3].map((nodeId) => wide(nodeId, `h${nodeId}:1`));
  const register: MetaCommand = { kind: "register-range", keySpace: "k", partitionId: 1 };
  const splits: MetaProposal = {
    ...{ kind: "begin-move", move: "split", keySpace: "k", startKey: "k/m", endKey: null },
    ...{ source: 1, target: 0, generation: rangeGeneration(1) },
  };
  const merges: MetaProposal = {
    ...{ ...splits, move: "merge", source: 2, target: 1 },
    generation: rangeGeneration(2),
  };
  const of = { keySpace: "k", moveId: moveId(3) };
  const retry = (ends: number): MetaProposal => {
    return { kind: "retry-move", ...of, attempt: attempt(ends) };
  };
  const cut: MetaProposal = { kind: "cut-range", ...of, attempt: attempt(1) };
  const abort: MetaProposal = { kind: "abort-move", ...of, reason: "deadline" };
  const finish = (side: "source" | "target"): MetaProposal => {
    return { kind: "finish-move", ...of, side };
  };
  const hold = (forMs: number): MetaProposal => {
    return { kind: "hold-planner", holder: "backup", forMs };
  };
  /** Of each kind: what goes before, the command, and what comes between it and its late copy. */
  const table: readonly [number, readonly MetaCommand[], MetaProposal, readonly MetaCommand[]][] = [
    [2, [], line("b:1") as MetaProposal, [line("c:1")]],
    [2, [], add("b:1") as MetaProposal, [add("c:1")]],
    [2, [], role("leaving") as MetaProposal, [role("voter")]],
    [
      2,
      [],
      { kind: "evict-member", nodeId: 3 },
      [
        { kind: "remove-member", nodeId: 3 },
        { kind: "add-member", ...newMember(3, "h3:1", "another") },
      ],
    ],
    [
      2,
      [add("h4:1")],
      remove as MetaProposal,
      [{ kind: "add-member", ...again, storageId: "another" }],
    ],
    [
      2,
      widen,
      { kind: "raise-level", to: level(2), membershipVersion: membershipVersion(4) },
      [wide(3, "c:1")],
    ],
    [2, [], comes, [orders(2, { kind: "cancel", nodeId: 3 }), report(5, [1, 2])]],
    [
      2,
      [comes],
      report(5, [1, 2, 3]),
      [orders(3, { kind: "remove", nodeId: 1 }), report(6, [2, 3])],
    ],
    [0, [], place(1, 4, [1, 2, 3]), [orders(2, { kind: "remove", nodeId: 1 })]],
    [0, [], hold(60_000), [hold(0)]],
    [0, [register], { kind: "unregister-range", keySpace: "k" }, [register]],
    [0, [register], splits, [abort, finish("source")]],
    [0, [register, splits], retry(1), [retry(2)]],
    [0, [register, splits], cut, [finish("source")]],
    [0, [register, splits], abort, [finish("source"), splits]],
    [0, [register, splits, cut, finish("source")], finish("target"), [merges]],
  ];
  t.strictSame(
    table.map(([, , { kind }]) => kind).sort(),
    Object.keys(META_PROPOSALS).sort(),
    "one of each kind",
  );
  for (const [factor, before, command, between] of table) {
    const bench = new MetaBench(3, factor);
    for (const earlier of before) bench.meta(earlier);
    const untouched = bench.machine.stateDigest;
    bench.meta(command);
    t.not(bench.machine.stateDigest, untouched, `${command.kind} does something`);
    for (const other of between) {
      const digest = bench.machine.stateDigest;
      bench.meta(other);
      t.not(bench.machine.stateDigest, digest, `${command.kind}: ${other.kind} between`);
    }
    const digest = bench.machine.stateDigest;
    bench.meta(command);
    const isSame = bench.machine.stateDigest === digest;
    t.equal(isSame ? "always" : "once", META_PROPOSALS[command.kind].repeats, command.kind);
  }
  t.end();
});

t.test("ends travel as they are: every status, up to 64 items; strict", (t) => {
  const generation = placementGeneration(2 ** 52);
  const statuses = [
    ...["done", "unchanged", "unknown-partition", "not-founded", "invalid", "range-elsewhere"],
    ...["not-a-member", "storage-lost", "was-removed", "too-many-members", "too-many-voters"],
    ...["last-voter", "drain-in-progress", "stale", "level-unsupported", "busy", "not-placed"],
    ...["taken-in", "pending", "too-many-partitions", "too-many-attempts"],
  ] as const;
  const of = (result: MetaResult): Uint8Array => {
    const writer = new ByteWriter();
    writeMetaResult(writer, result);
    return writer.finish();
  };
  const back = (bytes: Uint8Array): MetaResult | null => readMetaResult(new ByteReader(bytes));
  const ends: MetaResult[] = [{ status: "refused" }, { status: "later" }, { status: "unknown" }];
  for (const outcome of statuses) {
    const items = [{ status: outcome, generation }];
    ends.push({ status: "applied", outcome, version: 2 ** 50, items });
  }
  const done = { status: "done", generation } as const;
  const head = { status: "applied", outcome: "done", version: 1 } as const;
  const many = (count: number): MetaResult => ({
    ...head,
    items: Array.from({ length: count }, () => done),
  });
  ends.push(many(PLACEMENT_ITEMS_MAX));
  for (const end of ends) t.strictSame(back(of(end)), end);
  t.equal(back(of(many(PLACEMENT_ITEMS_MAX + 1))), null);
  const bytes = of(many(3));
  for (let size = 0; size < bytes.length; size++) t.equal(back(bytes.slice(0, size)), null);
  t.equal(back(Uint8Array.from([...bytes, 0])), null);
  t.equal(back(Uint8Array.from([4])), null, "an unknown end");
  t.equal(back(Uint8Array.from([0, 99, ...bytes.subarray(2)])), null, "an unknown status");
  t.ok(of(many(PLACEMENT_ITEMS_MAX)).length < 1024);
  t.end();
});

t.test("P-128 each may send what the table lets it: itself, members, whoever is linked", (t) => {
  const line: MetaProposal = { kind: "update-member", ...newMember(2, "b:1", "s2") };
  t.ok(maySend(2, true, line));
  t.notOk(maySend(3, true, line), "nobody changes the line of another");
  t.ok(maySend(3, false, { kind: "set-member-role", nodeId: 2, role: "leaving" }));
  for (const from of [2, 3]) {
    t.notOk(maySend(from, true, { kind: "evict-member", nodeId: 2 }), "who asks has to lead meta");
  }
  for (const command of [
    orders(1, { kind: "cancel", nodeId: 2 }),
    report(1, [1]),
    place(1, 1, [1]),
  ]) {
    t.ok(maySend(3, true, command));
    t.notOk(maySend(3, false, command), `${command.kind} of a stranger`);
  }
  t.end();
});

t.test(
  "orders and reports reach the leader of the meta partition, and what became of each item",
  (t) => {
    const world = founded(3);
    world.elect(world.meta, 1);
    const asked = (by: number, command: MetaProposal): string => {
      const ends: string[] = [];
      world.node(by).metaProposer.propose(command, world.nowMs + 5000, (result) => {
        const items = result.status === "applied" ? result.items.map(({ status }) => status) : [];
        ends.push([result.status, ...items].join(" "));
      });
      t.ok(world.run(() => ends.length > 0));
      return ends.join();
    };
    const { metaProposer } = world.node(1);
    t.ok(
      world.run(() => !metaProposer.hasWork),
      "what the founding left is forgotten",
    );
    t.equal(asked(2, report(5, [1, 2, 3])), "applied not-placed");
    t.equal(asked(3, place(1, 5, [1, 2, 3])), "applied done");
    t.equal(asked(3, place(1, 5, [1, 2, 3])), "applied unchanged");
    t.equal(asked(2, orders(2, { kind: "remove", nodeId: 3 })), "applied done");
    t.equal(asked(2, orders(2, { kind: "remove", nodeId: 1 })), "applied stale");
    const both = {
      kind: "report-replicas",
      items: [report(6, [1, 2]), report(6, [1, 2])],
    } as const;
    const items = both.items.flatMap((one) => one.items);
    t.equal(asked(3, { kind: "report-replicas", items }), "applied done unchanged");
    t.notOk(metaProposer.hasWork, "what may be repeated is not remembered");
    t.equal(asked(2, { kind: "set-member-role", nodeId: 2, role: "voter" }), "applied");
    t.ok(metaProposer.hasWork, "what may not is");
    const before = world.log.length;
    t.equal(asked(2, { kind: "update-member", ...newMember(3, "x:1", "") }), "refused");
    t.equal(
      asked(
        2,
        report(
          9,
          Array.from({ length: 3000 }, (_, at) => at + 1),
        ),
      ),
      "refused",
      "larger than its bound",
    );
    t.equal(world.log.length, before, "neither was proposed");
    t.end();
  },
);
