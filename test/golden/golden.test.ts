/**
 * Runs the project's own scenarios, those of the folder that SVC_RAFT_SCENARIOS names, and checks the
 * harness itself: its language, its formats, and that it notices differences.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { runCommand } from "./commands.js";
import { Environment } from "./environment.js";
import { quote } from "./quote.js";
import { checkFile, runScenario, scenarioNames } from "./run.js";
import { formatScenario, parseCommand, parseScenario } from "./scenario.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const ownFolder = join(root, "test", "golden", "scenarios");

t.test("P-018 P-020 P-023 P-025 P-026 P-083 and more: the project's own scenarios", (t) => {
  const names = scenarioNames(ownFolder);
  t.ok(names.length >= 25, "the scenarios are there");
  for (const name of names) t.equal(checkFile(join(ownFolder, name), name).failure, null, name);
  t.end();
});

const external = process.env["SVC_RAFT_SCENARIOS"];
const skip = external === undefined ? "SVC_RAFT_SCENARIOS names no folder" : false;
t.test("the model's scenarios", { skip }, (t) => {
  const folder = external ?? "";
  const names = scenarioNames(folder);
  t.ok(names.length > 0, "there are scenarios");
  for (const name of names) t.equal(checkFile(join(folder, name), name).failure, null, name);
  t.end();
});

t.test("P-178 a difference is found, whatever kind it is, and shown with its line", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-golden-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const check = (text: string): string | null => {
    writeFileSync(join(folder, "a.txt"), text);
    return checkFile(join(folder, "a.txt"), "a.txt").failure;
  };
  const start = "add-nodes 1 voters=(1) index=3\n----\nok\n\n";
  const state = "1: StateFollower (Voter) Term:0 Lead:0";
  t.equal(check(`${start}raft-state\n----\n${state}\n`), null);
  t.match(check(`${start}raft-state\n----\n${state} \n`), /first difference in line 7/);
  t.match(check(`${start}raft-state\n----\n${state}\nmore\n`), /first difference in line 8/);
  t.match(check(`${start}raft-state\n----\n`), /first difference in line 7/);
  t.match(check(`${start}raft-state\n----\nok\n`), /-\s+ok/);
  t.match(check("# nothing\n"), /no command/);
  t.match(check("raft-state\n"), /no ---- after the command/);
  t.end();
});

t.test("a file is read and written back without a change", (t) => {
  const text = [
    "# comment",
    "",
    "add-nodes 1 \\",
    "  voters=(1, 2 ,3) index=3",
    "----",
    "ok",
    "",
    "",
    "  # another",
    "propose-conf-change 1",
    "v1 v2",
    "----",
    "----",
    "one",
    "",
    "two",
    "----",
    "----",
    "",
    "raft-state",
    "----",
    "last",
    "",
    "# the end",
    "",
  ].join("\n");
  const scenario = parseScenario(text);
  t.strictSame(
    scenario.blocks.map(({ line }) => line),
    [3, 10, 20],
  );
  const [first, second] = scenario.blocks;
  t.strictSame(first?.command.args[1], { name: "voters", values: ["1", "2", "3"] });
  t.equal(second?.command.input, "v1 v2");
  t.equal(second?.expected, "one\n\ntwo\n");
  t.equal(formatScenario(scenario, []), text, "outputs with blank lines are wrapped again");
  t.end();
});

t.test("payloads are quoted the way the model quotes", (t) => {
  const bytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
  t.equal(quote(""), '""');
  t.equal(quote('a"b\\'), '"a\\"b\\\\"');
  t.equal(quote("\n\t\r\x07\b\f\v\x01\x7f"), '"\\n\\t\\r\\a\\b\\f\\v\\x01\\x7f"');
  t.equal(quote("\xff\xc3"), '"\\xff\\xc3"', "bytes that are no UTF-8");
  t.equal(quote(bytes("é")), `"${bytes("é")}"`, "printable characters stay");
  t.equal(quote(bytes("\u200b")), '"\\u200b"');
  t.equal(quote(bytes("\ufeff")), '"\\ufeff"');
  t.equal(quote(bytes("\u{e0001}")), '"\\U000e0001"');
  t.end();
});

/** Runs command lines (a line break separates the input) and returns the last output. */
function last(...lines: readonly string[]): string {
  const environment = new Environment();
  let output = "";
  for (const line of lines) {
    const [head = "", ...input] = line.split("\n");
    output = runCommand(environment, parseCommand(head, input.join("\n")));
  }
  return output;
}

const three = "add-nodes 3 voters=(1,2,3) index=10";

