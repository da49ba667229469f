/**
 * Real server processes that are one cluster, for tests: ports, starts, calls, what the member list
 * says.
 */
import { join } from "node:path";
import { ServerProcess } from "../cluster/server-process.js";
import { sleep } from "../../doubles/net/world.js";

/** How long a test waits for what takes a failover or an election (ms). */
const PATIENCE_MS = 30_000;

/**
 * Starts node `nodeId` with its data below `directory`, four partitions and a cleartext REST port.
 */
export function startNode(
  directory: string,
  nodeId: number,
  ...flags: readonly string[]
): ServerProcess {
  return new ServerProcess([
    "--grpc-port=off",
    "--https-port=off",
    "--http-port=0",
    "--initial-cluster-partitions=4",
    `--raft-nodeid=${nodeId}`,
    `--storage-path=${join(directory, `node${nodeId}`)}`,
    ...flags,
  ]);
}

/** The JSON body of the answer; a POST where there is a body to send. */
export async function call(node: ServerProcess, path: string, body?: object): Promise<unknown> {
  const { http } = await node.addresses();
  const init =
    body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        };
  const answer = await fetch(`http://${http}${path}`, init);
  return answer.json();
}

/** Asks until `type` is the outcome: a failover takes its time. */
export async function callUntil(
  node: ServerProcess,
  path: string,
  body: object,
  type: number,
): Promise<{ readonly type: number; readonly value?: string }> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = (await call(node, path, body)) as { type: number; value?: string };
    if (answer.type === type || performance.now() > endMs) return answer;
    await sleep(50);
  }
}

interface Membership {
  readonly members: readonly { readonly nodeId: number; readonly role: string }[];
}

/** The member list as `node` knows it, as soon as it is `wanted`, or as it is in the end. */
export async function rolesUntil(node: ServerProcess, wanted: string): Promise<string> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const { members } = (await call(node, "/v1/cluster/membership")) as Membership;
    const roles = members.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
    if (roles === wanted || performance.now() > endMs) return roles;
    await sleep(50);
  }
}
