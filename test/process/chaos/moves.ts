/**
 * What a chaos run does to the members of a placed cluster: nodes leave and come back empty while one of those that take
 * part in a move is killed, disks are lost for good, factors change, all are restarted in turn.
 *
 * Invariants: 1. When `carryOut` resolves, all nodes run and are members. 2. A kill counts only when a move was under way
 * as it came. 3. Nothing is waited for without an end.
 */
import type { Prng } from "../../../src/base/prng.js";
import { sleep } from "../cluster/server-process.js";
import { Asking, type Json } from "./asking.js";
import { type ChaosNodes, WIPED_WORDS } from "./nodes.js";

export const MOVE_KINDS = [
  "leave",
  "leave, kill the coming",
  "leave, kill the going",
  "leave, kill a leader",
  "leave, kill the meta leader",
  "forced removal",
  "lost disk",
  "factor",
  "rolling restart",
] as const;
export type MoveKind = (typeof MOVE_KINDS)[number];

/** A leave waits for targets that have been live for half a minute, perhaps for a new leader of meta to know so (ms). */
const PATIENCE_MS = 240_000;
const LOOK_MS = 20;
/** A factor below three would make a lost disk a loss of data; 0 = that of the cluster. */
const FACTORS = [0, 3, 4, 5];

/** One replica that comes or goes; 0 = nobody. */
interface Moving {
  readonly partition: number;
  readonly coming: number;
}

export class ChaosMoves {
  private readonly asking: Asking;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly prng: Prng,
    private readonly say: (text: string) => void,
  ) {
    this.asking = new Asking(nodes);
  }

  /** Whether it could be done as its name says. Rejects when the cluster does not come back. */
  async carryOut(kind: MoveKind, node: number): Promise<boolean> {
    const { nodes } = this;
    switch (kind) {
      case "leave":
        await this.leave(node);
        return true;
      case "leave, kill the coming":
        return this.leaveAndKill(node, ({ coming }) => Promise.resolve(coming));
      case "leave, kill the going":
        return this.leaveAndKill(node, () => Promise.resolve(node));
      case "leave, kill a leader":
        return this.leaveAndKill(node, ({ partition }) => this.asking.leaderOf(partition, node));
      case "leave, kill the meta leader":
        return this.leaveAndKill(node, () => this.asking.metaLeader(node));
      case "forced removal":
        await nodes.kill(node);
        nodes.empty(node);
        await this.evict(node);
        nodes.launch(node);
        return true;
      case "lost disk":
        await nodes.kill(node);
        nodes.empty(node);
        nodes.launch(node);
        await this.until(`node ${node} names the command`, () => WIPED_WORDS.test(nodes.log(node)));
        await this.evict(node);
        return true;
      case "factor":
        return this.changeFactor(node);
      case "rolling restart":
        for (const each of nodes.all) {
          await nodes.stop(each);
          nodes.launch(each);
          await nodes.allReady();
        }
        return true;
    }
  }

  /** Another node that answers. */
  private other(node: number): number {
    const others = this.nodes.all.filter((each) => each !== node && this.nodes.isRunning(each));
    return others[this.prng.below(others.length)] as number;
  }

  private async until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS;
    while (!(await check())) {
      if (performance.now() > endMs) throw new Error(`not in time: ${what}`);
      await sleep(LOOK_MS);
    }
  }

  private async isMember(node: number): Promise<boolean> {
    const answer = await this.asking.ask(this.other(node), "/v1/cluster/membership");
    const members = (answer?.["members"] ?? [{ nodeId: node }]) as readonly Json[];
    return members.some(({ nodeId }) => nodeId === node);
  }

  /** Replicas that come in the place of one of `node`, or that go from it. */
  private async moving(node: number): Promise<readonly Moving[]> {
    const answer = await this.asking.ask(this.other(node), "/v1/cluster/placement");
    const partitions = (answer?.["partitions"] ?? []) as readonly Json[];
    return partitions.flatMap((partition) => {
      const replicas = partition["replicas"] as readonly Json[];
      const at = (role: string): number => {
        const endpoint = replicas.find((replica) => replica["role"] === role)?.["endpoint"];
        return this.nodes.nodeAt(String(endpoint));
      };
      const isHere = replicas.some(({ endpoint }) => this.nodes.nodeAt(String(endpoint)) === node);
      const coming = at("Learner");
      return isHere && coming !== 0
        ? [{ partition: Number(partition["partitionId"]), coming }]
        : [];
    });
  }

  /** Has `node` leave, kills it the moment that it is out, and lets it come back with an empty directory. */
  private async leave(node: number): Promise<void> {
    const { nodes } = this;
    await this.until(`node ${node} leaves`, async () => {
      const answer = nodes.isRunning(node)
        ? await this.asking.ask(node, "/v1/cluster/leave", {})
        : null;
      if (answer?.["left"] === true) return true;
      this.say(`leave of node ${node}: ${String(answer?.["outcome"] ?? "no answer")}`);
      await sleep(500);
      return !(await this.isMember(node));
    });
    await nodes.kill(node);
    nodes.empty(node);
    nodes.launch(node);
  }

  private async leaveAndKill(
    node: number,
    victimOf: (moving: Moving) => Promise<number>,
  ): Promise<boolean> {
    const left = this.leave(node);
    // A failure is told by the last line.
    left.catch(() => undefined);
    let isOver = false;
    void left.finally(() => (isOver = true)).catch(() => undefined);
    let victim = 0;
    while (victim === 0 && !isOver) {
      const [first] = await this.moving(node);
      if (first !== undefined) victim = await victimOf(first);
      await sleep(LOOK_MS);
    }
    if (victim !== 0) {
      this.say(`kill, node ${victim}`);
      await this.nodes.kill(victim);
      this.nodes.launch(victim);
    }
    await left;
    return victim !== 0;
  }

  /** Removes a member that is gone; the others refuse it while anybody has heard it lately. */
  private async evict(node: number): Promise<void> {
    await this.until(`member ${node} is removed`, async () => {
      const answer = await this.asking.ask(this.other(node), "/v1/cluster/leave", { nodeId: node });
      if (answer?.["left"] === true) return true;
      await sleep(1000);
      return false;
    });
  }

  private async changeFactor(node: number): Promise<boolean> {
    const partitionId = 1 + this.prng.below(this.nodes.partitions);
    const replicationFactor = FACTORS[this.prng.below(FACTORS.length)] as number;
    const leader = await this.asking.metaLeader(node);
    const path = "/v1/cluster/replication-factor";
    const body = { partitionId, replicationFactor };
    const answer = leader === 0 ? null : await this.asking.ask(leader, path, body);
    this.say(`factor of partition ${partitionId}: ${replicationFactor}`);
    return answer?.["success"] === true;
  }
}