t.test("fixed texts and failures", (t) => {
  t.equal(last("nonsense"), "unknown command");
  t.equal(last("toString"), "unknown command");
  t.equal(last("_breakpoint"), "ok");
  t.equal(
    last("log-level loud"),
    "log levels must be either of [DEBUG INFO WARN ERROR FATAL NONE]",
  );
  t.equal(last("log-level None", three), "ok");
  t.equal(last("log-level none", three, "propose 1 x"), "raft proposal dropped");
  t.equal(last("log-level none", three, "raft-state"), "ok");
  t.equal(last("log-level none", three, "log-level ERROR", "propose 1 x"), "raft proposal dropped");
  t.equal(last(three, "deliver-msgs 1 drop=(2)"), "no messages\n");
  t.equal(last(three, "deliver-msgs 1 1"), "no messages\n");
  t.equal(last(three, "deliver-msgs 1 drop=1"), "can't both deliver and drop msgs to 1");
  t.equal(last(three, "deliver-msgs drop=9"), "no messages\n", "a node that is not there yet");
  t.equal(last(three, "deliver-msgs 1 type=MsgNone"), "unknown type MsgNone");
  t.match(last(three, "stabilize log-level=loud"), /^log levels must be either of/);
  t.equal(
    last(three, "campaign 1", "stabilize log-level=none", "raft-log 1"),
    '1/11 EntryNormal ""\n',
    "the level of one stabilize is gone after it",
  );
  t.equal(last(three, "process-append-thread 1"), "no append work to perform");
  t.equal(
    last(three, "process-append-thread 1 2"),
    "> 1 processing append thread\n  no append work to perform\n" +
      "> 2 processing append thread\n  no append work to perform\n",
  );
  t.equal(last(three, "process-apply-thread 1"), "no apply work to perform");
  t.equal(last(three, "process-ready 1"), "<empty Ready>");
  t.equal(last(three, "process-ready 1 2").split("\n").length, 5);
  t.equal(last(three, "stabilize"), "ok");
  t.equal(last(three, "status 1"), "ok", "nobody leads");
  t.equal(last(three, "raft-log 1"), "log is empty: first index=11, last index=10");
  t.equal(last("add-nodes 1", "raft-log 1"), "log is empty: first index=1, last index=0");
  t.equal(last(three, "compact 1 10"), "requested index is unavailable due to compaction");
  t.end();
});

t.test("nodes and membership changes that the model refuses, in its words", (t) => {
  t.equal(
    last("add-nodes 1 voters=(1) index=1"),
    "index must be specified as > 1 due to bootstrap",
  );
  t.equal(
    last("add-nodes 1 content=x"),
    "index must be specified as > 1 due to bootstrap",
    "content alone bootstraps, too",
  );
  t.equal(last("add-nodes 1 read-only=quick"), 'invalid read-only option "quick"');
  t.equal(
    last("add-nodes 1 read-only=lease-based"),
    "CheckQuorum must be enabled when ReadOnlyOption is ReadOnlyLeaseBased",
  );
  t.equal(last("add-nodes 1 inflight=0"), "max inflight messages must be greater than 0");
  t.equal(last("add-nodes 1 prevote=maybe").slice(0, 35), 'strconv.ParseBool: parsing "maybe":');
  t.equal(last("add-nodes 1 prevote=1"), "ok");
  t.equal(
    last(three, "propose-conf-change 1 v1=true\nv1 v2"),
    "v1 conf change can only have one operation and no transition",
  );
  t.equal(
    last(three, "propose-conf-change 1 v1=true transition=explicit\nv1"),
    "v1 conf change can only have one operation and no transition",
  );
  t.equal(last(three, "propose-conf-change 1\nv1 w2"), "unknown input: w2");
  t.equal(last(three, "propose-conf-change 1\nv"), "unknown token v");
  t.match(last(three, "propose-conf-change 1\nv1 rx"), /parsing "x": invalid syntax/);
  t.equal(last(three, "propose-conf-change 1 transition=slow\nv1"), "unknown transition slow");
  t.end();
});

t.test("messages to oneself and to storage threads cannot be dropped", (t) => {
  const group = "add-nodes 1 voters=(1) index=3 async-storage-writes=true";
  const before = [group, "campaign 1", "process-ready 1", "process-append-thread 1"];
  t.equal(last(...before, "deliver-msgs drop=(1)"), "no messages\n");
  t.equal(last(...before, "deliver-msgs 1"), "1->1 MsgVoteResp Term:1 Log:0/0\n");
  t.equal(last(...before, "deliver-msgs 1 type=MsgApp"), "no messages\n");
  t.end();
});

t.test("nodes are hexadecimal in messages and decimal elsewhere; ids sort as numbers", (t) => {
  const setup = ["add-nodes 11 voters=(11,10,2,1,9) index=10", "campaign 10"];
  const ready = last(...setup, "process-ready 10");
  t.match(ready, "HardState Term:1 Vote:10 Commit:10");
  t.match(ready, "a->1 MsgVote");
  t.match(ready, "a->b MsgVote");
  const order = [...ready.matchAll(/a->(\w+) /g)].map((match) => match[1]);
  t.strictSame(order, ["1", "2", "9", "b"]);
  const snapshot = last(...setup, "send-snapshot 10 3");
  t.match(snapshot, "ConfState:Voters:[1 2 9 10 11] VotersOutgoing:[]");
  t.end();
});

t.test("the whole run is the same for the same draws, and runs leave nothing behind", (t) => {
  const text = `${three}\n----\n\ncampaign 1\n----\n\nstabilize\n----\n`;
  const scenario = parseScenario(text);
  const first = runScenario(scenario, { seed: 1, fixedTicks: 0 });
  t.strictSame(runScenario(scenario, { seed: 1, fixedTicks: 0 }), first);
  t.strictSame(runScenario(scenario, { seed: 9, fixedTicks: 4 }), first);
  t.end();
});

t.test("content follows the log on every node, through snapshots and joint changes", (t) => {
  const setup = [`${three} content=<`, "campaign 1", "stabilize", "propose 1 a", "propose 2 b"];
  const grow = ["stabilize", "compact 1 12", "add-nodes 1", "propose-conf-change 1\nv4 l3"];
  const rest = ["stabilize", "propose 1 c", "stabilize"];
  for (const id of [1, 2, 3, 4]) {
    t.equal(last(...setup, ...grow, ...rest, `content ${id}`), "<abc", `node ${id}`);
  }
  t.end();
});
