/**
 * The rules of the house as data and pure checks: each takes a path and a text and returns findings.
 * `tidy.test.ts` runs them over the repository and over samples that must be refused.
 */
import { codeOnly, importsOf, resolveImport } from "./sources.js";

/** A file says one thing in about 300 lines; this is where it has to be cut, not where it should end. */
export const FILE_LINES_MAX = 450;
export const FUNCTION_LINES_MAX = 70;
export const LINE_COLUMNS_MAX = 100;

/** Floor of each folder of src/: imports only point down, and folders on one floor do not see each other. */
export const FLOORS: Readonly<Record<string, number>> = {
  base: 0,
  api: 1,
  wasm: 1,
  raft: 2,
  machine: 3,
  "ports.ts": 3,
  "peerports.ts": 2,
  "archiveports.ts": 2,
  control: 4,
  backup: 4,
  host: 5,
  operations: 6,
  disk: 7,
  net: 7,
  "sys.ts": 7,
  rest: 8,
  grpc: 8,
  server: 9,
};

/** What a folder may import where that is narrower than "everything below". */
export const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  api: [],
  wasm: ["base"],
  raft: ["base"],
  machine: ["base", "wasm", "ports.ts"],
  "ports.ts": ["base", "raft", "peerports.ts", "archiveports.ts"],
  "peerports.ts": ["base"],
  "archiveports.ts": ["base"],
  control: ["base", "machine", "raft", "ports.ts"],
  backup: ["base", "wasm", "machine", "ports.ts"],
  host: ["base", "wasm", "raft", "machine", "ports.ts", "control", "backup"],
  operations: ["base", "api", "wasm", "machine", "ports.ts", "control", "backup", "host"],
  disk: ["base", "wasm", "raft", "ports.ts"],
  net: ["base", "ports.ts"],
  "sys.ts": ["base", "ports.ts"],
  proto: ["base", "api"],
  rest: ["base", "api", "operations"],
  grpc: ["base", "api", "operations", "proto"],
  client: ["base", "api", "proto"],
  cli: ["base", "api", "client"],
  // Runs in browsers, and knows the server by its REST API alone.
  console: [],
  server: [
    "base",
    "wasm",
    "raft",
    "machine",
    "ports.ts",
    "control",
    "backup",
    "host",
    "operations",
    "disk",
    "net",
    "sys.ts",
    "rest",
    "grpc",
    "proto",
  ],
};

/** Folders that may import each third-party package. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "node-lmdb": ["disk"],
  "@grpc/grpc-js": ["client"],
  fastify: ["rest"],
  protobufjs: ["proto"],
  pino: ["server"],
  "prom-client": ["server"],
  "@peculiar/x509": ["server"],
  "reflect-metadata": ["server"],
  undici: ["client"],
  enquirer: ["cli"],
};

const DETERMINISTIC = new Set([
  "base",
  "api",
  "wasm",
  "raft",
  "machine",
  "ports.ts",
  "peerports.ts",
  "archiveports.ts",
  "control",
  "backup",
  "host",
  "operations",
]);

const BANNED_IN_DETERMINISTIC: readonly (readonly [RegExp, string])[] = [
  [/\bDate\b/, "Date: time comes through ClockPort"],
  [/\bMath\.random\b/, "Math.random: randomness comes from Prng"],
  [/\basync\b|\bawait\b|\bPromise\b/, "promises begin at the front ends"],
  [/\blocaleCompare\b|\btoLocale\w+\b|\bIntl\b/, "locale: order is byte order"],
  [/\bWeakRef\b|\bFinalizationRegistry\b/, "garbage collection is not an input"],
  [
    /\bsetTimeout\b|\bsetInterval\b|\bsetImmediate\b|\bqueueMicrotask\b/,
    "timers come through TimerPort",
  ],
  [
    /\bprocess\b(?!\s*[(:])|\bBuffer\b|\bconsole\b|\bperformance\b/,
    "Node's globals do not exist down here",
  ],
];

const BANNED_EVERYWHERE: readonly (readonly [RegExp, string])[] = [
  [
    /\bgetBinaryUnsafe\b|\bgetStringUnsafe\b|\bgetCurrentBinaryUnsafe\b/,
    "P-125: a view into the map outlives its transaction",
  ],
  [/:\s*any\b|\bas any\b|<any>/, "any: say what it is"],
  [/@ts-ignore|@ts-nocheck/, "silenced type errors"],
];

const BANNED_FILE_NAMES = /^(util|utils|helper|helpers|manager|common|misc|shared|stuff)\b/;

/** The folder of src/ (or the file directly in it) that `path` belongs to; null outside src/. */
export function roomOf(path: string): string | null {
  const parts = path.split("/");
  if (parts[0] !== "src" || parts.length < 2) return null;
  return parts[1] as string;
}

