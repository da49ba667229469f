/** svc-cli against a real node: every operation in both formats, and every way in which it can fail (P-151). */
import { spawn } from "node:child_process";
import { createServer, type Server } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { COMMANDS, findCommand } from "../../../src/cli/commands/table.js";
import type { CommandSpec } from "../../../src/cli/commands/command.js";
import { ERROR_DOCUMENT } from "../../../src/cli/commands/schemas.js";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { ServerProcess, endAll, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";
import { Batch, cliMain, ending, misfits, runCli, startCli, type Ran } from "./programs.js";
import {
  ADMINISTRATION_STEPS,
  KV_STEPS,
  LOCK_STEPS,
  SEQUENCE_STEPS,
  type Step,
} from "./scenario.js";

t.setTimeout(300_000);
const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path, "--initial-cluster-partitions=4"));
const node = `http://${(await server.ready()).grpc}`;
const batch = new Batch();
t.teardown(async () => {
  batch.close();
  await endAll();
  directory.remove();
});

const STEPS = [...KV_STEPS, ...LOCK_STEPS, ...SEQUENCE_STEPS, ...ADMINISTRATION_STEPS];

function filled(text: string, name: string): string {
  return text.replaceAll("NAME", name).replaceAll("NODE", node);
}

function pattern(expression: RegExp, name: string): RegExp {
  const escaped = node.replace(/[.]/g, "\\.");
  return new RegExp(expression.source.replaceAll("NAME", name).replaceAll("NODE", escaped));
}

function commandOf(words: readonly string[]): CommandSpec {
  const found = words.map(findCommand).find((command) => command !== null);
  if (found === undefined || found === null) throw new Error(words.join(" "));
  return found;
}

async function runStep(step: Step, name: string, format: string): Promise<Ran> {
  const words = step.words.map((word) => filled(word, name));
  return batch.run(["-c", node, "--format", format, ...words]);
}

t.test(
  "every operation has a step that succeeds (or is in another file) and one that is refused",
  (t) => {
    for (const command of COMMANDS) {
      const steps = STEPS.filter((step) => commandOf(step.words) === command);
      // Of several nodes, and with files of their own: bundle.test.ts, watching.test.ts.
      if (command.area === "Diagnosis" || command.area === "Watching") continue;
      const isBackup = command.area === "Backup";
      const canOnlySucceed = [
        "--cluster-members",
        // Degraded clusters are in status.test.ts.
        "--cluster-status",
        "--cluster-placement",
        "--ranges",
        "--merge-ranges",
      ];
      // A cluster of one never lets its node go, and no space of it is ever refused to be removed.
      const isOne = ["--cluster-leave", "--unregister-key-range"].includes(command.name);
      if (!isBackup && !["--cluster-leave", "--split-range"].includes(command.name)) {
        t.ok(
          steps.some((step) => step.exit === 0),
          `${command.name} succeeds`,
        );
      }
      if (!canOnlySucceed.includes(command.name) && !isOne) {
        t.ok(
          steps.some((step) => step.exit === 1),
          `${command.name} is refused`,
        );
      }
    }
    t.end();
  },
);

t.test("console answers", async (t) => {
  for (const step of STEPS) {
    const ran = await runStep(step, "c-", "console");
    const label = step.words.join(" ");
    const text = ran.stdout.replace(/\n$/, "");
    if (typeof step.console === "string") t.equal(text, filled(step.console, "c-"), label);
    else t.match(text, pattern(step.console, "c-"), label);
    t.equal(ran.exit, step.exit, `${label}: ${ran.stderr}`);
    t.notMatch(ran.stderr, /error:/, label);
  }
});

t.test("JSON documents: exactly one, as described, digit by digit", async (t) => {
  for (const step of STEPS) {
    const ran = await runStep(step, "j-", "json");
    const label = step.words.join(" ");
    t.equal(ran.exit, step.exit, `${label}: ${ran.stderr}`);
    t.equal(ran.stderr, "", label);
    t.equal(ran.stdout.split("\n").length, 2, `${label}: one line`);
    const document: unknown = JSON.parse(ran.stdout);
    t.same(misfits(commandOf(step.words).document, document), [], label);
    if (step.json instanceof RegExp) {
      t.match(ran.stdout.trim(), pattern(step.json, "j-"), label);
    } else {
      const wanted: unknown = JSON.parse(filled(JSON.stringify(step.json), "j-"));
      if (wanted === null || Array.isArray(wanted)) t.same(document, wanted, label);
      else t.match(document, wanted as object, label);
    }
  }
});

