/**
 * Nodes that join, leave and come back in the simulated world, leaderships that move, lanes that
 * break; and the checkers of all that.
 */
import t, { type Test } from "tap";
import { membershipOfVoters } from "../../src/host/replication/config-entries.js";
import { PROGRAM } from "../../src/base/levels.js";
import type { PeerEvents, PeerLane } from "../../src/ports.js";
import { ConfigSteps, splitOf } from "../judge/checkers/nodes/config-steps.js";
import { LeadersVote } from "../judge/checkers/nodes/leaders-vote.js";
import { MemberLists } from "../judge/checkers/nodes/member-lists.js";
import type { FaultKind, OperatorKind } from "./faults/kinds.js";
import { type Entered, Entering } from "../../src/host/cluster/entering.js";
import { SimQuestions } from "./net/questions.js";
import { judge } from "./run/judge.js";
import { SimNetwork } from "./net/network.js";
import { planOf } from "./plan/plan.js";
import { Life } from "./world/process.js";
import { World } from "./world/world.js";

interface Told {
  readonly violations: readonly string[];
  readonly effects: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly ok: number;
}

/** A short run of three nodes whose operators do `kinds`. */
function run(
  seed: number,
  kinds: readonly OperatorKind[],
  faults: readonly FaultKind[],
  everyMs = 1500,
): Told {
  const drawn = planOf(seed, "members");
  if (drawn.members === null) throw new Error("the profile has operators");
  const members = { ...drawn.members, kinds, everyMs, least: 2, most: 5 };
  const host = { ...drawn.host, initialPartitions: 2, compactEveryEntries: 10 };
  const small = { ...drawn, nodes: 3, clients: 3, thinkMs: 100, ticks: 12_000, faultEveryMs: 1500 };
  const { result, violations } = judge({ ...small, members, host, faults });
  return { violations, effects: result.effects, faults: result.faults, ok: result.clients.ok };
}

const NAMES = [
  "members admitted",
  "members left",
  "members transfersDone",
  "snapshots installed",
] as const;

/** What several runs saw in all; each of them must be without violations. */
function several(
  t: Test,
  seeds: readonly number[],
  kinds: readonly OperatorKind[],
  faults: readonly FaultKind[] = [],
  everyMs?: number,
): Map<string, number> {
  const seen = new Map<string, number>();
  const add = (name: string, count = 0): void => void seen.set(name, (seen.get(name) ?? 0) + count);
  for (const seed of seeds) {
    const told = run(seed, kinds, faults, everyMs);
    t.same(told.violations, [], `seed ${seed}`);
    for (const name of NAMES) add(name, told.effects[name]);
    for (const [kind, count] of Object.entries(told.faults)) add(kind, count);
    add("ok", told.ok);
  }
  return seen;
}

t.test("P-091 nodes join while they and their seeds are killed and cut off", (t) => {
  const faults = ["kill", "power-loss", "isolate", "lane-break"] as const;
  const seen = several(t, [1, 2], ["join"], faults);
  t.ok((seen.get("members admitted") ?? 0) >= 3, "nodes were taken in");
  t.ok((seen.get("snapshots installed") ?? 0) >= 3, "by snapshots");
  t.end();
});

t.test("P-097 a joiner that lost its disk comes back, and others take its place", (t) => {
  const seen = several(t, [3, 4], ["join", "wipe-joiner"], ["kill"], 800);
  t.ok((seen.get("wipe-joiner") ?? 0) >= 1, "disks were taken away");
  t.ok((seen.get("members admitted") ?? 0) >= 2, "and nodes joined");
  t.end();
});

t.test("P-096 nodes leave, come back empty, or are started again by mistake", (t) => {
  const kinds = ["join", "leave", "rejoin", "start-the-gone"] as const;
  const seen = several(t, [5, 6, 7], kinds, ["crash-inside"], 500);
  t.ok((seen.get("members left") ?? 0) >= 3, "nodes left");
  t.ok((seen.get("rejoin") ?? 0) + (seen.get("start-the-gone") ?? 0) >= 1, "and came back");
  t.end();
});

t.test("P-016 leaderships are handed over in the middle of writes, by orders and by stops", (t) => {
  const seen = several(t, [8, 9], ["transfer", "rolling-restart"], ["graceful-stop"], 1000);
  t.ok((seen.get("members transfersDone") ?? 0) >= 5, "leaderships moved");
  t.ok((seen.get("rolling-restart") ?? 0) >= 1, "all nodes were restarted in turn");
  t.ok((seen.get("graceful-stop") ?? 0) >= 1, "nodes stopped and handed over");
  t.ok((seen.get("ok") ?? 0) > 100, "and answered in between");
  t.end();
});

