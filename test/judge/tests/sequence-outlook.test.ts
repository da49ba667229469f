/** What attempts on a sequence may help to be true: whatever they ask for, they are judged. */
import t from "tap";
import type { AllocationResult, Attempt } from "../history.js";
import { helpOfAttempt } from "../models/sequence-outlook.js";
import { allocate, create, historyOf } from "./hand-made.js";

function creationBy(increment: bigint): Attempt {
  const made = create("unknown");
  const [attempt] = historyOf([[0, 0, "a", made]]).attempts;
  if (attempt?.operation.kind !== "create-sequence") throw new Error("a creation");
  return { ...attempt, operation: { ...attempt.operation, increment } };
}

void t.test("a creation by nothing leads to no value, and breaks no checker", (t) => {
  const { operation, result } = allocate(1, "12..12 r1");
  const steps = [0n, 1n, 5n].map(
    (increment) =>
      helpOfAttempt(creationBy(increment), operation, result as AllocationResult).kinds,
  );
  t.equal(steps[0], steps[2], "12 is no multiple of 5, and of 0 there are none");
  t.not(steps[1], steps[0], "it is one of 1");
  t.end();
});
