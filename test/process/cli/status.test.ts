/**
 * The state of a cluster: what a person and a program see of three stand-in nodes in good and bad
 * days, and of a real node.
 */
import t from "tap";
import { levelFacts, levelText } from "../../../src/cli/status/status-level.js";
import { STATUS_DOCUMENT } from "../../../src/cli/commands/schemas.js";
import { clusterFacts } from "../../../src/cli/status/status-facts.js";
import { paintStatus, statusLines, uptimeText } from "../../../src/cli/status/status-view.js";
import type { NodeReport } from "../../../src/cli/status/status-gather.js";
import type { Overview } from "../../../src/client/mod.js";
import { ServerProcess, endAll, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";
import { Batch, cliMain, misfits, runCli } from "./programs.js";
import { StandIn } from "../../doubles/server/stand-in.js";
import { LEADERS, LEARNER, tellNode, VOTER, type Day } from "./standing-nodes.js";
import { Terminal } from "./terminal.js";

t.setTimeout(120_000);
const batch = new Batch();
const nodes = [await StandIn.bare(), await StandIn.bare(), await StandIn.bare()];
const [first, second, third] = nodes as [StandIn, StandIn, StandIn];
const tell = (index: number, day?: Day): void => tellNode(nodes, index, day);
const directory = temporaryDirectory();
const open = new Set<Terminal>();
t.teardown(async () => {
  batch.close();
  for (const node of nodes) node.stop();
  for (const terminal of open) terminal.close();
  await endAll();
  directory.remove();
});

/** Text in which the ports of this run have names. */
function named(text: string): string {
  return nodes
    .reduce((result, node, at) => result.replaceAll(node.endpoint, `http://node-${at + 1}`), text)
    .replace(/ +$/gm, "")
    .replace(/ {2,}/g, "  ")
    .replace(/-{3,}/g, "--");
}

interface Seen {
  readonly text: string;
  readonly document: Readonly<Record<string, unknown>>;
}

type Tap = Pick<typeof t, "equal" | "same">;

async function status(t: Tap, exit: number, endpoints: string): Promise<Seen> {
  const json = await batch.run(["-c", endpoints, "--cluster-status", "--format", "json"]);
  t.equal(json.exit, exit, json.stdout + json.stderr);
  t.equal(json.stderr, "");
  const document = JSON.parse(json.stdout) as Seen["document"];
  t.same(misfits(STATUS_DOCUMENT, document), []);
  const console = await batch.run(["-c", endpoints, "--cluster-status"]);
  t.equal(console.exit, exit, console.stderr);
  t.equal(console.stderr, "");
  return { text: named(console.stdout), document };
}

const all = (): string => nodes.map((node) => node.endpoint).join(",");
const HEAD =
  "State  Node  Role  Leads  Hosts  Peer endpoint  Client endpoint  Version  Uptime\n" +
  "--  --  --  --  --  --  --  --  --\n";

t.test("three nodes, found from one of them", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  const { text, document } = await status(t, 0, first.endpoint);
  t.equal(
    text,
    "healthy: 3 node(s), 3 ready; membership version 7\n\n" +
      HEAD +
      "ready  1  Voter  3  6  127.0.0.1:9001  http://node-1  -  -\n" +
      "ready  2  Voter  2  6  127.0.0.1:9002  http://node-2  -  -\n" +
      "ready  3  Voter  2  6  127.0.0.1:9003  http://node-3  -  -\n\n" +
      "Partitions: 7 of 7 have a leader\n" +
      "Replication: full, every partition on all 3 voters; rebalancer disabled\n",
  );
  t.match(document, { healthy: true, problems: [], partitions: { total: 7, withoutLeader: [] } });
  const one = await batch.run(["--node", first.endpoint, "--cluster-status"]);
  t.match(one, { exit: 1, stdout: /^UNCLEAR: 3 node\(s\), 1 ready, 2 not asked;/ });
  t.match(one.stdout, "Nobody knows whether node 2 (127.0.0.1:9002), node 3 (127.0.0.1:9003) live");
});

