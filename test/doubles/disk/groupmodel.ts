/**
 * The naive model of one group of the log: what is acknowledged, what is queued, record by record.
 */
import type { HardState, LogEntry, LogPosition } from "../../../src/ports.js";
import { describeEntry } from "../../conformance/log.js";

/** One record as the log keeps it: the smallest thing that survives whole or not at all. */
export type Step =
  | { kind: "state"; hardState: HardState }
  | { kind: "entry"; entry: LogEntry }
  | { kind: "install"; floor: LogPosition; hardState: HardState }
  | { kind: "drop" };

export interface GroupState {
  hardState: HardState;
  /** Index 0 of the array is log index `first`. */
  first: number;
  entries: LogEntry[];
}

export function empty(): GroupState {
  return { hardState: { term: 0, vote: 0, commit: 0 }, first: 1, entries: [] };
}

export function applyStep(state: GroupState, step: Step): void {
  if (step.kind === "state") state.hardState = step.hardState;
  else if (step.kind === "entry") {
    state.entries.length = step.entry.index - state.first;
    state.entries.push(step.entry);
  } else if (step.kind === "install") {
    state.entries = [];
    state.first = step.floor.index + 1;
    state.hardState = step.hardState;
  } else Object.assign(state, empty());
}

export function lastOf(state: GroupState): number {
  return state.first + state.entries.length - 1;
}

export function termAt(state: GroupState, index: number): number {
  return state.entries[index - state.first]?.term ?? 0;
}

export class ModelGroup {
  /** What is acknowledged. */
  durable = empty();
  /** What is queued, in order. */
  pending: Step[] = [];
  /** Everything, acknowledged or not. */
  now = empty();
  /** Highest floor asked for. */
  floor: LogPosition = { index: 0, term: 0 };
  term = 1;

  push(steps: readonly Step[]): () => void {
    for (const step of steps) {
      this.pending.push(step);
      applyStep(this.now, step);
    }
    const mine = this.durable;
    return () => {
      if (mine !== this.durable) return;
      for (const step of this.pending.splice(0, steps.length)) applyStep(this.durable, step);
    };
  }
}

export function describeState(state: GroupState, above: number): string {
  const { term, vote, commit } = state.hardState;
  const list = state.entries.filter(({ index }) => index > above).map(describeEntry);
  return `${String(term)}/${String(vote)}/${String(commit)} ${list.join(" ")}`;
}
