/** What is said while a leave drains: nothing where nobody sees it, else how much is left. */
import t from "tap";
import {
  drainText,
  leaverAt,
  replicasOn,
  whileDraining,
} from "../../../src/cli/run/drain-progress.js";
import type { Membership, Placement, SvcClient } from "../../../src/client/mod.js";

function placement(...partitions: readonly (readonly string[])[]): Placement {
  const all = partitions.map((endpoints) => {
    return { replicas: endpoints.map((endpoint) => ({ endpoint, role: "Voter" })) };
  });
  return { localEndpoint: "a:1", partitions: all } as unknown as Placement;
}

const membership = {
  members: [
    { nodeId: 1, endpoint: "a:1" },
    { nodeId: 2, endpoint: "b:1" },
  ],
} as unknown as Membership;

t.test("how many replicas are left, of the asked node or of another member", (t) => {
  const three = placement(["a:1", "b:1"], ["b:1", "c:1"], ["c:1"]);
  t.equal(replicasOn(three, "b:1"), 2);
  t.equal(replicasOn(three, "d:1"), 0);
  t.equal(replicasOn(placement([]), "a:1"), 0, "full replication lists nobody");
  t.equal(leaverAt(three, membership, null), "a:1");
  t.equal(leaverAt(three, membership, 2), "b:1");
  t.equal(leaverAt(three, membership, 3), null);
  t.equal(drainText(1), "draining: 1 replica left");
  t.equal(drainText(7), "draining: 7 replicas left");
  t.equal(drainText(0), "waiting for the removal from the member list");
  t.end();
});

t.test(
  "5.3 progress is told until the leave ends, and a look that fails says nothing",
  async (t) => {
    const shown: string[] = [];
    let looks = 0;
    let end: (value: string) => void = () => undefined;
    const answers = [placement(["a:1"], ["a:1"]), null, placement(["b:1"], ["a:1"]), placement()];
    const client = {
      cluster: {
        placement: () => {
          const answer = answers[Math.min(looks++, answers.length - 1)] ?? null;
          if (looks === answers.length) setImmediate(end, "left");
          return answer === null ? Promise.reject(new Error("no answer")) : Promise.resolve(answer);
        },
        membership: () => Promise.resolve(membership),
      },
    } as unknown as SvcClient;
    const show = (text: string): void => void shown.push(text);
    const leave = (): Promise<string> => new Promise((resolve) => (end = resolve));
    t.equal(await whileDraining({ show }, client, null, leave), "left");
    t.same(shown.slice(0, 3), [drainText(2), drainText(1), drainText(0)]);
    looks = 0;
    t.equal(await whileDraining({ show: null }, client, null, () => Promise.resolve("x")), "x");
    t.equal(looks, 0, "nobody sees it");
    await t.rejects(
      whileDraining({ show }, client, null, () => Promise.reject(new Error("refused"))),
    );
  },
);