/** Words that make each operation complete, for failures that happen before or instead of an answer. */
function wordsOf(command: CommandSpec): string[] {
  const step = STEPS.find((candidate) => commandOf(candidate.words) === command);
  if (step === undefined && command.area === "Diagnosis") {
    const file = join(directory.path, "none");
    return command.kind === "file" ? [command.name, file] : [command.name];
  }
  if (command.area === "Watching") return [command.name, "w"];
  return (step?.words ?? []).filter((word) => word !== "--node" && word !== "NODE");
}

async function failures(
  t: Test,
  endpoint: string,
  more: readonly string[],
  check: (ran: Ran, format: string, label: string) => void,
): Promise<void> {
  await Promise.all(
    COMMANDS.flatMap((command) =>
      ["console", "json"].map(async (format) => {
        const words = wordsOf(command).map((word) => filled(word, "f-"));
        const ran = await batch.run(["-c", endpoint, "--format", format, ...more, ...words]);
        const label = `${command.name} ${format}`;
        t.equal(ran.stdout, "", `${label}: nothing on stdout`);
        if (format === "json") {
          t.same(
            misfits(ERROR_DOCUMENT, JSON.parse(ran.stderr.split("\n").at(-2) ?? "")),
            [],
            label,
          );
        } else t.match(ran.stderr, /^(note: .*\n)?error: [^\n]+\n$/, label);
        check(ran, format, label);
      }),
    ),
  );
}

t.test("P-151 unreachable is exit code 3, for every operation in both formats", async (t) => {
  const closed = createServer();
  const port = await new Promise<number>((resolve) => {
    closed.listen(0, "127.0.0.1", () => resolve((closed.address() as { port: number }).port));
  });
  await new Promise((resolve) => closed.close(resolve));
  await failures(t, `http://127.0.0.1:${port}`, ["-t", "0.5"], (ran, _format, label) => {
    t.equal(ran.exit, 3, `${label}: ${ran.stderr}`);
  });
});

t.test("an endpoint that cannot be reached is named with the reason", async (t) => {
  const taken = createServer(() => undefined);
  const silent = await new Promise<number>((resolve) => {
    taken.listen(0, "127.0.0.1", () => resolve((taken.address() as { port: number }).port));
  });
  t.teardown(() => taken.close());
  const refused = await batch.run(["-c", "127.0.0.1:1", "-t", "2", "--get", "k"]);
  t.match(refused, { exit: 3, stdout: "" });
  t.match(refused.stderr, /^error: cannot reach http:\/\/127.0.0.1:1: connection refused\n$/);
  const both = ["-c", `no-such-host.invalid,http://127.0.0.1:${silent}`, "-t", "2.5"];
  const named = await batch.run([...both, "--format", "json", "--get", "k"]);
  t.match(named.stderr, /cannot reach http:\/\/no-such-host.invalid:8083: /);
  t.match(named.stderr, new RegExp(`http://127.0.0.1:${silent} accepts connections`));
  for (const words of [
    ["lock-run", "r", "--expires", "5", "--", "true"],
    ["bench", "kv"],
  ]) {
    const ran = await runCli(["-c", "127.0.0.1:1", "-t", "1", ...words]);
    t.match(ran, { exit: 3, stderr: /connection refused/ }, words.join(" "));
  }
});

t.test("P-151 an unknown outcome is exit code 3 and says so, for every operation", async (t) => {
  // A node that accepts connections and never says a word more than HTTP/2 needs would be a model; a stopped
  // one is the real thing: the kernel accepts, nobody answers.
  const silent: Server = createServer(() => undefined);
  const port = await new Promise<number>((resolve) => {
    silent.listen(0, "127.0.0.1", () => resolve((silent.address() as { port: number }).port));
  });
  t.teardown(() => silent.close());
  await failures(t, `http://127.0.0.1:${port}`, ["-t", "0.5"], (ran, _format, label) => {
    t.equal(ran.exit, 3, `${label}: ${ran.stderr}`);
  });
  server.signal("SIGSTOP");
  try {
    await failures(t, node, ["-t", "1"], (ran, _format, label) => {
      t.equal(ran.exit, 3, `${label}: ${ran.stderr}`);
    });
  } finally {
    server.signal("SIGCONT");
  }
});