export function checkImports(path: string, text: string): string[] {
  const room = roomOf(path);
  if (room === null) return [];
  const allowed = ALLOWED[room];
  if (allowed === undefined) return [`${path}: no import rule for src/${room}; add it to ALLOWED`];
  const findings: string[] = [];
  for (const { from, line } of importsOf(text)) {
    if (from.startsWith(".")) {
      const target = roomOf(resolveImport(path, from));
      if (target === null) findings.push(`${path}:${line}: imports ${from}, outside src/`);
      else if (target !== room && !allowed.includes(target)) {
        findings.push(`${path}:${line}: src/${room} may not import src/${target}`);
      }
    } else if (from.startsWith("node:")) {
      if (DETERMINISTIC.has(room))
        findings.push(`${path}:${line}: ${from} on a deterministic floor`);
    } else {
      const parts = from.split("/");
      const name = from.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] as string);
      if (!(PACKAGES[name] ?? []).includes(room)) {
        findings.push(`${path}:${line}: src/${room} may not import the package ${name}`);
      }
    }
  }
  return findings;
}

/** The one file of src/net that opens connections, and the one that turns names into addresses. */
const DIALS = "src/net/dial.ts";
const RESOLVES = "src/net/resolve.ts";

/** P-203: between nodes nobody connects by a name that the platform would look up in its pool. */
export function checkDials(path: string, text: string): string[] {
  if (roomOf(path) !== "net") return [];
  const findings: string[] = [];
  const imported = /import \{([^}]*)\} from "node:(net|tls|http2|dns|dns\/promises)"/g;
  for (const [, names = "", from = ""] of text.matchAll(imported)) {
    const taken = names.split(",").map((name) => name.trim());
    const asks = taken.some((name) => name.startsWith("lookup"));
    if (from.startsWith("dns") && (path !== RESOLVES || asks)) {
      findings.push(`${path}: asks node:${from}; names are looked up by ${RESOLVES}`);
    }
    const opens = taken.some((name) =>
      /^(?:connect|createConnection|Socket|TLSSocket)\b/.test(name),
    );
    if (opens && path !== DIALS) {
      findings.push(`${path}: opens connections; that is the business of ${DIALS}`);
    }
  }
  for (const [, way = ""] of text.matchAll(/\bconnect(?:Plain|Secure)\(([^;]*?)\);/g)) {
    const name = /^\{?\s*(?:\.\.\.)?(\w+)/.exec(way)?.[1] ?? "";
    const declared = new RegExp(`const ${name} = \\{[^}]*\\blookup\\b`);
    if (!/\blookup\b/.test(way) && !declared.test(text)) {
      findings.push(`${path}: connects without a look-up of our own`);
    }
  }
  return findings;
}

/** The one file of src/client that takes time and chance from Node. */
const CLIENT_PLATFORM = "src/client/time/system-platform.ts";

