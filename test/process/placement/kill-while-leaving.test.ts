/**
 * A node is drained while clients work, and one that takes part in a move is killed meanwhile: the move goes on, and
 * nothing is lost. Another victim each day; SVC_LEAVE_VICTIMS=all plays all four.
 */
import t from "tap";
import { PartOfDay } from "../../doubles/part-of-day.js";
import type { FaultKind } from "../chaos/faults.js";
import { endAll } from "../cluster/server-process.js";
import { judged } from "./judged.js";

const VICTIMS: readonly (readonly [seed: number, kind: FaultKind, name: string])[] = [
  [31, "leave, kill the coming", "a move goes on when the node dies that a replica comes to"],
  [32, "leave, kill the going", "a drain goes on when its node dies"],
  [33, "leave, kill a leader", "a move goes on when the leader of the partition dies"],
  [34, "leave, kill the meta leader", "a drain goes on when the leader of meta dies"],
];

const parts = new PartOfDay("SVC_LEAVE_VICTIMS", VICTIMS.length);

t.setTimeout(parts.isAll ? 900_000 : 300_000);
t.teardown(endAll);
t.comment(parts.text);

for (const [seed, kind, name] of parts.of(VICTIMS)) {
  t.test(`P-094 ${name}`, (t) => judged(t, seed, [kind]));
}
