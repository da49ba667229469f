/**
 * Key ranges: list, register and unregister (contract 6.2, 6.3).
 *
 * Owns this node's routing-mode flags. May call base, machine, control, host and this folder.
 *
 * Invariants: 1. Descriptors are committed on the meta partition; the flag is local and only
 * permits (P-107): it follows the descriptors unless a call on this node left it otherwise. 2. A
 * status says that something was done only when apply said so.
 */
import { compareText } from "../base/bytes.js";
import { isRangeKeySpace } from "../control/ranges.js";
import type { RangeDescriptor } from "../machine/command.js";
import type { ProposalResult } from "../host/results.js";
import type { KeySpaceView, RangesAnswer, RegisterRangeAnswer } from "./administration.js";
import type { Serving } from "./serving.js";

/** Longest time that register waits (contract 6.3). */
const REGISTER_MAX_MS = 10_000;
/**
 * Flags that differ from what the descriptors say, at most; they stem from calls with an open
 * outcome.
 */
const FLAGS_MAX = 1024;
/** Upper bound of the size of a range command beside its key space. */
const COMMAND_BYTES = 64;

type RegisterDone = (answer: RegisterRangeAnswer) => void;

export class KeyRanges {
  private readonly flags = new Map<string, boolean>();

  constructor(private readonly serving: Serving) {}

  list(keySpace: string): RangesAnswer {
    const { node, settings } = this.serving;
    return {
      initialized: node.initialized,
      localEndpoint: settings.peerEndpoint,
      keySpaces: node.initialized ? this.views(keySpace) : [],
    };
  }

  /** The named key space, also when unknown; with "" all known or registered ones in byte order. */
  views(keySpace: string): readonly KeySpaceView[] {
    if (keySpace !== "") return [this.view(keySpace, this.descriptors(keySpace))];
    const spaces = new Map<string, readonly RangeDescriptor[]>();
    for (const known of this.serving.node.metaGroup().machine.meta.keySpaces()) {
      spaces.set(known.keySpace, known.descriptors);
    }
    for (const flagged of this.flags.keys()) if (!spaces.has(flagged)) spaces.set(flagged, []);
    return [...spaces]
      .sort(([left], [right]) => compareText(left, right))
      .map(([name, descriptors]) => this.view(name, descriptors));
  }

  private view(keySpace: string, ranges: readonly RangeDescriptor[]): KeySpaceView {
    return { keySpace, routingMode: this.mode(keySpace), ranges };
  }

  private descriptors(keySpace: string): readonly RangeDescriptor[] {
    return this.serving.node.metaGroup().machine.meta.ranges(keySpace);
  }

  private mode(keySpace: string): "Hash" | "KeyRange" {
    const flag = this.flags.get(keySpace) ?? this.descriptors(keySpace).length > 0;
    return flag ? "KeyRange" : "Hash";
  }

  /** Sets the flag of this node; it is remembered only while the descriptors say otherwise. */
  private setFlag(keySpace: string, flag: boolean): void {
    this.flags.delete(keySpace);
    if (this.descriptors(keySpace).length > 0 === flag) return;
    this.flags.set(keySpace, flag);
    for (const oldest of this.flags.keys()) {
      if (this.flags.size <= FLAGS_MAX) break;
      this.flags.delete(oldest);
    }
  }

  register(keySpace: string, deadlineMs: number, done: RegisterDone): void {
    const home = isRangeKeySpace(keySpace) ? this.serving.hashGroup(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    this.setFlag(keySpace, true);
    const latestMs = this.serving.ports.clock.monotonicMs() + REGISTER_MAX_MS;
    this.serving.node
      .metaGroup()
      .propose(
        { kind: "register-range", keySpace, partitionId: home.partition },
        COMMAND_BYTES + keySpace.length * 3,
        Math.min(deadlineMs, latestMs),
        (result) => {
          const seeded = metaStatus(result) === "done";
          if (!seeded && metaStatus(result) !== "unchanged") {
            return done(this.openRegister(keySpace, result));
          }
          this.setFlag(keySpace, true);
          const status = seeded ? "Seeded" : "AlreadySeeded";
          done(this.registerAnswer(keySpace, status, true, seeded, ""));
        },
      );
  }

  unregister(keySpace: string, deadlineMs: number, done: RegisterDone): void {
    const home = isRangeKeySpace(keySpace) ? this.serving.hashGroup(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    if (this.descriptors(keySpace).some((range) => range.partitionId !== home.partition)) {
      const reason = "A range lies outside the hash partition, and this version moves no data.";
      const answer = this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
      return this.serving.ports.timer.soon(() => done(answer));
    }
    this.serving.node
      .metaGroup()
      .propose(
        { kind: "unregister-range", keySpace },
        COMMAND_BYTES + keySpace.length * 3,
        deadlineMs,
        (result) => {
          const status = metaStatus(result);
          if (status !== "done" && status !== "unchanged") {
            return done(this.openRegister(keySpace, result));
          }
          this.setFlag(keySpace, false);
          done(this.registerAnswer(keySpace, "Removed", true, false, ""));
        },
      );
  }

  private refuseRegister(keySpace: string, done: RegisterDone): void {
    const valid = isRangeKeySpace(keySpace);
    const status = valid ? "KeyRangeDisabled" : "InvalidInput";
    const reason = valid
      ? "The cluster has no data partition."
      : "A key space has 1 to 1024 bytes, does not begin with __svc: and does not end in /meta.";
    const answer = this.registerAnswer(keySpace, status, false, false, reason);
    this.serving.ports.timer.soon(() => done(answer));
  }

  /** The end of a range change that was not applied, or that apply refused. */
  private openRegister(keySpace: string, result: ProposalResult): RegisterRangeAnswer {
    const status = metaStatus(result);
    if (status === "not-founded") {
      const reason = "The cluster has no data partition.";
      return this.registerAnswer(keySpace, "KeyRangeDisabled", false, false, reason);
    }
    if (status !== null) {
      const reason = "The key space was refused.";
      return this.registerAnswer(keySpace, "InvalidInput", false, false, reason);
    }
    const reason = "The change was not confirmed in time; read the ranges again.";
    return this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
  }

  private registerAnswer(
    keySpace: string,
    status: string,
    success: boolean,
    seeded: boolean,
    reason: string,
  ): RegisterRangeAnswer {
    return {
      success,
      status,
      seeded,
      routingMode: this.mode(keySpace),
      descriptorCount: this.descriptors(keySpace).length,
      reason,
    };
  }
}

function metaStatus(result: ProposalResult): string | null {
  if (result.status !== "applied" || result.outcome.kind !== "meta") return null;
  return result.outcome.status;
}
