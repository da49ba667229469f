/**
 * A request that somebody beside the clients makes of a node, recorded in the history as theirs are.
 *
 * Invariant: an ask without an answer stays unknown.
 */
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { outcomesOf } from "../../judge/answers.js";
import type { HistoryRecorder, KvSetOperation, Operation } from "../../judge/history.js";
import { keyRequest, setRequest } from "../clients/kv-requests.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

export interface Recording {
  readonly world: World;
  readonly plan: Plan;
  readonly history: HistoryRecorder;
  /** Whose asks they are. */
  readonly name: string;
}

type Told = (answer: DataAnswer) => void;

function ask(
  { world, plan, history, name }: Recording,
  { running, nodeId }: Server,
  request: DataRequest,
  operation: Operation,
  told: Told,
): void {
  if (running === null || history.isFull()) return;
  const { life, operations } = running;
  const id = history.call(name, nodeId, operation, world.nowMs);
  life.enter(() => {
    const deadlineMs = life.monotonicMs() + plan.requestTimeoutMs;
    const context = { deadlineMs, forwardHops: 0, requestId: `${name}-${id}` };
    operations.execute(request, context, (answer) => {
      const [outcome] = outcomesOf(answer, 1);
      if (outcome !== undefined) history.answered(id, outcome, world.nowMs);
      told(answer);
    });
  });
}

/** Sets a persistent key, whatever it was. */
export function setKey(
  to: Recording,
  server: Server,
  key: string,
  value: string,
  told: Told = () => undefined,
): void {
  const plain = { compareValue: null, compareRevision: 0n, expiresMs: 0, flags: 0 };
  const operation: KvSetOperation = { kind: "kv-set", key, ephemeral: false, value, ...plain };
  ask(to, server, setRequest(operation), operation, told);
}

/** Gets or deletes a persistent key. */
export function onKey(
  to: Recording,
  server: Server,
  kind: "kv-get" | "kv-delete",
  key: string,
  told: Told = () => undefined,
): void {
  const operation = { kind, key, ephemeral: false, expiresMs: 0, revision: -1n } as const;
  ask(to, server, keyRequest(operation), operation, told);
}
