/**
 * Planted bugs of grants that are named by their tokens and of forced releases, each caught by a
 * test that is run on a copy of the tree with the bug.
 */
import { edit } from "../edits.js";
import type { RecordBug } from "../records.js";

const AUDIT = "machine/lock-audit.test";
const GRANTS = "machine/decisions.test";
const ADMIN = "operations/waiting/lock-admin.test";

export const forcedBugs: readonly RecordBug[] = [
  {
    pitfall: "P-069",
    name: "a forced release ignores the token",
    file: AUDIT,
    test: "F3 F4 F5 exactly that grant",
    edits: [
      edit(
        "src/machine/locks/locks.ts",
        "  if (row.token !== token) return LockType.invalidOwner;\n  const owner",
        "  const owner",
      ),
    ],
  },
  {
    pitfall: "P-069",
    name: "the row of a forced release is not in its entry",
    file: AUDIT,
    test: "F3 F4 F5 exactly that grant",
    edits: [
      edit(
        "src/machine/locks/force-unlock.ts",
        "const auditId = addLockAudit(context, row, retained);",
        "const auditId = row.resource === '' ? addLockAudit(context, row, retained) : 1;",
      ),
    ],
  },
  {
    pitfall: "P-069",
    name: "an unlock that names a grant ends a later one",
    file: GRANTS,
    test: "Q13 Q17: of one grant alone",
    edits: [
      edit(
        "src/machine/locks/locks.ts",
        'command.kind === "unlock-grant" && command.token !== row.token',
        'command.kind === "unlock-grant" && command.token > row.token',
      ),
    ],
  },
  {
    pitfall: "P-182",
    name: "who was dropped is granted the lock",
    file: ADMIN,
    test: "F4 persistent: who waits is dropped",
    edits: [
      edit(
        "src/operations/locking/force-unlock.ts",
        "request.dropWaiters ? null : queue.first()",
        "queue.first()",
      ),
    ],
  },
];
