/** The operations on backups, as data. They go to the first endpoint of -c, or to --node. */
import { BACKUP_COLLECTION, BACKUP_INFO, RESTORED } from "../../api/backups.js";
import { described, either, list, object, TEXT, type Schema } from "./schemas.js";
import type { CommandSpec } from "./command.js";
import { command } from "./entry.js";

/** A document, or why there is none. */
function orFailure(document: Schema): Schema {
  return either(document, object({ outcome: TEXT, message: TEXT }));
}

const ID = "0b8d6c1e-4a57-4a3c-9a51-6f6e1d2c3b4a";

export const BACKUP_COMMANDS: readonly CommandSpec[] = [
  command({
    name: "--backup-full",
    area: "Backup",
    meaning: "back up every partition",
    examples: ["svc-cli --backup-full"],
    answers: [`Full backup ${ID} completed`],
    module: "backups",
    limited: false,
    document: orFailure(described(BACKUP_INFO)),
  }),
  command({
    name: "--backup-coordinated",
    area: "Backup",
    meaning: "back up every partition at one cluster-wide instant",
    examples: ["svc-cli --backup-coordinated"],
    answers: [`Coordinated backup ${ID} completed`],
    module: "backups",
    limited: false,
    document: orFailure(described(BACKUP_INFO)),
  }),
  command({
    name: "--backup-incremental",
    area: "Backup",
    meaning: "back up what changed since a parent",
    required: ["--parent-backup-id"],
    examples: [`svc-cli --backup-incremental --parent-backup-id ${ID}`],
    answers: [`Incremental backup ${ID} completed`],
    module: "backups",
    limited: false,
    document: orFailure(described(BACKUP_INFO)),
  }),
  command({
    name: "--list-backups",
    area: "Backup",
    meaning: "list the catalog",
    examples: ["svc-cli --list-backups"],
    answers: ["(table)", "No backups found in catalog."],
    module: "backups",
    limited: false,
    document: orFailure(list(described(BACKUP_INFO))),
  }),
  command({
    name: "--backup-chain",
    valueName: "leaf-id",
    area: "Backup",
    meaning: "the backups that a restore of this one would read",
    examples: [`svc-cli --backup-chain ${ID}`],
    answers: [`Backup chain for ${ID} (2 entries)`],
    module: "backups",
    limited: false,
    document: orFailure(list(described(BACKUP_INFO))),
  }),
  command({
    name: "--backup-gc",
    area: "Backup",
    meaning: "remove leftovers and what retention lets go",
    optional: ["--backup-gc-dry-run"],
    examples: ["svc-cli --backup-gc --backup-gc-dry-run", "svc-cli --backup-gc --yes"],
    answers: ["Reclaimed: 0 orphan/leftover artifact(s), 1 retained-out backup(s), 4096 byte(s)."],
    module: "backups",
    question: "Delete backups that retention lets go?",
    limited: false,
    document: orFailure(described(BACKUP_COLLECTION)),
  }),
  command({
    name: "--restore",
    valueName: "leaf-id",
    area: "Backup",
    meaning: "write a new storage directory on the server from a chain",
    required: ["--target-dir"],
    optional: ["--target-time-ms", "--sequence-skip"],
    examples: [`svc-cli --restore ${ID} --target-dir /restores/today`],
    answers: ["Restore completed to /restores/today"],
    module: "backups",
    limited: false,
    document: orFailure(described(RESTORED)),
  }),
];
