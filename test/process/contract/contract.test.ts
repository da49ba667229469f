/**
 * The contract's tables against a real server process: every member, number, code and limit that a client can see.
 * One node serves all sections; each section has a file in contract/.
 */
import t from "tap";
import { locks } from "./locks.js";
import { access } from "./access.js";
import { backups, ranges } from "./administration.js";
import { bodies } from "./bodies.js";
import { cluster } from "./cluster.js";
import { keys } from "./keys.js";
import { many } from "./many.js";
import { startNode } from "./node.js";
import { observing } from "./observing.js";
import { scans } from "./scans.js";
import { sequences } from "./sequences.js";
import { starting } from "./starting.js";
import { streams } from "./streams.js";
import { lockAdmin, waits } from "./waiting/waits.js";
import { elections, watches } from "./waiting/watches.js";
import { endAll } from "../cluster/server-process.js";

t.setTimeout(300_000);
t.teardown(endAll);

t.test("one node", async (t) => {
  const node = await startNode(t);
  await t.test("locks (3.1, 4.1)", (t) => locks(t, node));
  await t.test("waiting for locks (4.8)", (t) => waits(t, node));
  await t.test("looking after locks (4.10)", (t) => lockAdmin(t, node));
  await t.test("watches (2.8, 3.9, 4.9)", (t) => watches(t, node));
  await t.test("elections (4.11)", (t) => elections(t, node));
  await t.test("sequences (3.2, 4.2)", (t) => sequences(t, node));
  await t.test("key/value (3.4, 4.3)", (t) => keys(t, node));
  await t.test("many-calls (3.4, K11)", (t) => many(t, node));
  await t.test("scans (K12 to K17)", (t) => scans(t, node));
  await t.test("batch streams (2.5)", (t) => streams(t, node));
  await t.test("bodies and problems (1.2 to 1.5, 11)", (t) => bodies(t, node));
  await t.test("cluster (3.5, 5, 6.1, 6.4)", (t) => cluster(t, node));
  await t.test("ranges (3.6, 6.3)", (t) => ranges(t, node));
  await t.test("backups (3.7, 7.6)", (t) => backups(t, node));
  await t.test("observing (3.8)", (t) => observing(t, node));
});

t.test("starting and stopping (9, 10.4)", (t) => starting(t));
t.test("roles (10.1 to 10.3)", (t) => access(t));
