/**
 * A data directory that a release wrote, in one file: made by a node of it, with something of every
 * kind, and unpacked for a later one.
 *
 * Invariants: 1. Zeros at the end of a file are left out, and put back. 2. Locks belong to a
 * process and are not packed.
 */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { type Answer, type Call, restClient } from "../process/cluster/clients.js";
import { ServerProcess, nodeFlags, temporaryDirectory } from "../process/cluster/server-process.js";
import { folderOf } from "./frozen.js";

interface PackedFile {
  readonly sizeBytes: number;
  /** Base64 of what comes before the zeros. */
  readonly content: string;
}

interface Packed {
  readonly files: Readonly<Record<string, PackedFile>>;
  /** What a node on it answers to `LOOKS`. */
  readonly answers: readonly Said[];
}

/** An answer as text, without what depends on the time. */
type Said = Readonly<Record<string, string | number | null>>;

const HOUR_MS = 3_600_000;

const WRITES: readonly Call[] = [
  { op: "lock", resource: "held", owner: "one", expiresMs: HOUR_MS },
  { op: "lock", resource: "released", owner: "two", expiresMs: HOUR_MS },
  { op: "unlock", resource: "released", owner: "two" },
  { op: "create", name: "plain", blockSize: null },
  { op: "create", name: "blocks", blockSize: 100 },
  { op: "next", name: "plain", key: "once" },
  { op: "next", name: "blocks", key: null },
  { op: "reserve", name: "plain", count: 5, key: null },
  { op: "set", key: "bucket/kept", value: "first" },
  { op: "set", key: "bucket/kept", value: "second" },
  { op: "set", key: "bucket/gone", value: "third" },
  { op: "delete", key: "bucket/gone" },
];

const LOOKS: readonly Call[] = [
  { op: "lock-info", resource: "held" },
  { op: "lock", resource: "held", owner: "another", expiresMs: HOUR_MS },
  { op: "lock-info", resource: "released" },
  { op: "sequence", name: "plain" },
  { op: "sequence", name: "blocks" },
  { op: "next", name: "plain", key: "once" },
  { op: "get", key: "bucket/kept" },
  { op: "get", key: "bucket/gone" },
];

function said(answer: Answer): Said {
  const entries = Object.entries(answer) as [string, string | number | bigint | null][];
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]),
  );
}

/** Starts a node on `path`, asks it all of `calls`, and stops it. */
async function ask(path: string, calls: readonly Call[]): Promise<readonly Said[]> {
  const server = new ServerProcess(nodeFlags(path));
  const { http } = await server.ready();
  const client = restClient(http);
  const answers: Said[] = [];
  for (const call of calls) {
    const result = await client.call(call);
    if (result.kind === "unknown") throw new Error(`${call.op} was not answered:\n${server.log}`);
    answers.push(said(result.answer));
  }
  client.close();
  await server.stop();
  return answers;
}

function filesBelow(path: string, below = ""): readonly string[] {
  return readdirSync(join(path, below)).flatMap((name) => {
    const file = join(below, name);
    return statSync(join(path, file)).isDirectory() ? filesBelow(path, file) : [file];
  });
}

function packedFile(path: string): PackedFile {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return { sizeBytes: bytes.length, content: bytes.subarray(0, end).toString("base64") };
}

function fileOf(release: string): string {
  return join(folderOf(release), "directory.json.gz");
}

/** Has a node of this program write a directory, and packs it. */
export async function freezeDirectory(release: string): Promise<void> {
  if (existsSync(fileOf(release))) throw new Error(`${fileOf(release)} exists`);
  const directory = temporaryDirectory();
  try {
    await ask(directory.path, WRITES);
    // A start of its own: what a stop gave back counts as well.
    const answers = await ask(directory.path, LOOKS);
    const names = filesBelow(directory.path).filter((name) => !/lock/.test(name));
    const files = names.map((name) => [name, packedFile(join(directory.path, name))] as const);
    const packed: Packed = { files: Object.fromEntries(files), answers };
    writeFileSync(fileOf(release), gzipSync(JSON.stringify(packed), { level: 9 }));
  } finally {
    directory.remove();
  }
}

/** Puts the directory of `release` at `path`; what a node of that release said on it. */
export function unpackFrozen(release: string, path: string): readonly Said[] {
  const packed = JSON.parse(gunzipSync(readFileSync(fileOf(release))).toString()) as Packed;
  for (const [name, { sizeBytes, content }] of Object.entries(packed.files)) {
    const file = join(path, name);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, Buffer.from(content, "base64"), { mode: 0o600 });
    truncateSync(file, sizeBytes);
  }
  return packed.answers;
}

/** What a node of this program says on the directory of `release`, and what one of that said. */
export async function askFrozen(
  release: string,
  path: string,
): Promise<{ readonly found: readonly Said[]; readonly wanted: readonly Said[] }> {
  const wanted = unpackFrozen(release, path);
  return { found: await ask(path, LOOKS), wanted };
}