const TEMPER = { baseMs: 1, jitterMs: 0, slowPerMillion: 0, silenceMs: 700 };

/** A world of nodes that are nothing but their ends of the network. */
class Ends {
  readonly world = new World(3);
  readonly network = new SimNetwork(this.world, TEMPER);
  readonly told: string[] = [];

  life(nodeId: number): Life {
    return new Life(this.world, nodeId, 1, { rate: 1, wallOffsetMs: 0 });
  }

  open(nodeId: number, others: readonly number[], events: Partial<PeerEvents> = {}): Life {
    const life = this.life(nodeId);
    const endpoint = (id: number): string => `node-${id}:8084`;
    const own = { clusterId: "c", nodeId, storageId: "s", endpoint: endpoint(nodeId) };
    const port = this.network.port(life, {
      ...own,
      clientEndpoint: "",
      program: PROGRAM,
      storage: "lmdb",
    });
    const tell = (text: string): void => void this.told.push(`${nodeId}: ${text}`);
    port.setPeers(others.map((id) => ({ nodeId: id, endpoint: endpoint(id) })));
    const told: PeerEvents = {
      judge: () => null,
      admit: () => null,
      refused: () => undefined,
      linkUp: (hello) => tell(`up ${hello.nodeId}`),
      linkDown: (id) => tell(`down ${id}`),
      frame: (from, lane, bytes) => tell(`${lane} ${from} ${bytes[0]}`),
      joinAsked: (_request, answer) => answer({ status: "retry", reason: "not here" }),
      ...events,
    };
    port.start(told, { bootNumber: 1, bootNonce: nodeId, earlierNonces: [] });
    return life;
  }

  pass(ms: number): void {
    this.world.run(this.world.nowMs + ms);
  }

  /** What was told since the last call. */
  take(): string[] {
    return this.told.splice(0);
  }
}

t.test(
  "P-154 one lane breaks while the others deliver; then the link is lost, and made anew",
  (t) => {
    const ends = new Ends();
    ends.open(1, [2]);
    ends.open(2, [1]);
    ends.pass(100);
    t.same(ends.take().sort(), ["1: up 2", "2: up 1"]);
    const link = ends.network.listener(1)?.link(2);
    if (link === undefined) throw new Error("there is a link");
    const send = (lane: PeerLane, text: number): boolean => link.send(lane, Uint8Array.of(text));
    t.notOk(link.breakLane("bulk", true), "a lane that was never used cannot break");
    t.ok(link.breakLane("log", true));
    t.ok(send("log", 1), "its sender does not know");
    t.ok(send("control", 2));
    t.ok(send("calls", 3));
    ends.pass(50);
    t.same(ends.take(), ["2: control 1 2", "2: calls 1 3"]);
    ends.pass(5000);
    t.same(
      ends.take().sort(),
      ["1: down 2", "1: up 2", "2: down 1", "2: up 1"],
      "the peer's answers went with the calls",
    );
    t.ok(send("log", 4));
    t.ok(link.breakLane("control", false), "its end is told at once");
    ends.pass(3);
    t.ok(ends.take().includes("1: down 2"));
    ends.pass(500);
    t.same(ends.take().at(-1), "1: up 2");
    t.equal(ends.network.counts.lanesBroken, 2);
    t.equal(ends.network.counts.intoBroken, 1);
    t.end();
  },
);

t.test(
  "a lane keeps its order, delivers once, and ends with the connection that replaces it",
  (t) => {
    const ends = new Ends();
    ends.open(1, [2]);
    ends.open(2, []);
    ends.pass(100);
    ends.take();
    const link = ends.network.listener(1)?.link(2);
    for (let round = 0; round < 40; round++) {
      for (let text = 1; text <= 5; text++) link?.send("log", Uint8Array.of(text));
      link?.breakNow();
      ends.pass(400);
      const came = ends.take().filter((text) => text.startsWith("2: log"));
      t.same(
        came,
        [1, 2, 3, 4, 5].slice(0, came.length).map((text) => `2: log 1 ${text}`),
      );
    }
    t.ok(ends.network.counts.ofLostLinks > 0, "some came after the link was lost");
    t.ok(ends.network.counts.dropped > 0, "and some never");
    t.end();
  },
);

