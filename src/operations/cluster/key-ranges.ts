/**
 * Key ranges: list, register and unregister (contract 6.2, 6.3).
 *
 * Owns this node's routing-mode flags.
 *
 * Invariants: 1. Descriptors are committed on the meta partition; the flag is local and only
 * permits (P-107): it follows the descriptors unless a call on this node left it otherwise. 2. A
 * status says that something was done only when apply said so; what goes on by itself is waited
 * for. 3. The rows of a node that stops are
 * not read: they may be closed by the time an answer is made.
 */
import { compareText } from "../../base/bytes.js";
import { isRangeKeySpace } from "../../control/ranges.js";
import type { RangeDescriptor } from "../../machine/commands/command.js";
import type { KeySpaceView, RangesAnswer, RegisterRangeAnswer } from "../api/administration.js";
import { changeMeta } from "./meta-change.js";
import { listedSpaces } from "./range-list.js";
import { type RequestContext, withDeadline } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";

/** Longest time that register waits (contract 6.3). */
const REGISTER_MAX_MS = 10_000;
/**
 * Flags that differ from what the descriptors say, at most; they stem from calls with an open
 * outcome.
 */
const FLAGS_MAX = 1024;
type RegisterDone = (answer: RegisterRangeAnswer) => void;

export class KeyRanges {
  private readonly flags = new Map<string, boolean>();

  constructor(private readonly serving: Serving) {}

  list(keySpace: string): RangesAnswer {
    const { node, settings } = this.serving;
    const initialized = node.initialized && !node.closing;
    return {
      initialized,
      localEndpoint: settings.peerEndpoint,
      keySpaces: initialized ? listedSpaces(node, this.views(keySpace)) : [],
    };
  }

  /** Ranges of all key spaces, by the mode in which this node routes their key space. */
  countByMode(): Readonly<Record<"Hash" | "KeyRange", number>> {
    const counts = { Hash: 0, KeyRange: 0 };
    const { initialized, closing } = this.serving.node;
    const views = initialized && !closing ? this.views("") : [];
    for (const { routingMode, ranges } of views) counts[routingMode] += ranges.length;
    return counts;
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
    if (this.serving.node.shuttingDown) return;
    this.flags.delete(keySpace);
    if (this.descriptors(keySpace).length > 0 === flag) return;
    this.flags.set(keySpace, flag);
    for (const oldest of this.flags.keys()) {
      if (this.flags.size <= FLAGS_MAX) break;
      this.flags.delete(oldest);
    }
  }

  register(keySpace: string, context: RequestContext, done: RegisterDone): void {
    const home = isRangeKeySpace(keySpace) ? this.serving.placement.hashHome(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    if (this.serving.node.shuttingDown) return this.refuseStopping(keySpace, done);
    this.setFlag(keySpace, true);
    const latestMs = this.serving.ports.clock.monotonicMs() + REGISTER_MAX_MS;
    const bounded = withDeadline(context, Math.min(context.deadlineMs, latestMs));
    const call = { kind: "register-range", keySpace, partitionId: home } as const;
    changeMeta(this.serving, call, bounded, ({ status }) => {
      const seeded = status === "done";
      if (!seeded && status !== "unchanged") return done(this.openRegister(keySpace, status));
      this.setFlag(keySpace, true);
      const word = seeded ? "Seeded" : "AlreadySeeded";
      done(this.registerAnswer(keySpace, word, true, seeded, ""));
    });
  }

  unregister(keySpace: string, context: RequestContext, done: RegisterDone): void {
    const home = isRangeKeySpace(keySpace) ? this.serving.placement.hashHome(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    if (this.serving.node.shuttingDown) return this.refuseStopping(keySpace, done);
    const call = { kind: "unregister-range", keySpace } as const;
    changeMeta(this.serving, call, context, ({ status, index }) => {
      if (status === "pending") return this.untilGone(keySpace, index, context.deadlineMs, done);
      if (status === "done" || status === "unchanged") done(this.removed(keySpace));
      else done(this.openRegister(keySpace, status));
    });
  }

  private removed(keySpace: string): RegisterRangeAnswer {
    this.setFlag(keySpace, false);
    return this.registerAnswer(keySpace, "Removed", true, false, "");
  }

  /**
   * Waits until the ranges of the key space are back at its hash partition and gone. It leaves
   * since `index`; to register it takes that back.
   */
  private untilGone(keySpace: string, index: number, deadlineMs: number, done: RegisterDone): void {
    const { node, leaders, ports } = this.serving;
    // A node that is far behind may not know of any ranges yet.
    const isAware = (): boolean => node.metaGroup().machine.appliedIndex >= index;
    const isGone = (): boolean =>
      !node.closing && isAware() && this.descriptors(keySpace).length === 0;
    const isBack = (): boolean => {
      return isAware() && !node.metaGroup().machine.meta.isLeaving(keySpace);
    };
    const answer = (): void => {
      if (isGone()) done(this.removed(keySpace));
      else done(this.openRegister(keySpace, "pending"));
    };
    const taken = leaders.wait({
      untilMs: deadlineMs,
      isOver: () => node.closing || isGone() || isBack(),
      resume: answer,
    });
    if (!taken) ports.timer.soon(answer);
  }

  private refuseStopping(keySpace: string, done: RegisterDone): void {
    this.serving.ports.timer.soon(() => done(this.openRegister(keySpace, null)));
  }

  private refuseRegister(keySpace: string, done: RegisterDone): void {
    const valid = isRangeKeySpace(keySpace);
    // What this node has not heard of yet, a joiner say, may well be there.
    const status = valid ? "Indeterminate" : "InvalidInput";
    const reason = valid
      ? "This node does not know the partitions of the cluster yet; ask again."
      : "A key space has 1 to 1024 bytes, does not begin with __svc: and does not end in /meta.";
    const answer = this.registerAnswer(keySpace, status, false, false, reason);
    this.serving.ports.timer.soon(() => done(answer));
  }

  /** The end of a range change that was not applied, or that apply refused. */
  private openRegister(keySpace: string, status: string | null): RegisterRangeAnswer {
    if (status === "not-founded") {
      const reason = "The cluster has no data partition.";
      return this.registerAnswer(keySpace, "KeyRangeDisabled", false, false, reason);
    }
    if (status === "range-elsewhere") {
      const reason = "A range lies outside the hash partition, and at this level none is moved.";
      return this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
    }
    if (status === "pending") {
      const reason = "Keys are still being moved back; ask again to wait for it.";
      return this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
    }
    if (status === "busy") {
      const reason = "A range of the key space is being split, merged or moved.";
      return this.registerAnswer(keySpace, "QuiesceWindowOpen", false, false, reason);
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
    status: RegisterRangeAnswer["status"],
    success: boolean,
    seeded: boolean,
    reason: string,
  ): RegisterRangeAnswer {
    if (this.serving.node.shuttingDown) {
      // A node that stops closes its rows: what is said of them follows from the status.
      const isRanged = success && status !== "Removed";
      const routingMode = isRanged ? "KeyRange" : "Hash";
      return { success, status, seeded, routingMode, descriptorCount: isRanged ? 1 : 0, reason };
    }
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
