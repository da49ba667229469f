/**
 * Planted bugs of the leader that hands over along heirs, each caught by a test that is run on a
 * copy of the tree with the bug. Those of the rules are in `heir-rows.ts`, those of the searches in
 * `heirs.ts`.
 */
import { recordBug, type RecordBug } from "../records.js";

const STEPS = "src/host/waiting/lock-heirs.ts";
const RELEASES = "src/host/waiting/lock-steps.ts";
const MEMORY = "src/host/waiting/succession.ts";
const QUEUES = "src/host/waiting/lock-queues.ts";
const HERE = "operations/waiting/lock-heirs.test";
const REFUSED = "operations/waiting/lock-heirs-refused.test";

export const heirStepBugs: readonly RecordBug[] = [
  recordBug("P-068", "a step to an heir whose list is not applied yet", HERE, "Q16 a list that", [
    STEPS,
    "    this.decisions.write(command, (isApplied) => {\n",
    [
      "    if (!isSet && succession.row !== null) {",
      "      let { top } = succession.row;",
      "      const named = added.map((ask) => ({ ...ask, token: (top += 1n) }));",
      "      const heirs = [...succession.row.heirs, ...named];",
      "      const { term: listTerm } = succession;",
      "      succession.row = { ...succession.row, heirs, listTerm, untilMs: Infinity };",
      "    }",
      "    this.decisions.write(command, (isApplied) => {\n",
    ].join("\n"),
  ]),
  recordBug("P-068", "a step while the list is written anew", HERE, "Q16 no step is made", [
    STEPS,
    'succession.begin(isSet ? "other" : "harmless", null, null);',
    'succession.begin("harmless", null, null);',
  ]),
  recordBug("P-068", "a step over an heir that went", HERE, "an heir that went", [
    STEPS,
    "    const heir = succession?.next ?? null;\n    if (succession === null || heir === null || !succession.isUndisturbed) return false;",
    [
      "    const living = succession?.ahead.find((each) => placeOf(queue, each) !== null);",
      "    const heir = living ?? null;",
      "    if (succession === null || heir === null || !succession.isUndisturbed) return false;",
    ].join("\n"),
  ]),
  recordBug("P-065", "a step beyond the end of the list", HERE, "a step is not made", [
    MEMORY,
    "    return this.row !== null && isInTime(this.row, heir, leaseNowMs, MARGIN_MS);\n",
    "    return this.row !== null && (leaseNowMs > 0 || isInTime(this.row, heir, 0, MARGIN_MS));\n",
  ]),
  recordBug(
    "P-069",
    "a release is answered before it is durable",
    HERE,
    "Q15 Q16 the next holder",
    [
      STEPS,
      "    this.grants.tell(queue, place, heir.token, heir.leaseMs, leaseNowMs);\n",
      [
        "    this.grants.tell(queue, place, heir.token, heir.leaseMs, leaseNowMs);",
        "    step.isAnswered = true;",
        '    const told = { kind: "decided", type: LockType.unlocked, token, leaseLeftMs: null } as const;',
        "    this.ports.timer.soon(() => call.then({ ...told, leaseAtMs: leaseNowMs }));\n",
      ].join("\n"),
    ],
  ),
  recordBug("P-068", "a list names the acquire, and not the try", HERE, "a later try is no heir", [
    STEPS,
    "    if (place?.trial?.attempt !== heir.attempt || this.group.isHandingOver()) return false;",
    "    if (place === null || this.group.isHandingOver()) return false;",
  ]),
  recordBug("P-042", "a position outlives its leadership", HERE, "P-042 with a leadership", [
    QUEUES,
    "    this.queues.clear();\n",
    [
      "    for (const [key, { succession }] of [...this.queues]) {",
      "      if (succession === null) this.queues.delete(key);",
      "    }\n",
    ].join("\n"),
  ]),
  recordBug("P-069", "a step beside another release of the grant", HERE, "Q13 a second release", [
    MEMORY,
    '    if (kind !== "harmless") this.passages.push(passage);',
    '    if (kind !== "harmless" && kind !== "unlock") this.passages.push(passage);',
  ]),
  recordBug("P-183", "a release that is refused counts as a step", REFUSED, "Q3 a release", [
    RELEASES,
    "      if (step.isTold && this.stepping.isCurrent(queue)) {\n",
    "      if (this.stepping.isCurrent(queue)) {\n",
  ]),
  recordBug(
    "P-069",
    "a release that was stepped upon is carried on",
    REFUSED,
    "Q15 whoever let go",
    [
      RELEASES,
      'step.isTold && decision.kind !== "decided"',
      'step.isTold && decision.kind === "refused"',
    ],
  ),
  recordBug("P-183", "a release that is refused on its way is forgotten", REFUSED, "Q16 the rel", [
    RELEASES,
    "        if (this.isLost(step, decision)) return this.sendAgain(step);\n",
    "",
  ]),
  recordBug("P-068", "who comes back waits for the list on its way", REFUSED, "Q8 who comes back", [
    MEMORY,
    "coming = isAnew ? added : [...coming, ...added];",
    "coming = isAnew ? coming : this.ahead;",
  ]),
  recordBug("P-182", "an heir that is cancelled stays in the list", HERE, "Q9 an heir that is", [
    QUEUES,
    "    this.grants.heirs.doubt(place.queue);\n",
    "",
  ]),
  recordBug("P-068", "a list that was cleared is followed on", REFUSED, "Q3 lists that are", [
    STEPS,
    "      if (isCurrent) this.grants.note(queue);\n      succession.endList(list);\n",
    "      succession.endList(list);\n",
  ]),
  recordBug("P-183", "before it serves a leader knows who holds a lock", REFUSED, "Q3 a leader", [
    STEPS,
    "    if (this.group.isServing()) this.grants.note(queue);\n    queue.held = held;\n",
    "    this.grants.note(queue);\n    if (queue.held === null) queue.held = held;\n",
  ]),
];
