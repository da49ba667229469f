/**
 * Splits, merges and the end of a key space by hand: every status of contract 6.3 with what it
 * says about the map, and calls that wait for moves which go on by themselves.
 */
import t from "tap";
import type {
  BeginMoveCommand,
  MetaCommand,
  MoveEnd,
  RangeMove,
} from "../../../src/machine/commands/command.js";
import type {
  MergeRangesAnswer,
  SplitRangeAnswer,
} from "../../../src/operations/api/administration.js";
import { Bench, set } from "../../doubles/operations/fixture.js";
import { administer, view } from "../../doubles/operations/administration.js";

const CALL_MS = 20_000;

/** A node that leads everything; the steps of a move are the test's to take. */
class Moves {
  readonly bench = new Bench({ rangeSplitMinSize: 2, rangeMergeMinSize: 10 });

  constructor() {
    this.bench.holdMoves();
  }

  get meta() {
    return this.bench.node.metaGroup().machine.meta;
  }

  register(keySpace: string): void {
    const partitionId = this.bench.partitionOf(keySpace);
    this.decide({ kind: "register-range", keySpace, partitionId });
  }

  decide(command: MetaCommand): void {
    const { bench } = this;
    const group = bench.node.metaGroup();
    group.propose(command, 500, bench.nowMs + 10_000, () => undefined);
    bench.world.settle();
  }

  private call<Answer>(
    start: (done: (answer: Answer) => void, deadlineMs: number) => void,
    withinMs = CALL_MS,
  ): Answer[] {
    const answers: Answer[] = [];
    start((answer) => void answers.push(answer), this.bench.nowMs + withinMs);
    this.pass(20);
    return answers;
  }

  pass(ms: number): void {
    this.bench.world.pass(ms, 10);
  }

  split(keySpace: string, splitKey: string, withinMs = CALL_MS): SplitRangeAnswer[] {
    return this.call((done, deadlineMs) => {
      const context = { deadlineMs, forwardHops: 0, requestId: "t" };
      administer(this.bench.operations, "ranges.split", { keySpace, splitKey }, context, done);
    }, withinMs);
  }

  merge(withinMs = CALL_MS): MergeRangesAnswer[] {
    return this.call((done, deadlineMs) => {
      const context = { deadlineMs, forwardHops: 0, requestId: "t" };
      administer(this.bench.operations, "ranges.merge", {}, context, done);
    }, withinMs);
  }

  change(
    kind: "ranges.register" | "ranges.unregister",
    keySpace: string,
    withinMs = CALL_MS,
  ): object[] {
    return this.call<object>((done, deadlineMs) => {
      const context = { deadlineMs, forwardHops: 0, requestId: "t" };
      administer(this.bench.operations, kind, { keySpace }, context, done);
    }, withinMs);
  }

  move(keySpace: string): RangeMove {
    const move = this.meta.move(keySpace);
    if (move === null) throw new Error(`a range of ${keySpace} moves`);
    return move;
  }

  cut(keySpace: string): void {
    const { moveId: id, attempt } = this.move(keySpace);
    this.decide({ kind: "cut-range", keySpace, moveId: id, attempt });
  }

  abort(keySpace: string, reason: MoveEnd): void {
    this.decide({ kind: "abort-move", keySpace, moveId: this.move(keySpace).moveId, reason });
  }

  finish(keySpace: string, ...sides: readonly ("source" | "target")[]): void {
    const { moveId: id } = this.move(keySpace);
    for (const side of sides) this.decide({ kind: "finish-move", keySpace, moveId: id, side });
  }

  /** A key space with some keys, in one range. */
  space(keySpace: string): void {
    for (const key of ["a", "b", "n", "o"]) this.bench.ask(set(`${keySpace}/${key}`, "v"));
    this.register(keySpace);
  }

  /** Such a one in two ranges, both of them settled. */
  spaceInTwo(keySpace: string): void {
    this.space(keySpace);
    this.split(keySpace, `${keySpace}/n`);
    this.cut(keySpace);
    this.finish(keySpace, "target", "source");
    this.pass(11_000);
  }
}

