/**
 * The planted bugs of the whole node; the table of README.md is made from this list.
 */
import { coreBugs } from "./core.js";
import { diskBugs } from "./disk.js";
import { hostBugs } from "./host.js";
import { machineBugs } from "./machine.js";
import type { Mutation } from "./mutation.js";
import { operationBugs } from "./operations.js";

/** All of them, from the bottom of the tower to the top. */
export const mutations: readonly Mutation[] = [
  ...diskBugs,
  ...coreBugs,
  ...machineBugs,
  ...hostBugs,
  ...operationBugs,
];
