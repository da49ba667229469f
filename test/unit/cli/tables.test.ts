/** svc-cli without a server: tables, parser, help, completion, formats, history, docs/shell.md. */
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import t from "tap";
import { Clients } from "../../../src/cli/invocation/context.js";
import { ALL_OPTIONS, findOption } from "../../../src/cli/commands/options.js";
import {
  SHELL_COMMANDS,
  findShellCommand,
  shellUsage,
} from "../../../src/cli/commands/shell-table.js";
import { COMMANDS } from "../../../src/cli/commands/table.js";
import { completionScript } from "../../../src/cli/arguments/completion.js";
import { EXIT_MEANINGS } from "../../../src/cli/invocation/exit-codes.js";
import { jsonText, ownerText, tableLines, valueText } from "../../../src/cli/terminal/format.js";
import { bind } from "../../../src/cli/shell/shell-binding.js";
import { HeldLocks } from "../../../src/cli/shell/held-locks.js";
import { helpText, topicText } from "../../../src/cli/arguments/help.js";
import { HISTORY_LINES_MAX, History, historyPath } from "../../../src/cli/shell/history.js";
import { Latencies, pictureLines } from "../../../src/cli/terminal/latency.js";
import { nearest } from "../../../src/cli/arguments/nearest.js";
import { parse, type Invocation } from "../../../src/cli/arguments/parser.js";
import { titleWithoutToken } from "../../../src/cli/invocation/process-title.js";
import {
  exitCodesTable,
  operationsTable,
  optionsTable,
  shellTable,
} from "../../../src/cli/arguments/tables.js";
import { loadOperation } from "../../../src/cli/run/table.js";
import { SeenNames } from "../../../src/cli/shell/seen-names.js";
import { completeLine } from "../../../src/cli/shell/shell-completion.js";
import { shellHelpLines, shellTopicLines } from "../../../src/cli/shell/shell-help.js";
import { cutColumns, textColumns, visibleText } from "../../../src/cli/terminal/text-width.js";
import { readEndpoint, readValue } from "../../../src/cli/commands/values.js";
import { quoteWord, splitWords } from "../../../src/cli/arguments/words.js";
import { root } from "../../tidy/sources.js";

type Environment = Readonly<Record<string, string | undefined>>;

function read(words: readonly string[], environment: Environment = {}): Invocation | string {
  const result = parse(words, environment);
  return result.ok ? result.value : result.message;
}

function refusal(...words: string[]): string {
  const result = read(words);
  return typeof result === "string" ? result : "";
}

function settingsOf(words: readonly string[], environment: Environment = {}) {
  const result = read(words, environment);
  if (typeof result === "string" || !("settings" in result)) throw new Error(String(result));
  return result.settings;
}

function temporary(t: { teardown(end: () => void): void }): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-cli-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

t.test("the tables agree with each other", async (t) => {
  const names = [...COMMANDS, ...ALL_OPTIONS].flatMap((spec) => [spec.name, ...spec.aliases]);
  t.equal(new Set(names).size, names.length, "no name twice");
  for (const command of COMMANDS) {
    for (const name of [...command.required, ...command.optional]) {
      t.ok(findOption(name) !== null, `${command.name} takes ${name}`);
    }
    t.ok(command.examples.length > 0 && command.answers.length > 0, `${command.name} is explained`);
    t.type(await loadOperation(command), "function", `${command.name} can be run`);
    for (const example of command.examples) {
      const words = splitWords(example);
      const parsed = read(words.ok ? words.value.slice(1).map((word) => word.text) : []);
      t.type(parsed, "object", `${example}: ${String(parsed)}`);
    }
  }
  const words = SHELL_COMMANDS.map((spec) => spec.words);
  t.equal(new Set(words).size, words.length);
  for (const spec of SHELL_COMMANDS) {
    const isKnown = spec.operation === null || COMMANDS.some((c) => c.name === spec.operation);
    t.ok(isKnown, `${spec.words} runs ${spec.operation}`);
    t.notOk(
      words.some((other) => other.startsWith(`${spec.words} `)),
      `${spec.words} hides nothing`,
    );
  }
});

