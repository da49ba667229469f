/**
 * `npm run cluster`: sets up, then runs a cluster of real nodes on loopback, shows where they are and what to try, and
 * their logs in a colour each. Ctrl+C stops them.
 *
 *   --nodes N        nodes, 1 to 9 (3)
 *   --base-port P    the ports of node 1 are P (gRPC), P+1 (HTTPS), P+2 (HTTP) and P+3 (peers); node 2 begins at P+10 (9100)
 *   --data DIR       one data directory per node below it ($XDG_DATA_HOME/svc/dev-cluster)
 *   --fresh          begins with empty data directories
 *   -- FLAGS         further flags for every svc-server
 *
 * Owns the processes that it starts. Invariants: 1. Only they are signalled, by id. 2. It ends when the last of them has
 * ended, with 0 if all ended as they should. 3. A node that ends by itself is reported; the others go on.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { root } from "./build.mjs";
import { setup } from "./setup.mjs";

const PORTS_PER_NODE = 10;
const COLOURS = [36, 33, 35, 32, 34, 31, 96, 93, 95];
/** Marks a directory as one of this script's, so that --fresh never empties another one. */
const MARK = ".svc-dev-cluster";
/** What the nodes prove themselves with, below the data. */
const SECRET = "peer-secret";
const SECOND_SIGNAL_MS = 500;

function refuse(message) {
  process.stderr.write(`npm run cluster: ${message}\n`);
  process.exit(2);
}

function wholeNumber(name, text, least, most) {
  const value = /^\d+$/.test(text ?? "") ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    refuse(`${name} is ${text ?? "missing"}; it must be ${least} to ${most}`);
  return value;
}

function defaultData() {
  const home = process.env.XDG_DATA_HOME;
  const base = home !== undefined && isAbsolute(home) ? home : join(homedir(), ".local", "share");
  return join(base, "svc", "dev-cluster");
}

function readOptions(given) {
  const options = { nodes: 3, basePort: 9100, data: defaultData(), fresh: false, flags: [] };
  for (let at = 0; at < given.length; at++) {
    if (given[at] === "--") {
      options.flags = given.slice(at + 1);
      break;
    }
    const [name, inline] = given[at].split(/=(.*)/s);
    const value = () => inline ?? given[++at];
    if (name === "--nodes") options.nodes = wholeNumber(name, value(), 1, 9);
    else if (name === "--base-port") options.basePort = wholeNumber(name, value(), 1024, 65_400);
    else if (name === "--data")
      options.data = resolve(value() ?? refuse("--data needs a directory"));
    else if (name === "--fresh") options.fresh = true;
    else
      refuse(
        `unknown option ${name}; there are --nodes, --base-port, --data, --fresh, and -- FLAGS`,
      );
  }
  return options;
}

function prepareData({ data, fresh }) {
  const mark = join(data, MARK);
  if (fresh && existsSync(data)) {
    if (!existsSync(mark))
      refuse(`--fresh: ${data} was not made by this script; remove it yourself`);
    rmSync(data, { recursive: true });
  }
  mkdirSync(data, { recursive: true, mode: 0o700 });
  writeFileSync(mark, "");
  const secret = join(data, SECRET);
  if (!existsSync(secret)) {
    writeFileSync(secret, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600 });
  }
}

const useColour = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;

function coloured(code, text) {
  return useColour ? `\x1b[${code}m${text}\x1b[0m` : text;
}

function portsOf(number, basePort) {
  const first = basePort + (number - 1) * PORTS_PER_NODE;
  return { grpc: first, https: first + 1, http: first + 2, peer: first + 3 };
}

function startNode(number, options) {
  const { nodes, basePort, data, flags } = options;
  const ports = portsOf(number, basePort);
  const members = Array.from(
    { length: nodes },
    (_, at) => `${at + 1}=127.0.0.1:${portsOf(at + 1, basePort).peer}`,
  );
  const child = spawn(
    process.execPath,
    [
      join(root, "dist", "bin", "svc-server.js"),
      `--raft-nodeid=${number}`,
      `--raft-nodename=node${number}`,
      `--grpc-port=${ports.grpc}`,
      `--https-port=${ports.https}`,
      `--http-port=${ports.http}`,
      `--peer-port=${ports.peer}`,
      `--initial-cluster=${members.join(",")}`,
      `--peer-secret-file=${join(data, SECRET)}`,
      `--storage-path=${join(data, `node${number}`)}`,
      ...flags,
    ],
    // A group of its own: the terminal's Ctrl+C comes to this script alone, which passes it on once.
    { cwd: root, stdio: ["ignore", "pipe", "pipe"], detached: true },
  );
  const label = coloured(COLOURS[number - 1], `node${number}`);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      process.stdout.write(`${label} | ${line}\n`);
    });
  }
  return { number, label, child };
}

function introduction(options) {
  const lines = ["", `  ${options.nodes} nodes, data in ${options.data}`, ""];
  for (let number = 1; number <= options.nodes; number++) {
    const { grpc, https, http } = portsOf(number, options.basePort);
    const name = coloured(COLOURS[number - 1], `node${number}`);
    lines.push(
      `  ${name}   gRPC 127.0.0.1:${grpc}   https://127.0.0.1:${https}   http://127.0.0.1:${http}`,
    );
  }
  const base = (number) => `http://127.0.0.1:${portsOf(number, options.basePort).http}`;
  const json = "-H 'content-type: application/json'";
  const last = options.nodes;
  const endpoints = Array.from(
    { length: last },
    (_, at) => `http://127.0.0.1:${portsOf(at + 1, options.basePort).grpc}`,
  );
  lines.push(
    "",
    "  Try, in another terminal (any node answers):",
    "",
    `    curl ${base(1)}/v1/kv/try-set ${json} -d '{"key":"greeting","value":"aGVsbG8="}'`,
    `    curl ${base(last)}/v1/kv/try-get ${json} -d '{"key":"greeting"}'`,
    `    curl ${base(last)}/v1/cluster/membership`,
    `    npm run cli -- -c ${endpoints.join(",")} --cluster-status`,
    "",
    "  Stop one and the others go on:",
    "",
  );
  return `${lines.join("\n")}\n`;
}

await setup();
const options = readOptions(process.argv.slice(2));
prepareData(options);
const nodes = Array.from({ length: options.nodes }, (_, at) => startNode(at + 1, options));
process.stdout.write(`${introduction(options)}`);
for (const { number, child } of nodes)
  process.stdout.write(`    kill ${child.pid}   # node${number}\n`);
process.stdout.write("\n  Ctrl+C stops all; the data stays (--fresh begins anew).\n\n");

let running = nodes.length;
let isStopping = false;
let status = 0;
for (const { label, child } of nodes) {
  child.on("exit", (code, signal) => {
    running -= 1;
    child.hasEnded = true;
    if (code !== 0) status = 1;
    process.stdout.write(`${label} | ended (${signal ?? `exit code ${code}`})\n`);
    if (running === 0) process.exit(status);
  });
}

let firstSignalMs = 0;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    const nowMs = performance.now();
    // npm passes on what the terminal has sent already: the same Ctrl+C comes twice.
    if (isStopping && nowMs - firstSignalMs < SECOND_SIGNAL_MS) return;
    if (!isStopping) firstSignalMs = nowMs;
    isStopping = true;
    for (const { child } of nodes) if (child.hasEnded !== true) child.kill(signal);
  });
}
