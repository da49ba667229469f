/**
 * What a random walk is like: each seed draws the size of the group, the settings of its cores, and
 * which faults exist at all, so that every fault also meets runs in which others are absent.
 */
import { Prng } from "../../../src/base/prng.js";
import { unlimited } from "../../../src/raft/config.js";
import type { EventKind } from "./events.js";
import type { Settings } from "./world.js";

export type Wish = EventKind | "cut" | "heal" | "expire";

export interface Swarm {
  readonly settings: Settings;
  /** The chosen wish stands at a random place of this list. */
  readonly wishes: readonly Wish[];
  /** Whether messages overtake each other. */
  readonly reorders: boolean;
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
  readonly preVote?: boolean;
  readonly writesAtOnce?: boolean;
}

const weights: readonly (readonly [Wish, number])[] = [
  ["deliver", 560],
  ["tick", 110],
  ["complete", 200],
  ["apply", 90],
  ["propose", 40],
  ["read", 25],
  ["report", 20],
];

const faults: readonly (readonly [Wish, number])[] = [
  ["drop", 40],
  ["duplicate", 30],
  ["crash", 5],
  ["change", 12],
  ["transfer", 4],
  ["flush", 8],
  ["compact", 20],
  ["campaign", 4],
  ["forget", 2],
  ["unreachable", 4],
  ["cut", 6],
  ["expire", 6],
];

/** Faults that time-based leases do not promise to survive. */
const notWithLeases: readonly Wish[] = ["crash", "forget", "campaign", "change"];

function coreOf(prng: Prng, leases: boolean, bias: Bias): Settings["core"] {
  const checkQuorum = leases || prng.chance(1, 2);
  const electionTicks = 3 + prng.below(6);
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
  for (const [wish, weight] of weights) grant(wish, weight);
  // Some walks are nervous: time passes quickly, so that leaders come and go.
  if (prng.chance(1, 2)) grant("tick", 60 + prng.below(200));
  if (prng.chance(1, 4)) grant("campaign", 20);
  for (const [wish, weight] of faults) {
    const drawn = prng.chance(3, 5);
    const wanted = bias.only?.includes(wish) ?? drawn;
    if (!wanted || bias.without?.includes(wish)) continue;
    if (leases && notWithLeases.includes(wish)) continue;
    grant(wish, weight);
    if (wish === "cut") grant("heal", 5);
  }
  return {
    settings: {
      founders,
      spares,
      core: coreOf(prng, leases, bias),
      writesAtOnce: bias.writesAtOnce ?? prng.chance(1, 4),
      appliesAtOnce: prng.chance(1, 3),
      offersImages: prng.chance(1, 2),
      gentleChanges: prng.chance(1, 2),
      digests: false,
      seed,
    },
    wishes,
    reorders: prng.chance(1, 2),
    maxNetwork: 20 + prng.below(60),
    evenTicks: leases,
  };
}