const BANNED_IN_CLIENT: readonly (readonly [RegExp, string])[] = [
  [/\bDate\b|\bperformance\b|\bhrtime\b|\buptime\(/, "clocks come through ClientPlatform"],
  [/\bMath\.random\b|\brandomInt\b/, "randomness comes through ClientPlatform"],
  [
    /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bAbortSignal\.timeout\b|\bNodeJS\b/,
    "timers come through ClientPlatform",
  ],
];

/** The client's time passes and its chance falls as its platform says: tests decide both. */
export function checkClientTime(path: string, text: string): string[] {
  if (roomOf(path) !== "client" || path === CLIENT_PLATFORM) return [];
  const findings: string[] = [];
  const timers = importsOf(text).some(({ from }) => /^(?:node:)?timers\b/.test(from));
  if (timers) findings.push(`${path}: timers come through ClientPlatform`);
  for (const [at, line] of codeOnly(text).split("\n").entries()) {
    for (const [pattern, reason] of BANNED_IN_CLIENT) {
      if (pattern.test(line)) findings.push(`${path}:${at + 1}: ${reason}`);
    }
  }
  return findings;
}

export function checkNames(path: string, text: string): string[] {
  const findings: string[] = [];
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (BANNED_FILE_NAMES.test(name)) findings.push(`${path}: a file is named after what it holds`);
  const room = roomOf(path);
  const bans = [...BANNED_EVERYWHERE];
  if (room !== null && DETERMINISTIC.has(room)) bans.push(...BANNED_IN_DETERMINISTIC);
  const lines = codeOnly(text).split("\n");
  for (const [at, line] of lines.entries()) {
    for (const [pattern, reason] of bans) {
      if (pattern.test(line)) findings.push(`${path}:${at + 1}: ${reason}`);
    }
  }
  if (/\b(?:TODO|FIXME|XXX|HACK)\b/.test(text)) findings.push(`${path}: unfinished-work marker`);
  return findings;
}

export function checkSizes(path: string, text: string): string[] {
  const findings: string[] = [];
  const lines = text.split("\n");
  const inSource = path.startsWith("src/") || path.startsWith("asm/");
  const count = lines.length - 1;
  if (inSource && count > FILE_LINES_MAX) {
    findings.push(`${path}: ${count} lines, at most ${FILE_LINES_MAX}`);
  }
  for (const [at, line] of lines.entries()) {
    if (inSource && line.length > LINE_COLUMNS_MAX && !/["`'][^"`']{40,}/.test(line)) {
      findings.push(`${path}:${at + 1}: ${line.length} columns, at most ${LINE_COLUMNS_MAX}`);
    }
  }
  if (inSource) findings.push(...checkFunctionSizes(path, lines));
  return findings;
}

/** Functions and methods as prettier lays them out: an opening line ending in "{" closed by "}" at its indentation. */
function checkFunctionSizes(path: string, lines: readonly string[]): string[] {
  const findings: string[] = [];
  const opening =
    /^( *)(?:export )?(?:default )?(?:(?:async )?function\b|(?:(?:public|private|protected|static|override|async|get|set) )*[A-Za-z_$][\w$]*(?:<[^(]*>)?\([^;=]*\)(?:: [^;]+)? \{$|(?:export )?const \w+ = (?:async )?\([^;]*=> \{$)/;
  for (const [at, line] of lines.entries()) {
    const match = opening.exec(line);
    if (match === null || /^ *(?:if|for|while|switch|catch|return)\b/.test(line)) continue;
    const close = new RegExp(`^${match[1]}[}][);,]*$`);
    let end = at + 1;
    while (end < lines.length && !close.test(lines[end] as string)) end++;
    const size = end - at + 1;
    if (end < lines.length && size > FUNCTION_LINES_MAX) {
      findings.push(
        `${path}:${at + 1}: a function of ${size} lines, at most ${FUNCTION_LINES_MAX}`,
      );
    }
  }
  return findings;
}

/** Lines that only repeat what imports say, or that there is nothing to say. */
const RITUAL = /\bMay call\b|\bOwns (?:nothing|no state)\./;

export function checkHeader(path: string, text: string): string[] {
  if (!path.startsWith("src/") || path.endsWith(".d.ts")) return [];
  const opening = text.replace(/^#![^\n]*\n/, "");
  if (!opening.startsWith("/**")) return [`${path}: does not open with what it is`];
  const header = opening.slice(0, opening.indexOf("*/"));
  return RITUAL.test(header)
    ? [`${path}: imports say what a file may call, and rules hold it`]
    : [];
}

/** Import cycles between files of src/, each as a path list. */
export function findCycles(files: ReadonlyMap<string, string>): string[] {
  const edges = new Map<string, string[]>();
  for (const [path, text] of files) {
    const targets = importsOf(text)
      .filter(({ from }) => from.startsWith("."))
      .map(({ from }) => resolveImport(path, from))
      .filter((target) => files.has(target));
    edges.set(path, targets);
  }
  const state = new Map<string, "open" | "done">();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === "done") return;
    if (state.get(path) === "open") {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(" -> "));
      return;
    }
    state.set(path, "open");
    for (const target of edges.get(path) ?? []) visit(target, [...trail, path]);
    state.set(path, "done");
  };
  for (const path of files.keys()) visit(path, []);
  return cycles;
}
