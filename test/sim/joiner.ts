/**
 * How a node that belongs to no cluster asks its seeds, as the server does it: one after the other,
 * with pauses between rounds, until one gives an answer that counts.
 *
 * Invariants: 1. `done` is called in the life of the process, once. 2. A seed that is down, cut off
 * or cannot tell is passed over; it is asked again in the next round.
 */
import type { JoinAnswer, JoinRequest } from "../../src/ports.js";
import type { SimNetwork } from "./network.js";
import type { Life } from "./process.js";

/** Longest wait for one seed (ms), and pause after the last of them. */
const ANSWER_WITHIN_MS = 12_000;
const ROUND_PAUSE_MS = 500;

export interface Asker {
  readonly network: SimNetwork;
  readonly life: Life;
  readonly nodeId: number;
  /** Read anew in each round: an operator may have set them right. */
  readonly seeds: () => readonly number[];
}

export type FinalAnswer = Exclude<JoinAnswer, { readonly status: "retry" }>;

type Ask<Answer> = (seed: number, take: (answer: Answer | null) => void) => void;

export function askIdentity(asker: Asker, done: (clusterId: string) => void): void {
  const { network, nodeId } = asker;
  const ask: Ask<string> = (seed, take) => {
    network.askIdentity(nodeId, seed, (clusterId) => take(clusterId === "" ? null : clusterId));
  };
  askRound(asker, ask, asker.seeds(), done);
}

export function askToJoin(
  asker: Asker,
  request: JoinRequest,
  done: (answer: FinalAnswer) => void,
): void {
  const { network, nodeId } = asker;
  const ask: Ask<FinalAnswer> = (seed, take) => {
    network.askToJoin(seed, request, (answer) => {
      const why = answer.status === "accepted" ? "" : `: ${answer.reason}`;
      network.world.say(nodeId, `seed ${seed} answers ${answer.status}${why}`);
      take(answer.status === "retry" ? null : answer);
    });
  };
  askRound(asker, ask, asker.seeds(), done);
}

/** Asks `seeds`, the first one first. */
function askRound<Answer>(
  asker: Asker,
  ask: Ask<Answer>,
  seeds: readonly number[],
  done: (answer: Answer) => void,
): void {
  const { network, life } = asker;
  const [seed, ...rest] = seeds;
  if (seed === undefined) {
    const pauseMs = ROUND_PAUSE_MS * (0.5 + network.prng.below(1024) / 1024);
    return void life.at(pauseMs, () => askRound(asker, ask, asker.seeds(), done));
  }
  let isOpen = true;
  const settle = (answer: Answer | null): void => {
    if (!isOpen) return;
    isOpen = false;
    network.world.cancel(timeout);
    life.enter(() => {
      if (answer !== null) done(answer);
      else askRound(asker, ask, rest, done);
    });
  };
  const timeout = life.at(ANSWER_WITHIN_MS, () => settle(null));
  ask(seed, settle);
}
