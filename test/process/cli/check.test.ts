/** The check as a person asks for it: of stand-in nodes in good and bad days, and of real nodes. */
import { join } from "node:path";
import t from "tap";
import { KvType } from "../../../src/base/result-types.js";
import { CHECK_DOCUMENT } from "../../../src/cli/commands/schemas.js";
import { encodeMessage } from "../../../src/proto/codec.js";
import { GrpcNodeDebugChunk } from "../../../src/proto/generated/cluster.js";
import { GrpcTryGetKeyValueResponse } from "../../../src/proto/generated/keyvalues.js";
import { reply, StandIn } from "../../doubles/server/stand-in.js";
import {
  endAll,
  freePorts,
  nodeFlags,
  ServerProcess,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { Batch, misfits, runCli } from "./programs.js";
import { tellNode } from "./standing-nodes.js";

t.setTimeout(180_000);
const batch = new Batch();
const nodes = [await StandIn.bare(), await StandIn.bare(), await StandIn.bare()];
const [first, , third] = nodes as [StandIn, StandIn, StandIn];
const directory = temporaryDirectory();
t.teardown(async () => {
  batch.close();
  for (const node of nodes) node.stop();
  await endAll();
  directory.remove();
});

function tell(index: number, freeBytes = 2 ** 40): void {
  tellNode(nodes, index, { listed: [0, 1, 2] });
  const node = nodes[index] as StandIn;
  const metrics = `svc_storage_free_bytes{volume="log"} ${freeBytes}\n`;
  node.answers.set("GetNodeDebug", () => {
    const facts = { version: "0.7", metrics: ["", metrics], process: { wallMs: Date.now() } };
    const Data = Buffer.from(JSON.stringify(facts));
    return { messages: [encodeMessage(GrpcNodeDebugChunk, { Data })] };
  });
  node.answers.set(
    "TryGetKeyValue",
    reply(GrpcTryGetKeyValueResponse, { Type: KvType.doesNotExist, Revision: -1 }),
  );
}

interface Told {
  readonly verdict: string;
  readonly checks: readonly { check: string; nodeId: number | null; verdict: string }[];
}

async function checked(exit: number, ...words: readonly string[]): Promise<Told> {
  const ran = await batch.run(["-c", first.endpoint, "--check", "--format", "json", ...words]);
  t.equal(ran.exit, exit, ran.stderr);
  t.equal(ran.stderr, "");
  const document = JSON.parse(ran.stdout) as Told;
  t.same(misfits(CHECK_DOCUMENT, document), []);
  return document;
}

const bad = ({ checks }: Told): unknown[] =>
  checks
    .filter(({ verdict }) => verdict === "failed" || verdict === "warning")
    .map(({ check, nodeId, verdict }) => [check, nodeId, verdict]);

t.test("three nodes, found from one: a good day, a limit, a node that is out", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  const good = await checked(0, "--reads", "7", "--max-latency", "60000");
  t.same(bad(good), []);
  t.match(
    good.checks.filter(({ check }) => check === "clock").map(({ verdict }) => verdict),
    ["ok", "ok", "ok"],
  );
  t.equal(first.count("TryGetKeyValue"), 8, "one before that makes the connection");
  tell(1, 2 ** 20);
  const short = await checked(0, "--max-latency", "60000", "--reads", "3");
  t.match(bad(short), [["disk of log", 2, "warning"]], "a warning alone ends with 0");
  third.stop();
  const out = await checked(1, "--max-latency", "60000", "--min-free", "0", "--reads", "3");
  t.match(bad(out), [["reachable", 3, "failed"]]);
  t.equal(out.verdict, "failed");
  await third.start();
});

t.test("without the role admin the rest is looked at; without reads it has failed", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  for (const node of nodes) node.answers.set("GetNodeDebug", { status: 7, details: "no admin" });
  const seen = await checked(0, "--max-latency", "60000", "--reads", "3");
  t.equal(seen.verdict, "unknown");
  t.same(bad(seen), []);
  first.answers.set("TryGetKeyValue", { status: 7, details: "no reader" });
  const read = await checked(1, "--max-latency", "60000", "--reads", "3");
  t.same(bad(read), [["reads", 1, "failed"]]);
  const text = await batch.run(["-c", first.endpoint, "--check", "--reads", "3"]);
  t.match(text.stdout, /^FAILED: \d+ checks, 1 failed/);
  t.match(text.stdout, /^FAILED +reads +1 +http:\S+ +3 of 3 reads failed +p99 at most 100 ms$/m);
  for (const words of [
    ["--reads", "0"],
    ["--reads", "10001"],
    ["--max-latency", "0"],
  ]) {
    const refused = await batch.run(["-c", first.endpoint, "--check", ...words]);
    t.match(refused, { exit: 2, stdout: "", stderr: /is (?:below|above)/ });
  }
});

t.test("three real nodes; the shell has it too", async (t) => {
  const peers = await freePorts(3);
  const founders = peers.map((port, at) => `${at + 1}=127.0.0.1:${port}`).join();
  const servers = peers.map((port, at) => {
    const flags = nodeFlags(join(directory.path, `${at + 1}`), `--peer-port=${port}`);
    const more = [`--raft-nodeid=${at + 1}`, `--initial-cluster=${founders}`];
    return new ServerProcess([...flags, ...more, "--initial-cluster-partitions=2"]);
  });
  const addresses = await Promise.all(servers.map((server) => server.ready()));
  const grpc = addresses[0]?.grpc ?? "";
  // What is measured depends on the machine: it has a verdict, and that is none of nothing.
  const loose = ["--max-latency", "9999", "--max-clock-difference", "9999", "--min-free", "0"];
  const shell = await runCli(["-c", grpc], {}, `check ${loose.join(" ")} --max-log-sync 9999\n`);
  t.equal(shell.exit, 0, shell.stdout);
  const rows = shell.stdout
    .split("\n")
    .filter((line) => /^(?:ok|WARNING|FAILED|unknown) {2}/.test(line));
  const of = (check: string): string[] => rows.filter((row) => row.includes(` ${check} `));
  for (const name of ["reachable", "ready", "reads", "clock", "disk of log", "disk of state"]) {
    t.equal(of(name).length, 3, `${name}:\n${shell.stdout}`);
    for (const row of of(name)) t.match(row, /^ok /);
  }
  t.match(of("leaders")[0], /^ok .* 3 of 3 partitions/);
  t.match(of("version")[0], /^ok /);
  t.equal(of("backup").length, 0, "none are configured");
});
