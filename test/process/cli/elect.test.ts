/** elect, and elect and resign of the shell, as processes against a real node. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { cliMain, listenedCli, runCli, type Running } from "./programs.js";
import { Terminal } from "./terminal.js";

const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path));
const node = `http://${(await server.ready()).grpc}`;
const client = new SvcClient({ endpoints: node });

t.setTimeout(180_000);
t.teardown(async () => {
  await client.close();
  await endAll();
  directory.remove();
});

const INDENTED = /\n {4}/g;
/** Says what it sees and lives until it is told to go. */
const CHILD = `
    process.on("SIGTERM", () => {
      require("node:fs").writeFileSync(process.argv[1], String(Date.now()));
      process.exit(0);
    });
    const { SVC_ELECTION, SVC_ELECTION_VALUE, SVC_FENCING_TOKEN, SVC_LOCK_RESOURCE } = process.env;
    console.log("up", SVC_FENCING_TOKEN, SVC_ELECTION, SVC_ELECTION_VALUE, SVC_LOCK_RESOURCE);
    setInterval(() => {}, 1000);`.replace(INDENTED, "\n");

function start(...words: string[]): Running {
  return listenedCli(["-c", node, ...words]);
}

t.test("E1 elect runs its command while it leads, and exits with its code", async (t) => {
  const file = join(directory.path, "unused");
  const words = ["elect", "jobs", "--value", "host-7", "--expires", "3000"];
  const led = start(...words, "--", process.execPath, "-e", CHILD, file);
  const [, token] = await led.says(/up (\d+) jobs host-7 elections\/jobs\n/);
  const leader = await client.election("jobs").leader();
  t.match(leader, { epoch: BigInt(token ?? ""), valueText: "host-7" });
  const vain = await runCli(["-c", node, "elect", "jobs", "--wait", "50", "--", "true"]);
  t.match(vain, { exit: 1, stdout: "", stderr: "not leading\n" });
  const second = start("elect", "jobs", "--", "sh", "-c", "echo $SVC_FENCING_TOKEN; exit 3");
  led.child.kill("SIGTERM");
  t.equal((await led.ran).exit, 0, "the signal was the child's");
  t.match(await second.ran, { exit: 3 });
  t.ok(BigInt((await second.ran).stdout.trim()) > BigInt(token ?? ""), "E3");
  t.equal(await client.election("jobs").leader(), null);
});