t.test(
  "tokens: from a file, from the variable; without or with too small a role exit code 4",
  async (t) => {
    const own = temporaryDirectory();
    const tokens = mkdtempSync(join(tmpdir(), "svc-tokens-"));
    t.teardown(() => rmSync(tokens, { recursive: true, force: true }));
    const reader = "reader-token-0123456789";
    const admin = "admin-token-0123456789ab";
    const text = `reader rita ${tokenDigestText(reader)}\nadmin ada ${tokenDigestText(admin)}\n`;
    writeFileSync(join(tokens, "tokens"), text, { mode: 0o600 });
    writeFileSync(join(tokens, "admin"), `${admin}\n`, { mode: 0o600 });
    writeFileSync(join(tokens, "spaced"), "two words", { mode: 0o600 });
    const secured = new ServerProcess(
      nodeFlags(own.path, `--auth-tokens-file=${join(tokens, "tokens")}`, "--allow-insecure").map(
        (flag) => (flag === "--https-port=off" ? "--https-port=0" : flag),
      ),
    );
    t.teardown(async () => {
      await secured.kill();
      own.remove();
    });
    const { grpc, https } = await secured.ready();
    const get = ["-c", grpc, "--get", "k"];
    t.match(await batch.run(get), { exit: 4, stdout: "", stderr: /^error: .*\n$/ });
    t.match(await batch.run(get, { SVC_TOKEN: reader }), { exit: 1, stdout: "r0 not get\n" });
    const set = ["-c", grpc, "--set", "k", "--value", "v"];
    t.match(await batch.run([...set, "--format=json"], { SVC_TOKEN: reader }), {
      exit: 4,
      stdout: "",
      stderr: /"code":"forbidden"/,
    });
    const file = ["--token-file", join(tokens, "admin")];
    t.match(await batch.run([...set, ...file], { SVC_TOKEN: reader }), { stdout: "r0 set\n" });
    t.match(await batch.run([...set, "--token-file", "/nowhere"]), {
      exit: 2,
      stderr: /cannot read/,
    });
    t.match(await batch.run([...get, "--token", reader], { SVC_TOKEN: "wrong" }), { exit: 0 });
    for (const words of [["--token-file", join(tokens, "spaced")], []]) {
      const ran = await batch.run([...get, ...words], { SVC_TOKEN: "two words" });
      t.match(ran, { exit: 2, stderr: /not visible ASCII text/ });
      t.notMatch(ran.stderr, /two|words/, "a secret is not repeated");
    }
    const secure = ["-c", `https://${https}`, "--get", "k", ...file];
    t.match(
      await batch.run(secure),
      { exit: 0, stdout: "r0 get v\n" },
      "loopback needs no --insecure",
    );
    const foreign = ["--ca-cert", join(own.path, "tls", "cert.pem")];
    const trusted = await batch.run([...secure, ...foreign]);
    t.ok([0, 2, 3].includes(trusted.exit), `with --ca-cert: ${trusted.exit} ${trusted.stderr}`);
  },
);

t.test("several endpoints: the next one is tried, --node means one", async (t) => {
  const both = ["-c", `http://127.0.0.1:1,${node}`];
  t.match(await batch.run([...both, "--set", "two", "--value", "v"]), { exit: 0 });
  t.match(await batch.run([...both, "--node", node, "--get", "two"]), { stdout: "r0 get v\n" });
  const dead = ["--node", "http://127.0.0.1:1", "-t", "0.5"];
  t.match(await batch.run(["-c", node, ...dead, "--get", "two"]), { exit: 3 });
  const register = ["-t", "2", "--register-key-range", "half"];
  const half = await batch.run([...both, ...register]);
  t.match(half, { exit: 3, stdout: "", stderr: /127\.0\.0\.1:1: .*answered: Seeded: / });
  t.match(await batch.run([], { SVC_ENDPOINTS: "", SVC_FORMAT: "odd" }), { exit: 2, stdout: "" });
});

