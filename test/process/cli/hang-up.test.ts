/** The terminal of an interactive shell goes away: the shell ends by itself and gives its locks back. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ServerProcess, endAll, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";
import { cliMain, runCli } from "./programs.js";
import { Terminal } from "./terminal.js";

t.setTimeout(120_000);
const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path, "--initial-cluster-partitions=4"));
const node = `http://${(await server.ready()).grpc}`;
const open = new Set<Terminal>();
t.teardown(async () => {
  for (const terminal of open) terminal.close();
  await endAll();
  directory.remove();
});

/** Ended by SIGHUP, whether or not the terminal sent one. */
const HUNG_UP = -1;

/** A shell on a terminal of its own that holds two locks. */
async function shellWithLocks(name: string, endpoint: string, signals: boolean): Promise<Terminal> {
  const command = [process.execPath, cliMain, "-c", endpoint];
  const home = { HOME: join(directory.path, `home-${name}`) };
  const terminal = await Terminal.start(command, home, 100, signals);
  open.add(terminal);
  await terminal.see("svc> ");
  for (const lock of ["a", "b"]) {
    await terminal.send(`lock ${name}/${lock} 600000\r`);
    await terminal.see("acquired [0-9a-f]{32}");
    await terminal.see(`svc [^\\n]*${name}/${lock} f\\d+\\]> `);
  }
  return terminal;
}

for (const signals of [true, false]) {
  const how = signals ? "with SIGHUP" : "without a signal";

  t.test(`hung up ${how}: ends by itself, the locks are released`, async (t) => {
    const name = `gone-${signals}`;
    const terminal = await shellWithLocks(name, node, signals);
    await terminal.hangUp();
    t.equal(await terminal.ended(), HUNG_UP);
    for (const lock of ["a", "b"]) {
      const seen = await runCli(["-c", node, "--get-lock", `${name}/${lock}`]);
      t.match(seen, { exit: 1, stdout: "not found\n" }, lock);
    }
  });

  t.test(`hung up ${how} while a question is open: that is no answer`, async (t) => {
    const name = `asked-${signals}`;
    const terminal = await shellWithLocks(name, node, signals);
    await terminal.send(`create-sequence ${name}\r`);
    await terminal.see("created");
    await terminal.send(`delete-sequence ${name}\r`);
    await terminal.see("Delete the sequence .*\\?");
    await terminal.hangUp();
    t.equal(await terminal.ended(), HUNG_UP);
    t.match(await runCli(["-c", node, "--get-sequence", name]), { exit: 0 });
    const seen = await runCli(["-c", node, "--get-lock", `${name}/b`]);
    t.match(seen, { exit: 1, stdout: "not found\n" });
  });

  t.test(`hung up ${how} after the service went: ends by itself all the same`, async (t) => {
    const own = temporaryDirectory();
    const dying = new ServerProcess(nodeFlags(own.path));
    t.teardown(async () => {
      await dying.kill();
      own.remove();
    });
    const endpoint = `http://${(await dying.ready()).grpc}`;
    const terminal = await shellWithLocks(`dead-${signals}`, endpoint, signals);
    await dying.kill();
    await terminal.hangUp();
    t.equal(await terminal.ended(), HUNG_UP);
  });
}

t.test("lock-run without its terminal still kills the command of a lost lock", async (t) => {
  const own = temporaryDirectory();
  const dying = new ServerProcess(nodeFlags(own.path));
  t.teardown(async () => {
    await dying.kill();
    own.remove();
  });
  const file = join(own.path, "pid");
  const stubborn = `trap "" TERM; echo $$ > ${file}; echo up; while :; do sleep 0.1; done`;
  const lock = ["lock-run", "lost", "--expires", "2000", "--grace", "300"];
  const endpoint = `http://${(await dying.ready()).grpc}`;
  const words = [cliMain, "-c", endpoint, ...lock, "--", "sh", "-c", stubborn];
  const terminal = await Terminal.start([process.execPath, ...words], {}, 100, false);
  open.add(terminal);
  await terminal.see("up");
  const child = Number(readFileSync(file, "utf8"));
  await terminal.hangUp();
  await dying.kill();
  t.equal(await terminal.ended(), HUNG_UP);
  t.throws(() => process.kill(child, 0), { code: "ESRCH" });
});

t.test("the reader of a piped session goes away: its lock is released", async (t) => {
  const words = ["-c", `'${node}'`].join(" ");
  const lines = `printf 'lock piped/a 600000\\n'; sleep 1; printf 'get piped/a\\nget piped/b\\n'; sleep 20`;
  const piped = `(${lines}) | '${process.execPath}' '${cliMain}' ${words} | head -n 3 >/dev/null`;
  const child = spawn("sh", ["-c", piped], { stdio: "ignore", detached: true });
  t.teardown(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  });
  const answers: string[] = [];
  const held = async (): Promise<boolean> => {
    const { stdout } = await runCli(["-c", node, "--get-lock", "piped/a"]);
    answers.push(stdout);
    return stdout !== "not found\n";
  };
  const deadline = performance.now() + 15_000;
  while (!(await held()) && performance.now() < deadline);
  while ((await held()) && performance.now() < deadline);
  t.equal(answers.at(-1), "not found\n", "long before its lease ends");
  t.ok(answers.length > 1);
});
