/** The interactive shell on a pseudo-terminal, as a person uses it: what is on the screen after each step. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { ServerProcess, endAll, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";
import { cliMain, runCli } from "./programs.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import { LOST, StandIn, reply, type Reply } from "../../doubles/server/stand-in.js";
import { Terminal } from "./terminal.js";

t.setTimeout(300_000);
const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path, "--initial-cluster-partitions=4"));
const node = `http://${(await server.ready()).grpc}`;
const open = new Set<Terminal>();
t.teardown(async () => {
  for (const terminal of open) terminal.close();
  await endAll();
  directory.remove();
});

const CTRL_C = "\x03";
const CTRL_D = "\x04";
const UP = "\x1b[A";
const LEFT = "\x1b[D";
const PROMPT = "svc> ";
const UNAUTHENTICATED = 16;

let homes = 0;
function newHome(): string {
  const home = join(directory.path, `home${homes++}`);
  mkdirSync(home);
  return home;
}

async function shell(
  home: string,
  columns = 80,
  words: readonly string[] = ["-c", node],
): Promise<Terminal> {
  const terminal = await Terminal.start(
    [process.execPath, cliMain, ...words],
    { HOME: home },
    columns,
  );
  open.add(terminal);
  await terminal.see(PROMPT);
  return terminal;
}

/** Types a line and waits until its answer and the next prompt are there. */
async function enter(terminal: Terminal, line: string, answer: string): Promise<void> {
  await terminal.send(`${line}\r`);
  await terminal.see(answer);
  await terminal.see(String.raw`\nsvc[^\n]*> `);
}

async function leave(t: Pick<Test, "equal">, terminal: Terminal): Promise<void> {
  t.equal(await terminal.ended(), 0, terminal.screen);
  open.delete(terminal);
  terminal.close();
}

t.test(
  "a first session: banner, answers with their time, help, locks in the prompt, release",
  async (t) => {
    const home = newHome();
    const terminal = await shell(home, 100);
    t.match(
      terminal.screen,
      /^svc shell \d+\.\d+\.\d+\nservice: http:\S+; "help" lists the commands/,
    );
    await enter(terminal, "set config/color blue", "r0 set \\d+ms");
    await enter(terminal, "get config/color", "r0 blue \\d+ms");
    await enter(terminal, "get config/none", "not found");
    await enter(terminal, "gte config/color", "unknown command: gte\ndid you mean get");
    await enter(terminal, "lock printer 60000", "f0 acquired [0-9a-f]{32}");
    t.match(terminal.screen, /f0 acquired [0-9a-f]{32}\n\(\d+ ms\)\n\nsvc \[printer f0\]>/);
    await enter(terminal, "lock printer 60000", "not acquired");
    await enter(terminal, "extend-lock printer 60000", "f0 extended [0-9a-f]{32}");
    await enter(terminal, "elock scratch 1", "f\\d+ acquired");
    await terminal.send("\r");
    await terminal.see("scratch f\\d+\\?");
    await enter(terminal, "unlock printer", "unlocked");
    await enter(terminal, "eunlock scratch", "(unlocked|not acquired)");
    await enter(terminal, "help lock", "lock <resource> <ms>");
    await enter(terminal, "lock kept 60000", "acquired");
    await terminal.send(CTRL_D);
    await terminal.see("Disposing persistent lock [0-9a-f]{32}\\.\\.\\.");
    await leave(t, terminal);
    t.match(await runCli(["-c", node, "--get-lock", "kept"]), { stdout: "not found\n" });
    const path = join(home, ".local", "state", "svc", "history");
    t.equal(statSync(path).mode & 0o777, 0o600);
    t.match(readFileSync(path, "utf8"), /^set config\/color blue\nget config\/color\n/);
  },
);

t.test(
  "history lasts across sessions, completion knows commands, options and seen names",
  async (t) => {
    const home = newHome();
    const first = await shell(home);
    await enter(first, "set history/key 1", "r0 set");
    await first.send("exit\r");
    await leave(t, first);
    const terminal = await shell(home);
    await terminal.send(UP + UP);
    await terminal.see("set history/key 1");
    await terminal.settle();
    t.equal(terminal.lastLine(), "svc> set history/key 1");
    await terminal.send(`${CTRL_C}`);
    await terminal.see(PROMPT);
    // A tab completes when it is the last key so far: inside a paste it is only a character.
    await terminal.send("sca\t");
    await terminal.see("scan-by-prefix ");
    await terminal.send(CTRL_C);
    await terminal.see(PROMPT);
    await terminal.send("get his\t");
    await terminal.see("get history/key ");
    await terminal.send("--rev\t");
    await terminal.see("--revision ");
    await terminal.send("0\r");
    await terminal.see("r0 1 \\d+ms");
    await terminal.see(PROMPT);
    await terminal.send("backup \t");
    await terminal.settle();
    await terminal.send("\t");
    await terminal.see("coordinated[\\s\\S]*gc\\s+svc> backup");
    await terminal.send(CTRL_C);
    await terminal.see("\\^C\\s+svc> ");
    await terminal.send("quit\r");
    await leave(t, terminal);
  },
);