t.test("values that are no text, and large buckets and scans", async (t) => {
  const value = "x".repeat(300_000);
  for (let i = 0; i < 60; i++) {
    const words = ["-c", node, "--set", `large/${String(i).padStart(2, "0")}`, "--value", value];
    const { exit, stderr } = await batch.run(words);
    if (exit !== 0) t.fail(stderr);
  }
  const bucket = await batch.run(["-c", node, "--get-by-bucket", "large"]);
  t.equal(bucket.exit, 0, bucket.stderr);
  t.match(bucket.stderr, /too large for one answer/);
  t.equal(bucket.stdout.split("\n").length, 61, "nothing is cut");
  const scan = await batch.run(["-c", node, "--scan-by-prefix", "large/", "--format", "json"]);
  t.equal((JSON.parse(scan.stdout) as unknown[]).length, 60, "all pages");
});

t.test("the real process: streams, exit codes, variables, start-up time", async (t) => {
  const environment = { SVC_ENDPOINTS: node };
  t.same(await runCli(["--set", "p", "--value", "v"], environment), {
    exit: 0,
    stdout: "r0 set\n",
    stderr: "",
  });
  t.match(await runCli(["--get", "p"], { ...environment, SVC_FORMAT: "json" }), {
    stdout: /^\{"key":"p","success":true,.*\}\n$/,
  });
  t.match(await runCli(["--get", "none"], environment), { exit: 1, stdout: "r0 not get\n" });
  t.match(await runCli(["--gett", "p"], environment), {
    exit: 2,
    stdout: "",
    stderr: /^error: unknown option --gett \(did you mean --get\?\)/,
  });
  t.match(await runCli(["--gett", "p", "--format=json"]), {
    stderr: /^\{"error":\{"code":"usage","message":"[^\n]*","endpoint":null\}\}\n$/,
  });
  t.match(await runCli(["--version"]), { exit: 0, stdout: /^svc-cli \d+\.\d+\.\d+\n$/ });
  t.match(await runCli(["--lock", "--help"]), { exit: 0, stdout: /--lock <resource> --expires/ });
  const scan = await runCli(["--scan-by-prefix", "large/"], environment);
  t.equal(
    scan.stdout.length,
    60 * (300_000 + "r0 large/00 \n".length),
    "P-161 a pipe gets all of it",
  );
});

t.test("values from files and stdin, raw values, limits and keys alone", async (t) => {
  const bytes = Buffer.from([0, 255, 10, 13, 0x1b, 200]);
  const path = join(directory.path, "value");
  writeFileSync(path, bytes);
  const at = ["-c", node];
  t.match(await runCli([...at, "--set", "raw/file", "--value-file", path]), { exit: 0 });
  t.match(await runCli([...at, "--set", "raw/stdin", "--value", "-"], {}, "two\nlines\n"), {
    exit: 0,
  });
  t.match(await batch.run([...at, "--get", "raw/file", "--format", "json"]), {
    stdout: new RegExp(`"valueBase64":"${bytes.toString("base64").replace("+", "\\+")}"`),
  });
  t.equal((await runCli([...at, "--get", "raw/stdin", "--raw"])).stdout, "two\nlines\n");
  const child = startCli([...at, "--get", "raw/file", "--raw"]);
  const chunks: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => child.on("close", resolve));
  t.same(Buffer.concat(chunks), bytes, "byte for byte");
  t.match(await runCli([...at, "--get", "raw/none", "--raw"]), { exit: 1, stdout: "" });
  const missing = await batch.run([...at, "--set", "raw/x", "--value-file", "/no/such/file"]);
  t.match(missing, { exit: 2, stderr: /cannot read \/no\/such\/file/ });
  for (const words of [
    ["--scan-by-prefix", "raw/"],
    ["--get-by-bucket", "raw"],
  ]) {
    const keys = await batch.run([...at, ...words, "--keys-only"]);
    t.equal(keys.stdout, "raw/file\nraw/stdin\n", words.join(" "));
    const one = [...at, ...words, "--keys-only", "--limit", "1"];
    t.equal((await batch.run(one)).stdout, "raw/file\n");
    const document = await batch.run([...one, "--format", "json"]);
    t.same(JSON.parse(document.stdout), [{ key: "raw/file", revision: 0 }]);
    t.match(await batch.run([...at, ...words, "--limit", "0"]), { exit: 2 });
  }
  const lines = [
    "set raw/dash -",
    "get raw/dash",
    `set raw/shell --value-file ${path} 60000`,
    "get raw/shell --format json",
    `set raw/both value --value-file ${path}`,
    "set raw/none --value-file",
  ];
  const shell = await runCli(at, {}, `${lines.join("\n")}\n`);
  t.match(shell.stdout, /r0 - \d+ms/, "in the shell - is a value like any other");
  t.match(shell.stdout, `"valueBase64":"${bytes.toString("base64")}"`);
  t.match(shell.stderr, /too many values[^\n]*\n[^\n]*--value-file needs a value/);
  t.match(await batch.run([...at, "--get-kv", "raw/shell"]), { stdout: /Expires: 2/ });
});

