/**
 * Raises the level of the cluster, by order of an operator or by itself, and knows how long that
 * has been possible (contract 5.5 U1, U6).
 *
 * Invariants: 1. Decided on the leader of the meta partition, by state that a round confirmed; the
 * member list that was looked at is the one that the command is bound to. 2. A member is counted by
 * its line and by its last handshake: one that was started with an earlier program after its line
 * was written holds it up. 3. This node's directory says that it may hold the level before that is
 * proposed. 4. Every call ends once, in no turn.
 */
import { level as levelOf } from "../../base/ids.js";
import { type Program, listedProgram } from "../../base/levels.js";
import type { ClusterRecord, Member, RaiseLevelCommand } from "../../machine/commands/command.js";
import { supports } from "../../machine/meta/meta-members.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { LoggerPort } from "../../ports.js";
import type { Group } from "../group/group.js";
import type { LevelFacts, ProposalResult } from "../requests/results.js";
import type { LevelMark } from "../storage/level-mark.js";

/** A member that does not support the level. */
export interface FinalizeBlocker {
  readonly nodeId: number;
  readonly endpoint: string;
  readonly version: string;
  readonly levelMin: number;
  readonly levelMax: number;
}

/** How a call ended, with the level of the cluster then. */
export interface FinalizeResult {
  readonly status: "Finalized" | "AlreadyFinalized" | "InvalidInput" | "RefusedMembers" | "Refused";
  readonly level: number;
  readonly blockers: readonly FinalizeBlocker[];
  readonly reason: string;
}

/** "moved": this node does not lead the meta partition, and proposed nothing. */
export type FinalizeDone = (result: FinalizeResult | "moved") => void;

export interface FinalizingDeps {
  readonly nodeId: number;
  readonly program: Program;
  /** After so long it is done by itself; null = never. */
  readonly autoFinalizeMs: number | null;
  readonly logger: LoggerPort;
  readonly levelMark: Pick<LevelMark, "covers">;
  /** The records of the meta partition; null before there are any, and when this node stops. */
  metaReads(): MetaReads | null;
  /** The meta partition as hosted here; null before it is. */
  metaGroup(): Group | null;
  /** What a linked node supports; null when it is not linked. */
  programOf(node: number): Program | null;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

/** A call that waits until the data directory of this node says the level. */
interface Waiting {
  readonly level: number;
  readonly deadlineMs: number;
  readonly go: () => void;
  readonly end: (how: FinalizeResult | "moved") => void;
}

const COMMAND_BYTES = 64;
/** The member list may change between the look at it and the commit. */
const TRIES_MAX = 4;
/** An operator is told when it is due for so long (ms; contract 5.5 U6). */
export const FINALIZE_WITHIN_MS = 48 * 3_600_000;
const AUTO_PATIENCE_MS = 10_000;

export class Finalizing {
  private seen: { readonly version: number; readonly level: number } | null = null;
  private levelMax = 0;
  /** Since when a higher level is possible, and since when this node could raise it; or not. */
  private possibleSinceMs = Infinity;
  private leadingSinceMs = Infinity;
  private nextTryMs = 0;
  private isTold = false;
  private readonly waiting = new Set<Waiting>();
  /** Whose end of leadership ends what waits. */
  private hooked: Group | null = null;

  constructor(private readonly deps: FinalizingDeps) {}

  /** `level`: what to raise to; 0 = the present level + 1. */
  finalize(level: number, deadlineMs: number, done: FinalizeDone): void {
    const { deps } = this;
    const group = deps.metaGroup();
    if (group === null || !group.isLeader()) return deps.soon(() => done("moved"));
    group.read(deadlineMs, (read) => {
      if (read.status !== "confirmed") return done("moved");
      this.decide(group, level, deadlineMs, TRIES_MAX, done);
    });
  }

  /** Once per tick. */
  tick(nowMs: number): void {
    const { autoFinalizeMs, logger } = this.deps;
    this.look(nowMs);
    const cluster = this.follow();
    const isPossible = cluster !== null && this.levelMax > cluster.level;
    if (!isPossible) {
      this.possibleSinceMs = Infinity;
      this.leadingSinceMs = Infinity;
      this.isTold = false;
      return;
    }
    this.possibleSinceMs = Math.min(this.possibleSinceMs, nowMs);
    if (nowMs - this.possibleSinceMs >= FINALIZE_WITHIN_MS && !this.isTold) {
      this.isTold = true;
      const fields = { featureLevel: cluster.level, possible: this.levelMax };
      logger.log("warn", "All members support a higher level: finalize the upgrade.", fields);
    }
    const serves = this.deps.metaGroup()?.isServing() === true;
    this.leadingSinceMs = serves ? Math.min(this.leadingSinceMs, nowMs) : Infinity;
    if (autoFinalizeMs === null || nowMs < this.nextTryMs) return;
    if (nowMs - this.leadingSinceMs < autoFinalizeMs) return;
    this.nextTryMs = nowMs + AUTO_PATIENCE_MS;
    this.finalize(cluster.level + 1, this.nextTryMs, (result) => {
      const { status } = result === "moved" ? { status: result } : result;
      const raised =
        result === "moved" ? {} : { featureLevel: result.level, reason: result.reason };
      logger.log("info", "The level was to be raised by itself.", { status, ...raised });
    });
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.waiting.size > 0;
  }

