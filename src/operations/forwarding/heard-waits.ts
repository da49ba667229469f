/**
 * Requests of other nodes that wait for locks here.
 *
 * Invariants: 1. Each is kept until it is answered, or its link is gone. 2. Who waited by a link
 * that is gone may come back by another way (Q8): nobody cancelled such a wait, and its end does
 * not say so (Q5).
 */
import { LockType } from "../../base/result-types.js";
import type { Leaving } from "../../host/waiting/queue.js";
import type { WaitControl } from "../api/requests.js";
import type { CallAnswer } from "../wire/calls.js";

type Reply = (answer: CallAnswer) => void;

export class HeardWaits {
  /** By node, by the name of the call there. */
  private readonly waiting = new Map<number, Map<string, WaitControl>>();

  /** One that `reply` answers: what it is to be answered with now. */
  begin(from: number, name: string, control: WaitControl, reply: Reply): Reply {
    const names = this.waiting.get(from) ?? new Map<string, WaitControl>();
    this.waiting.set(from, names);
    names.set(name, control);
    return (answer) => {
      control.heldBy(null);
      names.delete(name);
      const hasLink = this.waiting.get(from) === names;
      if (hasLink && names.size === 0) this.waiting.delete(from);
      reply(hasLink || control.leaving !== "left" ? answer : notCancelled(answer));
    };
  }

  /** Who asked waits no more. */
  leave(from: number, name: string, how: Leaving): void {
    this.waiting.get(from)?.get(name)?.leave(how);
  }

  linkDown(from: number): void {
    const lost = this.waiting.get(from)?.values() ?? [];
    this.waiting.delete(from);
    for (const control of [...lost]) control.leave("left");
  }
}

function notCancelled(answer: CallAnswer): CallAnswer {
  const isAborted = answer.kind === "lock" && answer.type === LockType.aborted;
  return isAborted ? { ...answer, type: LockType.mustRetry } : answer;
}
