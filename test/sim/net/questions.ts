/**
 * The questions of a node that belongs to no cluster, over the false network: the same contract as
 * the real ones (`src/net/asking.ts`).
 *
 * Invariants: 1. An answer, or that there is none, comes once, in the life of the process that
 * asked. 2. A node that is down, cut off or knows nothing yet gives none in time.
 */
import { failure, ok, type Result } from "../../../src/base/result.js";
import type {
  AskPort,
  JoinAnswer,
  JoinRequest,
  PeerIdentity,
  Question,
} from "../../../src/ports.js";
import type { SimNetwork } from "./network.js";
import { nodeAt } from "../plan/plan.js";
import type { Life } from "../world/process.js";

/** Longest waits for an answer (ms), as the real ones have them. */
const IDENTIFY_WITHIN_MS = 2000;
const JOIN_WITHIN_MS = 12_000;

export class SimQuestions implements AskPort {
  constructor(
    private readonly network: SimNetwork,
    private readonly life: Life,
    private readonly nodeId: number,
  ) {}

  identify(endpoint: string, done: (answer: Result<PeerIdentity, "no-answer">) => void): Question {
    return this.ask(IDENTIFY_WITHIN_MS, done, (take) => {
      this.network.askIdentity(this.nodeId, nodeAt(endpoint), take);
    });
  }

  join(
    endpoint: string,
    request: JoinRequest,
    done: (answer: Result<JoinAnswer, "no-answer">) => void,
  ): Question {
    const seed = nodeAt(endpoint);
    return this.ask<JoinAnswer>(JOIN_WITHIN_MS, done, (take) => {
      this.network.askToJoin(seed, request, (answer) => {
        const why = answer.status === "accepted" ? "" : `: ${answer.reason}`;
        this.network.world.say(this.nodeId, `seed ${seed} answers ${answer.status}${why}`);
        take(answer);
      });
    });
  }

  private ask<Answer>(
    withinMs: number,
    done: (answer: Result<Answer, "no-answer">) => void,
    put: (take: (answer: Answer | null) => void) => void,
  ): Question {
    const { network, life } = this;
    let isOpen = true;
    const settle = (answer: Result<Answer, "no-answer">): void => {
      if (!isOpen) return;
      isOpen = false;
      network.world.cancel(timeout);
      life.enter(() => done(answer));
    };
    const timeout = life.at(withinMs, () => settle(failure("no-answer", "no answer in time")));
    put((answer) => settle(answer === null ? failure("no-answer", "refused") : ok(answer)));
    return {
      cancel: () => {
        isOpen = false;
        network.world.cancel(timeout);
      },
    };
  }
}