t.test("Ctrl+C clears a line with text and leaves on an empty one; Ctrl+D leaves", async (t) => {
  const terminal = await shell(newHome());
  await terminal.send("delete everything");
  await terminal.see("everything");
  await terminal.send(CTRL_C);
  await terminal.see("\\^C\n+svc> ");
  await enter(terminal, "set after/ctrl-c 1", "r0 set");
  await terminal.send(CTRL_C);
  await leave(t, terminal);
  t.match(await runCli(["-c", node, "--get", "after/ctrl-c"]), { stdout: "r0 get 1\n" });
});

t.test("long lines, wide characters and a narrow window can be edited", async (t) => {
  const terminal = await shell(newHome(), 30);
  const value = "abcdefghij".repeat(12);
  await terminal.send(`set narrow ${value}`);
  await terminal.see("j$|j");
  await terminal.settle();
  const rows = terminal.screen.split("\n");
  t.ok(rows.every((row) => [...row].length <= 30));
  t.match(terminal.screen.replaceAll("\n", ""), `svc> set narrow ${value}`);
  await terminal.send("\r");
  await terminal.see("r0 set \\d+ms");
  await terminal.see(PROMPT);
  await terminal.send(`set wide 日本語テキスト${LEFT}${LEFT}\x7f`);
  await terminal.settle();
  t.equal(terminal.lastLine(), "svc> set wide 日本語テスト".slice(0, 30));
  await terminal.send("\r");
  await terminal.see("r0 set");
  await terminal.see(PROMPT);
  await terminal.resize(60);
  await terminal.settle();
  await enter(terminal, "get wide", "r0 日本語テスト \\d+ms");
  await enter(terminal, "cluster members", "Endpoint");
  await terminal.resize(24);
  await terminal.settle();
  await terminal.send("cluster members\r");
  await terminal.see("Endpoint: +127");
  await terminal.see(PROMPT);
  await terminal.send(CTRL_D);
  await leave(t, terminal);
  const stored = await runCli(["-c", node, "--get", "narrow"]);
  t.equal(stored.stdout, `r0 get ${value}\n`, "what was typed is what was stored");
});

t.test("a paste of several lines runs line by line and keeps its unfinished rest", async (t) => {
  const terminal = await shell(newHome());
  await terminal.send("set paste/a 1\rset paste/b 2\rget paste");
  await terminal.see("r0 set[\\s\\S]*r0 set");
  await terminal.see("svc> get paste");
  await terminal.send("/b\r");
  await terminal.see("r0 2 \\d+ms");
  await terminal.see(PROMPT);
  await terminal.send(CTRL_D);
  await leave(t, terminal);
});

t.test("stored control characters cannot act on the terminal", async (t) => {
  const evil = "\x1b[2J\x1b]0;title\x07";
  t.match(await runCli(["-c", node, "--set", "evil", `--value=${evil}`]), { exit: 0 });
  const terminal = await shell(newHome());
  await enter(terminal, "get evil", String.raw`r0 \\u001b\[2J\\u001b\]0;title\\u0007 \d+ms`);
  t.notOk((await terminal.raw()).includes("\x1b]0;"));
  await terminal.send(CTRL_D);
  await leave(t, terminal);
  t.match(
    await runCli(["-c", node, "--get", "evil"]),
    { stdout: `r0 get ${evil}\n` },
    "a pipe gets it as it is",
  );
});

t.test("several locks: leaving releases them without a question", async (t) => {
  const terminal = await shell(newHome());
  await enter(terminal, "lock several/a 60000", "acquired");
  await enter(terminal, "elock several/a 60000", "acquired");
  t.match(terminal.lastLine(), /^svc \[several\/a f0, e:several\/a f\d+\]> ?$/);
  await terminal.send(CTRL_D);
  await terminal.see("Disposing persistent lock[\\s\\S]*Disposing ephemeral lock");
  await leave(t, terminal);
  t.match(await runCli(["-c", node, "--get-lock", "several/a"]), { stdout: "not found\n" });
});

t.test(
  "confirmation, choice of an endpoint, secret: asked on the terminal, keys are not doubled",
  async (t) => {
    const terminal = await shell(newHome(), 80, ["-c", `${node},http://127.0.0.1:1`]);
    await enter(terminal, "create-sequence asked", "r0 created asked");
    await terminal.send("delete-sequence asked\r");
    await terminal.see("Delete the sequence asked\\?");
    await terminal.send("n");
    await terminal.see(PROMPT);
    await terminal.send("delete-sequence asked\r");
    await terminal.see("Delete the sequence asked\\?");
    await terminal.send("y");
    await terminal.see("deleted");
    await terminal.see(PROMPT);
    await terminal.send("cluster leave\r");
    await terminal.see("Which node shall leave\\?");
    await terminal.send("\r");
    await terminal.see("Remove http://\\S+ from the cluster\\?");
    await terminal.send("y");
    await terminal.see("Outcome RefusedInsufficientVoters");
    await terminal.see(PROMPT);
    await enter(terminal, "get keys-are-not-doubled", "not found");
    await terminal.send(CTRL_D);
    await leave(t, terminal);
  },
);

