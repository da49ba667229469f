/**
 * Takes a level that was raised for the cluster over into one group: its leader proposes an entry
 * that says so, and every replica switches at that entry (contract 5.5 U2).
 *
 * Invariants: 1. Proposed by the serving leader, and only what the cluster's record permits. 2. One
 * entry at a time. 3. This node's directory says that it may hold the level before the entry is
 * proposed.
 */
import { level as levelOf } from "../../base/ids.js";
import type { SetLevelCommand } from "../../machine/commands/command.js";
import type { LevelMark } from "../storage/level-mark.js";
import type { Group } from "./group.js";
import type { Replica } from "./replica.js";

const COMMAND_BYTES = 32;
const PATIENCE_MS = 10_000;

export class GroupLevel {
  private isOnItsWay = false;

  constructor(
    private readonly replica: Pick<Replica, "leadership" | "machine">,
    private readonly group: Pick<Group, "proposeFinal">,
    private readonly mark: LevelMark,
  ) {}

  /** The cluster is at `level`. Called by the housekeeping. */
  check(level: number, nowMs: number): void {
    const { leadership, machine } = this.replica;
    if (machine.level >= level || this.isOnItsWay || !leadership.isServing) return;
    if (!this.mark.covers(level)) return;
    this.isOnItsWay = true;
    const command: SetLevelCommand = { kind: "set-level", level: levelOf(level) };
    this.group.proposeFinal(command, COMMAND_BYTES, nowMs + PATIENCE_MS, () => {
      this.isOnItsWay = false;
    });
  }
}
