/** A node is drained, and the leader of the meta partition is killed meanwhile: the next one goes on. */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { judged } from "./judged.js";

t.setTimeout(300_000);
t.teardown(endAll);

t.test("P-094 a drain goes on when the leader of the meta partition dies", (t) => {
  return judged(t, 34, ["leave, kill the meta leader"]);
});