t.test("a reader that has enough is no failure", async (t) => {
  const command = `'${process.execPath}' '${cliMain}' -c '${node}' --scan-by-prefix large/`;
  const child = spawn("bash", ["-c", `set -o pipefail; ${command} | head -c 10 >/dev/null`], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.match(await ending(child), { exit: 0, stderr: "" });
});

t.test("commands from a pipe, line by line, without terminal codes", async (t) => {
  const lines = [
    "set pipe/a 1",
    "get pipe/a",
    'set pipe/b "two words" 60000',
    "get pipe/b",
    "set pipe/empty ''",
    "get pipe/empty",
    "exists pipe/a",
    "exists pipe/none",
    "extend pipe/a 60000",
    "get-by-bucket pipe",
    "delete pipe/a",
    "# a comment",
    "",
    "lock pipe-r 60000",
    "extend-lock pipe-r 60000",
    "get-lock pipe-r",
    "elock pipe-r 60000",
    "unlock pipe-other",
    "create-sequence pipe-s 10 5",
    "next-sequence pipe-s",
    "reserve-sequence pipe-s 2",
    "cluster members",
    "list backups",
    "get pipe/b --format json",
    "get",
    "lock pipe-r many",
    "frobnicate x",
    "help lock",
    "lock pipe-kept 60000",
    "elock pipe-kept 60000",
    "unlock pipe-r",
  ];
  const ran = await runCli(["-c", node], {}, `${lines.join("\n")}\n`);
  const wanted = [
    /^svc shell \d+\.\d+\.\d+\n\nr0 set \d+ms\n\nr0 1 \d+ms\n\nr0 set \d+ms\n\nr0 two words \d+ms\n\n/,
    /\nr0 set \d+ms\n\nr0 \(empty str\) \d+ms\n\nexists\n\nnot found\n\nextended\n\n/,
    /\nr0 pipe\/a 1\nr0 pipe\/b two words\nr0 pipe\/empty \n\nr1 deleted \d+ms\n\n/,
    /\nf0 acquired ([0-9a-f]{32})\n\nf0 extended \1\n\nf0 \1\n\nf\d+ acquired [0-9a-f]{32}\n\nnot acquired\n\n/,
    /\nr0 created pipe-s current 10 increment 5 max - .*\n\nr1 next pipe-s 15\n\nr2 reserved pipe-s 20\.\.25 count 2\n\n/,
    /\nMembership version 1 .*\n[\s\S]*NotConfigured: /,
    /\n\{"key":"pipe\/b","success":true,.*\}\n\n/,
    /\nunknown command: frobnicate\n\nlock <resource> <ms>\n/,
    /Disposing persistent lock [0-9a-f]{32}\.\.\.\n/,
    /Disposing ephemeral lock [0-9a-f]{32}\.\.\.\n/,
  ];
  for (const expression of wanted) t.match(ran.stdout, expression);
  t.notMatch(ran.stdout + ran.stderr, /\x1b/);
  t.match(ran.stderr, /error: a value is missing; usage: get <key>\n/);
  t.match(ran.stderr, /error: ms: "many" is not a whole number of milliseconds/);
  t.equal(ran.exit, 1, "the first line that did not succeed: exists pipe/none");
  for (const resource of ["pipe-r", "pipe-kept"]) {
    t.match(await batch.run(["-c", node, "--get-lock", resource]), { stdout: "not found\n" });
  }
});

t.test("run stops at the first error", async (t) => {
  const path = join(directory.path, "commands");
  writeFileSync(path, "set run/a 1\nget run/none\nfrob\nset run/b 1\n");
  const ran = await runCli(["-c", node], {}, `run ${path}\nget run/a\nget run/b\nrun /nowhere\n`);
  t.match(ran.stdout, /r0 set \d+ms\n\nnot found\n\nunknown command: frob\n\n/);
  t.match(ran.stderr, /stopped at line 3\n[\s\S]*cannot read \/nowhere/);
  t.match(ran.stdout, /r0 1 \d+ms\n\nnot found\n\n/, "run/b was never set");
  t.equal(ran.exit, 2);
});
