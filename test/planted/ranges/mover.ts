/**
 * Planted bugs of whoever carries a move out, each caught by a test of `test/unit/host/ranges/` that is
 * run on a copy of the tree with the bug.
 */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const MOVER = "src/host/ranges/range-mover.ts";
const STEPS = "host/ranges/mover-steps.test";

export const moverBugs: readonly RecordBug[] = [
  {
    name: "what was closed in an attempt is cut in the next one",
    pitfall: "P-100",
    edits: [
      edit(
        MOVER,
        'const isDue = status === "closed" && this.known === attempt;',
        'this.claimed = this.move.attempt;\n      const isDue = status === "closed";',
      ),
    ],
    file: "host/ranges/mover.test",
    test: "P-100 an attempt that ended",
  },
  {
    name: "what was frozen is opened when its time is over, before the next attempt counts",
    pitfall: "P-100",
    edits: [
      edit(
        MOVER,
        "    this.deps.tally.attemptEnded(reason);\n    this.drop();\n",
        "    this.deps.tally.attemptEnded(reason);\n    this.drop();\n" +
          "    if (this.frozenAtMs !== Infinity) {\n" +
          "      const above = attemptOf(this.of.attempt + 1);\n" +
          '      const command = { kind: "range-unfreeze", ...this.of, attempt: above } as const;\n' +
          "      this.group.propose(command, this.deps.nowMs() + PATIENCE_MS, () => undefined);\n" +
          "    }\n",
      ),
    ],
    file: STEPS,
    test: "P-100 what was frozen for too long",
  },
  {
    name: "what changed last is not brought along",
    pitfall: "P-101",
    edits: [
      edit(
        MOVER,
        "    if (this.endsPass) return this.close(nowMs);\n",
        "    if (this.passes >= 0) return this.close(nowMs);\n",
      ),
    ],
    file: STEPS,
    test: "P-101 what changed until the freeze",
  },
  {
    name: "what is on its way when keys are counted counts as counted",
    pitfall: "P-106",
    edits: [
      edit(
        "src/host/ranges/range-sizes.ts",
        "const changes = group.appliedChanges();",
        "const changes = group.acceptedChanges();",
      ),
    ],
    file: "host/ranges/frames.test",
    test: "P-106 keys whose lease ended",
  },
  {
    name: "a key space that leaves is tried once",
    pitfall: "P-103",
    edits: [
      edit(
        "src/host/ranges/range-planner.ts",
        "return moves.length + leaving > 0;",
        "return moves.length > 0 || leaving < 0;",
      ),
    ],
    file: "host/ranges/planner.test",
    test: "a key space leaves although",
  },
];
