/**
 * Whether a founder with an empty data directory may found its cluster, is to join it, or must
 * wait, as a pure function of what the other founders answered (contract 5.6).
 *
 * Invariants: 1. Facts in, decision out. 2. A cluster is founded only when every other founder
 * answered in this life of the process, as empty or as founding with this very directory: whoever
 * lost its disk meets at least one that knows better, or waits (P-191). 3. All founders of one
 * founding hold the same list of directories.
 */
import { type Program, programMismatch, rangeText } from "../base/levels.js";
import type { FounderDirectory, PeerAddress, PeerIdentity } from "../ports.js";

/** One of the other founders, and what it answered last. */
export interface OtherFounder extends PeerAddress {
  readonly answer: PeerIdentity | null;
  /** Why there is no answer; "" when there is one. */
  readonly silence: string;
}

export interface FoundingFacts {
  readonly nodeId: number;
  readonly storageId: string;
  readonly storage: PeerIdentity["storage"];
  readonly program: Program;
  /** By the list of founders. */
  readonly clusterId: string;
  readonly others: readonly OtherFounder[];
}

export type FoundingStep =
  /** `level`: the highest that all of them support. */
  | {
      readonly kind: "found";
      readonly founders: readonly FounderDirectory[];
      readonly level: number;
    }
  /** The cluster stands, or is founded with another directory of this node. */
  | { readonly kind: "join" }
  /** Who is missing, and why. */
  | { readonly kind: "wait"; readonly missing: readonly string[] };

/** Why the answer of a founder does not count; "" when it does. */
function mistake(facts: FoundingFacts, other: OtherFounder): string {
  const { answer } = other;
  if (answer === null) return other.silence;
  if (answer.nodeId !== other.nodeId) return `node ${answer.nodeId} answers there`;
  if (answer.clusterId !== facts.clusterId) {
    return "it has another --initial-cluster or --initial-cluster-partitions, or old data";
  }
  if (answer.storage !== facts.storage) return `it runs with --storage ${answer.storage}`;
  const mismatch = programMismatch(facts.program, answer.program);
  return mismatch === null ? "" : programsDiffer(facts.program, answer.program, mismatch);
}

/** Which ranges two programs have that cannot belong to one cluster. */
export function programsDiffer(own: Program, other: Program, what: "protocol" | "level"): string {
  const range = (program: Program): string => {
    return rangeText(what === "level" ? program.levels : program.protocols);
  };
  const theirs = `its version ${other.version} supports ${what} ${range(other)}`;
  return `${theirs}, version ${own.version} here ${range(own)}`;
}

/** What an empty founder does next. */
export function nextFoundingStep(facts: FoundingFacts): FoundingStep {
  const { nodeId, storageId, others } = facts;
  const missing: string[] = [];
  const directories: FounderDirectory[] = [{ nodeId, storageId }];
  let agreed: readonly FounderDirectory[] | null = null;
  let { min: levelMin, max: level } = facts.program.levels;
  let isLate = false;
  for (const other of others) {
    const why = mistake(facts, other);
    if (why !== "") missing.push(`${other.nodeId} ${other.endpoint} (${why})`);
    const { answer } = other;
    if (why !== "" || answer === null) continue;
    directories.push({ nodeId: other.nodeId, storageId: answer.storageId });
    levelMin = Math.max(levelMin, answer.program.levels.min);
    level = Math.min(level, answer.program.levels.max);
    if (answer.state === "founded") isLate = true;
    if (answer.state !== "founding") continue;
    const own = answer.founders.find((founder) => founder.nodeId === nodeId);
    if (own?.storageId === storageId) agreed ??= answer.founders;
    else isLate = true;
  }
  if (isLate) return { kind: "join" };
  if (level < levelMin) missing.push("programs that have a level in common");
  if (missing.length > 0) return { kind: "wait", missing };
  const founders = agreed ?? directories.sort((a, b) => a.nodeId - b.nodeId);
  return { kind: "found", founders, level };
}
