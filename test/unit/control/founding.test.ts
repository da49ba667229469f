/** Whether an empty founder founds, joins or waits. */
import t from "tap";
import {
  type FoundingFacts,
  type OtherFounder,
  nextFoundingStep,
} from "../../../src/control/founding.js";
import { PEER_PROTOCOL } from "../../../src/base/limits.js";
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
    protocol: PEER_PROTOCOL,
    storage: "lmdb",
    state: "empty",
    founders: [],
    ...answer,
  };
  return { nodeId, endpoint, answer: identity, silence: "" };
}

function step(...others: readonly OtherFounder[]): ReturnType<typeof nextFoundingStep> {
  const own = { nodeId: 2, storageId: "s2", storage: "lmdb", clusterId: "c" } as const;
  const facts: FoundingFacts = { ...own, others };
  return nextFoundingStep(facts);
}

const ids = (...nodes: readonly number[]): { nodeId: number; storageId: string }[] => {
  return nodes.map((nodeId) => ({ nodeId, storageId: `s${nodeId}` }));
};

t.test("P-191 5.6 all others empty: it founds, with the directories of all", (t) => {
  t.strictSame(step(), { kind: "found", founders: ids(2) });
  t.strictSame(step(other(1, {}), other(3, {})), { kind: "found", founders: ids(1, 2, 3) });
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
  t.strictSame(step(other(1, founding), other(3, {})), { kind: "found", founders });
  t.strictSame(step(other(1, founding), other(3, founding)), { kind: "found", founders });
  // Node 3 lost its disk since: the founding of node 1 stands, and node 3 is out of it.
  const third = other(3, { storageId: "anew" });
  t.strictSame(step(other(1, founding), third), { kind: "found", founders });
  // This node lost its disk since: it was in that founding once, and may have voted.
  const before = [...ids(1), { nodeId: 2, storageId: "before" }, ...ids(3)];
  t.same(step(other(1, { state: "founding", founders: before }), other(3, {})), { kind: "join" });
  t.same(step(other(1, { state: "founding", founders: ids(1, 3) }), other(3, "?")), {
    kind: "join",
  });
  t.end();
});

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
