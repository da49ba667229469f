/**
 * The clusters of a world that share a directory of backups, each with what is known of it: the first,
 * and those that were restored.
 */
import type { Leaderships } from "../../judge/checkers/clients/leaderships.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { Server } from "../world/server.js";
import type { StatesAtCut } from "./first-states.js";
import { type Beginning, Shadows } from "./shadow.js";
import type { Truth } from "./truth.js";

export class KnownCluster {
  /** What its objects began with; null: with nothing. */
  states: StatesAtCut | null = null;
  private shadowsMade: Shadows | null = null;

  constructor(
    readonly name: string,
    readonly clusterId: string,
    readonly servers: readonly Server[],
    readonly truth: Truth,
    readonly history: HistoryRecorder,
    readonly leaderships: Leaderships,
    private readonly founders: readonly number[],
    private readonly partitions: number,
    private readonly beginning: Beginning | null,
  ) {}

  get shadows(): Shadows {
    const { truth, founders, partitions, beginning } = this;
    return (this.shadowsMade ??= new Shadows(truth, founders, partitions, beginning));
  }
}