t.test("a token is asked for once and not shown", async (t) => {
  const own = temporaryDirectory();
  const token = "admin-token-0123456789ab";
  writeFileSync(join(own.path, "tokens"), `admin ada ${tokenDigestText(token)}\n`, { mode: 0o600 });
  const secured = new ServerProcess(
    nodeFlags(
      join(own.path, "data"),
      `--auth-tokens-file=${join(own.path, "tokens")}`,
      "--allow-insecure",
    ),
  );
  t.teardown(async () => {
    await secured.kill();
    own.remove();
  });
  const terminal = await shell(newHome(), 80, ["-c", (await secured.ready()).grpc]);
  await terminal.send("set secret 1\r");
  await terminal.see("asks for a token");
  await terminal.send(`${token}\r`);
  await terminal.see("r0 set");
  await terminal.see(PROMPT);
  await enter(terminal, "get secret", "r0 1");
  t.notOk((await terminal.raw()).includes(token));
  await terminal.send(CTRL_D);
  await leave(t, terminal);
});

t.test("no token is asked for when an earlier try may have been done", async (t) => {
  const stranger = await StandIn.bare();
  t.teardown(() => stranger.stop());
  stranger.answers.set("TryDeleteKeyValue", (_request, number) =>
    number === 1 ? LOST : { status: UNAUTHENTICATED },
  );
  const terminal = await shell(newHome(), 80, ["-c", stranger.endpoint]);
  await enter(terminal, "delete k", "outcome is unknown");
  t.equal(stranger.count("TryDeleteKeyValue"), 2, "not repeated once more");
  t.notMatch(await terminal.raw(), /asks for a token/);
  await terminal.send(CTRL_D);
  t.equal((await terminal.ended()) === null, false);
  open.delete(terminal);
  terminal.close();
});

t.test("an endpoint that cannot be reached is shown after a second, and wiped", async (t) => {
  const words = ["-c", "http://127.0.0.1:1,http://127.0.0.1:2", "-t", "3", "--get", "k"];
  const terminal = await Terminal.start([process.execPath, cliMain, ...words], {}, 100);
  open.add(terminal);
  await terminal.see("waiting: cannot reach http://127.0.0.1:1: connection refused");
  t.equal(await terminal.ended(), 3);
  await terminal.settle();
  t.match(terminal.screen, /^error: kv.get: no answer [^$]*connection refused\n*$/);
  open.delete(terminal);
  terminal.close();
});

t.test(
  "8.2 a split shows on a terminal where its move is, and wipes it for the answer",
  async (t) => {
    const node = await StandIn.bare();
    t.teardown(() => node.stop());
    const move = { Kind: "split", Source: 1, Target: 17, Phase: "copying", Attempt: 2 };
    const space = {
      KeySpace: "users",
      RoutingMode: "KeyRange",
      Moves: [{ ...move, Reason: "none" }],
    };
    node.answers.set(
      "GetRanges",
      reply(cluster.GrpcGetRangesResponse, { Initialized: true, KeySpaces: [space] }),
    );
    let end: (answer: Reply) => void = () => undefined;
    node.answers.set("SplitRange", () => new Promise((resolve) => (end = resolve)));
    const words = ["-c", node.endpoint, "--split-range", "users", "--split-key", "users/m"];
    const terminal = await Terminal.start([process.execPath, cliMain, ...words], {}, 100);
    open.add(terminal);
    await terminal.see("split users: to partition 17, copying, attempt 2");
    end(
      reply(cluster.GrpcSplitRangeResponse, {
        ...{ Success: true, Status: "Succeeded", Determinate: true },
        ...{ NewPartitionId: 17, NewGeneration: 2 },
      }),
    );
    t.equal(await terminal.ended(), 0);
    await terminal.settle();
    t.match(terminal.screen, /^Split: users at users\/m — partition 17 at generation 2\.\n*$/);
    open.delete(terminal);
    terminal.close();
  },
);

t.test(
  "Ctrl+C ends a command that hangs, not the session; SIGTERM releases the locks",
  async (t) => {
    const terminal = await shell(newHome());
    await enter(terminal, "lock hang 60000", "acquired");
    server.signal("SIGSTOP");
    await terminal.send("get hang --timeout 60\r");
    await terminal.see("waiting for http");
    await terminal.send(CTRL_C);
    await terminal.see("error: interrupted");
    server.signal("SIGCONT");
    await terminal.see("svc \\[hang f0\\]> ");
    await enter(terminal, "get hang", "not found");
    await terminal.signal("SIGTERM");
    await terminal.see("Disposing persistent lock");
    t.equal(await terminal.ended(), 143);
    t.match(await runCli(["-c", node, "--get-lock", "hang"]), { stdout: "not found\n" });
  },
);
