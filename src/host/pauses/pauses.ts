/**
 * Why the leader of a group cuts no entries for a moment, although nothing is wrong with it.
 *
 * Owns both pauses. Invariant: what is queued waits as long as one of them is on, and no longer.
 */
import { CutPause } from "./cut-pause.js";
import { EntryPause } from "./entry-pause.js";

export class Pauses {
  /** For whoever reads several groups as of one instant. */
  readonly entry = new EntryPause();
  /** For a coordinated cut. */
  readonly cut = new CutPause();

  isOn(nowMs: number): boolean {
    return this.entry.isOn(nowMs) || this.cut.isOn(nowMs);
  }

  /** To be called in every turn of the group, before entries are cut. */
  pass(nowMs: number): void {
    this.entry.pass(nowMs);
    this.cut.pass(nowMs);
  }

  /** When the next one ends; Infinity without one. */
  get wakeAtMs(): number {
    return Math.min(this.entry.wakeAtMs, this.cut.wakeAtMs);
  }
}
