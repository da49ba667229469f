/**
 * The planted bugs of the whole node; the table of README.md is made from this list.
 */
import { backupBugs } from "../../planted/backups/worlds.js";
import { watchingBugs } from "../../planted/list/worlds.js";
import { heirBugs } from "../../planted/locks/worlds.js";
import { coreBugs } from "./core.js";
import { diskBugs } from "./disk.js";
import { hostBugs } from "./host.js";
import { levelBugs } from "./levels.js";
import { machineBugs } from "./machine.js";
import { memberBugs } from "./members.js";
import type { Mutation } from "./mutation.js";
import { WHY_OPEN } from "./open.js";
import { operationBugs } from "./operations.js";
import { rangeBugs } from "./ranges.js";
import { placementBugs, replicaBugs } from "./replicas.js";

/** All of them, from the bottom of the tower to the top. */
const planted: readonly Mutation[] = [
  ...diskBugs,
  ...coreBugs,
  ...machineBugs,
  ...memberBugs,
  ...levelBugs,
  ...hostBugs,
  ...replicaBugs,
  ...placementBugs,
  ...operationBugs,
  ...rangeBugs,
  ...backupBugs,
  ...watchingBugs,
  ...heirBugs,
];

/** Those that are caught. */
export const mutations = planted.filter(({ name }) => !WHY_OPEN.has(name));

/** Those that no seed has shown yet. */
export const openMutations = planted.filter(({ name }) => WHY_OPEN.has(name));
