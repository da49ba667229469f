/**
 * Whether this node and another can work together by what their programs support, and which
 * protocol they speak with each other (contract 5.5 U7).
 *
 * Invariants: 1. Two nodes speak the lower of their two highest protocols. 2. A refusal is logged
 * with the ranges of both, once for each node and version of its program; what is remembered for
 * that is bounded.
 */
import {
  type Mismatch,
  type Program,
  highestCommon,
  includes,
  programMismatch,
  rangeText,
} from "../../base/levels.js";
import { MEMBERS_MAX } from "../../base/limits.js";
import type { LoggerPort, PeerAddress } from "../../ports.js";

export class PeerPrograms {
  /** What was logged last of a node whose program does not fit. */
  private readonly told = new Map<number, string>();

  constructor(
    private readonly own: Program,
    private readonly logger: LoggerPort,
  ) {}

  /**
   * Why the node `by` is not let in; null when its program is no reason. `level`: of the cluster,
   * as far as it is known here.
   */
  judge(by: PeerAddress, program: Program, level: number): Mismatch | null {
    const lacksLevel = includes(program.levels, level) ? null : "level";
    const mismatch = programMismatch(this.own, program) ?? lacksLevel;
    if (mismatch !== null) this.tell("This node refuses another one.", by, mismatch, program);
    return mismatch;
  }

  /** The node `by` does not let this one in. */
  refused(by: PeerAddress, refusal: Mismatch, program: Program): void {
    this.tell("Another node refuses this one.", by, refusal, program);
  }

  /** What is spoken with a node that was let in. */
  protocolWith(program: Program): number {
    return highestCommon(this.own.protocols, program.protocols) ?? this.own.protocols.min;
  }

  private tell(event: string, by: PeerAddress, refusal: Mismatch, other: Program): void {
    const { nodeId: node, endpoint } = by;
    const words = `${event} ${refusal} ${other.version}`;
    if (this.told.get(node) === words) return;
    this.told.delete(node);
    this.told.set(node, words);
    for (const oldest of this.told.keys()) {
      if (this.told.size <= MEMBERS_MAX) break;
      this.told.delete(oldest);
    }
    this.logger.log("error", event, {
      node,
      endpoint,
      refusal,
      ownVersion: this.own.version,
      ownProtocols: rangeText(this.own.protocols),
      ownLevels: rangeText(this.own.levels),
      version: other.version,
      protocols: rangeText(other.protocols),
      levels: rangeText(other.levels),
    });
  }
}
