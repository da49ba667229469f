/** A node is drained, and one that its replicas come to is killed: the move goes on, and nothing is lost. */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { judged } from "./judged.js";

t.setTimeout(300_000);
t.teardown(endAll);

t.test("P-094 a move goes on when the node dies that a replica comes to", (t) => {
  return judged(t, 31, ["leave, kill the coming"]);
});
