/**
 * Property Q14 to Q16: a leader hands a lock over in memory only to the very attempt that a list of
 * its own term, applied there, names next, upon the release by the holder before it, while nothing
 * is on its way that could say otherwise, and early enough for the lease to end before the list
 * does. And whoever releases is told so when that is committed, not before.
 *
 * Invariants: 1. Each step is judged by what was applied and proposed at its leader in that very
 * turn. 2. A step whose release is not proposed in its turn rests on nothing.
 */
import type { History, LockOperation, LockResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { Findings, type Verdict } from "../verdict.js";
import type { SeenRow } from "./list-forward.js";
import type { Deed, SeenHeir } from "./naive-row.js";

export const STEP_BY_TEXT = { "unlocks answered": 20 };

/** What clocks may drift while a list is good, and what times are rounded by (ms). */
const MARGIN_MS = 100;
const ROUNDING_MS = 1;

/** What a leader has proposed and not yet heard of. */
export interface OnItsWay {
  readonly deed: Deed;
  readonly proposedMs: number;
  /** A step in memory rests on it. */
  isOfStep: boolean;
}

export interface SeenStep {
  readonly lock: string;
  readonly node: number;
  /** In which its leader believes to lead. */
  readonly term: number;
  readonly atMs: number;
  /** By the leader's clock. */
  readonly leaseNowMs: number;
  /** As applied there. */
  readonly row: SeenRow;
  /** The grant that this leader told last, or of the row, if that is later. */
  readonly position: bigint;
  readonly token: bigint;
  /** Whoever is told. */
  readonly to: Pick<SeenHeir, "owner" | "waitId" | "attempt">;
  readonly onItsWay: readonly OnItsWay[];
  /** Somebody else leads in a later term. */
  readonly isDeposed: boolean;
}

/** A step, and the release that it rests on. */
interface OpenStep {
  readonly step: SeenStep;
  readonly before: SeenHeir;
}

export class StepByText {
  private readonly findings: Findings;
  private readonly deposed = new Set<string>();
  private open: OpenStep[] = [];
  /** When which grant was released, as applied first: by lock and token. */
  private readonly releases = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = STEP_BY_TEXT) {
    this.findings = new Findings("steps follow a committed list", minimum);
  }

  /** Somebody is told of a grant ahead of what is applied. */
  stepped(step: SeenStep): void {
    const { findings } = this;
    const { lock, node, term, row, token, to } = step;
    findings.count("steps");
    if (step.isDeposed) {
      findings.count("steps while another leads");
      const name = `${lock} ${node} ${term}`;
      if (!this.deposed.has(name)) findings.count("leaders that stepped while another led");
      this.deposed.add(name);
    }
    if (step.onItsWay.some(({ deed }) => deed.kind === "append")) {
      findings.count("steps while a list is lengthened");
    }
    const where = whereOf(step);
    const at = row.heirs.findIndex((heir) => heir.token === token);
    const heir = row.heirs[at];
    if (heir === undefined) return findings.violation(`${where}: no list that is applied names it`);
    if (row.listTerm !== term) findings.violation(`${where}: the list is of term ${row.listTerm}`);
    const before = at === 0 ? row.base : (row.heirs[at - 1] as SeenHeir);
    if (before.token !== step.position) {
      findings.violation(`${where}: behind ${step.position} the list has another one`);
    }
    const isNamed =
      heir.owner === to.owner && heir.waitId === to.waitId && heir.attempt === to.attempt;
    if (!isNamed) {
      const named = `${heir.owner}, wait ${heir.waitId}, try ${heir.attempt}`;
      findings.violation(`${where}: told is try ${to.attempt} of ${to.owner}, named is ${named}`);
    }
    const endMs = step.leaseNowMs + heir.leaseMs + MARGIN_MS;
    if (endMs > row.untilMs + ROUNDING_MS) {
      findings.violation(`${where}: its lease, to ${endMs}, outlives the list, to ${row.untilMs}`);
    }
    for (const one of step.onItsWay) {
      const why = disturbance(one, step, before);
      if (why !== null) findings.violation(`${where}: ${why} is on its way`);
    }
    const own = step.onItsWay.find((one) => isReleaseOf(one, before) && isNow(one, step));
    if (own === undefined) this.open.push({ step, before });
    else own.isOfStep = true;
  }

  /** A leader proposes something about a lock. */
  proposed(lock: string, node: number, one: OnItsWay): void {
    const at = this.open.findIndex(({ step, before }) => {
      return step.lock === lock && step.node === node && isReleaseOf(one, before);
    });
    const found = this.open[at];
    if (found === undefined || !isNow(one, found.step)) return;
    one.isOfStep = true;
    this.open.splice(at, 1);
  }

  /** Time has gone on: what a step rests on is proposed, or it rests on nothing. */
  look(nowMs: number): void {
    const late = this.open.filter(({ step }) => step.atMs < nowMs);
    if (late.length === 0) return;
    this.open = this.open.filter(({ step }) => step.atMs >= nowMs);
    for (const { step, before } of late) {
      this.findings.violation(`${whereOf(step)}: no release of ${before.token} was proposed`);
    }
  }

  /** The first replica has applied the release of a grant. */
  released(lock: string, token: bigint, atMs: number): void {
    const name = `${lock} ${token}`;
    if (!this.releases.has(name)) this.releases.set(name, atMs);
  }

  /** What those who released were told. */
  judge(history: History): void {
    for (const attempt of history.attempts) {
      const { operation, outcome, returnMs } = attempt;
      if (operation.kind !== "try-unlock" || outcome?.kind !== "ok" || returnMs === null) continue;
      const { type, token } = outcome.result as LockResult;
      if (type !== "Unlocked" || token === null || (operation as LockOperation).ephemeral) continue;
      this.findings.count("unlocks answered");
      const atMs = this.releases.get(`${objectOf(operation) ?? ""} ${token}`) ?? Infinity;
      if (atMs <= returnMs) continue;
      this.findings.violation(`the release of ${token} is answered before it is durable`, [
        attempt,
      ]);
    }
  }

  verdict(): Verdict {
    this.look(Infinity);
    return this.findings.verdict();
  }
}

function whereOf({ lock, node, term, atMs, token }: SeenStep): string {
  return `${lock} at node ${node}, term ${term}, ${atMs.toFixed(1)} ms: step to ${token}`;
}

function isNow({ proposedMs }: OnItsWay, { atMs }: SeenStep): boolean {
  return proposedMs === atMs;
}

function isReleaseOf({ deed, isOfStep }: OnItsWay, { token, owner }: SeenHeir): boolean {
  return !isOfStep && deed.kind === "unlock" && deed.token === token && deed.owner === owner;
}

/** What may move the list otherwise; null: it does not. */
function disturbance(one: OnItsWay, step: SeenStep, before: SeenHeir): string | null {
  const { deed, isOfStep } = one;
  switch (deed.kind) {
    case "set":
      return "another list";
    case "force":
      return "a forced release";
    case "unlock": {
      const isOwn = isReleaseOf(one, before) && isNow(one, step);
      return isOfStep || isOwn ? null : `a release of ${deed.token ?? "any grant"}`;
    }
    case "try": {
      const named = [step.row.base, ...step.row.heirs];
      return named.some(({ owner }) => owner === deed.owner) ? `a try of ${deed.owner}` : null;
    }
    default:
      return null;
  }
}