t.test("6.3 a split succeeds when it is cut and the target serves", async (t) => {
  const moves = new Moves();
  moves.space("e");
  const answers = moves.split("e", "e/n");
  const { target, phase, startKey, kind } = moves.move("e");
  t.match({ phase, startKey, kind }, { phase: "copying", startKey: "e/n", kind: "split" });
  moves.pass(1000);
  t.equal(answers.length, 0, "the call waits for the copy");
  moves.cut("e");
  moves.pass(100);
  t.equal(answers.length, 0, "and for whoever has the keys then");
  moves.finish("e", "target");
  moves.pass(50);
  const done = { success: true, status: "Succeeded", determinate: true, reason: "" };
  t.match(answers, [{ ...done, newPartitionId: target, newGeneration: 2 }]);
  const { keySpaces, coherent } = view(moves.bench.operations, "cluster.routing", {
    keySpace: "e",
  });
  t.match(keySpaces[0]?.ranges, [{}, { startKey: "e/n", partitionId: target, generation: 2 }]);
  t.equal(coherent, true);
  const repeat = moves.split("e", "e/n");
  t.match(repeat, [{ status: "Succeeded" }], "P-108 a repeat is safe");
  moves.finish("e", "source");
  t.match(moves.split("e", "e/n"), [{ status: "InvalidSplitKey", determinate: true }]);
});

t.test("P-108 who waits no longer is told what is certain, and may ask again", async (t) => {
  const moves = new Moves();
  moves.space("e");
  const first = moves.split("e", "e/n", 500);
  moves.pass(600);
  t.match(first, [{ status: "Indeterminate", determinate: false, success: false }]);
  const second = moves.split("e", "e/n", 1000);
  const third = moves.split("e", "e/n");
  moves.pass(100);
  moves.cut("e");
  moves.pass(1500);
  t.match(second, [{ status: "Succeeded", determinate: true }], "a cut is one without adoption");
  moves.finish("e", "target", "source");
  moves.pass(50);
  t.match(third, [{ status: "Succeeded" }], "whoever asked for the same waited with it");
  t.equal(moves.meta.ranges("e").length, 2, "one split");

  moves.space("f");
  const { faults } = moves.bench;
  faults.hide = (command) => (command.kind === "begin-move" ? { status: "unknown" } : null);
  t.match(moves.split("f", "f/n"), [{ status: "Indeterminate", determinate: false }]);
  faults.hide = null;
  const again = moves.split("f", "f/n");
  moves.cut("f");
  moves.finish("f", "target", "source");
  moves.pass(50);
  t.match(again, [{ status: "Succeeded", determinate: true }], "it had begun");
});

t.test("6.3 each end of a split that is given up has its status", async (t) => {
  const ends: readonly (readonly [MoveEnd, string, boolean])[] = [
    ["no-target", "PartitionCreationFailed", true],
    ["deadline", "TransferFailed", false],
    ["transfer-failed", "TransferFailed", false],
    ["mismatch", "TransferFailed", false],
    ["quiesce-failed", "QuiesceFailed", false],
    ["cutover-failed", "CutoverFailed", false],
  ];
  const moves = new Moves();
  moves.space("e");
  for (const [reason, status, determinate] of ends) {
    const answers = moves.split("e", "e/n");
    moves.abort("e", reason);
    moves.pass(50);
    t.match(answers, [{ success: false, status, determinate, newPartitionId: 0 }], reason);
    t.ok(answers[0]?.reason, "with a reason");
    t.match(moves.split("e", "e/o"), [{ status: "UnsettledMovingIntents", determinate: true }]);
    moves.finish("e", "source");
    t.equal(moves.meta.move("e"), null, "P-103 and the next one works");
  }
});

