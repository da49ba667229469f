/**
 * Takes in nodes that ask to join: has them added to the member list as learners, and tells them
 * the cluster's id once that is committed.
 *
 * Invariants: 1. "accepted" is told only when the member list holds the node with that data
 * directory; a repeat is accepted again. 2. Whoever cannot tell says "retry", with the leader's
 * address when it knows one: "leader=host:port". 3. What apply refuses is refused for good
 * (contract 5.2, P-090, P-096). 4. Requests under way are bounded. 5. An id of a former member is
 * free when no group lists it any more (P-097).
 */
import {
  type Program,
  includes,
  listedProgram,
  programMismatch,
  rangeText,
} from "../../base/levels.js";
import { programsDiffer } from "../../control/founding.js";
import type { ClusterRecord, MetaStatus } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { JoinAnswer, JoinRequest, LoggerPort, PeerStorage } from "../../ports.js";
import type { MetaResult } from "./meta-proposals.js";
import type { ProposeOnMeta } from "./meta-proposer.js";

const UNDER_WAY_MAX = 16;
const PATIENCE_MS = 5000;

const STILL_LISTED = "a partition still lists this node id, or is not seen by its leader yet";
/** Why a node is not taken in, for its operator. */
const REFUSALS: Partial<Record<MetaStatus, string>> = {
  "storage-lost":
    "A member of this node id has other data. Remove it from the cluster first, or use another id.",
  "was-removed":
    "The data directory is of a member that was removed. Start with an empty data directory.",
  "too-many-members": "The cluster has as many members as it may have.",
  "level-unsupported": "The cluster is at a level that the program of this node does not support.",
  invalid: "The node id, endpoint or storage id is not acceptable.",
};

export interface JoiningDeps {
  readonly clusterId: string;
  readonly storage: PeerStorage;
  readonly program: Program;
  /** Ids of the nodes that the cluster was founded with, as this node's identity has them. */
  founders(): readonly number[];
  readonly logger: LoggerPort;
  nowMs(): number;
  soon(callback: () => void): void;
  /** The meta partition as applied here; null before there is one. */
  metaReads(): MetaReads | null;
  /** Who leads the meta partition, as far as is known here; 0 = unknown. */
  metaLeader(): number;
  readonly proposeOnMeta: ProposeOnMeta;
}

export class Joining {
  private underWay = 0;

  constructor(private readonly deps: JoiningDeps) {}

  /** A node asks. `answer` is called once, in no turn. */
  asked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    const { deps } = this;
    const cluster = deps.metaReads()?.cluster() ?? null;
    if (cluster === null) return this.retryLater(answer, "the cluster is not founded yet");
    if (request.storage !== deps.storage) {
      const reason = `The cluster runs with --storage ${deps.storage}, this node with ${request.storage}.`;
      return deps.soon(() => answer({ status: "refused", reason }));
    }
    const mismatch = programMismatch(deps.program, request.program);
    if (mismatch !== null) {
      const reason = `The programs do not fit: ${programsDiffer(deps.program, request.program, mismatch)}.`;
      return deps.soon(() => answer({ status: "refused", reason }));
    }
    const { levels, version } = request.program;
    if (!includes(levels, cluster.level)) {
      const supported = `version ${version} supports level ${rangeText(levels)}`;
      const reason = `The cluster is at level ${cluster.level}; ${supported}.`;
      return deps.soon(() => answer({ status: "refused", reason }));
    }
    if (this.underWay >= UNDER_WAY_MAX) return this.retryLater(answer, "too many nodes join");
    this.underWay++;
    const { nodeId, endpoint, storageId } = request;
    const program = listedProgram(request.program);
    const command = { kind: "add-member", nodeId, endpoint, storageId, ...program } as const;
    deps.proposeOnMeta(command, deps.nowMs() + PATIENCE_MS, (result) => {
      this.underWay--;
      const end = this.answerTo(result, cluster);
      const fields = { node: nodeId, endpoint, answer: end.status };
      deps.logger.log("info", "A node asked to join.", fields);
      answer(end);
    });
  }

  private retryLater(answer: (answer: JoinAnswer) => void, reason: string): void {
    this.deps.soon(() => answer({ status: "retry", reason }));
  }

  private answerTo(result: MetaResult, cluster: ClusterRecord): JoinAnswer {
    if (result.status === "later") return { status: "retry", reason: STILL_LISTED };
    if (result.status !== "applied") return { status: "retry", reason: this.leaderHint() };
    const { outcome } = result;
    if (outcome === "done" || outcome === "unchanged") {
      const { clusterId } = this.deps;
      const founders = this.deps.founders();
      const id = clusterId === "" ? cluster.clusterId : clusterId;
      return { status: "accepted", clusterId: id, level: cluster.level, founders };
    }
    const reason = REFUSALS[outcome];
    if (reason !== undefined) return { status: "refused", reason };
    return { status: "retry", reason: outcome };
  }

  private leaderHint(): string {
    const leader = this.deps.metaLeader();
    const member = leader === 0 ? null : (this.deps.metaReads()?.member(leader) ?? null);
    return member === null ? "no leader is known" : `leader=${member.endpoint}`;
  }
}
