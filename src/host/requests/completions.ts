/**
 * The callbacks that a turn has decided, to be run at its end, after every effect of the turn.
 *
 * Invariants: 1. A callback runs exactly once, and never in the turn of the call that took it: what
 * is decided outside a turn waits for the next one. 2. Callbacks run in the order in which they
 * were decided, reads after proposals. 3. What callbacks cause belongs to a later turn.
 */
import { assert } from "../../base/assert.js";
import type {
  ProposalDone,
  ProposalEnds,
  ProposalResult,
  ReadDone,
  ReadResult,
} from "./results.js";

export class Completions {
  private readonly ends = { applied: 0, refused: 0, aborted: 0, unknown: 0 };
  private proposalDones: ProposalDone[] = [];
  private proposalResults: ProposalResult[] = [];
  private readDones: ReadDone[] = [];
  private readResults: ReadResult[] = [];
  private running = false;

  /** `onDecided` is called when the first callback is there; outside a turn it asks for one. */
  constructor(private readonly onDecided: () => void) {}

  get isEmpty(): boolean {
    return this.proposalDones.length === 0 && this.readDones.length === 0;
  }

  get proposalEnds(): ProposalEnds {
    return this.ends;
  }

  proposal(done: ProposalDone, result: ProposalResult): void {
    this.ends[result.status]++;
    if (this.isEmpty) this.onDecided();
    this.proposalDones.push(done);
    this.proposalResults.push(result);
  }

  read(done: ReadDone, result: ReadResult): void {
    if (this.isEmpty) this.onDecided();
    this.readDones.push(done);
    this.readResults.push(result);
  }

  /** Runs everything decided up to now. Returns how many callbacks ran. */
  run(): number {
    if (this.isEmpty) return 0;
    assert(!this.running, "completions do not run inside a completion");
    this.running = true;
    const { proposalDones, proposalResults, readDones, readResults } = this;
    this.proposalDones = [];
    this.proposalResults = [];
    this.readDones = [];
    this.readResults = [];
    for (let at = 0; at < proposalDones.length; at++) {
      (proposalDones[at] as ProposalDone)(proposalResults[at] as ProposalResult);
    }
    for (let at = 0; at < readDones.length; at++) {
      (readDones[at] as ReadDone)(readResults[at] as ReadResult);
    }
    this.running = false;
    return proposalDones.length + readDones.length;
  }
}
