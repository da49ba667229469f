/**
 * Planted bugs of when watches are told, which few seeds of a world would show: each is caught by a
 * test of `test/unit/`.
 */
import { type RecordBug, recordBug } from "../records.js";

const EXPIRIES = "host/watching/expiries.test";
const FEED = "src/host/watching/feed.ts";
const FILTERS = "src/host/watching/filters.ts";
const LATE_ENDS = "host/watching/late-ends.test";
const TOLD = "src/host/watching/told.ts";

export const watchTimingBugs: readonly RecordBug[] = [
  recordBug(
    "P-186",
    "rows that alone tell of ends are written over once leases are looked after",
    LATE_ENDS,
    "W2 W4 an end that a reading",
    [FILTERS, "return !this.hasEnds(this.since);", "return !this.knowsLeases;"],
  ),
  recordBug(
    "P-186",
    "an end of before what was read is told to who read that",
    LATE_ENDS,
    "W2 W4 nor while another",
    [TOLD, "(skip ?? positions).get(batch.partition)", "skip?.get(batch.partition)"],
  ),
  recordBug(
    "P-186",
    "another leader than was asked is waited for to announce commits",
    "host/watching/late-commits.test",
    "a leader that was asked",
    [
      "src/host/watching/late-commits.ts",
      "if (announcer === undefined || announcer.node !== group.leaderNode()) return Infinity;",
      "if (announcer === undefined) return Infinity;",
    ],
  ),
  recordBug(
    "P-013",
    "commits are announced when nobody wants to know any more",
    "host/cluster.test",
    "W1 W15 followers hear",
    [
      "src/host/group/group-peers.ts",
      "if (nowMs < announcesUntilMs && core",
      "if (announcesUntilMs > 0 && nowMs > 0 && core",
    ],
  ),
  recordBug(
    "P-188",
    "the end behind one that came is looked at with the next look",
    EXPIRIES,
    "W11 the end behind one",
    [
      FEED,
      "    // The end behind it is the one to be waited for.\n    this.ears.leaseNoted(partition);\n",
      "",
    ],
  ),
];
