/**
 * Planted bugs of waiting for locks, each caught by a test of `test/unit/` that is run on a copy of the
 * tree with the bug, as those of the records are.
 */
import { type RecordBug, recordBug } from "../records.js";

const HERE = "operations/waiting/lock-waits.test";
const AFAR = "operations/waiting/lock-waits-afar.test";
const STREAMS = "grpc/waits.test";
const CLIENT = "client/waited-leases.test";
const QUEUES = "src/host/waiting/lock-queues.ts";
const GRANTS = "src/host/waiting/lock-grants.ts";

export const waitingBugs: readonly RecordBug[] = [
  recordBug("P-183", "who waits stands in the queue a turn after it was taken in", HERE, "Q3 Q6", [
    QUEUES,
    "    queue.join(place, waiter);\n",
    "    const [at, late] = [queue, place];\n    this.ports.timer.soon(() => at.join(late, waiter));\n",
  ]),
  recordBug("P-183", "a release and the next grant are two entries", HERE, "Q4 the release", [
    GRANTS,
    "    this.decisions.make(queue.isEphemeral, { ...call, then: released }, next);",
    "    const parted = (decision: Decision): void => {\n" +
      "      released(decision);\n" +
      "      if (next !== null) this.decisions.make(queue.isEphemeral, next, null);\n" +
      "    };\n" +
      "    this.decisions.make(queue.isEphemeral, { ...call, then: parted }, null);",
  ]),
  recordBug(
    "P-183",
    "a newcomer is proposed although somebody waits",
    HERE,
    "Q3 nobody finds the lock free",
    [
      "src/operations/locks.ts",
      "  if (queue === null || queue.isHeldBy(request.owner)) return tryBehind(counted, request);",
      "  if (queue === null || queue.living > 0) return changeLock(counted, request);",
    ],
  ),
  recordBug("P-183", "the last to come is the first to be granted", HERE, "Q1 Q2 Q3", [
    "src/host/waiting/queue.ts",
    "    for (const place of this.places.values()) if (place.living > 0) return place;\n",
    "    for (const place of [...this.places.values()].reverse()) if (place.living > 0) return place;\n",
  ]),
  recordBug(
    "P-182",
    "whoever was cancelled while it was tried is granted the lock",
    HERE,
    "Q9 P-182",
    [
      GRANTS,
      "    if (place.living === 0) return this.giveBack(queue, place, token, isFresh);\n",
      "",
    ],
  ),
  recordBug(
    "P-182",
    "what was granted to a closed connection is not given back",
    AFAR,
    "P-182 cancelled while the grant",
    [
      "src/operations/dispatch.ts",
      "      if ((context.wait?.leaving ?? null) === null || !isGranted",
      "      if (isGranted || !isGranted",
    ],
  ),
  recordBug("P-181", "items that wait are counted as in flight", STREAMS, "B5 P-181", [
    "src/grpc/batch/batch.ts",
    "    return this.inflight < maxInflightPerStream",
    "    return this.inflight + this.waiting < maxInflightPerStream",
  ]),
  recordBug("P-184", "a waited lease begins when the wait does", HERE, "Q3 Q6", [
    GRANTS,
    "    const command = tryCommand(queue.resource, place);\n",
    "    const askedMs = place.waiters[0]?.sinceMs ?? beginMs;\n" +
      "    const waitedMs = Math.floor(this.ports.clock.monotonicMs() - askedMs);\n" +
      "    const expiresMs = Math.max(1, place.expiresMs - waitedMs);\n" +
      "    const command = { ...tryCommand(queue.resource, place), expiresMs };\n",
  ]),
  recordBug("P-184", "a client counts a waited lease from the answer", CLIENT, "P-184 Q6", [
    "src/client/locks/lock-acquisition.ts",
    "Math.min(nowMs, trace.sentMs + waitedMs * (1 - WAIT_DRIFT_SHARE));\n",
    "nowMs;\n",
  ]),
  recordBug(
    "P-182",
    "places outlive the leadership",
    AFAR,
    "Q11 with a leadership",
    [QUEUES, "        place.isOut = true;\n        this.kept.release(place);\n", ""],
    [QUEUES, "    this.queues.clear();\n    this.grants", "    this.grants"],
  ),
  recordBug("P-064", "nobody looks up when the lease that is waited for ends", HERE, "Q3 Q6", [
    GRANTS,
    "    this.wakeAt(queue, nowMs + leftMs);\n",
    "    if (leftMs < 0) this.wakeAt(queue, nowMs + leftMs);\n",
  ]),
  recordBug("P-183", "a lock whose lease is over is told to be free", HERE, "Q3 nobody finds", [
    "src/operations/locks.ts",
    "  const queue = isOver ? queueOf(attempt, request) : null;\n",
    "  const queue = isOver ? null : queueOf(attempt, request);\n",
  ]),
  recordBug(
    "P-182",
    "a place goes with its connection if it is tried just then",
    HERE,
    "Q8 a place is kept also",
    [
      QUEUES,
      "    if (isKept) return this.kept.keep(place);\n    if (place.tries > 0)",
      "    if (isKept && place.tries === 0) return this.kept.keep(place);\n    if (place.tries > 0)",
    ],
  ),
  recordBug(
    "P-182",
    "a release tries for a place whose try is on its way",
    HERE,
    "P-182 a place is not granted",
    [GRANTS, "place?.tries === 0 ?", "place !== null ?"],
  ),
  recordBug(
    "P-183",
    "whoever waits in vain leaves the lock free for readers",
    HERE,
    "Q3 who waits and",
    [
      "src/operations/locks.ts",
      '    if (isWaitedFor) return attempt.fail("mustRetry", "overloaded", null);\n',
      "    void isWaitedFor;\n",
    ],
  ),
  recordBug(
    "P-049",
    "an answer waits for what is given back, however long",
    AFAR,
    "C9 P-182 the answer",
    [
      "src/operations/serving/by-deadline.ts",
      "Math.max(0, deadlineMs - clock.monotonicMs());",
      "Math.max(1e9, deadlineMs - clock.monotonicMs());",
    ],
  ),
  recordBug(
    "P-184",
    "who came after a lease began believes it as a whole",
    HERE,
    "Q6 T4 who shares",
    [
      "src/operations/locking/lock-wait.ts",
      "Math.max(0, end.leaseLeftMs - lateMs);",
      "Math.max(0, end.leaseLeftMs - Math.min(0, lateMs));",
    ],
  ),
  recordBug(
    "P-182",
    "who waited by a link that is gone is told that it was cancelled",
    AFAR,
    "Q5 Q8 Q9 who waited",
    [
      "src/operations/forwarding/heard-waits.ts",
      "? { ...answer, type: LockType.mustRetry } : answer;",
      "? { ...answer, type: LockType.aborted } : answer;",
    ],
  ),
  recordBug(
    "P-182",
    "a try is given up while it may be granted yet",
    HERE,
    "P-182 what a slow try",
    [GRANTS, "      deadlineMs: Infinity,\n", "      deadlineMs: beginMs + this.settings.tryMs,\n"],
  ),
  recordBug(
    "P-183",
    "who is taken for the holder is tried past all others",
    HERE,
    "Q2 who comes back",
    [
      QUEUES,
      "    const waiter = new Waiter",
      '    if (queue.isHeldBy(wish.owner) && place.tries === 0) this.grants["try"](queue, place);\n' +
        "    const waiter = new Waiter",
    ],
  ),
  recordBug("P-183", "a planned move leaves the queue behind", AFAR, "Q11 a planned move", [
    QUEUES,
    "    if (isNew) this.takeOver(queue);\n",
    "",
  ]),
  recordBug("P-042", "places of an older leadership are taken over", AFAR, "Q11 a planned move", [
    "src/host/waiting/carried-places.ts",
    "if (term !== this.term + 1 || ",
    "if (",
  ]),
  recordBug(
    "P-183",
    "who is carried over and does not come back stands there for good",
    AFAR,
    "Q11 who does not come back",
    [QUEUES, "      this.kept.keep(queue.add(carried));", "      queue.add(carried);"],
  ),
];