t.test("nodes that lead nothing are found by what one of them tells of all", async (t) => {
  const leaders = LEADERS.map(() => 0);
  for (const index of [0, 1, 2]) tell(index, { leaders, listed: [0, 1, 2] });
  const { text, document } = await status(t, 0, first.endpoint);
  t.match(text, /^healthy: 3 node\(s\), 3 ready;/);
  t.match(text, /ready {2}3 {2}Voter {2}0 {2}6 {2}127\.0\.0\.1:9003 {2}http:\/\/node-3/);
  t.match(document, { healthy: true, unseen: [] });
});

t.test("one node down: its partitions, what is left, exit code 1", async (t) => {
  const port = third.port;
  const down = `http://127.0.0.1:${port}`;
  third.stop();
  const left = [0, 0, 1, null, 0, 1, 1];
  tell(0, { leaders: left });
  tell(1, { leaders: left });
  const { text, document } = await status(t, 1, all());
  t.equal(
    text,
    "DEGRADED: 3 node(s), 2 ready, 1 unreachable; membership version 7\n" +
      "! node 3 (http://node-3) cannot be reached: connection refused\n" +
      "! partition 3 has no leader\n\n" +
      HEAD +
      "ready  1  Voter  3  6  127.0.0.1:9001  http://node-1  -  -\n" +
      "ready  2  Voter  3  6  127.0.0.1:9002  http://node-2  -  -\n" +
      "UNREACHABLE  3  Voter  -  -  127.0.0.1:9003  http://node-3  -  -\n\n" +
      "Partitions: 6 of 7 have a leader\n" +
      "Replication: full, every partition on all 3 voters; rebalancer disabled\n",
  );
  t.match(document, {
    healthy: false,
    nodes: [{ state: "ready" }, { state: "ready" }, { state: "unreachable", clientEndpoint: down }],
    partitions: { withoutLeader: [3], withoutMajority: [] },
  });
  // The others have not noticed yet: they still name the dead node.
  tell(0);
  tell(1);
  const early = await status(t, 1, first.endpoint);
  t.match(early.text, /UNREACHABLE {2}3 {2}Voter {2}2 /, "found by what the others say");
});

t.test("a voter that leads nothing and was not named is not taken for alive", async (t) => {
  // Node 3 is down: the others lead everything and nobody names where its clients go.
  const left = [0, 0, 1, 1, 0, 1, 1];
  tell(0, { leaders: left });
  tell(1, { leaders: left });
  const { text, document } = await status(t, 1, first.endpoint);
  t.match(text, /^UNCLEAR: 3 node\(s\), 2 ready, 1 not asked;/);
  t.notMatch(text, /healthy/);
  t.match(document, { healthy: false, problems: [], unseen: ["node 3 (127.0.0.1:9003)"] });
  tell(0, { leaders: left, roles: [VOTER, VOTER, LEARNER] });
  tell(1, { leaders: left, roles: [VOTER, VOTER, LEARNER] });
  t.match((await status(t, 0, first.endpoint)).text, /^healthy: /, "a learner counts for nothing");
});

t.test("two nodes down; replicas, learners, old member lists, two leaders", async (t) => {
  const replicas = [
    [0, 1, 2],
    [0, 2],
    [0, 1, 2],
    [0, 1, 2],
    [0, 1, 2],
    [0, 1, 2],
  ];
  tell(0, { leaders: [0, 0, 0, 0, 0, 0, 0], replicas, arriving: { 2: 1, 5: 1 } });
  tell(1, { ready: false, version: 6, leaders: [1, 0, 0, 0, 0, 0, 0] });
  const { text, document } = await status(t, 1, all());
  t.match(text, "! node 2 (http://node-2) is not ready\n");
  t.match(text, "! partition 0 has two nodes that say they lead\n");
  t.match(text, "! partition 2 has no majority of voters that can be reached\n");
  t.match(
    text,
    "! partitions 1, 2, 3, 4, 5, 6 have fewer replicas than wanted that can be reached\n",
  );
  t.match(text, "Moves: replicas of partitions 2, 5 come or go\n");
  t.match(document, { partitions: { moving: [2, 5], withoutMajority: [2] } });
  t.match(text, "Replication: 3 replicas of each partition; rebalancer enabled\n");
  tell(1, { version: 6, roles: [VOTER, LEARNER, VOTER] });
  t.match((await status(t, 1, all())).text, "node 2 (http://node-2) knows membership version 6");
  tell(0, { leaders: [null, null, null, null, null, null, null] });
  second.answers.set("GetMembership", "silence");
  const silent = await status(t, 1, all());
  t.match(silent.text, /! the node at http:\/\/node-2 cannot be reached: no answer within \d+ ms/);
  t.match(silent.text, "! partitions 0, 1, 2, 3, 4, 5, 6 have no leader\n");
  t.match(silent.text, "! partitions 1, 2, 3, 4, 5, 6 have no majority of voters");
});