t.test("6.3 what stands against a split, in its order", async (t) => {
  const moves = new Moves();
  const refused = (
    keySpace: string,
    splitKey: string,
    status: string,
    determinate = true,
  ): void => {
    const answers = moves.split(keySpace, splitKey, 400);
    moves.pass(500);
    t.match(answers, [{ success: false, status, determinate }], `${keySpace} ${splitKey}`);
  };
  refused("", "a", "InvalidInput");
  refused("e", "__svc:x", "InvalidInput");
  refused("e", "e/n", "NoRange");
  moves.space("e");
  refused("e", "f/n", "InvalidSplitKey");
  refused("e", "e/x/y", "InvalidSplitKey");
  moves.bench.sizeOf = () => null;
  refused("e", "e/n", "ProbeIndeterminate");
  moves.bench.sizeOf = "silent";
  refused("e", "e/n", "ProbeIndeterminate");
  moves.bench.sizeOf = () => 1;
  refused("e", "e/n", "BelowMinRangeSize");
  moves.bench.sizeOf = null;
  const running = moves.split("e", "e/n");
  refused("e", "e/o", "ConcurrentSplit", false);
  moves.cut("e");
  refused("e", "e/o", "UnsettledMovingIntents");
  moves.finish("e", "target", "source");
  moves.pass(50);
  t.match(running, [{ status: "Succeeded" }]);
  const leaving = moves.change("ranges.unregister", "e", 100);
  moves.pass(200);
  t.match(leaving, [{ success: false, status: "Indeterminate" }]);
  refused("e", "e/b", "ConcurrentSplit", false);
  moves.bench.faults.read = () => ({ status: "retry" });
  refused("e", "e/b", "NotLeader");
  moves.bench.faults.read = null;
  moves.space("g");
  const decided = (status: "too-many-partitions" | "not-founded") => {
    moves.bench.faults.hide = ({ kind }) => {
      if (kind !== "begin-move") return null;
      const outcome = { kind: "meta", status, generation: 0, items: [] } as const;
      return { status: "applied", outcome, leaseMs: 0, term: 1, index: 1 };
    };
  };
  moves.bench.faults.propose = ({ kind }) =>
    kind === "begin-move" ? { status: "refused", reason: "not-leader" } : null;
  refused("g", "g/n", "NotLeader");
  moves.bench.faults.propose = ({ kind }) =>
    kind === "begin-move" ? { status: "refused", reason: "not-available-at-level" } : null;
  refused("g", "g/n", "PartitionCreationFailed");
  moves.bench.faults.propose = null;
  decided("too-many-partitions");
  refused("g", "g/n", "PartitionCreationFailed");
  moves.abort("g", "deadline");
  moves.finish("g", "source");
  decided("not-founded");
  refused("g", "g/n", "KeyRangeDisabled");
});

t.test("6.3 a split for which there is no room right now begins when there is", async (t) => {
  const moves = new Moves();
  // The partition of its range is the source of another move.
  const names = Array.from({ length: 60 }, (_, at) => `s${at}`);
  const [one = "", other = ""] = names.filter((name) => moves.bench.partitionOf(name) === 1);
  moves.space(one);
  moves.space(other);
  const first = moves.split(one, `${one}/n`);
  const second = moves.split(other, `${other}/n`);
  moves.pass(500);
  t.equal(first.length + second.length, 0);
  const begins = moves.bench.commands.filter(({ kind }) => kind === "begin-move").length;
  t.ok(begins < 20, "it is not asked for without a pause");
  moves.cut(one);
  moves.finish(one, "target", "source");
  moves.pass(200);
  t.match(first, [{ status: "Succeeded" }]);
  moves.cut(other);
  moves.finish(other, "target", "source");
  moves.pass(50);
  t.match(second, [{ status: "Succeeded" }]);
});

t.test("6.3 merge: one pass folds small neighbours, one after the other", async (t) => {
  const moves = new Moves();
  t.match(moves.merge(), [{ success: true, status: "Completed", merges: 0, determinate: true }]);
  moves.spaceInTwo("e");
  moves.spaceInTwo("f");
  const answers = moves.merge();
  const seen: string[] = [];
  for (const keySpace of ["e", "f"]) {
    moves.pass(50);
    const { kind, target, source } = moves.move(keySpace);
    t.equal(kind, "merge");
    t.equal(target, moves.bench.partitionOf(keySpace), "into the one at home");
    t.ok(source > 3);
    seen.push(...moves.meta.moves().map((move) => move.keySpace));
    t.equal(answers.length, 0);
    moves.cut(keySpace);
    moves.finish(keySpace, "target");
  }
  moves.pass(50);
  t.strictSame(seen, ["e", "f"], "one at a time");
  t.match(answers, [{ success: true, status: "Completed", merges: 2, determinate: true }]);
  t.equal(moves.meta.ranges("e").length, 1);
});