t.test("E1 a lost leadership ends the command before anybody else can lead", async (t) => {
  const file = join(directory.path, "ended");
  const led = start(
    "elect",
    "lost",
    "--expires",
    "2000",
    "--",
    process.execPath,
    "-e",
    CHILD,
    file,
  );
  await led.says(/up /);
  await sleep(700);
  server.signal("SIGSTOP");
  const stoppedMs = Date.now();
  try {
    const ran = await led.ran;
    t.equal(ran.exit, 4, ran.stderr);
    t.match(ran.stderr, /ending the command \(SIGTERM/);
    t.ok(Number(readFileSync(file, "utf8")) - stoppedMs < 2000, "before its lease can have ended");
  } finally {
    server.signal("SIGCONT");
  }
});

t.test("E1 without a command it leads until a signal, and tells it in both forms", async (t) => {
  const led = start("elect", "plain", "--value", "me");
  const [, token, owner] = await led.says(/^f(\d+) leads ([0-9a-f]{32})\n$/);
  t.match(await client.election("plain").leader(), { ownerText: owner, valueText: "me" });
  const documents = start("elect", "plain", "--format", "json", "--value", "you");
  await sleep(200);
  led.child.kill("SIGINT");
  t.match(await led.ran, { exit: 130, stderr: "" });
  const [line] = await documents.says(/^.*\n/);
  const document = JSON.parse(line) as { readonly fencingToken: number };
  t.match(document, { name: "plain", isLeader: true, owner: /^[0-9a-f]{32}$/, note: "you" });
  t.ok(document.fencingToken > Number(token));
  documents.child.kill("SIGTERM");
  t.equal((await documents.ran).exit, 143);
  t.equal(await client.election("plain").leader(), null, "resigned");
  const leadership = await client.election("plain").campaign();
  const refused = await runCli(["-c", node, "elect", "plain", "--wait", "0"]);
  t.match(refused, { exit: 1, stdout: "not leading\n" });
  const words = ["-c", node, "elect", "plain", "--wait", "0", "--format=json"];
  t.same(JSON.parse((await runCli(words)).stdout), {
    name: "plain",
    isLeader: false,
    fencingToken: 0,
    owner: null,
    note: null,
  });
  await leadership.resign();
});

t.test("E1 when the leader's process is killed, the next one leads after its lease", async (t) => {
  const leaseMs = 3000;
  const led = start("elect", "killed", "--expires", String(leaseMs));
  const [, token] = await led.says(/^f(\d+) leads /);
  const next = start("elect", "killed");
  while ((await client.locks.info("elections/killed"))?.waiters !== 1) await sleep(10);
  led.child.kill("SIGKILL");
  const killedMs = performance.now();
  const [, after] = await next.says(/^f(\d+) leads /);
  const leases = (performance.now() - killedMs) / leaseMs;
  t.ok(Number(after) > Number(token));
  // The lease is over within one of its length; the rest is for a busy machine.
  t.ok(leases < 3, `the next one leads after ${leases.toFixed(2)} leases`);
  t.match(await client.election("killed").leader(), { epoch: BigInt(after ?? "") });
  next.child.kill("SIGTERM");
  await next.ran;
});

t.test("E1 --keep: after a loss it campaigns again, and the command runs again", async (t) => {
  const file = join(directory.path, "kept");
  const words = ["elect", "kept", "--keep", "--expires", "1500", "--"];
  const led = start(...words, process.execPath, "-e", CHILD, file);
  const [, token] = await led.says(/^up (\d+) /);
  await client.locks.forceUnlock("elections/kept", { fencingToken: Number(token), reason: "test" });
  const [, again] = await led.says(/\nup (\d+) /);
  t.ok(Number(again) > Number(token), "E3");
  led.child.kill("SIGTERM");
  t.match(await led.ran, { exit: 0, stderr: /campaigning again/ });
  const plain = start("elect", "kept-plain", "--expires", "1500");
  const [, epoch] = await plain.says(/^f(\d+) leads/);
  await client.locks.forceUnlock("elections/kept-plain", {
    fencingToken: Number(epoch),
    reason: "test",
  });
  t.match(await plain.ran, { exit: 4, stderr: /the leadership is lost/ }, "without --keep it ends");
});

t.test("the shell elects and resigns, and resigns what is left when it ends", async (t) => {
  const lines = [
    "elect shell/a host-1",
    "elect shell/a host-2",
    "resign shell/a",
    "resign shell/a",
  ];
  const ran = await runCli(["-c", node], {}, `${[...lines, "elect shell/b", ""].join("\n")}`);
  t.match(ran, { exit: 1, stderr: "" }, "the first that did not succeed: the second resign");
  const led = String.raw`f(\d+) leads ([0-9a-f]{32})\n\n`;
  const forms = new RegExp(
    `${led}f\\1 leads \\2\n\nresigned\n\nnot leading\n\n${led}` +
      String.raw`Disposing persistent lock \4...\n$`,
  );
  t.match(ran.stdout, forms);
  t.equal(await client.election("shell/b").leader(), null);
  const usage = await runCli(["-c", node], {}, "elect\nresign a b\n");
  t.match(usage, { exit: 2, stderr: /usage: elect <name> \[value\]\n.*usage: resign <name>/s });
});

t.test("who waits at a terminal sees the place", async (t) => {
  const waits = [
    ["elections/seen", "elect", "seen"],
    ["seen/lock", "--lock", "seen/lock", "--expires", "1000", "--wait", "60000"],
    ["seen/run", "lock-run", "seen/run", "--expires", "1000", "--wait", "60000", "--", "true"],
  ] as const;
  await Promise.all(
    waits.map(async ([resource, ...words]) => {
      const held = await client.locks.acquire(resource, { leaseMs: 60_000 });
      const command = [process.execPath, cliMain, "-c", node, ...words];
      const screen = await Terminal.start(command, { HOME: directory.path }, 100);
      await screen.see(`waiting for the lock ${resource}: place 1 of 1`);
      await screen.send("\u0003");
      t.not(await screen.ended(), 0, resource);
      screen.close();
      await held.release();
    }),
  );
});