t.test("P-151 usage errors say what is wrong and what was meant", (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--gte", "k"], /unknown option --gte \(did you mean --get\?\)/],
    [["--lcok", "r"], /did you mean --lock/],
    [["-x"], /unknown option -x/],
    [["--get"], /--get needs a value: --get <key>/],
    [["--get", "--format", "json"], /--get needs a value.*--get=--format/],
    [["--get", "a", "--set", "b"], /one operation at a time: --get and --set/],
    [["--get", "a", "--get", "b"], /one operation at a time/],
    [["--get", "a", "-t", "1", "--timeout", "2"], /--timeout is given twice/],
    [["--get", "a", "b"], /unexpected argument: b/],
    [["--get", "a", "--expires", "5"], /--expires does not go with --get/],
    [["--set", "a"], /--set needs --value <value> or --value-file <file>/],
    [["--lock", "a"], /--lock needs --expires <ms>/],
    [["--lock", "a", "--expires", "1.5"], /"1.5" is not a whole number of milliseconds/],
    [["--lock", "a", "--expires", "-1"], /"-1" is not/],
    [["--unlock", "a"], /--unlock needs --owner/],
    [["--lock", "a", "--expires", "5", "--grace", "1"], /--grace goes with --exec/],
    [["--get", "a", "--insecure=yes"], /--insecure takes no value/],
    [["--get", "a", "--format", "xml"], /"xml" is not one of console, json/],
    [["--get", "a", "--durability", "ephemeral"], /one of Persistent, Ephemeral/],
    [["--get", "a", "--revision", "9223372036854775808"], /64-bit range/],
    [["--create-sequence", "a", "--block-size", "2147483648"], /2147483647/],
    [["--update-sequence", "a", "--max-value", "5", "--remove-max-value"], /contradicts/],
    [["--get", "a", "--token", "t", "--token-file", "f"], /--token contradicts --token-file/],
    [["--get", "a", "--token", "two words"], /--token: the value is not visible ASCII text/],
    [["--get", "a", "--token", "-secret"], /--token needs a value: --token <token>; see/],
    [["--get", "a", "--cert", "c.pem"], /--cert and --key go together/],
    [["--get", "a", "-c", "ftp://x"], /"ftp:\/\/x" is not endpoints/],
    [["--get", "a", "-c", "http://h:1/path"], /is not endpoints/],
    [["--get", "a", "-t", "0"], /"0" is not a number of seconds above 0/],
    [["--get", "\ud800"], /well-formed text/],
    [["--max-value", "5"], /--max-value does not go with the shell/],
    [["--completion", "csh"], /one of bash, zsh, fish/],
    [["get", "a"], /unknown command: get; operations are options: --get; see/],
    [["gett", "a"], /unknown command: gett \(did you mean --get\?\)/],
    [["lock-rum", "a"], /unknown command: lock-rum \(did you mean lock-run\?\)/],
    [["lock-run", "r", "sh", "-c", "true"], /put -- before the command of lock-run: -- sh/],
    [["lock-run", "r", "--expires", "5", "ls"], /put -- before the command of lock-run: -- ls/],
    [["--set", "a", "--value", "v", "--value-file", "f"], /--value contradicts --value-file/],
    [["--get", "a", "--raw", "--format", "json"], /--raw contradicts --format json/],
    [["--get-kv", "a", "--raw"], /--raw does not go with --get-kv/],
    [["bench"], /bench needs one of sequences, locks, kv/],
    [["bench", "lock"], /did you mean locks/],
    [["bench", "kv", "--expires", "5"], /--expires does not go with bench/],
    [["elect"], /elect needs the name of an election/],
    [["elect", "a", "b"], /put -- before the command of elect: -- b/],
    [["elect", "a", "--"], /a command is missing after --/],
    [["elect", "a", "--grace", "5"], /--grace goes with a command/],
    [["elect", "a", "--observe", "--value", "v"], /--observe contradicts --value/],
    [["elect", "a", "--observe", "--", "ls"], /--observe contradicts a command/],
    [["--watch-key", "a", "--limit", "3"], /--limit does not go with --watch-key/],
    [["elect", "a", "--owner", "o"], /--owner does not go with elect/],
    [["lock-run", "r", "--expires", "5"], /a command is missing/],
    [["lock-run", "--expires", "5", "--", "ls"], /lock-run needs a resource/],
    [["lock-run", "r", "--", "ls"], /lock-run needs --expires/],
    [["--get", "a", "--", "ls"], /--get takes no command/],
    [["--cluster-leave"], /needs the one node that shall leave/],
    [["-c", "a,b", "--cluster-leave"], /needs the one node that shall leave/],
  ];
  for (const [words, message] of cases) t.match(refusal(...words), message, words.join(" "));
  t.match(read(["--cluster-leave"], { SVC_ENDPOINTS: "a:1" }), /the one node/, "not from outside");
  t.type(read(["--cluster-leave", "--node", "a:1"]), "object");
  t.type(read(["--cluster-leave", "-c", "a:1"]), "object");
  t.end();
});