t.test("what the nodes tell each other stands below; version and uptime of any wire", async (t) => {
  const alarms = ["Partition 4 waits: no node may take the replica."];
  tell(0, { alarms });
  tell(1, { ready: false, alarms: [] });
  const { text, document } = await status(t, 1, all());
  t.match(text, `\n\nWhat the nodes tell each other:\n- ${alarms[0]}`);
  t.match(text, /^ready +1 +Voter .* 0\.7 +1m 1s$/m);
  t.match(text, "! node 2 (http://node-2) is not ready: catching-up\n");
  t.match(document, { alarms });
});

t.test("no node answers, no node may be asked", async (t) => {
  const dead = await batch.run(["-c", third.endpoint, "--cluster-status"]);
  t.match(dead, { exit: 3, stdout: "" });
  t.match(dead.stderr, /^error: no node can be reached: http:\S+: connection refused\n$/);
  second.answers.set("GetMembership", { status: 16 });
  const refused = await batch.run(["-c", second.endpoint, "--cluster-status", "--format=json"]);
  t.match(refused, { exit: 4, stdout: "", stderr: /"code":"unauthenticated"/ });
  const piped = await batch.run(["-c", first.endpoint, "--cluster-status", "--watch"]);
  t.match(piped, { exit: 2, stderr: /--watch needs a terminal/ });
});

t.test("a real node: version and uptime where the endpoint speaks REST", async (t) => {
  const flags = nodeFlags(directory.path, "--initial-cluster-partitions=4").map((flag) =>
    flag === "--https-port=off" ? "--https-port=0" : flag,
  );
  const server = new ServerProcess(flags);
  const { grpc, https } = await server.ready();
  const plain = await batch.run(["-c", grpc, "--cluster-status"]);
  t.match(plain, { exit: 0, stderr: "" }, plain.stdout);
  t.match(plain.stdout, /^healthy: 1 node\(s\), 1 ready; membership version \d+\n/);
  t.match(plain.stdout, "Partitions: 5 of 5 have a leader\n");
  t.match(plain.stdout, "full, every partition on the one voter");
  const rest = await batch.run(["-c", `https://${https}`, "--cluster-status"]);
  t.match(rest.stdout, /\nready +1 +Voter +5 +4 +\S+ +https:\S+ +\d+\.\d+\.\d+ +\d+s\n/);
  const twice = await batch.run(["-c", `https://${https},${grpc}`, "--cluster-status"]);
  t.match(twice.stdout, /^healthy: 1 node\(s\)/, "one node under two addresses is one node");
  const shell = await runCli(["-c", grpc], {}, "cluster status\n");
  t.match(shell.stdout, /\nhealthy: 1 node\(s\)/);
  t.notMatch(shell.stdout, /\x1b/);
  await server.stop();
});

