/**
 * Property: no value of a sequence is handed out under one incarnation by two clusters of a catalogue:
 * a restored sequence has an incarnation that none of the clusters before it had, has or will have
 * (S6, P-137).
 */
import { Findings, type Verdict } from "../verdict.js";

export class IncarnationsApart {
  private readonly findings = new Findings("restored sequences have incarnations of their own", {
    sequences: 1,
  });
  /** By sequence and incarnation, the cluster that had it. */
  private readonly owners = new Map<string, string>();

  /**
   * Incarnations of a sequence that a cluster showed. `isRestored`: it was in the state that the
   * cluster was restored with; one that is made anew begins anew.
   */
  sequence(
    cluster: string,
    name: string,
    incarnations: Iterable<bigint>,
    isRestored: boolean,
  ): void {
    const { findings, owners } = this;
    if (isRestored) findings.count("sequences");
    for (const incarnation of incarnations) {
      const key = `${name} ${incarnation}`;
      const owner = owners.get(key);
      if (owner === undefined) owners.set(key, cluster);
      else if (owner !== cluster && isRestored) {
        const what = `${name} has incarnation ${incarnation} in ${cluster}`;
        findings.violation(`${what}, which it had in ${owner}`);
      }
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
