/**
 * Cores for unit tests: made in a given state, and led through a step at a time without any payloads.
 */
import { defaultConfig, type CoreConfig } from "../../../src/raft/state/config.js";
import { RaftCore } from "../../../src/raft/core.js";
import type {
  Effects,
  EntrySpan,
  Message,
  RestoredState,
  TermRun,
} from "../../../src/raft/state/types.js";
import { membershipOf, message } from "../../doubles/raft/fresh.js";

/** Runs of the given terms, for a log that begins behind `floor`. */
export function runsOf(terms: readonly number[], floor = 0): TermRun[] {
  const runs: TermRun[] = [];
  terms.forEach((term, at) => {
    if (runs.at(-1)?.term !== term) runs.push({ first: floor + 1 + at, term });
  });
  return runs;
}

/** A span with entries of the given terms, each of one byte. */
export function spanOf(first: number, terms: readonly number[]): EntrySpan {
  return {
    first,
    last: first + terms.length - 1,
    termRuns: runsOf(terms, first - 1),
    configChanges: [],
    sizeBytes: terms.length,
    sizesBytes: terms.map(() => 1),
  };
}

export interface Start extends Partial<RestoredState> {
  /** One term per entry; gives termRuns, lastIndex and sizeRuns. */
  readonly terms?: readonly number[];
}

export function restored(start: Start = {}): RestoredState {
  const { terms = [], ...rest } = start;
  const floorIndex = rest.floorIndex ?? 0;
  const lastTerm = terms.at(-1) ?? rest.floorTerm ?? 0;
  return {
    hardState: { term: lastTerm, vote: 0, commit: rest.appliedIndex ?? floorIndex },
    floorIndex,
    floorTerm: 0,
    termRuns: runsOf(terms, floorIndex),
    lastIndex: floorIndex + terms.length,
    configChanges: [],
    sizeRuns: terms.map((_, at) => ({ first: floorIndex + 1 + at, sizeBytes: 1 })),
    appliedIndex: floorIndex,
    awaitsSnapshot: false,
    membership: membershipOf([1, 2, 3]),
    ...rest,
  };
}

export function makeCore(start: Start = {}, settings: Partial<CoreConfig> = {}): RaftCore {
  const id = settings.id ?? 1;
  const config = { ...defaultConfig(id, id), preVote: false, checkQuorum: false, ...settings };
  return new RaftCore(config, restored(start));
}

/** Carries out one record: writes at once, applies at once. Returns it. */
export function carryOut(core: RaftCore): Effects {
  const effects = core.takeEffects();
  for (const own of effects.messagesAfterWrite) {
    if (own.to === core.id) core.step(own);
  }
  if (effects.receipt !== null) core.written(effects.receipt);
  if (effects.committed !== null) core.applied(effects.committed.last);
  core.assertState();
  return effects;
}

/** Carries out until nothing is left. Returns every message to others, in order. */
export function settle(core: RaftCore): Message[] {
  const sent: Message[] = [];
  while (core.hasEffects()) {
    const effects = carryOut(core);
    sent.push(...effects.messages);
    sent.push(...effects.messagesAfterWrite.filter(({ to }) => to !== core.id));
  }
  return sent;
}

/** Makes node 1 leader of the next term with the votes of `voters`. Returns what it sent on taking office. */
export function elect(core: RaftCore, voters: readonly number[] = [2]): Message[] {
  core.campaign();
  settle(core);
  if (core.role === "preCandidate") {
    for (const from of voters) {
      core.step(message("preVoteAnswer", { from, term: core.term + 1 }));
    }
    settle(core);
  }
  for (const from of voters) core.step(message("voteAnswer", { from, term: core.term }));
  return settle(core);
}

/** `from` acknowledges everything up to `index`. */
export function acknowledge(core: RaftCore, from: number, index: number): Message[] {
  core.step(message("appendAnswer", { from, term: core.term, index }));
  return settle(core);
}
