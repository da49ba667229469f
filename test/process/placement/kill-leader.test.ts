/** A node is drained, and the leader of a partition is killed while a replica of it moves: the next one goes on. */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { judged } from "./judged.js";

t.setTimeout(300_000);
t.teardown(endAll);

t.test("P-094 a move goes on when the leader of the partition dies", (t) => {
  return judged(t, 33, ["leave, kill a leader"]);
});
