/**
 * Planted bugs of heirs of locks again: the seeds of `waiting-heirs` have to see them, too. The edits
 * are those that the tests of `test/unit/` catch (beside this file), and, of those that the
 * searches plant into their own leader, the counterparts in the node.
 */
import type { Edit, Planted } from "../edits.js";
import { heirRowBugs } from "./heir-rows.js";
import { heirStepBugs } from "./heir-steps.js";
import { heirBugs as bugsOfSearches } from "./heirs.js";
import type { PlanOverrides } from "../../sim/plan/plan.js";
import { edit, type Floor, type Mutation, plantedIn } from "../../sim/planted/mutation.js";
import type { HeirPlan } from "../../sim/waiting/heirworld.js";
import type { WaitPlan } from "../../sim/waiting/waitplan.js";

const HEIRS = "src/host/waiting/lock-heirs.ts";
const MEMORY = "src/host/waiting/succession.ts";
const GRANTS = "src/host/waiting/lock-grants.ts";

/** Bugs of the rules that only the searches plant. */
const OF_SEARCHES: ReadonlySet<string> = new Set([
  "who extends along an orphaned list is taken for the base, and those before it stay",
  "what an heir says without a token counts",
  "an heir that names no token is refused, maybe told as it was",
  "an heir has the note of the base",
]);

/** What the searches plant into their own leader. */
const OF_LEADERS: readonly Planted[] = [
  {
    name: "what was granted to nobody is handed on in memory",
    edits: [
      edit(
        GRANTS,
        '    this.release(queue, this.unlockOf(queue.resource, owner, queue, token, then), "entry");\n',
        "    const call = this.unlockOf(queue.resource, owner, queue, token, then);\n" +
          "    if (this.heirs.step(queue, owner, token, call)) return;\n" +
          '    this.release(queue, call, "entry");\n',
      ),
    ],
  },
  {
    name: "a step while a forced release is on its way",
    edits: [
      edit(
        HEIRS,
        '      case "force-unlock":\n        return succession.begin("other", null, null);\n',
        '      case "force-unlock":\n        return succession.begin("harmless", null, null);\n',
      ),
    ],
  },
  {
    name: "a step while a try of who is named is on its way",
    edits: [
      edit(
        MEMORY,
        "    return this.passages.length === 0;\n",
        '    return this.passages.every(({ kind }) => kind === "try");\n',
      ),
    ],
  },
  {
    name: "an heir that is tried is passed over",
    edits: [
      edit(
        HEIRS,
        "    const isGone = placeOf(queue, heir) === null && !succession.isTried(heir.owner);\n",
        "    const isGone = placeOf(queue, heir) === null;\n",
      ),
    ],
  },
  {
    name: "what is behind a release goes behind its repeat as well",
    edits: [
      edit(
        HEIRS,
        "    return !succession.isReleased(held.token, held.owner);\n",
        "    return true;\n",
      ),
    ],
  },
];

/** One hot lock that nobody gives up; its leader is cut off now and then in the middle of a list. */
const HEIR_WORLD: HeirPlan = {
  ...{ homePercent: 90, gatherPercent: 0, holdPercent: 20, keepMs: 0, isOrderly: false },
  ...{ twicePercent: 5, vaguePercent: 0, desertPercent: 0, anonymousPercent: 0 },
  ...{ forceMs: 0, cutMs: 700 },
};
const WAITERS: Partial<WaitPlan> = {
  ...{ clients: 16, locks: 1, ephemeralPercent: 0, thinkMs: 20, leasesMs: [1000, 4000] },
  ...{ waitsMs: [4000], cancelPercent: 0, closePercent: 0, newcomerPercent: 1, readerPercent: 3 },
  ...{ workMs: 20, forgetPercent: 0, freezePercent: 10, handOverMs: null, heirs: HEIR_WORLD },
};

/** Holders stand still, and what they say then comes late, to whoever leads by now. */
const LATE: PlanOverrides = {
  ticks: 8000,
  faults: ["kill-leader", "strand-leader", "slow", "clog", "lane-break", "pause-leader"],
  waits: { ...WAITERS, freezePercent: 20, heirs: { ...HEIR_WORLD, holdPercent: 50 } },
};
/** The same, and holders name no token, release twice, or are ended by force. */
const ROUGH: PlanOverrides = {
  ...LATE,
  ...{ faults: [...(LATE.faults ?? []), "isolate"], faultEveryMs: 1500 },
  waits: {
    ...{ ...WAITERS, freezePercent: 20, cancelPercent: 10, closePercent: 10, newcomerPercent: 3 },
    heirs: {
      ...{ ...HEIR_WORLD, holdPercent: 50, twicePercent: 20, vaguePercent: 20 },
      ...{ desertPercent: 10, forceMs: 400 },
    },
  },
};
/** Few wait, each named in one list, and a holder works for longer than that is good for. */
const LONG: PlanOverrides = {
  ...{ ticks: 8000, faults: ["slow"] },
  waits: {
    ...{ ...WAITERS, clients: 6, workMs: 900, leasesMs: [1000], waitsMs: [9000] },
    ...{ freezePercent: 0, heirs: { ...HEIR_WORLD, cutMs: 0 } },
  },
};
/** What is over is collected at once. */
const FORGETFUL: PlanOverrides = {
  ...{ ticks: 8000, faults: ["kill-leader", "strand-leader", "pause-leader", "isolate"] },
  host: { lockRecordRetentionMs: 50, collectEveryMs: 200 },
  waits: {
    ...{ ...WAITERS, clients: 12, thinkMs: 800, leasesMs: [200, 300] },
    heirs: { ...HEIR_WORLD, holdPercent: 5 },
  },
};

/** What shows seldom elsewhere. */
const WORLDS: ReadonlyMap<string, PlanOverrides> = new Map([
  ["the base of an orphaned list moves back upon a late extend", LATE],
  ["a step beyond the end of the list", LONG],
  ["a lock goes although its heirs may hold it", FORGETFUL],
  ["who extends along an orphaned list is taken for the base, and those before it stay", ROUGH],
  ["what an heir says without a token counts", ROUGH],
  ["an heir that names no token is refused, maybe told as it was", ROUGH],
  ["a step while a forced release is on its way", ROUGH],
]);

/** By the first source that is edited. */
function floorOf([first]: readonly Edit[]): Floor {
  return first?.file.startsWith("src/machine/") === true ? "machine" : "host";
}

function again(pitfall: string, { name, edits }: Planted): Mutation {
  const plant = plantedIn(floorOf(edits));
  return plant(pitfall, name, "waiting-heirs", edits, WORLDS.get(name) ?? {});
}

export const heirBugs: readonly Mutation[] = [
  ...[...heirRowBugs, ...heirStepBugs].map((bug) => again(bug.pitfall, bug)),
  ...bugsOfSearches.filter(({ name }) => OF_SEARCHES.has(name)).map((bug) => again("P-068", bug)),
  ...OF_LEADERS.map((bug) => again("P-068", bug)),
];
