/** Watches at a node that does not lead what it watches (W4, W9, W11). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { lock, set } from "../../../doubles/operations/fixture.js";
import { Trio } from "../../../doubles/operations/trio.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

/** Node 2 leads; at node 1 somebody watches. */
function watched(kind: number, name: string): { trio: Trio; caller: WatchCaller } {
  const trio = new Trio();
  trio.moveAll(2);
  const caller = new WatchCaller(trio.node(1));
  caller.stream.create(1, watchRequest(kind, name));
  trio.world.pass(10);
  return { trio, caller };
}

function asked(trio: Trio): string[] {
  return trio.sent.flatMap(({ from, frame }) =>
    frame.direction === "calls"
      ? frame.items.map(({ content }) => `${from} ${content?.request.kind}`)
      : [],
  );
}

t.test("W4 W9 the leader is asked where it stands, once for all who ask at once", (t) => {
  const { trio, caller } = watched(WatchKind.key, "k");
  t.same(caller.take(), ["created"]);
  t.same(asked(trio), ["1 confirm-index"]);
  trio.ask(2, set("k", "1"));
  caller.stream.sync(3, 0);
  trio.world.pass(10);
  t.same(caller.take(), ["set k 1", "synced 3"]);
  for (let id = 2; id <= 20; id++) caller.stream.create(id, watchRequest(WatchKind.key, "k"));
  trio.world.pass(10);
  t.equal(caller.take().length, 19);
  t.ok(asked(trio).filter((each) => each === "1 confirm-index").length <= 4);
  t.end();
});

t.test("W4 a leader that cannot prove it is asked again; nobody begins before", (t) => {
  const trio = new Trio();
  trio.moveAll(2);
  trio.read = () => ({ status: "retry" });
  const caller = new WatchCaller(trio.node(1));
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  trio.world.pass(300);
  t.same(caller.take(), []);
  trio.read = null;
  trio.world.pass(200);
  t.same(caller.take(), ["created"]);
  t.end();
});

t.test("W11 the leader commits its clock for an end that another node watches", (t) => {
  const { trio, caller } = watched(WatchKind.lock, "r");
  trio.ask(2, lock("r", "a", 1000));
  t.same(caller.take(), ["created", "locked r t0 a"]);
  trio.world.pass(980);
  t.same(caller.take(), []);
  trio.world.pass(170);
  t.same(caller.take(), ["lockExpired r t0 a"]);
  t.ok(asked(trio).filter((each) => each === "1 clock-wish").length <= 2, "one wish is enough");
  t.end();
});

/** Node 1 has no replica of the partition of "k", which node 2 leads. */
function elsewhere(): Trio {
  const trio = new Trio();
  trio.moveAll(2);
  const partition = trio.partitionOf("k");
  trio.unhosted.add(`1/${partition}`);
  trio.reported.set(partition, 2);
  return trio;
}

t.test("W14 what this node has no replica of is told by one that has", (t) => {
  const trio = elsewhere();
  const caller = new WatchCaller(trio.node(1));
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  trio.world.pass(10);
  trio.ask(2, set("k", "1"));
  trio.world.pass(10);
  caller.stream.sync(1, 1);
  trio.world.pass(10);
  t.same(caller.take(), ["created", "set k 1", "synced 1"]);
  // Of those calls some are always open.
  trio.world.pass(30_000);
  trio.ask(2, set("k", "2"));
  trio.world.pass(10);
  t.same(caller.takeEvents().at(-1), "set k 2 r1");
  caller.stream.close();
  trio.world.pass(10);
  t.equal(trio.open, 0);
  t.end();
});

t.test("W14 answers that are lost are asked for again", (t) => {
  const trio = elsewhere();
  const caller = new WatchCaller(trio.node(1));
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  trio.world.pass(10);
  let lost = 0;
  trio.fate = ({ from, frame }) => {
    const isLost = from === 2 && frame.direction === "answers" && lost++ < 2;
    if (isLost) trio.world.timer.soon(() => trio.node(1).linkDown(2));
    return isLost ? "lost" : "arrives";
  };
  trio.ask(2, set("k", "1"));
  trio.world.pass(500);
  trio.ask(2, set("k", "2"));
  trio.world.pass(500);
  t.ok(lost >= 2);
  t.same(caller.takeEvents(), ["set k 1", "set k 2 r1"]);
  t.end();
});

t.test("W14 what nobody can be asked for ends, and so where a node does not know of it", (t) => {
  const trio = elsewhere();
  trio.fate = () => "refused";
  const caller = new WatchCaller(trio.node(1));
  caller.stream.create(1, watchRequest(WatchKind.key, "k"));
  trio.world.pass(9000);
  t.same(caller.take(), []);
  trio.world.pass(2000);
  t.same(caller.take(), ["ended notHosted"]);
  t.end();
});