t.test("settings: command line, variable, default", (t) => {
  t.match(settingsOf([]), { endpoints: ["http://127.0.0.1:8083"], format: "console" });
  const environment = { SVC_ENDPOINTS: "a:1, b:2", SVC_FORMAT: "json", SVC_TOKEN: "secret" };
  t.match(settingsOf([], environment), {
    endpoints: ["http://a:1", "http://b:2"],
    format: "json",
    token: "secret",
  });
  t.equal(settingsOf(["--token", "typed"], environment).token, "typed");
  t.equal(settingsOf(["--token-file", "f"], environment).tokenFile, "f");
  t.match(settingsOf(["-c", "c:3", "--format=console"], environment), {
    endpoints: ["http://c:3"],
    format: "console",
  });
  const optionsOf = (words: readonly string[]) =>
    new Clients(settingsOf(words)).options(["d:4"], 1);
  t.equal(optionsOf(["--node", "d:4"]).followRoutes, false, "the named node is meant");
  t.equal(optionsOf(["-c", "d:4"]).followRoutes, undefined);
  t.equal(optionsOf(["-c", "d:4"]).startAt, "first", "endpoints are tried in order");
  t.match(settingsOf(["-c", "c:3", "--node", "d:4"]), {
    endpoints: ["http://d:4"],
    node: "http://d:4",
  });
  t.match(read([], { SVC_FORMAT: "yaml" }), /SVC_FORMAT: "yaml"/);
  t.match(read([], { SVC_ENDPOINTS: "ftp://x" }), /SVC_ENDPOINTS/);
  t.match(settingsOf([], { SVC_FORMAT: "", SVC_ENDPOINTS: "" }), { format: "console" });
  t.equal(settingsOf(["-t", "1.5"]).timeoutMs, 1500);
  t.equal(settingsOf(["-c", "https://localhost:1,https://[::1]:2,http://x:3"]).insecure, true);
  t.equal(settingsOf(["-c", "https://localhost:1,https://example.org:2"]).insecure, false);
  t.equal(settingsOf(["-c", "https://localhost:1", "--ca-cert", "ca.pem"]).insecure, false);
  t.equal(settingsOf(["-c", "http://127.0.0.1:1"]).insecure, false);
  t.same(
    ["host", "https://host", "http://host:80", "https://host:443/", "[::1]:9"].map(readEndpoint),
    [
      "http://host:8083",
      "https://host:8082",
      "http://host:80",
      "https://host:443",
      "http://[::1]:9",
    ],
  );
  t.end();
});

t.test("the title of the process holds no token", (t) => {
  t.equal(titleWithoutToken(["--get", "k", "--token-file", "f"]), null);
  t.equal(titleWithoutToken(["--token", "s3cret", "--get", "k"]), "svc-cli --token *** --get k");
  const rest = ["--", "curl", "--token", "its-own"];
  t.equal(
    titleWithoutToken(["lock-run", "r", "--token=s3cret", ...rest]),
    "svc-cli lock-run r --token=*** -- curl --token its-own",
  );
  t.equal(titleWithoutToken(["lock-run", "r", ...rest]), null);
  t.end();
});

t.test("what follows -- or --exec is never read", (t) => {
  const words = ["ls", "--help", "--lock", "x", "-t"];
  for (const line of [
    ["lock-run", "r", "--expires", "5", "--", ...words],
    ["--lock", "r", "--expires", "5", "--exec", "--", ...words],
    ["--lock", "r", "--expires", "5", "--exec", ...words],
  ]) {
    t.match(read(line), { kind: "lock-run", resource: "r", words }, line.join(" "));
  }
  t.match(read(["--lock", "r", "--expires", "5", "--owner=--odd"]), { kind: "operation" });
  t.end();
});

