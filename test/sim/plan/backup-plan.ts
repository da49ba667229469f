/**
 * What a seed decides about backups: how often which kind is asked for, what is kept, what goes wrong
 * with the directory, and what becomes of them.
 *
 * Pure.
 */
import type { RetentionRules } from "../../../src/backup/gc-plan.js";
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";

/** What is asked of a node about backups. */
export const BACKUP_ASKS = [
  "full",
  "coordinated",
  "incremental",
  "validate",
  "collect",
  "list",
] as const;
export type BackupAskKind = (typeof BACKUP_ASKS)[number];

/** What goes wrong with the directory of backups. */
export type DirectoryFault = "failing" | "full" | "hung" | "flip";

export interface BackupPlan {
  /** Mean pause between two asks (ms). */
  readonly askEveryMs: number;
  readonly asks: Readonly<Record<BackupAskKind, number>>;
  /** Of a hundred asks, those whose caller goes away in the middle. */
  readonly gonePercent: number;
  readonly retention: RetentionRules;
  readonly collectEveryMs: number;
  /** Time of a call to the directory (ms). */
  readonly callMs: number;
  readonly directoryFaults: readonly DirectoryFault[];
  /** Mean time between two of them (ms). */
  readonly directoryFaultEveryMs: number;
  /** null: nothing is signed. */
  readonly key: string | null;
  /** Whoever writes one key after the other, each in another partition. */
  readonly chainWriters: number;
  /** Mean pause between two of their writes (ms). */
  readonly chainThinkMs: number;
  /** How far the wall clocks of nodes are apart from the beginning on (ms). */
  readonly clocksApartMs: number;
  /** Of a hundred phases of taking a backup, those in which the machine that takes it goes down. */
  readonly keeperCrashPercent: number;
  /** Clusters that are restored, at most. */
  readonly restores: number;
  /** The first restored node takes the place of one of the old cluster that is gone for good. */
  readonly takesPlace: boolean;
  /** A node joins a restored cluster. */
  readonly grows: boolean;
  /** In the end the majority of the old cluster is gone, and a new one is made of what is left. */
  readonly isForced: boolean;
  readonly host: Partial<HostSettings>;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

const DIRECTORY_FAULTS: readonly DirectoryFault[] = ["failing", "full", "hung", "flip"];

/** `nodes`: that the cluster is founded with. */
export function backupPlan(prng: Prng, nodes: number): BackupPlan {
  const weight = (): number => (prng.chance(1, 5) ? 0 : 1 + prng.below(4));
  const asks = {
    full: 1 + weight(),
    coordinated: 2 + 2 * weight(),
    incremental: 2 + weight(),
    validate: weight(),
    collect: weight(),
    list: weight(),
  };
  const isPlaced = nodes >= 3 && prng.chance(1, 2);
  return {
    askEveryMs: pick(prng, [400, 800, 1500]),
    asks,
    gonePercent: pick(prng, [0, 5]),
    retention: {
      maxChains: pick(prng, [0, 1, 2, 4]),
      maxAgeMs: pick(prng, [0, 0, 5000]),
      maxBytes: pick(prng, [0, 0, 100_000]),
    },
    collectEveryMs: pick(prng, [0, 3000]),
    callMs: pick(prng, [0.1, 0.5, 3]),
    directoryFaults: DIRECTORY_FAULTS.filter(() => prng.chance(1, 3)),
    directoryFaultEveryMs: pick(prng, [2000, 6000]),
    key: pick(prng, [null, "key of backups"]),
    chainWriters: pick(prng, [1, 2, 3]),
    chainThinkMs: pick(prng, [10, 60, 60]),
    clocksApartMs: pick(prng, [0, 0, 20, 3000, 40_000]),
    keeperCrashPercent: pick(prng, [0, 2, 6]),
    restores: pick(prng, [1, 1, 2, 2, 3]),
    takesPlace: nodes >= 3 && prng.chance(1, 3),
    grows: prng.chance(1, 3),
    isForced: prng.chance(1, 4),
    host: {
      replicationFactor: isPlaced ? 3 : 0,
      initialPartitions: pick(prng, [1, 2, 3, 4]),
      pitrWindowMs: pick(prng, [1000, 10_000, 3_600_000]),
      compactEveryEntries: pick(prng, [10, 100]),
      flushAgeMs: pick(prng, [500, 2000]),
    },
  };
}
