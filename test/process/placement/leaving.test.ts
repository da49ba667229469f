/**
 * A real node with replicas leaves: they go to others first, under writers, and the process can be killed the moment the
 * answer is there.
 */
import t from "tap";
import { cliMain } from "../cli/programs.js";
import { Terminal } from "../cli/terminal.js";
import { endAll } from "../cluster/server-process.js";
import { rolesUntil } from "../net/processes.js";
import { Load } from "./load.js";
import { PlacedNodes } from "./placed-nodes.js";

t.setTimeout(240_000);
t.teardown(endAll);

const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=10",
  "--raft-placement-pass-interval=1s",
];

t.test("5.3 a node is drained before it leaves, and can be killed at once", async (t) => {
  const nodes = await PlacedNodes.start(5, 0, FLAGS);
  t.teardown(() => nodes.end());
  const load = await Load.start(nodes, 6, 52);
  await load.goesOn(50);

  await t.test("5.3 the shell says how far it is, and that the replicas went", async (t) => {
    const { grpc } = await nodes.addresses(5);
    const words = ["--cluster-leave", "--node", `http://${grpc}`, "--yes"];
    const terminal = await Terminal.start([process.execPath, cliMain, ...words], {}, 100);
    t.teardown(() => terminal.close());
    await terminal.see("draining: \\d replicas? left");
    load.leave(5);
    let code = await terminal.ended();
    for (let tries = 0; tries < 6 && code === null; tries++) code = await terminal.ended();
    // The moment that the answer is there.
    await nodes.kill(5);
    t.equal(code, 0, terminal.screen);
    t.match(terminal.screen, /Outcome Committed/);
    t.match(terminal.screen, /Its replicas were evacuated to other nodes\./);
  });

  await t.test("nothing acknowledged is lost, and the rest has it all", async (t) => {
    const roles = "1 Voter, 2 Voter, 3 Voter, 4 Voter";
    t.equal(await rolesUntil(nodes.node(2), roles), roles);
    await nodes.settled(1, 3, [1, 2, 3, 4]);
    await load.goesOn(100);
    t.same(await load.judge(), []);
    t.comment(JSON.stringify(load.findings.compared), `unknown ${load.findings.unknowns}`);
    for (const check of ["value unique", "token grows", "write kept"]) {
      t.ok((load.findings.compared[check] ?? 0) > 10, `${check}: not vacuous`);
    }
  });
});
