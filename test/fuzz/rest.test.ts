/**
 * Fuzz target of the REST bodies: bytes through the decoder of every path, and some of them through
 * a real server.
 *
 * Reproducible: one seed, printed, also from SVC_FUZZ_SEED. Every input must end in values or in a
 * typed fault, the verdict on syntax must be that of a second reader, and the process must stay
 * alive with its memory flat.
 */
import t from "tap";
import { Client } from "undici";
import { Prng } from "../../src/base/prng.js";
import { SENDING_TIMES } from "../../src/rest/http/listener.js";
import { decodeBody } from "../../src/rest/json/decoder.js";
import { Kind, MemberTable } from "../../src/rest/json/members.js";
import { restRoutes } from "../../src/rest/routes/routes.js";
import { rawExchange, startRig } from "../unit/rest/harness.js";

const SEED = Number(process.env["SVC_FUZZ_SEED"] ?? 20_251);
const DECODED_INPUTS = 120_000;
const SERVER_INPUTS = 4000;
const RAW_INPUTS = 300;
const EMPTY_TABLE = new MemberTable([]);
const CODES = ["malformed-json", "unknown-member", "duplicate-member", "wrong-type"];
CODES.push("invalid-base64", "invalid-number");

const routes = restRoutes({
  version: "0",
  leaveTimeoutMs: 0,
  adminTimeoutMs: 0,
  metrics: null,
  nodeDebug: null,
  console: null,
  watchStreamBufferBytes: 1024,
  responseMaxBytes: 1024,
  benchmarkRoute: false,
});
const tables: readonly (readonly [string, MemberTable])[] = routes.flatMap((route) =>
  route.body === null ? [] : [[route.path, route.body] as const],
);
const ODD_NAMES = ["__proto__", "constructor", "", "é", "n\\u0061me", "l", "n", "c", "\\ud800"];

const TEXTS = ['""', '"a"', '"orders/1"', '"K\u00f6ln"', '"\\ud83d\\ude00"', '"base64:/w=="'];
const BASE64 = ['"AQID"', '"AQ=="', '""', '"AQ"', '"AB=="', '"AQ\\/="'];
const NUMBERS = ["0", "-1", "1", "2147483647", '"9007199254740993"', "9223372036854775807", "0.5"];
const SCALARS = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "-1",
  "1.5",
  "1e400",
  "9223372036854775807",
  "9223372036854775808",
  "-9223372036854775808",
  "2147483648",
  '""',
  '"a"',
  '"Persistent"',
  '"9007199254740993"',
  '"AQID"',
  '"AQ=="',
  '"A"',
  '"base64:/w=="',
  '"base64:!"',
  '"\\ud83d\\ude00"',
  '"\\ud800"',
  '"\\u0000"',
  '"Köln"',
];

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** Names that the table knows, and now and then one that it does not. */
function name(prng: Prng, table: MemberTable): string {
  if (prng.chance(1, 30) || table.members.length === 0) return pick(prng, ODD_NAMES);
  return pick(prng, table.members).name;
}

/** A value of the right kind more often than not. */
function value(prng: Prng, table: MemberTable, of: string, depth: number): string {
  const member = table.members[table.find(of)];
  if (member !== undefined && prng.chance(3, 4)) {
    if (member.kind === Kind.text || member.kind === Kind.owner) return pick(prng, TEXTS);
    if (member.kind === Kind.base64) return pick(prng, BASE64);
    if (member.kind === Kind.int64 || member.kind === Kind.int32) return pick(prng, NUMBERS);
    if (member.items !== null) {
      const below = member.items.table;
      const list = Array.from({ length: prng.below(4) }, () => object(prng, below, depth + 1));
      return `[${list.join(",")}]`;
    }
  }
  const kind = prng.below(depth > 4 ? 8 : 12);
  if (kind < 8) return pick(prng, SCALARS);
  if (kind < 10) return object(prng, table, depth + 1);
  const list = Array.from({ length: prng.below(4) }, () => value(prng, table, "", depth + 1));
  return `[${list.join(",")}]`;
}

function object(prng: Prng, table: MemberTable, depth: number): string {
  const count = prng.below(6);
  let text = "{";
  for (let at = 0; at < count; at++) {
    const named = name(prng, table);
    text += `${at === 0 ? "" : ","}"${named}":${value(prng, table, named, depth)}`;
  }
  return `${text}}`;
}

/** A body near to valid: most inputs must get past the first byte to be worth anything. */
function input(prng: Prng, table: MemberTable): Buffer {
  const bytes = Buffer.from(object(prng, table, 0));
  switch (prng.below(12)) {
    case 0:
      if (bytes.length > 0) bytes[prng.below(bytes.length)] = prng.below(256);
      return bytes;
    case 1:
      return bytes.subarray(0, prng.below(bytes.length + 1));
    case 2: {
      const at = prng.below(bytes.length + 1);
      const extra = Buffer.from(pick(prng, ["[", "]", "{", "}", '"', "\\", ",", ":", "\0", "0"]));
      return Buffer.concat([bytes.subarray(0, at), extra, bytes.subarray(at)]);
    }
    case 3:
      return prng.chance(1, 8) ? Buffer.from('{"items":'.repeat(prng.below(40))) : bytes;
    default:
      return bytes;
  }
}

function nesting(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(nesting));
}

/**
 * The second opinion: built-in parser, built-in UTF-8 decoder, and a look at nesting and
 * surrogates.
 */
