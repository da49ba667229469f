/**
 * Property: one turn of a node looks at a bounded number of rows for reads of many keys, all callers of the node together
 * (P-193): who waits for a turn waits for nobody's thousands of dead rows.
 *
 * Invariant: rows are counted where they are looked at, not by the count of the code that is checked.
 */
import { TURN_VISITS } from "../../../../src/operations/admission/slices.js";
import { Findings, type Verdict } from "../verdict.js";

/** What the reads of one turn did. */
export interface ReadTurnSeen {
  /** Rows looked at, a large one counted once more for each KiB. */
  readonly visits: number;
  /** Of the largest one. */
  readonly largest: number;
  /** Rows of deleted and expired keys among them. */
  readonly dead: number;
  /** Reads that go on in a later turn. */
  readonly waiting: number;
}

export class ReadTurns {
  isBroken = false;
  private readonly findings = new Findings("a turn reads few rows", {});

  turn(node: number, atMs: number, { visits, largest, dead, waiting }: ReadTurnSeen): void {
    const { findings } = this;
    findings.count("visits", visits);
    findings.count("dead rows", dead);
    if (visits >= TURN_VISITS) findings.count("full turns");
    if (waiting > 0) findings.count("reads left waiting", waiting);
    if (waiting > 1) findings.count("turns with several readers");
    if (visits <= TURN_VISITS + largest) return;
    this.isBroken = true;
    const most = `${TURN_VISITS} and one row of ${largest}`;
    findings.violation(`node ${node} makes ${visits} visits at ${atMs.toFixed(1)} ms, not ${most}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
