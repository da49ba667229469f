/** Whether an empty founder founds, joins or waits. */
import t from "tap";
import {
  type FoundingFacts,
  type OtherFounder,
  nextFoundingStep,
} from "../../../src/control/founding.js";
import { PROGRAM, type Program } from "../../../src/base/levels.js";
import type { PeerIdentity } from "../../../src/ports.js";

function other(nodeId: number, answer: Partial<PeerIdentity> | string): OtherFounder {
  const endpoint = `n${nodeId}:1`;
  if (typeof answer === "string") return { nodeId, endpoint, answer: null, silence: answer };
  const identity: PeerIdentity = {
    clusterId: "c",
    nodeId,
    storageId: `s${nodeId}`,
    endpoint,
    clientEndpoint: "",
    program: PROGRAM,
    storage: "lmdb",
    state: "empty",
    founders: [],
    ...answer,
  };
  return { nodeId, endpoint, answer: identity, silence: "" };
}

function step(...others: readonly OtherFounder[]): ReturnType<typeof nextFoundingStep> {
  const own = { nodeId: 2, storageId: "s2", storage: "lmdb", clusterId: "c" } as const;
  const facts: FoundingFacts = { ...own, program: PROGRAM, others };
  return nextFoundingStep(facts);
}

const ids = (...nodes: readonly number[]): { nodeId: number; storageId: string }[] => {
  return nodes.map((nodeId) => ({ nodeId, storageId: `s${nodeId}` }));
};

t.test("P-191 5.6 all others empty: it founds, with the directories of all", (t) => {
  t.strictSame(step(), { kind: "found", founders: ids(2), level: PROGRAM.levels.max });
  t.strictSame(step(other(1, {}), other(3, {})), {
    kind: "found",
    founders: ids(1, 2, 3),
    level: PROGRAM.levels.max,
  });
  t.end();
});

t.test("P-191 5.6 somebody is silent: it waits and says for whom, whoever else is there", (t) => {
  t.strictSame(step(other(1, {}), other(3, "ENOTFOUND")), {
    kind: "wait",
    missing: ["3 n3:1 (ENOTFOUND)"],
  });
  const founding = { state: "founding", founders: ids(1, 2, 3) } as const;
  t.equal(step(other(1, founding), other(3, "no answer in time")).kind, "wait");
  t.match(step(other(1, "a"), other(3, "b")), { missing: [/^1 /, /^3 /] });
  t.end();
});

t.test("P-191 5.6 somebody is founded: it joins, whoever is silent", (t) => {
  t.same(step(other(1, { state: "founded" }), other(3, "gone")), { kind: "join" });
  t.same(step(other(1, {}), other(3, { state: "founded" })), { kind: "join" });
  t.end();
});

t.test("P-191 a founding counts on the directories that it names", (t) => {
  const founders = ids(1, 2, 3);
  const founding = { state: "founding", founders } as const;
  t.strictSame(step(other(1, founding), other(3, {})), {
    kind: "found",
    founders,
    level: PROGRAM.levels.max,
  });
  t.strictSame(step(other(1, founding), other(3, founding)), {
    kind: "found",
    founders,
    level: PROGRAM.levels.max,
  });
  // Node 3 lost its disk since: the founding of node 1 stands, and node 3 is out of it.
  const third = other(3, { storageId: "anew" });
  t.strictSame(step(other(1, founding), third), {
    kind: "found",
    founders,
    level: PROGRAM.levels.max,
  });
  // This node lost its disk since: it was in that founding once, and may have voted.
  const before = [...ids(1), { nodeId: 2, storageId: "before" }, ...ids(3)];
  t.same(step(other(1, { state: "founding", founders: before }), other(3, {})), { kind: "join" });
  t.same(step(other(1, { state: "founding", founders: ids(1, 3) }), other(3, "?")), {
    kind: "join",
  });
  t.end();
});

const withLevels = (min: number, max: number): { readonly program: Program } => {
  return { program: { ...PROGRAM, version: "9.9", levels: { min, max } } };
};

t.test(
  "5.5 a cluster begins at the highest level that the programs of all founders support",
  (t) => {
    const own = { nodeId: 2, storageId: "s2", storage: "lmdb", clusterId: "c" } as const;
    const found = (min: number, max: number, ...others: readonly OtherFounder[]): unknown => {
      const step = nextFoundingStep({ ...own, ...withLevels(min, max), others });
      return step.kind === "found" ? step.level : step;
    };
    const [low, mid] = [other(1, withLevels(1, 2)), other(3, withLevels(2, 3))];
    t.equal(found(2, 3, mid), 3);
    t.equal(found(2, 3, low, mid), 2);
    t.equal(found(1, 2, mid), 2);
    t.match(found(3, 4, low, mid), {
      kind: "wait",
      missing: [/^1 .*its version 9.9 supports level 1 to 2, version 9.9 here 3 to 4/],
    });
    t.match(found(1, 3, low, other(3, withLevels(3, 3))), { kind: "wait" }, "not with each other");
    const spoken = { program: { ...PROGRAM, protocols: { min: 99, max: 99 } } };
    t.match(found(1, 1, other(1, spoken)), { kind: "wait", missing: [/supports protocol 99/] });
    t.end();
  },
);

t.test("answers that count for nothing: another list, another node, another storage", (t) => {
  const wrong: readonly (readonly [Partial<PeerIdentity>, RegExp])[] = [
    [{ clusterId: "d" }, /another --initial-cluster/],
    [{ clusterId: "d", state: "founded" }, /another --initial-cluster/],
    [{ nodeId: 7 }, /node 7 answers there/],
    [{ storage: "memory" }, /--storage memory/],
  ];
  for (const [answer, why] of wrong) {
    t.match(step(other(1, {}), other(3, answer)), { kind: "wait", missing: [why] });
  }
  t.end();
});
