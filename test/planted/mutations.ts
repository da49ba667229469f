/**
 * The planted bugs: each is a bug that some Raft has had. The table in README.md is made from this list.
 */
import { elections } from "./elections.js";
import { logs } from "./logs.js";
import { changes, snapshotsAndReads } from "./members.js";
import type { Mutation } from "./mutation.js";

/** All of them. */
export const mutations: readonly Mutation[] = [
  ...elections,
  ...logs,
  ...snapshotsAndReads,
  ...changes,
];