t.test("a joiner asks on: seeds are down, cut off, or cannot tell", (t) => {
  const ends = new Ends();
  const accepted = { status: "accepted", clusterId: "c", level: 1, founders: [1] } as const;
  ends.open(1, [], { joinAsked: (_request, answer) => answer(accepted) });
  ends.open(2, []);
  ends.open(3, []);
  const life = ends.life(4);
  const answers: Entered[] = [];
  let seeds = [9, 2];
  const entering = new Entering({
    nodeId: 4,
    endpoint: "node-4:8084",
    storage: "lmdb",
    program: PROGRAM,
    founders: [],
    seeds: () => seeds.map((id) => `node-${id}:8084`),
    mayFound: false,
    ask: new SimQuestions(ends.network, life, 4),
    clock: life.clock,
    timer: life,
    entropy: { uint32: () => 0x8000_0000 },
    logger: { log: () => undefined },
  });
  entering.enter("c", "s", (entered) => void answers.push(entered));
  ends.pass(3000);
  t.same(answers, [], "nobody there can take it in");
  const heal = ends.network.cut(3, 4);
  seeds = [3, 1];
  ends.pass(10_000);
  t.same(answers, [], "an answer that is lost is waited for");
  ends.pass(6000);
  t.same(answers, [{ kind: "joined", founders: [1], level: 1 }]);
  heal();
  t.end();
});

t.test("P-092 member lists and configurations: the checkers fire, and pass", (t) => {
  const memberLists = new MemberLists({ versions: 2, compared: 1 });
  memberLists.members(1, 1, 0, "");
  memberLists.members(1, 1, 1, "a");
  memberLists.members(2, 1, 1, "a");
  t.equal(memberLists.verdict().kind, "vacuous");
  memberLists.members(1, 1, 2, "b");
  memberLists.members(1, 2, 1, "a");
  t.equal(memberLists.verdict().kind, "pass", "another life begins where its disk is");
  memberLists.members(2, 1, 2, "c");
  memberLists.members(1, 2, 0, "");
  t.equal(memberLists.verdict().violationCount, 2, "another member list, and one that went back");

  const of = membershipOfVoters;
  t.equal(splitOf(of([1, 2, 3]), of([1, 2, 3, 4])), null);
  t.same(splitOf(of([1, 2]), of([3])), [[1, 2], [3]]);
  const joint = { ...of([3, 4, 5]), votersOutgoing: [1, 2, 3] };
  t.equal(splitOf(of([1, 2, 3]), joint), null);
  t.equal(splitOf(joint, of([3, 4, 5])), null);
  const steps = new ConfigSteps({ steps: 1, compared: 1 });
  steps.membership(1, 1, 0, 0, of([1, 2, 3]));
  steps.membership(1, 1, 0, 9, of([2, 3]));
  steps.membership(2, 1, 0, 5, of([1, 2, 3]));
  steps.membership(2, 1, 0, 9, of([2, 3]));
  steps.membership(2, 1, 0, 5, of([1, 2, 3]), 6);
  t.equal(steps.verdict().kind, "pass", "a replica that came again begins before");
  steps.membership(3, 1, 0, 9, of([1, 3]));
  steps.membership(3, 1, 1, 0, of([1, 2, 3]));
  steps.membership(3, 1, 1, 7, of([3, 4, 5]));
  steps.membership(3, 1, 1, 6, of([3]));
  t.ok(steps.verdict().violationCount >= 3, "one entry, a jump, and a life that goes back");

  const leaders = new LeadersVote({ leaders: 1 });
  leaders.membership(1, 1, 0, 4, of([1, 2]));
  leaders.leads(1, 1, 0, 3);
  t.equal(leaders.verdict().kind, "pass");
  leaders.membership(1, 1, 0, 8, of([2]));
  leaders.leads(1, 1, 0, 3);
  t.match(leaders.verdict().violations, [/node 1 leads group 0/]);
  t.end();
});

t.test("P-130, C15 rows that rot are served by nobody and copied by nobody", (t) => {
  const seen = several(t, [21, 22, 23, 24], ["transfer"], ["row-flip", "kill"], 3000);
  t.ok((seen.get("row-flip") ?? 0) >= 4, "rows rotted");
  t.ok((seen.get("ok") ?? 0) > 500, "and clients were served all the time");
  t.end();
});