t.test("P-144 numbers keep every digit", (t) => {
  fc.assert(
    fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (value) => {
      const result = readValue({ kind: "int64" }, String(value));
      return result.ok && result.value === value && jsonText(value) === String(value);
    }),
  );
  for (const bad of ["", " 1", "1e3", "0x1", "1_000", "--1", "1.0", "9223372036854775808"]) {
    t.notOk(readValue({ kind: "int64" }, bad).ok, `"${bad}"`);
  }
  const text = '{"a":[1,null,true,"\\u0000é"],"__proto__":9007199254740993}';
  t.equal(jsonText({ a: [1, null, true, "\0é"], ["__proto__"]: 9007199254740993n }), text);
  t.end();
});

t.test("words and quotes come back as they were", (t) => {
  fc.assert(
    fc.property(fc.array(fc.string()), (texts) => {
      const split = splitWords(texts.map(quoteWord).join(" "));
      return split.ok && JSON.stringify(split.value.map((w) => w.text)) === JSON.stringify(texts);
    }),
  );
  t.notOk(splitWords("set a 'b").ok);
  const split = splitWords('set  a\\ b "c \\" d" e\'f g\'h');
  t.same(split.ok && split.value.map((word) => word.text), ["set", "a b", 'c " d', "ef gh"]);
  t.end();
});

t.test("values that are no text, wide text, control characters", (t) => {
  t.equal(valueText(null), "-");
  t.equal(valueText(Buffer.from("héllo")), "héllo");
  t.equal(valueText(Uint8Array.of(0xff, 0xfe)), "base64://4=");
  t.equal(ownerText(Buffer.from("base64:eA==")), "base64:YmFzZTY0OmVBPT0=");
  t.equal(textColumns("日本é😀"), 7);
  t.equal(cutColumns("日本語", 5), "日本…");
  t.equal(visibleText("a\x1b[2J\nb\u202e"), "a\\u001b[2J\\nb\\u202e");
  const rows = [
    ["日本", "1"],
    ["ab", "22"],
  ];
  t.same(tableLines(["Name", "N"], rows, null), ["Name  N", "----  --", "日本  1", "ab    22"]);
  t.same(tableLines(["Name", "N"], rows, 5), ["Name: 日本", "N:    1", "", "Name: ab", "N:    22"]);
  t.end();
});

t.test("nearest words", (t) => {
  const known = ["--get", "--set", "--lock", "--cluster-members"];
  t.equal(nearest("--lokc", known), "--lock");
  t.equal(nearest("--cluster-memebrs", known), "--cluster-members");
  t.equal(nearest("--frobnicate", known), null);
  t.equal(nearest("x".repeat(10_000), known), null);
  t.end();
});

t.test("help teaches every operation and option, also alone", (t) => {
  const help = helpText("0.1.0");
  for (const spec of [...COMMANDS, ...ALL_OPTIONS]) {
    const topic = topicText(spec.name.slice(2));
    t.ok(topic.found && topic.text.includes(spec.name), `--help ${spec.name.slice(2)}`);
    t.ok(topic.text.split("\n").every((line) => line.length <= 130));
  }
  for (const spec of COMMANDS) t.ok(help.includes(`  ${spec.name}`), spec.name);
  for (const [code] of EXIT_MEANINGS) t.match(help, new RegExp(`^  ${code}  `, "m"));
  t.ok(help.split("\n").every((line) => line.length <= 100));
  t.same(read(["--lock", "--help"]), { kind: "help", topic: "--lock" });
  t.same(read(["--help", "lock"]), { kind: "help", topic: "lock" });
  t.same(read(["-h"]), { kind: "help", topic: null });
  t.same(read(["bench", "--help"]), { kind: "help", topic: "bench" });
  t.match(
    topicText("lock").text,
    /isAcquired: boolean[\s\S]*In the shell:\n {2}lock <resource> <ms>/,
  );
  t.match(topicText("bench").text, /intended|planned/);
  t.match(topicText("lokc"), { found: false, text: /did you mean lock/ });
  const shell = shellHelpLines().join("\n");
  for (const spec of SHELL_COMMANDS) {
    t.ok(shell.includes(shellUsage(spec)), spec.words);
    t.ok(shellTopicLines(spec.words.split(" ")).found);
  }
  t.match(shellTopicLines(["lcok"]), { found: false });
  t.end();
});

