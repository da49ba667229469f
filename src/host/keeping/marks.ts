/**
 * Marks of a backup whose partitions are not aligned: each leader puts one into its log when it is
 * asked.
 *
 * Invariants: 1. A mark counts when it is applied where the group is led: index, term, stamp and
 * digest are of that (P-132). 2. Whose mark is not known is asked for another one; more than one of
 * a backup harms nobody. 3. It ends by its bound of time.
 */
import { BACKUP_BARRIER_MS, PARTITIONS_PER_BACKUP_ASK } from "../../base/limits.js";
import type { BackupAnswer } from "../backups/backup-messages.js";
import { type Part, type Stepped, type Undertaking, unavailable } from "./keeper-world.js";

const ANSWER_MS = 5000;
const AGAIN_MS = 200;

/** Parts by the node that leads them, as far as is known; in lists of a bounded length. */
export function byLeader(
  parts: readonly Part[],
  leaderOf: (partition: number) => number,
): { readonly node: number; readonly parts: readonly Part[] }[] {
  const lists: { node: number; parts: Part[] }[] = [];
  const open = new Map<number, Part[]>();
  for (const part of parts) {
    const node = leaderOf(part.partition);
    const list = open.get(node);
    if (list !== undefined && list.length < PARTITIONS_PER_BACKUP_ASK) {
      list.push(part);
      continue;
    }
    const next = [part];
    open.set(node, next);
    lists.push({ node, parts: next });
  }
  return lists;
}

export class Marks {
  private round = 0;
  /** How far the leaders' wall clocks are ahead of the one here. */
  private readonly aheadMs: number[] = [0];
  private readonly untilMs: number;

  constructor(
    private readonly undertaking: Undertaking,
    private readonly parts: readonly Part[],
    private readonly told: () => void,
    private readonly done: (end: Stepped) => void,
  ) {
    this.untilMs = undertaking.world.nowMs() + BACKUP_BARRIER_MS;
    this.attempt();
  }

  private attempt(): void {
    const { undertaking } = this;
    const { world, backupId } = undertaking;
    if (undertaking.isOver()) return this.done(null);
    const left = this.parts.filter(({ mark }) => mark === null);
    const [first] = left;
    if (first === undefined) return this.done(null);
    const nowMs = world.nowMs();
    if (nowMs >= this.untilMs) {
      return this.done(unavailable(`Partition ${first.partition} has no leader that marks it.`));
    }
    const round = ++this.round;
    const lists = byLeader(left, (partition) => world.leaderOf(partition));
    let open = lists.length;
    for (const { node, parts } of lists) {
      const ended = (): void => {
        open--;
        if (open === 0) this.next();
      };
      if (node === 0 || !world.link.reaches(node)) {
        ended();
        continue;
      }
      const partitions = parts.map(({ partition }) => partition);
      const ask = { kind: "mark", backupId, round, partitions } as const;
      const deadlineMs = Math.min(this.untilMs, nowMs + ANSWER_MS);
      world.link.ask(node, ask, deadlineMs, (answer) => {
        this.take(parts, answer);
        ended();
      });
    }
  }

  private take(parts: readonly Part[], answer: BackupAnswer | null): void {
    if (answer?.kind !== "marks") return;
    this.aheadMs.push(answer.wallMs - this.undertaking.world.wallMs());
    for (const { partition, mark } of answer.items) {
      const part = parts.find((each) => each.partition === partition);
      if (part !== undefined) part.mark = mark;
    }
    this.told();
  }

  private next(): void {
    const { world } = this.undertaking;
    if (this.parts.every(({ mark }) => mark !== null)) {
      world.tally.sawClocks(this.aheadMs);
      return this.done(null);
    }
    world.waits.after(AGAIN_MS, () => this.attempt());
  }
}
