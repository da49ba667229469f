/** What the mover makes of answers that come late, with a group, a target and a meta partition that are none. */
import t from "tap";
import { attempt, moveId, rangeGeneration } from "../../../../src/base/ids.js";
import { CopyPace } from "../../../../src/host/ranges/copy-pace.js";
import { RangeMover, type RangeMoverDeps } from "../../../../src/host/ranges/range-mover.js";
import type { SourceGroup } from "../../../../src/host/ranges/source-group.js";
import { RangeTally } from "../../../../src/host/requests/range-tally.js";
import type { RangeCommand, RangeMove } from "../../../../src/machine/commands/command.js";

const MOVE: RangeMove = {
  ...{ moveId: moveId(7), kind: "split", keySpace: "room", startKey: "room/5", endKey: null },
  ...{ source: 1, target: 4, generation: rangeGeneration(1), attempt: attempt(2) },
  ...{ phase: "copying", reason: "none", sourceDone: false, targetDone: false },
  deadlineLeaseMs: 600_000,
};

/** A mover of a source that the leader before froze for attempt 2, and what it asks for. */
class Asked {
  readonly asks: string[] = [];
  /** Answers what the target was asked last. */
  tell: (status: "closed" | "done") => void = () => undefined;
  private readonly queue: (() => void)[] = [];
  readonly mover: RangeMover;

  constructor() {
    const deps: RangeMoverDeps = {
      nowMs: () => 0,
      soon: (callback) => void this.queue.push(callback),
      wakeAt: () => undefined,
      logger: { log: () => undefined },
      pace: new CopyPace(1 << 20),
      tally: new RangeTally(),
      proposeOnMeta: (command) => {
        const of = "attempt" in command ? command.attempt : "";
        this.asks.push(`${command.kind} ${of}`);
      },
      proposeRange: (_partition, command: RangeCommand, _deadlineMs, done) => {
        this.asks.push(`${command.kind} ${command.attempt}`);
        this.tell = (status) => {
          const outcome = { kind: "range", status, nextImport: 3, keys: 9, dropped: 0 } as const;
          done({ status: "applied", outcome });
        };
      },
    };
    const group: Pick<SourceGroup, "isServing" | "term" | "frozenFor"> = {
      isServing: () => true,
      term: () => 3,
      frozenFor: () => attempt(2),
    };
    this.mover = new RangeMover(deps, group as SourceGroup, MOVE);
  }

  run(): readonly string[] {
    this.mover.tick(0);
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) next();
    return this.asks.splice(0);
  }
}

t.test("P-100 what the leader before froze and the target has closed is cut", (t) => {
  const asked = new Asked();
  t.same(asked.run(), ["range-open 2"], "the target is asked whether it is closed");
  asked.tell("closed");
  t.same(asked.run(), ["cut-range 2"]);
  const open = new Asked();
  open.run();
  open.tell("done");
  t.same(open.run(), ["retry-move 2"], "what is not closed is copied anew");
  t.end();
});

t.test("P-100 an attempt that ended while the target was asked is not cut as the next one", (t) => {
  const asked = new Asked();
  t.same(asked.run(), ["range-open 2"]);
  // The leader before had asked for the next attempt.
  asked.mover.learn({ ...MOVE, attempt: attempt(3) });
  asked.tell("closed");
  t.same(asked.run(), ["retry-move 3"], "nothing is frozen or closed in attempt 3");
  t.end();
});
