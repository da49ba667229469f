/** Every planted bug that a test of one room has to see, in the order of the table in README.md. */
import { backupBugs } from "../backups/machine.js";
import { forcedBugs } from "../locks/forced.js";
import { heirRowBugs } from "../locks/heir-rows.js";
import { heirStepBugs } from "../locks/heir-steps.js";
import { hostingBugs } from "../hosting.js";
import { placementBugs } from "../placement.js";
import { placerBugs } from "../placer.js";
import { rangeBugs } from "../ranges/machine.js";
import { moverBugs } from "../ranges/mover.js";
import { movedRangeBugs } from "../ranges/requests.js";
import { type RecordBug, recordBugs } from "../records.js";
import { reportBugs } from "../reports.js";
import { jointWatchingBugs } from "./joint-watching.js";
import { waitingBugs } from "./waiting.js";
import { watchTimingBugs } from "./watch-timing.js";
import { watchingBugs } from "./watching.js";

export const bugsOfRecords: readonly RecordBug[] = [
  ...recordBugs,
  ...hostingBugs,
  ...placementBugs,
  ...placerBugs,
  ...backupBugs,
  ...reportBugs,
  ...movedRangeBugs,
  ...rangeBugs,
  ...moverBugs,
  ...waitingBugs,
  ...forcedBugs,
  ...heirRowBugs,
  ...heirStepBugs,
  ...watchingBugs,
  ...watchTimingBugs,
  ...jointWatchingBugs,
];