t.test("P-105 P-106 merge: what is not counted, large or young stays", async (t) => {
  const moves = new Moves();
  const none = (why: string): void => {
    t.match(moves.merge(), [{ status: "Completed", merges: 0 }], why);
  };
  moves.spaceInTwo("e");
  moves.bench.sizeOf = ({ startKey }) => (startKey === null ? null : 1);
  none("one size is unknown");
  moves.bench.sizeOf = () => 5;
  none("together they are not below the limit");
  moves.bench.sizeOf = "silent";
  const uncounted = moves.merge(300);
  moves.pass(400);
  t.match(uncounted, [{ success: false, status: "Indeterminate", merges: 0, determinate: false }]);
  moves.bench.sizeOf = null;
  moves.space("f");
  moves.split("f", "f/n");
  moves.cut("f");
  moves.finish("f", "target", "source");
  const running = moves.merge();
  moves.pass(50);
  t.equal(moves.meta.move("f"), null, "one that changed a moment ago stays");
  t.equal(moves.move("e").kind, "merge");
  moves.abort("e", "transfer-failed");
  moves.finish("e", "source", "target");
  moves.pass(50);
  t.match(running, [{ status: "Completed", merges: 0 }], "given up is not merged");
  const late = moves.merge(300);
  moves.pass(400);
  t.match(late, [{ success: false, status: "Indeterminate", merges: 0, determinate: false }]);
  moves.bench.faults.read = () => ({ status: "retry" });
  t.match(moves.merge(), [{ success: false, status: "NotLeader", determinate: true }]);
});

t.test("6.3 unregister waits until all is home; to register takes it back", async (t) => {
  const moves = new Moves();
  moves.space("e");
  const split = moves.split("e", "e/n");
  t.match(moves.change("ranges.unregister", "e"), [
    { status: "QuiesceWindowOpen", success: false },
  ]);
  moves.cut("e");
  moves.finish("e", "target", "source");
  moves.pass(50);
  t.match(split, [{ status: "Succeeded" }]);
  const home = moves.bench.partitionOf("e");
  const goHome = (): void => {
    const away = moves.meta.ranges("e").find(({ partitionId }) => partitionId !== home);
    if (away === undefined) throw new Error("a range is away");
    const { startKey, endKey, partitionId: source, generation } = away;
    const of = { keySpace: "e", startKey, endKey, source, target: home, generation };
    const begin: BeginMoveCommand = { kind: "begin-move", move: "home", ...of };
    moves.decide(begin);
  };
  const first = moves.change("ranges.unregister", "e", 1000);
  const back = moves.change("ranges.unregister", "e");
  moves.pass(1200);
  t.match(first, [{ status: "Indeterminate", success: false, descriptorCount: 2 }]);
  t.equal(back.length, 0, "a repeat waits with it");
  t.match(moves.change("ranges.register", "e"), [{ status: "AlreadySeeded", success: true }]);
  moves.pass(50);
  t.match(back, [{ status: "Indeterminate", success: false }], "withdrawn");
  const last = moves.change("ranges.unregister", "e");
  goHome();
  t.match(moves.change("ranges.unregister", "e", 50), [], "a move home is no reason to refuse");
  moves.cut("e");
  moves.finish("e", "target");
  t.equal(last.length, 0);
  moves.decide({ kind: "unregister-range", keySpace: "e" });
  moves.pass(50);
  t.match(last, [{ status: "Removed", success: true, descriptorCount: 0, routingMode: "Hash" }]);
});

t.test("P-108 a node far behind does not take what it has not heard of for gone", async (t) => {
  const moves = new Moves();
  // It is decided, and this node has not applied the entries that came before it.
  moves.bench.faults.hide = ({ kind }) => {
    if (kind !== "unregister-range") return null;
    const outcome = { kind: "meta", status: "pending", generation: 0, items: [] } as const;
    return { status: "applied", outcome, leaseMs: 0, term: 1, index: 1e6 };
  };
  const answers = moves.change("ranges.unregister", "e", 4000);
  moves.pass(3900);
  t.equal(answers.length, 0, "it waits");
  moves.pass(500);
  t.match(answers, [{ status: "Indeterminate", success: false }]);
});
