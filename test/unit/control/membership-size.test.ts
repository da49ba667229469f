/** As many members as a cluster may have fit each group's configuration, and no more are added. */
import t from "tap";
import { MEMBERS_MAX } from "../../../src/base/limits.js";
import { nextGroupChange } from "../../../src/control/membership.js";
import {
  decodeMembership,
  encodeMembership,
} from "../../../src/host/replication/config-entries.js";
import type { Member } from "../../../src/machine/commands/command.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { member } from "../../doubles/machine/members.js";

function membership(learners: readonly number[]): Membership {
  const rest = { votersOutgoing: [], learnersNext: [], autoLeave: false };
  return { voters: [1], learners, ...rest };
}

function line(nodeId: number): Member {
  return member(nodeId, { role: nodeId === 1 ? "voter" : "learner" });
}

const ids = (first: number, last: number): number[] => {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
};

t.test("a configuration of as many members as may be is written and read again", (t) => {
  for (const count of [256, 257, MEMBERS_MAX]) {
    const full = membership(ids(2, count));
    t.strictSame(decodeMembership(encodeMembership(full)), full, `${count} members`);
  }
  t.throws(() => encodeMembership(membership(ids(2, MEMBERS_MAX + 2))), /read again/);
  t.end();
});

t.test("a full group lets somebody go before somebody else comes", (t) => {
  const gone = 7;
  const members = ids(1, MEMBERS_MAX + 1)
    .filter((id) => id !== gone)
    .map(line);
  const live = { isLive: () => true, isCaughtUp: () => false, self: 1 };
  const full = { ...live, membership: membership(ids(2, MEMBERS_MAX)), members };
  const step = nextGroupChange({ ...full, removed: new Set([gone]) });
  t.match(step, { kind: "change", change: { operations: [{ kind: "remove", node: gone }] } });
  t.match(nextGroupChange({ ...full, removed: new Set() }), {
    kind: "wait",
    why: /as many members as it may have/,
  });
  t.end();
});
