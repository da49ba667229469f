/** Watches of svc-cli and its shell, and elect --observe, as processes against a real node. */
import t from "tap";
import { WATCH_DOCUMENT } from "../../../src/cli/commands/schemas.js";
import { SvcClient } from "../../../src/client/mod.js";
import { endAll, nodeFlags, ServerProcess, temporaryDirectory } from "../cluster/server-process.js";
import { cliMain, listenedCli, misfits, runCli, type Running } from "./programs.js";
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

/** Starts a watch that has the state first, so that its output says when it stands. */
async function started(ready: RegExp, ...words: string[]): Promise<Running> {
  const running = listenedCli(["-c", node, ...words]);
  await running.says(ready);
  return running;
}

t.test("a line per event of keys, locks and sequences, and the exit codes", async (t) => {
  await client.kv.set("w/a", "old");
  const keys = await started(/old\n/, "--watch-prefix", "w/", "--initial", "--count", "4");
  await client.kv.set("w/b", "new");
  await client.kv.set("w/b", new Uint8Array([255]));
  await client.kv.delete("w/a");
  t.match(await keys.ran, {
    exit: 0,
    stdout: "r0 set w/a old\nr0 set w/b new\nr1 set w/b base64:/w==\nr1 deleted w/a\n",
    stderr: "",
  });
  const held = await client.locks.acquire("w/lock", { leaseMs: 60_000, owner: "me" });
  const locks = await started(/ me\n/, "--watch-locks", "w/", "--initial");
  await held.release();
  await locks.says(/f0 unlocked w\/lock\n/);
  locks.child.kill("SIGINT");
  t.match(await locks.ran, { exit: 130, stdout: "f0 locked w/lock me\nf0 unlocked w/lock\n" });
  await client.sequences.create("w/s");
  const words = ["-c", node, "--watch-sequence", "w/s", "--initial", "--for", "0.5"];
  t.match(await runCli(words), { exit: 0, stdout: /^r\d+ sequence-created w\/s\n$/ });
  const timed = ["-c", node, "--watch-key", "w/none", "-t", "0.5"];
  t.match(await runCli(timed), { exit: 3, stdout: "", stderr: /^error: .*\n$/ });
});

t.test("JSON: a document per batch, as described, whose cursor goes on", async (t) => {
  await client.kv.set("j/a", "x");
  const words = ["-c", node, "--watch-bucket", "j", "--format", "json"];
  const first = await runCli([...words, "--initial", "--for", "0.5"]);
  const documents = first.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Batch);
  interface Batch {
    readonly cursor: string | null;
  }
  for (const document of documents) t.same(misfits(WATCH_DOCUMENT, document), []);
  t.match(documents[0], { events: [{ type: "set", name: "j/a", value: "eA==" }], initial: true });
  const cursor = documents.at(-1)?.cursor ?? "";
  await client.kv.set("j/b", "y");
  const next = await runCli([...words, "--cursor", cursor, "--count", "1"]);
  t.match(JSON.parse(next.stdout), { events: [{ name: "j/b" }] });
  const bad = await runCli(["-c", node, "--watch-key", "k", "--cursor", "bad"]);
  t.match(bad, { exit: 1, stdout: "" });
});

t.test("elect --observe tells who leads, and that nobody does", async (t) => {
  const seen = await started(/- no leader\n/, "elect", "seen", "--observe");
  const leadership = await client.election("seen").campaign({ value: "host-7" });
  await seen.says(/f\d+ [0-9a-f]{32} host-7\n/);
  await leadership.resign();
  await seen.says(/host-7\n- no leader\n/);
  seen.child.kill("SIGINT");
  t.equal((await seen.ran).exit, 130);
  const json = await started(/\n/, "elect", "seen", "--observe", "--format=json");
  json.child.kill("SIGTERM");
  t.same(JSON.parse((await json.ran).stdout), {
    ...{ name: "seen", isLeader: false, fencingToken: 0, owner: null, note: null },
  });
});

t.test("the shell watches until enough, or until Ctrl+C, and goes on", async (t) => {
  await client.kv.set("sh/a", "one");
  const ran = await runCli(["-c", node], {}, "watch key sh/a --initial --count 1\nget sh/a\n");
  t.match(ran, { exit: 0, stdout: /\nr0 set sh\/a one\n\nr0 one \d+ms\n\n$/ });
  const screen = await Terminal.start(
    [process.execPath, cliMain, "-c", node],
    { HOME: directory.path },
    100,
  );
  await screen.see("svc> ");
  await screen.send("watch prefix sh/ --initial\r");
  await screen.see("r0 set sh/a one");
  await screen.send("\u0003");
  await screen.see("svc> ");
  await screen.send("exit\r");
  t.equal(await screen.ended(), 0);
  screen.close();
});
