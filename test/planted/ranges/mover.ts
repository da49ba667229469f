/**
 * Planted bugs of whoever carries a move out, each caught by a test of `test/unit/host/ranges/` that is
 * run on a copy of the tree with the bug.
 */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const MOVER = "src/host/ranges/range-mover.ts";

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
];