t.test("completion scripts load and complete", (t) => {
  const bash = completionScript("bash");
  const complete = (...words: string[]): string[] => {
    const program = `${bash}\nCOMP_WORDS=(svc-cli ${words.map((w) => `"${w}"`).join(" ")})
COMP_CWORD=${words.length}\n_svc_cli\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
    const run = spawnSync("bash", ["--norc", "-c", program], { encoding: "utf8" });
    t.equal(run.stderr, "");
    return run.stdout.split("\n").filter((line) => line !== "");
  };
  t.same(complete("--get-l"), ["--get-lock"]);
  t.same(complete("--format", ""), ["console", "json"]);
  t.same(complete("bench", "s"), ["sequences"]);
  t.same(complete("--set", "k", "--val"), ["--value", "--value-file"]);
  t.same(complete("--get", ""), [], "a key is not guessed");
  for (const shell of ["zsh", "fish"]) {
    const script = completionScript(shell);
    for (const spec of [...COMMANDS, ...ALL_OPTIONS]) {
      t.ok(script.includes(spec.name.slice(2)), `${shell} ${spec.name}`);
    }
    const check = spawnSync(shell, ["-n"], { input: script, encoding: "utf8" });
    if (check.error === undefined) t.equal(check.stderr, "", `${shell} reads it`);
    else t.pass(`${shell} is not on this machine: only the content was checked`);
  }
  t.end();
});

t.test("tab completion of shell lines", (t) => {
  const seen = new SeenNames();
  seen.add("key", "config/color");
  seen.add("key", "with space");
  seen.add("resource", "printer");
  const hits = (line: string): string[] => completeLine(line, seen)[0];
  t.same(hits("he"), ["help "]);
  t.same(hits("cluster "), ["status ", "members ", "placement ", "leave ", "finalize "]);
  t.same(completeLine("backup co", seen), [["coordinated "], "co"]);
  t.same(hits("get con"), ["config/color "]);
  t.same(hits("get "), ["'with space' ", "config/color "]);
  t.same(hits("unlock p"), ["printer "]);
  t.same(hits("lock r 5 --w"), ["--wait "]);
  t.same(hits("get k --format "), ["console ", "json "]);
  t.same(hits("help back"), ["backup "]);
  t.same(hits("backup gc "), ["dry-run "]);
  t.same(hits("get 'x"), []);
  for (let i = 0; i < 500; i++) seen.add("key", `k${i}`);
  t.equal(seen.of("key").length, 200, "bounded");
  t.same(seen.of("key")[0], "k499");
  t.end();
});

t.test("history: private, bounded, shared", (t) => {
  const directory = temporary(t);
  const path = historyPath({ XDG_STATE_HOME: join(directory, "state") });
  t.equal(path, join(directory, "state", "svc", "history"));
  t.equal(historyPath({ HOME: "/h" }), "/h/.local/state/svc/history");
  t.equal(historyPath({ HOME: "/h", XDG_STATE_HOME: "relative" }), "/h/.local/state/svc/history");
  const history = new History(path);
  for (const line of ["get a", "get a", " secret", "", "get b"]) history.add(line);
  t.same(history.newestFirst(), ["get b", "get a"]);
  t.equal(statSync(path).mode & 0o777, 0o600);
  appendFileSync(path, "other session\n");
  t.same(new History(path).newestFirst(), ["other session", "get b", "get a"]);
  for (let i = 0; i < HISTORY_LINES_MAX + 10; i++) history.add(`get ${i}`);
  history.trim();
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  t.equal(lines.length, HISTORY_LINES_MAX);
  t.equal(lines.at(-1), `get ${HISTORY_LINES_MAX + 9}`);
  writeFileSync(join(directory, "file"), "");
  const broken = new History(join(directory, "file", "history"));
  broken.add("get a");
  t.same(broken.newestFirst(), ["get a"], "works without a file");
  t.notOk(existsSync(join(directory, "file", "history")));
  t.end();
});

t.test("held locks in the prompt", (t) => {
  const held = new HeldLocks();
  t.equal(held.prompt(0), "svc> ");
  const lock = (resource: string, endsMs: number) =>
    ({ resource, durability: "persistent", owner: "o", fencingToken: "3", endsMs }) as const;
  held.put(lock("printer", 10));
  t.equal(held.prompt(5), "svc [printer f3]> ");
  t.equal(held.prompt(10), "svc [printer f3?]> ", "a lease that may have ended is marked");
  const doubt = { ...lock("printer", 10), owner: "o2", fencingToken: null };
  held.put(doubt);
  t.equal(held.prompt(5), "svc [printer f3, printer ?]> ", "it may be held by either");
  t.same(
    held.find("printer", "persistent").map((one) => one.fencingToken),
    ["3", null],
  );
  held.put({ ...doubt, fencingToken: "4" });
  t.equal(held.prompt(5), "svc [printer f4]> ", "a doubt that became a grant is one entry");
  held.put({ ...lock("printer", 10), durability: "ephemeral" });
  t.equal(held.prompt(5), "svc [printer f4, e:printer f3]> ", "an ephemeral lock is told apart");
  t.equal(held.prompt(10_009), "svc [printer f4?, e:printer f3?]> ");
  t.equal(held.prompt(10_010), "svc> ", "leases that have ended are forgotten");
  t.equal(held.all().length, 0);
  held.put(lock("printer", 10));
  for (const name of ["b", "c", "d\x1b[2J"]) held.put(lock(name, 10));
  t.equal(held.prompt(5), "svc [b f3, c f3, d\\u001b[2J f3 +1]> ");
  t.end();
});

t.test("latencies: percentiles are never too low, the picture fits", (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.001, max: 5000, noNaN: true }), { minLength: 1 }),
      (all) => {
        const latencies = new Latencies();
        for (const value of all) latencies.record(value);
        const sorted = [...all].sort((a, b) => a - b);
        return [0.5, 0.9, 0.99].every((share) => {
          const exact = sorted[Math.ceil(share * sorted.length) - 1] as number;
          const read = latencies.percentileMs(share);
          return read >= exact * 0.999_999 && read <= exact * 1.05 + 0.001;
        });
      },
    ),
  );
  const latencies = new Latencies();
  for (let i = 1; i <= 10_000; i++) latencies.record(i / 100);
  const picture = pictureLines(latencies, 80);
  t.ok(picture.length > 5 && picture.length <= 17);
  t.ok(picture.every((line) => textColumns(line) <= 80));
  t.same(pictureLines(new Latencies(), 80), []);
  t.end();
});

t.test("the tables of docs/shell.md are those of the program", (t) => {
  const document = readFileSync(join(root, "docs/shell.md"), "utf8");
  for (const [name, table] of [
    ["operations", operationsTable()],
    ["options", optionsTable()],
    ["shell commands", shellTable()],
    ["exit codes", exitCodesTable()],
  ] as const) {
    t.ok(document.includes(`-->\n${table}\n<!--`), `the table of ${name}`);
  }
  t.end();
});

t.test("8.5 a reason is all that is left of the line, up to the options", (t) => {
  const spec = findShellCommand(["force-unlock"]);
  if (spec === null) return t.fail("there is such a command");
  const given = (line: string): unknown => {
    const bound = bind(spec, line.split(" "));
    return bound.ok ? Object.fromEntries(bound.value.values) : bound.message;
  };
  const named = { "--force-unlock": "jobs/1", "--fencing-token": 7n };
  t.same(given("jobs/1 7 hangs"), { ...named, "--reason": "hangs" });
  t.same(given("jobs/1 7 host-7 hangs again"), { ...named, "--reason": "host-7 hangs again" });
  const dropped = { ...named, "--reason": "it hangs", "--drop-waiters": true };
  t.same(given("jobs/1 7 it hangs --drop-waiters"), dropped);
  t.equal(given("jobs/1 7"), "a value is missing");
  t.equal(given("jobs/1 x y"), 'token: "x" is not a whole number in the 64-bit range');
  t.end();
});
