/**
 * When rows past their retention are looked for: one small collect command now and then, per group,
 * and only after traffic.
 *
 * Invariants: 1. A group without traffic since its last pass gets no collect command (P-064). 2.
 * What is dropped is decided in apply, by lease time (P-059); here is only the pace. 3. One collect
 * command of a group is on its way at a time. 4. Ephemeral rows obey the same retention, without
 * the log.
 */
import type { CollectCommand } from "../../machine/commands/command.js";
import type { Replica } from "./replica.js";
import type { Group } from "./group.js";
import type { ProposalResult } from "../requests/results.js";
import type { HostSettings } from "../settings.js";

const COMMAND_BYTES = 64;
const KEY_BYTES = 2304;

export class Retention {
  private after: Uint8Array | null = null;
  private passOpen = false;
  private onItsWay = false;
  /** The group's count of changing commands when the pass began. */
  private countAtPass: number;
  private nextAtMs = 0;
  private ephemeralAfter: Uint8Array | null = null;

  constructor(
    private readonly settings: HostSettings,
    private readonly replica: Replica,
    private readonly group: Group,
  ) {
    // A group that has any history may have rows to drop; one that never had a command has none.
    this.countAtPass = replica.machine.lastStamp.l === 0 ? group.acceptedChanges() : -1;
  }

  /** Called by the housekeeping. */
  check(nowMs: number): void {
    if (nowMs < this.nextAtMs || !this.replica.leadership.isServing) return;
    this.nextAtMs = nowMs + this.settings.collectEveryMs;
    this.collectEphemeral(nowMs);
    if (this.onItsWay) return;
    if (!this.passOpen) {
      const count = this.group.acceptedChanges();
      if (count === this.countAtPass) return;
      this.countAtPass = count;
      this.passOpen = true;
      this.after = null;
    }
    this.send(nowMs);
  }

  private send(nowMs: number): void {
    const { settings, after } = this;
    const command: CollectCommand = {
      kind: "collect",
      after,
      limit: settings.collectLimit,
      lockRetentionMs: settings.lockRecordRetentionMs,
      tombstoneRetentionMs: settings.tombstoneRetentionMs,
    };
    this.onItsWay = true;
    const deadlineMs = nowMs + settings.collectEveryMs;
    const sizeBytes = COMMAND_BYTES + (after === null ? 0 : KEY_BYTES);
    this.group.proposeFinal(command, sizeBytes, deadlineMs, (result) => this.finish(result));
  }

  private finish(result: ProposalResult): void {
    this.onItsWay = false;
    // Without an outcome the slice is repeated: collecting twice does no harm.
    if (result.status !== "applied" || result.outcome.kind !== "collected") return;
    this.after = result.outcome.next;
    this.passOpen = this.after !== null;
  }

  private collectEphemeral(nowMs: number): void {
    const { leadership } = this.replica;
    const table = leadership.ephemeral;
    if (table === null || table.rows === 0) {
      this.ephemeralAfter = null;
      return;
    }
    const { collectLimit, lockRecordRetentionMs } = this.settings;
    const leaseMs = leadership.leaseNowMs(nowMs);
    const slice = table.collect(leaseMs, this.ephemeralAfter, collectLimit, lockRecordRetentionMs);
    this.ephemeralAfter = slice.next;
  }
}
