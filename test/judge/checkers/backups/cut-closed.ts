/**
 * Property: a coordinated cut is closed: whoever wrote B had not seen A, if B is in it and A is not
 * (7.1, P-134). Of all writes that it has, none was called after anybody knew of one that it lacks.
 *
 * A chain is what one client wrote, each write after the answer to the one before.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenBackup, type SeenWrite, isIn } from "./seen-backups.js";

export class CutClosed {
  private readonly findings = new Findings("coordinated cuts are closed", { cuts: 1 });

  /** `chains`: writes of each client that writes in chains, in order. */
  cut(
    backup: SeenBackup,
    writes: readonly SeenWrite[],
    chains: readonly (readonly SeenWrite[])[] = [],
  ): void {
    const { findings } = this;
    findings.count("cuts");
    let last: SeenWrite | null = null;
    let first: SeenWrite | null = null;
    for (const write of writes) {
      if (isIn(write, backup)) {
        findings.count("writes in it");
        if (last === null || write.calledMs > last.calledMs) last = write;
      } else {
        findings.count("writes behind it");
        if (first === null || write.seenMs < first.seenMs) first = write;
      }
    }
    if (chains.some((chain) => straddles(chain, backup)))
      findings.count("chains over three groups");
    if (last === null || first === null || first.seenMs >= last.calledMs) return;
    const has = `has ${wordsOf(last)}`;
    findings.violation(`backup ${backup.id} ${has}, called after ${wordsOf(first)} was known`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

function wordsOf({ value, partition, index, calledMs, seenMs }: SeenWrite): string {
  const times = `called at ${calledMs.toFixed(1)} ms, known at ${seenMs.toFixed(1)} ms`;
  return `${value.slice(0, 20)} (partition ${partition}, entry ${index}, ${times})`;
}

/** The cut goes between three writes in a row in three groups. */
function straddles(chain: readonly SeenWrite[], backup: SeenBackup): boolean {
  for (let at = 2; at < chain.length; at++) {
    const three = chain.slice(at - 2, at + 1);
    if (new Set(three.map(({ partition }) => partition)).size < 3) continue;
    const count = three.filter((write) => isIn(write, backup)).length;
    if (count > 0 && count < 3) return true;
  }
  return false;
}
