/**
 * Property Q15, Q16: a lock moves along its committed list and never back. While the list outlives
 * its term nobody but its members is granted the lock before its end, tokens rise, and none is given
 * to two.
 *
 * Judged are the applied commands of all locks, in the order of the log, and rows as they are behind
 * an entry. Invariants: 1. What must come of a command is asked of a naive second version of the
 * rules, and beside it each property is looked at by itself. 2. Commands are told once each, in
 * order.
 */
import { Findings, type Verdict } from "../verdict.js";
import {
  type Deed,
  type DeedEnd,
  NaiveRow,
  ORPHAN_ROWS,
  type OrphanRow,
  type SeenHeir,
  type When,
} from "./naive-row.js";

/** A lock as its row has it. */
export interface SeenRow {
  readonly isHeld: boolean;
  readonly base: SeenHeir;
  readonly endMs: number;
  readonly heirs: readonly SeenHeir[];
  readonly listTerm: number;
  readonly untilMs: number;
  readonly top: bigint;
}

/** What came of an applied command. `token`: of a grant that was made, confirmed or ended. */
export interface Outcome {
  readonly end: DeedEnd;
  readonly token: bigint;
}

export const LIST_FORWARD = { commands: 100 };

/** What is known of a lock from its applied commands. */
interface Known {
  readonly naive: NaiveRow;
  /** Whose each token is. */
  readonly owners: Map<bigint, string>;
  /** Highest token of a holder that was seen. */
  base: bigint;
  top: bigint;
  /** Terms in which its present list was found to have outlived its own. */
  readonly orphanedIn: Set<string>;
}

export class ListForward {
  private readonly findings: Findings;
  private readonly locks = new Map<string, Known>();

  constructor(minimum: Readonly<Record<string, number>> = LIST_FORWARD) {
    this.findings = new Findings("a lock moves along its list", minimum);
  }

  /** What the rules make of a lock up to now; null: nothing was heard of it. */
  at(lock: string): NaiveRow | null {
    return this.locks.get(lock)?.naive ?? null;
  }

  applied(lock: string, when: When, deed: Deed, outcome: Outcome): void {
    const { findings } = this;
    const known = this.known(lock);
    const { naive } = known;
    findings.count("commands");
    this.look(lock, when);
    const isOrphaned = naive.isOrphaned(when);
    const members = naive.line.map(({ token }) => token);
    const where = `${lock}, term ${when.term}, lease time ${when.leaseMs}: ${words(deed)}`;
    const { end, token } = outcome;
    if (end === "locked" && isOrphaned && !members.includes(token)) {
      findings.violation(`${where} is granted token ${token} beside the list ${members.join()}`);
    }
    const due = naive.take(deed, when);
    if (end !== due.end) findings.violation(`${where} ends as "${end}" and not "${due.end}"`);
    else if (due.token !== null && due.token !== token) {
      findings.violation(`${where}: ${end} with token ${token}, not ${due.token}`);
    }
    if (end === "written") {
      findings.count(deed.kind === "set" ? "lists written" : "lists lengthened");
      findings.count("heirs named", Math.max(0, naive.heirs.length - (members.length - 1)));
    }
    if (end === "locked" && "owner" in deed) this.granted(lock, known, token, deed.owner);
  }

  /** The row of a lock behind an entry; null: there is none. */
  row(lock: string, when: When, seen: SeenRow | null): void {
    const known = this.known(lock);
    const { naive } = known;
    if (seen === null) {
      if (naive.isHeld && naive.heirs.length > 0) {
        this.findings.violation(`${lock}: its row is gone, and it has heirs`);
      }
      naive.isHeld = false;
      naive.line = [];
      naive.top = -1n;
      known.top = -1n;
      return;
    }
    this.findings.count("rows");
    // A refusal writes nothing, so what is over by time may stand there yet.
    const isOver = seen.listTerm !== when.term && when.leaseMs >= seen.untilMs;
    const told = rowWords(isOver ? { ...seen, heirs: [] } : seen);
    const due = rowWords({ ...naive, base: naive.base, heirs: naive.heirs });
    if (told !== due) this.findings.violation(`${lock}: its row is ${told}, and not ${due}`);
    if (seen.isHeld) {
      if (seen.base.token < known.base) {
        this.findings.violation(`${lock}: goes back from ${known.base} to ${seen.base.token}`);
      }
      known.base = seen.base.token;
      this.granted(lock, known, seen.base.token, seen.base.owner);
    }
    let last = seen.base.token;
    for (const { token, owner } of seen.heirs) {
      if (token <= last || token > seen.top) {
        this.findings.violation(`${lock}: tokens are out of order in ${told}`);
      }
      last = token;
      this.granted(lock, known, token, owner);
    }
    if (seen.top < known.top) {
      this.findings.violation(`${lock}: its highest token falls from ${known.top} to ${seen.top}`);
    }
    known.top = seen.top;
  }

  /** Somebody serves in `term`: whether the list of the lock has outlived its own. */
  look(lock: string, when: Omit<When, "floor">): boolean {
    const known = this.locks.get(lock);
    if (known === undefined || !known.naive.isOrphaned(when)) return false;
    const { listTerm, untilMs } = known.naive;
    const name = `${listTerm} ${untilMs} ${when.term}`;
    if (!known.orphanedIn.has(name)) {
      known.orphanedIn.add(name);
      this.findings.count("orphaned lists");
    }
    return true;
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }

  private granted(lock: string, { owners }: Known, token: bigint, owner: string): void {
    const other = owners.get(token);
    if (other !== undefined && other !== owner) {
      this.findings.violation(`${lock}: token ${token} is of ${other} and of ${owner}`);
    }
    owners.set(token, owner);
  }

  private known(lock: string): Known {
    let known = this.locks.get(lock);
    if (known === undefined) {
      const hit = (row: OrphanRow): void => this.findings.count(`row: ${row}`);
      const naive = new NaiveRow(hit);
      known = { naive, owners: new Map(), base: -1n, top: -1n, orphanedIn: new Set() };
      this.locks.set(lock, known);
    }
    return known;
  }
}

/** Each row of the table of orphaned lists, as the evidence names it. */
export const ROWS_SEEN = ORPHAN_ROWS.map((row) => `row: ${row}`);

function words(deed: Deed): string {
  return JSON.stringify(deed, (_name, value: unknown) =>
    typeof value === "bigint" ? `${value}` : value,
  );
}

function rowWords({ isHeld, base, endMs, heirs, listTerm, untilMs }: Omit<SeenRow, "top">): string {
  if (!isHeld) return "free";
  const list = heirs.map(({ token, owner, waitId, attempt, leaseMs }) => {
    return `${token} of ${owner} (${waitId}.${attempt}, ${leaseMs} ms)`;
  });
  const held = `${base.token} of ${base.owner} to ${endMs}`;
  if (list.length === 0) return held;
  return `${held}, then ${list.join(", ")}; term ${listTerm}, to ${untilMs}`;
}