function isWellFormedJson(bytes: Buffer): boolean {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    let lone = false;
    const parsed = JSON.parse(text, (key, value: unknown) => {
      for (const word of [key, value]) {
        if (typeof word === "string" && /\p{Surrogate}/u.test(word)) lone = true;
      }
      return value;
    }) as unknown;
    return !lone && nesting(parsed) <= 16;
  } catch {
    return false;
  }
}

/**
 * Members that a second one of the same name hides from JSON.parse; there the two opinions may
 * differ.
 */
function hidesMembers(text: string): boolean {
  const names = [...text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:/g)].map((match) => {
    return (match[1] ?? "").replace("\\u0061", "a");
  });
  return new Set(names).size !== names.length;
}

t.test("P-143 P-144 P-145 P-146 decoders of all paths, 120,000 inputs", (t) => {
  const prng = new Prng(SEED);
  const counts = new Map<string, number>();
  const heapBefore = process.memoryUsage().heapUsed;
  let disagreements = 0;
  for (let at = 0; at < DECODED_INPUTS; at++) {
    const [path, table] = pick(prng, tables);
    const body = input(prng, table);
    const decoded = decodeBody(body, table);
    const code = "code" in decoded ? decoded.code : "accepted";
    counts.set(code, (counts.get(code) ?? 0) + 1);
    if ("code" in decoded && !CODES.includes(code)) t.fail(`${path}: ${code}`);
    if (!("code" in decoded) && decoded.values.length !== table.members.length) t.fail(path);
    if (at % 4 === 0 && !hidesMembers(body.toString("latin1"))) {
      if ((code === "malformed-json") === isWellFormedJson(body)) {
        disagreements++;
        t.fail(`seed ${SEED} input ${at} ${code}: ${JSON.stringify(body.toString("latin1"))}`);
        if (disagreements > 5) break;
      }
    }
  }
  t.comment(`seed ${SEED}: ${JSON.stringify(Object.fromEntries(counts))}`);
  for (const code of ["accepted", ...CODES.slice(0, 5)]) {
    t.ok((counts.get(code) ?? 0) > 50, `the inputs reach ${code}`);
  }
  const grown = process.memoryUsage().heapUsed - heapBefore;
  t.ok(grown < 256 << 20, "memory stays bounded");
  t.equal(({} as Record<string, unknown>)["l"], undefined, "no prototype was touched");
  t.end();
});

t.test("P-164 the same inputs through a real server", async (t) => {
  const rig = await startRig();
  t.teardown(() => rig.close());
  const prng = new Prng(SEED + 1);
  const posts = routes.filter((route) => route.method === "POST");
  const clients = Array.from(
    { length: 8 },
    () => new Client(`http://127.0.0.1:${rig.httpPort}`, { pipelining: 1 }),
  );
  const statuses = new Map<number, number>();
  let left = SERVER_INPUTS;
  const send = async (client: Client): Promise<void> => {
    while (left-- > 0) {
      const route = pick(prng, posts);
      const headers = prng.chance(1, 20) ? {} : { "content-type": "application/json" };
      const body = input(prng, route.body ?? EMPTY_TABLE);
      const answer = await client.request({ method: "POST", path: route.path, headers, body });
      const text = await answer.body.text();
      statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1);
      const parsed = JSON.parse(text) as { readonly code?: string };
      if (answer.statusCode !== 200 && typeof parsed.code !== "string") t.fail(text);
    }
  };
  await Promise.all(clients.map(send));
  await Promise.all(clients.map((client) => client.destroy()));
  t.comment(JSON.stringify(Object.fromEntries(statuses)));
  t.strictSame(
    [...statuses.keys()].filter((status) => ![200, 400, 403, 409, 415, 503].includes(status)),
    [],
    "only typed answers",
  );
  t.ok((statuses.get(200) ?? 0) > 100 && (statuses.get(400) ?? 0) > 100, "both sides are reached");
  t.equal(rig.server.inFlight(), 0);
  t.strictSame(rig.faults, []);
});

t.test("P-164 damaged HTTP through a real server", async (t) => {
  const rig = await startRig({
    sendingTimes: { ...SENDING_TIMES, headersMs: 200, requestMs: 400, checkMs: 20 },
  });
  t.teardown(() => rig.close());
  const prng = new Prng(SEED + 2);
  const whole = (body: Buffer): Buffer =>
    Buffer.concat([
      Buffer.from(
        "POST /v1/sequences/next HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
          `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]);
  const send = async (): Promise<void> => {
    const bytes = whole(input(prng, tables[0]?.[1] ?? EMPTY_TABLE));
    for (let damage = prng.below(4); damage > 0; damage--) {
      bytes[prng.below(bytes.length)] = prng.below(256);
    }
    const cut = prng.chance(1, 4) ? prng.below(bytes.length) : bytes.length;
    const { text } = await rawExchange(rig.httpPort, [bytes.toString("latin1", 0, cut)], 0, true);
    if (text !== "" && !text.startsWith("HTTP/1.1 ")) t.fail(text.slice(0, 80));
  };
  for (let batch = 0; batch < RAW_INPUTS / 50; batch++) {
    await Promise.all(Array.from({ length: 50 }, send));
  }
  t.equal((await rig.call("GET", "/livez")).text, "ok", "the server lives");
  t.equal(rig.server.inFlight(), 0, "nothing is left in progress");
  t.strictSame(rig.faults, []);
});
