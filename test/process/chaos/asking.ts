/**
 * What operators ask the nodes of a chaos run over REST, and who leads what.
 *
 * Invariant: nothing is repeated here, and no answer is null.
 */
import type { ChaosNodes } from "./nodes.js";

const CALL_MS = 160_000;

export type Json = Readonly<Record<string, unknown>>;

export class Asking {
  constructor(private readonly nodes: ChaosNodes) {}

  /** A POST when there is a body. Null: no answer. */
  async ask(node: number, path: string, body?: object, waitMs = CALL_MS): Promise<Json | null> {
    const url = `http://127.0.0.1:${this.nodes.ports.get(node)?.http}${path}`;
    const post = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    };
    try {
      const signal = AbortSignal.timeout(waitMs);
      const answer = await fetch(url, { ...(body === undefined ? {} : post), signal });
      return (await answer.json()) as Json;
    } catch {
      return null;
    }
  }

  /** The node that leads a partition, by what `asker` knows; 0 = nobody known. */
  async leaderOf(partition: number, asker: number): Promise<number> {
    const answer = await this.ask(asker, "/v1/cluster/routing");
    const leaders = (answer?.["leaders"] ?? []) as readonly Json[];
    const found = leaders.find(({ partitionId }) => partitionId === partition);
    return this.nodes.nodeServing(String(found?.["endpoint"]));
  }

  /** By what `asker` knows; 0 = nobody known. */
  async metaLeader(asker: number): Promise<number> {
    return Number((await this.ask(asker, "/v1/cluster/overview"))?.["metaLeaderNodeId"] ?? 0);
  }
}
