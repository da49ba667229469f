/**
 * What a random walk is like: each seed draws the size of the group, the settings of its cores, and
 * which faults exist at all, so that every fault also meets runs in which others are absent.
 */
import { Prng } from "../../../../src/base/prng.js";
import { unlimited } from "../../../../src/raft/state/config.js";
import type { EventKind } from "./events.js";
import type { Settings } from "./world.js";

export type Wish = EventKind | "cut" | "heal" | "expire";

export interface Swarm {
  readonly settings: Settings;
  /** The chosen wish stands at a random place of this list. */
  readonly wishes: readonly Wish[];
  /** Which of the messages on their way comes next: about the oldest, any, or about the newest. */
  readonly order: "oldest" | "any" | "newest";
  readonly maxNetwork: number;
  /** Ticks pass on all nodes at once: what leases need. */
  readonly evenTicks: boolean;
}

/** What a caller may fix instead of leaving it to the seed. */
export interface Bias {
  readonly founders?: number;
  readonly spares?: number;
  readonly leases?: boolean;
  /** Wishes that are not granted in any case, and those that are. */
  readonly without?: readonly Wish[];
  readonly only?: readonly Wish[];
  /** How much more often than usual. */
  readonly more?: readonly (readonly [Wish, number])[];
  readonly preVote?: boolean;
  readonly writesAtOnce?: boolean;
  readonly order?: Swarm["order"];
}

const weights: readonly (readonly [Wish, number])[] = [
  ["deliver", 560],
  ["tick", 160],
  ["propose", 60],
  ["read", 25],
  ["report", 20],
];

const faults: readonly (readonly [Wish, number])[] = [
  ["drop", 40],
  ["duplicate", 30],
  ["crash", 5],
  ["change", 20],
  ["transfer", 12],
  ["flush", 8],
  ["compact", 20],
  ["campaign", 4],
  ["forget", 2],
  ["unreachable", 4],
  ["cut", 10],
  ["expire", 6],
];

/** Faults that time-based leases do not promise to survive. */
const notWithLeases: readonly Wish[] = ["crash", "forget", "campaign", "change"];

function coreOf(prng: Prng, leases: boolean, bias: Bias): Settings["core"] {
  const checkQuorum = leases || prng.chance(1, 2);
  const electionTicks = (leases ? 3 : 2) + prng.below(5);
  const small = prng.chance(1, 2);
  return {
    electionTicks,
    preVote: bias.preVote ?? prng.chance(1, 2),
    checkQuorum,
    readMode: leases ? "leaseBased" : "safe",
    maxInflightMessages: small ? 1 + prng.below(4) : 64,
    maxMessageBytes: small ? 20 + prng.below(60) : 1 << 20,
    maxInflightBytes: small ? 80 + prng.below(40) : unlimited,
    maxUncommittedBytes: prng.chance(1, 3) ? 40 : 1 << 20,
    maxCommittedBytesPerTake: prng.chance(1, 3) ? 40 : 1 << 20,
    maxPendingReads: 8,
    disableProposalForwarding: true,
    stepDownOnRemoval: prng.chance(2, 3),
  };
}

/** The walk of a seed. */
export function swarmOf(seed: number, bias: Bias = {}): Swarm {
  const prng = new Prng(seed).fork("swarm");
  const leases = bias.leases ?? prng.chance(1, 12);
  const founders = bias.founders ?? [1, 2, 3, 3, 3, 4, 5][prng.below(7)] ?? 3;
  const spares = bias.spares ?? prng.below(3);
  const wishes: Wish[] = [];
  const grant = (wish: Wish, weight: number): void => {
    for (let count = 0; count < weight; count++) wishes.push(wish);
  };
  // Where ticks pass on all nodes at once, and leases count them, much happens between two.
  for (const [wish, weight] of weights) grant(wish, leases && wish === "tick" ? 20 : weight);
  if (leases) grant("read", 60);
  // Disks and state machines are quick, or slow, or very slow.
  grant("complete", [20, 60, 200][prng.below(3)] ?? 200);
  grant("apply", [10, 90][prng.below(2)] ?? 90);
  // Some walks are nervous: time passes quickly, so that leaders come and go.
  if (!leases && prng.chance(1, 2)) grant("tick", 100 + prng.below(300));
  if (!leases && prng.chance(1, 2)) grant("campaign", 3 + prng.below(30));
  for (const [wish, weight] of faults) {
    const drawn = prng.chance(3, 5);
    const wanted = bias.only?.includes(wish) ?? drawn;
    if (!wanted || bias.without?.includes(wish)) continue;
    if (leases && notWithLeases.includes(wish)) continue;
    grant(wish, weight);
    if (wish === "cut") grant("heal", 5);
  }
  // Replicas that come again: drawn apart, so that walks without them are what they were.
  if (wishes.includes("change") && new Prng(seed).fork("lives").chance(1, 2)) grant("renew", 12);
  for (const [wish, weight] of bias.more ?? []) grant(wish, weight);
  const order = (["oldest", "any", "any", "newest"] as const)[prng.below(4)] ?? "any";
  return {
    settings: {
      founders,
      spares,
      core: coreOf(prng, leases, bias),
      writesAtOnce: bias.writesAtOnce ?? prng.chance(1, 4),
      appliesAtOnce: prng.chance(1, 3),
      offersSnapshots: prng.chance(1, 2),
      gentleChanges: prng.chance(1, 2),
      digests: false,
      seed,
    },
    wishes,
    order: bias.order ?? order,
    maxNetwork: 5 + prng.below(25),
    evenTicks: leases,
  };
}