t.test("a terminal: colours, --watch until Ctrl+C", async (t) => {
  tell(0);
  tell(1);
  const words = ["-c", all(), "--cluster-status"];
  const once = await Terminal.start([process.execPath, cliMain, ...words], {}, 120);
  open.add(once);
  t.equal(await once.ended(), 1);
  t.match(await once.raw(), "\x1b[31mDEGRADED\x1b[0m: 3 node(s)");
  t.match(await once.raw(), "\n\x1b[32mready\x1b[0m");
  const plain = await Terminal.start([process.execPath, cliMain, ...words], { NO_COLOR: "1" }, 120);
  open.add(plain);
  t.equal(await plain.ended(), 1);
  t.notMatch(await plain.raw(), /\x1b\[3/);
  const watch = await Terminal.start([process.execPath, cliMain, ...words, "--watch"], {}, 120);
  open.add(watch);
  await watch.see("every 2 s, Ctrl\\+C ends");
  await watch.see("1 unreachable");
  const before = first.count("GetMembership");
  tell(0, { leaders: [0, 0, 0, 0, 0, 0, 0] });
  tell(1, { leaders: [0, 0, 0, 0, 0, 0, 0] });
  await watch.see("ready +1 +Voter +7 ");
  t.ok(first.count("GetMembership") > before);
  await watch.send("\x03");
  t.equal(await watch.ended(), 1, "that of the last view");
  const raw = await watch.raw();
  t.ok(raw.lastIndexOf("\x1b[?1049l") > raw.lastIndexOf("\x1b[?1049h"), "the screen is given back");
  t.ok(raw.lastIndexOf("DEGRADED") > raw.lastIndexOf("\x1b[?1049l"), "the last view stays");
});

t.test("a narrow window, uptimes, nodes that the member list does not pair", (t) => {
  t.equal(uptimeText(0n), "0s");
  t.equal(uptimeText(61_000n), "1m 1s");
  t.equal(uptimeText(((3n * 24n + 4n) * 60n + 5n) * 60_000n), "3d 4h");
  const answered: NodeReport = {
    url: "http://a:8083",
    problem: "",
    isUnreachable: false,
    error: null,
    answers: {
      health: { ready: true, details: null },
      membership: {
        membershipVersion: 3n,
        members: [1, 2, 3].map((id) => ({
          endpoint: `${"abc"[id - 1]}:8084`,
          nodeId: id,
          role: "Voter",
          joinedVersion: 1n,
        })),
        localRole: "Voter",
        initialized: true,
      },
      placement: {
        replicationFactor: 0,
        rebalancerEnabled: false,
        initialized: true,
        localEndpoint: "a:8084",
        hostedPartitionCount: 0,
        partitions: [],
      },
      routing: {
        initialized: true,
        schemaVersion: 1,
        hashAlgorithm: "",
        prefixSeparator: "/",
        groupSeparator: "|",
        hashPoolSize: 0,
        hashPartitionOffset: 1,
        sequenceStorageKeyFormat: "",
        reservedKeyPrefix: "",
        localEndpoint: "http://a:8083",
        snapshotVersion: 1n,
        coherent: true,
        keySpaces: [],
        leaders: [],
      },
      overview: null,
    },
  };
  const dead = (url: string): NodeReport => ({
    url,
    answers: null,
    problem: "connection refused",
    isUnreachable: true,
    error: null,
  });
  const states = (...urls: string[]): unknown[] =>
    clusterFacts([answered, ...urls.map(dead)]).nodes.map((node) => [
      node.nodeId,
      node.state,
      node.clientEndpoint,
    ]);
  t.same(states("http://c:1"), [
    [1, "ready", "http://a:8083"],
    [2, "not-asked", null],
    [3, "unreachable", "http://c:1"],
  ]);
  t.same(states("http://c:1", "http://elsewhere:1"), [
    [1, "ready", "http://a:8083"],
    [2, "unreachable", "http://elsewhere:1"],
    [3, "unreachable", "http://c:1"],
  ]);
  const unknown = [
    [2, "unreachable", null],
    [3, "unreachable", null],
  ];
  t.same(states("http://x:1", "http://y:1").slice(1), unknown, "which is which is not guessed");
  const lines = statusLines(clusterFacts([answered, dead("http://c:1")]), 40);
  t.ok(lines.includes("State:           UNREACHABLE"));
  t.equal(
    paintStatus("State:           UNREACHABLE"),
    "\x1b[31mState:           UNREACHABLE\x1b[0m",
  );
  t.equal(paintStatus("Node:            ready"), "Node:            ready");
  t.end();
});

t.test("5.5 the level, and what stands between it and the next", (t) => {
  const line = (level: number, ...supported: readonly number[]): string | null => {
    const nodes = supported.map((levelMax, at) => ({ nodeId: at + 1, levelMax }));
    return levelText(levelFacts({ level, nodes } as unknown as Overview));
  };
  t.equal(line(1, 1, 1, 1), "Level: 1");
  t.equal(line(1, 2, 2), "Level: 1; all nodes support 2: svc-cli --cluster-finalize raises it");
  t.equal(line(1, 2, 1, 2, 1), "Level: 1; others support more than nodes 2, 4");
  t.equal(line(1, 2, 1), "Level: 1; others support more than node 2");
  t.equal(line(1, 2, 0), "Level: 1", "of a node that said nothing, nothing is claimed");
  t.equal(line(0), null, "not initialized");
  t.equal(levelText(levelFacts(null)), null, "a node without an overview");
  t.end();
});
