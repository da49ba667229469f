/**
 * The operations of svc-cli, all of them, in the order in which help lists them.
 *
 * Owns the joined table. Invariants: 1. Names and aliases are unique (held by a test).
 */
import { CLUSTER_COMMANDS } from "./cluster.js";
import type { CommandSpec } from "./command.js";
import { BACKUP_COMMANDS } from "./backups.js";
import { DATA_COMMANDS } from "./data.js";
import { DIAGNOSIS_COMMANDS } from "./diagnosis.js";
import { SEQUENCE_COMMANDS } from "./sequences.js";
import { WATCH_COMMANDS } from "./watching.js";

export const COMMANDS: readonly CommandSpec[] = [
  ...DATA_COMMANDS,
  ...SEQUENCE_COMMANDS,
  ...WATCH_COMMANDS,
  ...CLUSTER_COMMANDS,
  ...BACKUP_COMMANDS,
  ...DIAGNOSIS_COMMANDS,
];

const BY_NAME = new Map<string, CommandSpec>();
for (const spec of COMMANDS) {
  for (const name of [spec.name, ...spec.aliases]) BY_NAME.set(name, spec);
}

/** The operation that the option `name` selects, or null. */
export function findCommand(name: string): CommandSpec | null {
  return BY_NAME.get(name) ?? null;
}