  private look(nowMs: number): void {
    for (const one of [...this.waiting]) {
      const isCovered = this.deps.levelMark.covers(one.level);
      if (!isCovered && nowMs < one.deadlineMs) continue;
      this.waiting.delete(one);
      const why = "The data directory does not take the level.";
      this.deps.soon(() => {
        if (isCovered) one.go();
        else one.end(ended("Refused", one.level - 1, why));
      });
    }
  }

  /** `go` is called when this node may write `level`; else how it ended is told. */
  private whenCovered(group: Group, waiting: Waiting): void {
    if (this.deps.levelMark.covers(waiting.level)) return waiting.go();
    if (this.hooked !== group) {
      this.hooked = group;
      // Neither a node that stops nor one that follows ever comes to `tick` with it.
      const moved = (): void => {
        const all = [...this.waiting];
        this.waiting.clear();
        for (const { end } of all) this.deps.soon(() => end("moved"));
      };
      group.addReset(moved);
      group.addStopHook(moved);
    }
    this.waiting.add(waiting);
    this.deps.tickSoon();
  }

  facts(nowMs: number): LevelFacts {
    const pendingMs = Math.max(0, nowMs - this.possibleSinceMs);
    return { level: this.seen?.level ?? 0, levelMax: this.levelMax, pendingMs };
  }

  /** Reads the member list anew when it, or the level, changed. */
  private follow(): ClusterRecord | null {
    const reads = this.deps.metaReads();
    const cluster = reads?.cluster() ?? null;
    if (reads === null || cluster === null) return null;
    const { membershipVersion: version, level } = cluster;
    if (this.seen?.version === version && this.seen.level === level) return cluster;
    this.seen = { version, level };
    this.levelMax = Math.min(...reads.members().map((member) => member.levelMax));
    return cluster;
  }

  private decide(
    group: Group,
    level: number,
    deadlineMs: number,
    tries: number,
    done: FinalizeDone,
  ): void {
    const reads = this.deps.metaReads();
    const cluster = reads?.cluster() ?? null;
    if (reads === null || cluster === null) {
      return done(ended("Refused", 0, "The cluster is not initialised yet."));
    }
    const present = cluster.level;
    const to = level === 0 ? present + 1 : level;
    if (level < 0 || to > present + 1) {
      return done(ended("InvalidInput", present, `The level is 0 to ${present + 1}.`));
    }
    if (to <= present) return done(ended("AlreadyFinalized", present));
    const members = reads.members();
    const blockers = this.blockers(members, to);
    // Nobody asked for more than there is.
    if (level === 0 && blockers.length === members.length) {
      return done(ended("AlreadyFinalized", present));
    }
    if (blockers.length > 0) {
      const count = `${blockers.length} of ${members.length} members`;
      const reason = `${count} do not support level ${to}.`;
      return done({ ...ended("RefusedMembers", present, reason), blockers });
    }
    const { membershipVersion } = cluster;
    const command: RaiseLevelCommand = { kind: "raise-level", to: levelOf(to), membershipVersion };
    const go = (): void => {
      group.propose(command, COMMAND_BYTES, deadlineMs, (result) => {
        const status = statusOf(result);
        const isAgain = status === "stale" || status === "level-unsupported";
        if (isAgain && tries > 1) return this.decide(group, level, deadlineMs, tries - 1, done);
        done(this.endOf(status, present, to));
      });
    };
    this.whenCovered(group, { level: to, deadlineMs, go, end: done });
  }

  private endOf(status: string, present: number, to: number): FinalizeResult | "moved" {
    switch (status) {
      case "done":
        return ended("Finalized", to);
      case "unchanged":
        return ended("AlreadyFinalized", to);
      case "not-leader":
        return "moved";
      case "unknown":
        return ended("Refused", present, "The commit was not confirmed in time.");
      default:
        return ended("Refused", present, `The change was not made: ${status}.`);
    }
  }

  private blockers(members: readonly Member[], to: number): FinalizeBlocker[] {
    const found: FinalizeBlocker[] = [];
    for (const member of members) {
      const { nodeId, endpoint } = member;
      const own = nodeId === this.deps.nodeId ? this.deps.program : this.deps.programOf(nodeId);
      const shown = own === null || !supports(member, levelOf(to)) ? member : listedProgram(own);
      if (supports(shown, levelOf(to))) continue;
      const { levelMin, levelMax, version } = shown;
      found.push({ nodeId, endpoint, version, levelMin, levelMax });
    }
    return found;
  }
}

function ended(status: FinalizeResult["status"], level: number, reason = ""): FinalizeResult {
  return { status, level, blockers: [], reason };
}

/** The outcome of apply, or how the proposal ended without one. */
function statusOf(result: ProposalResult): string {
  if (result.status === "applied") {
    return result.outcome.kind === "meta" ? result.outcome.status : "unknown";
  }
  return result.status === "refused" ? result.reason : result.status;
}
