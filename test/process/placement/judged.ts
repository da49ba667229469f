/** A chaos run of given faults on a placed cluster of six nodes, judged as any other. */
import type { Test } from "tap";
import { verdictText } from "../../judge/checkers/verdict.js";
import { runChaos } from "../chaos/chaos.js";
import type { FaultKind } from "../chaos/faults.js";

/** Runs these faults one after the other; every checker has to pass. */
export async function judged(t: Test, seed: number, kinds: readonly FaultKind[]): Promise<void> {
  const said: string[] = [];
  const beganMs = performance.now();
  const outcome = await runChaos({
    ...{ seed, nodes: 6, factor: 3, kinds, durationMs: 0, clients: 10 },
    say: (text) => said.push(`${Math.round(performance.now() - beganMs)} ms ${text}`),
  });
  for (const verdict of outcome.verdicts) {
    t.equal(verdict.kind, "pass", verdict.property);
    if (verdict.kind !== "pass") t.comment(verdictText(verdict));
  }
  t.ok(outcome.passed);
  t.comment(said.join("\n"));
  if (!outcome.passed) t.comment(outcome.text);
}
