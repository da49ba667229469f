/** A node is drained, and dies itself before it is empty: the drain goes on without it, and nothing is lost. */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { judged } from "./judged.js";

t.setTimeout(300_000);
t.teardown(endAll);

t.test("P-094 a drain goes on when its node dies", (t) => {
  return judged(t, 32, ["leave, kill the going"]);
});
