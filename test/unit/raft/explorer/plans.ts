/**
 * The explorations: which groups, which events, how many of each, how deep. The depth is that of the
 * daily test; `npm run explore` goes deeper.
 */
import type { Event } from "./events.js";
import { nothing, type Budget, type Exploration } from "./explore.js";
import type { Settings } from "./world.js";

const core: Settings["core"] = {
  preVote: false,
  checkQuorum: false,
  electionTicks: 2,
  fixedElectionTicks: 2,
};

const settings: Settings = {
  founders: 3,
  spares: 0,
  core,
  writesAtOnce: false,
  appliesAtOnce: true,
  offersSnapshots: false,
  gentleChanges: false,
  digests: true,
  seed: 1,
};

const calm: Event = { kind: "deliver", node: 0, at: -1 };

/** Node 1 has been elected, has committed its first entry, and nothing is on its way. */
const elected: readonly Event[] = [{ kind: "campaign", node: 1, at: 0 }, calm];

/** Node 3 has missed an entry that node 1 has committed with node 2 and then dropped from its log. */
const behind: readonly Event[] = [
  ...elected,
  { kind: "propose", node: 1, at: 1 },
  { kind: "drop", node: 0, at: 1 },
  { kind: "deliver", node: 2, at: 0 },
  { kind: "deliver", node: 1, at: 0 },
  { kind: "compact", node: 1, at: 0 },
];

/** Node 1 leads voters 1 to 3 and learners 4 and 5; only 1, 4 and 5 do not know yet that 2 leads. */
const deposed: readonly Event[] = [
  ...elected,
  { kind: "change", node: 1, at: 1 },
  calm,
  { kind: "change", node: 1, at: 2 },
  calm,
  { kind: "campaign", node: 2, at: 0 },
  { kind: "deliver", node: 3, at: 1 },
  { kind: "deliver", node: 2, at: 1 },
  { kind: "deliver", node: 3, at: 2 },
  { kind: "deliver", node: 2, at: 4 },
];

/** Node 1 has lost an entry in a crash that node 2 has, and has acknowledged, and campaigns again. */
const lateAnswer: readonly Event[] = [
  ...elected,
  { kind: "propose", node: 1, at: 1 },
  { kind: "drop", node: 0, at: 1 },
  { kind: "deliver", node: 2, at: 0 },
  { kind: "complete", node: 2, at: 0 },
  { kind: "crash", node: 1, at: 0 },
  { kind: "campaign", node: 1, at: 0 },
];

/** An entry of node 1 is on its way to node 2's disk when node 3, the new leader, replaces it. */
const rewritten: readonly Event[] = [
  ...elected,
  { kind: "propose", node: 1, at: 1 },
  { kind: "drop", node: 0, at: 1 },
  { kind: "deliver", node: 2, at: 0 },
  { kind: "crash", node: 1, at: 0 },
  { kind: "campaign", node: 3, at: 0 },
  { kind: "complete", node: 3, at: 0 },
  { kind: "deliver", node: 1, at: 0 },
  { kind: "complete", node: 1, at: 0 },
  { kind: "deliver", node: 3, at: 1 },
  { kind: "deliver", node: 2, at: 2 },
];

/**
 * Node 1 has committed with node 3 that node 3 is no member any more; node 2 has not heard of it and
 * may still ask node 3 for its vote.
 */
const removed: readonly Event[] = [
  ...elected,
  { kind: "change", node: 1, at: 4 },
  { kind: "drop", node: 0, at: 0 },
  { kind: "deliver", node: 3, at: 0 },
  { kind: "deliver", node: 1, at: 0 },
];

function plan(
  name: string,
  depth: number,
  budget: Partial<Budget>,
  world: Partial<Settings> = {},
  prefix: readonly Event[] = [],
): Exploration {
  const made = { ...settings, ...world };
  return { name, settings: made, budget: { ...nothing, ...budget }, depth, maxStates: 1e6, prefix };
}

const atOnce: Partial<Settings> = { writesAtOnce: true };

/** Every exploration, by name. */
export const plans: readonly Exploration[] = [
  plan("3 nodes, elections", 9, { campaign: 3, propose: 1 }, atOnce),
  plan("3 nodes, slow disks, crashes", 8, { campaign: 2, crash: 1, propose: 1 }),
  plan("3 nodes, loss and duplicates", 7, { campaign: 2, duplicate: 1, drop: 2 }, atOnce),
  plan(
    "2 nodes, everything slow",
    10,
    { campaign: 2, crash: 1, propose: 1, read: 1 },
    { founders: 2 },
  ),
  plan("4 nodes, elections", 8, { campaign: 2, propose: 1 }, { ...atOnce, founders: 4 }),
  plan("5 nodes, elections", 7, { campaign: 2, propose: 1 }, { ...atOnce, founders: 5 }),
  plan(
    "3 nodes, pre-vote and check-quorum",
    9,
    { campaign: 2, beat: 1 },
    { ...atOnce, core: { ...core, preVote: true, checkQuorum: true } },
  ),
  plan("3 nodes, reads", 8, { campaign: 1, read: 2, beat: 1, propose: 1 }, atOnce, elected),
  plan("3 nodes, reads while deposed", 9, { campaign: 1, read: 1 }, atOnce, [
    ...elected,
    { kind: "tick", node: 1, at: 1 },
  ]),
  plan(
    "3 nodes and two learners, reads while deposed",
    7,
    { read: 1 },
    { ...atOnce, spares: 2 },
    deposed,
  ),
  plan("3 nodes, a late answer", 8, { campaign: 1, propose: 1 }, {}, lateAnswer),
  plan(
    "3 nodes, an entry rewritten on a slow disk",
    7,
    { campaign: 1, crash: 1, propose: 1 },
    {},
    rewritten,
  ),
  plan("3 nodes, transfer", 8, { campaign: 1, transfer: 1, propose: 1 }, atOnce, elected),
  plan(
    "3 nodes and one more, membership",
    8,
    { campaign: 1, change: 2 },
    { ...atOnce, spares: 1, appliesAtOnce: false },
    elected,
  ),
  plan(
    "3 nodes, a replica that comes again",
    9,
    { campaign: 2, renew: 1, change: 1 },
    atOnce,
    removed,
  ),
  plan("3 nodes, snapshots", 8, { campaign: 1, propose: 1, compact: 1, crash: 1 }, atOnce, behind),
];
