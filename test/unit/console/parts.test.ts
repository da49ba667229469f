/** What the pages of the console are made of, as far as it needs no browser: numbers, names, words, values, metrics. */
import t from "tap";
import { parseExactly } from "../../../src/console/parts/exact-json.js";
import { History, readMetrics } from "../../../src/console/parts/figures.js";
import type { Overview, OverviewNode } from "../../../src/console/parts/shapes.js";
import { bytesOf, dumpOf, sizeOf, textOf } from "../../../src/console/parts/value.js";
import {
  bytes,
  count,
  duration,
  plural,
  printable,
  shortened,
  verdictOf,
} from "../../../src/console/parts/words.js";

t.test("numbers of 64 bits keep their digits, all else is what JSON says", (t) => {
  t.strictSame(parseExactly('{"a":9223372036854775807,"b":-9223372036854775808}'), {
    a: "9223372036854775807",
    b: "-9223372036854775808",
  });
  t.strictSame(
    parseExactly("[999999999999999,1e20,0.1234567890123456789,-1]"),
    [999999999999999, 1e20, 0.1234567890123456789, -1],
  );
  const texts = '["1234567890123456789","a\\\\\\"12345678901234567890\\"b",null,true]';
  t.strictSame(parseExactly(texts), JSON.parse(texts), "texts are left alone");
  t.throws(() => parseExactly("{"));
  t.end();
});

t.test("names show what they are", (t) => {
  t.equal(printable("plain ü 日本 🙂"), "plain ü 日本 🙂");
  t.equal(printable("a\u202eb\u0000\u200f\u00ad\n"), "a\\u{202e}b\\u{0}\\u{200f}\\u{ad}\\u{a}");
  t.equal(printable("\u{e0041}"), "\\u{e0041}", "beyond the first plane");
  t.equal(shortened("abcdef", 3), "abc…");
  t.equal(shortened("🙂🙂", 2), "🙂🙂", "by characters");
  t.end();
});

t.test("figures as words", (t) => {
  t.equal(count(1234567), "1\u202f234\u202f567");
  t.equal(
    count("-9223372036854775808"),
    "-9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f808",
  );
  t.equal(count(999), "999");
  t.equal(plural(1, "node"), "1 node");
  t.equal(plural(2, "node"), "2 nodes");
  t.equal(duration(12), "12 ms");
  t.equal(duration(61_000), "1 min 1 s");
  t.equal(duration(90_061_000), "1 d 1 h");
  t.equal(duration(3_600_000), "1 h");
  t.equal(bytes(0), "0 B");
  t.equal(bytes(1536), "1.5 KiB");
  t.equal(bytes(64 * 1024 ** 3), "64 GiB");
  t.end();
});

const SPAN_MS = 10 * 60 * 1000;
const NODE: OverviewNode = {
  nodeId: 1,
  endpoint: "a:1",
  clientEndpoint: "http://a:2",
  role: "Voter",
  ready: true,
  reason: "",
  version: "1",
  levelMin: 1,
  levelMax: 2,
  uptimeMs: 1,
  ageMs: 0,
  hostedPartitions: 2,
  leadingPartitions: 1,
  requestsPerSecond: 3,
  failedPerSecond: 1,
};
const WELL: Overview = {
  initialized: true,
  membershipVersion: 1,
  level: 2,
  localNodeId: 1,
  metaLeaderNodeId: 1,
  partitions: 17,
  partitionsWithoutLeader: 0,
  partitionsUnderReplicated: 0,
  nodes: [NODE, { ...NODE, nodeId: 2 }],
  alarms: [],
};

t.test("the verdict: the worst there is, in a sentence", (t) => {
  const silent = { ...NODE, nodeId: 2, ageMs: 30_000 };
  const cases: readonly (readonly [Overview | null, number, string, RegExp])[] = [
    [WELL, 0, "good", /^All is well: 2 nodes ready, 17 partitions led\.$/],
    [null, 0, "bad", /^This node has not answered\.$/],
    [null, 60_000, "bad", /for 1 min\.$/],
    [{ ...WELL, initialized: false }, 0, "warn", /does not know its cluster/],
    [{ ...WELL, partitionsWithoutLeader: 1 }, 0, "bad", /^1 of 17 partitions has no known leader/],
    [{ ...WELL, nodes: [NODE, { ...NODE, ready: false }] }, 0, "warn", /only 1 of 2 nodes ready/],
    [{ ...WELL, nodes: [NODE, silent] }, 0, "warn", /only 1 of 2 nodes ready/],
    [{ ...WELL, nodes: [NODE, { ...silent, ageMs: null }] }, 0, "warn", /only 1 of 2/],
    [{ ...WELL, partitionsUnderReplicated: 2 }, 0, "warn", /^2 partitions have fewer live/],
    [{ ...WELL, alarms: ["x"] }, 0, "warn", /^All nodes are ready; 1 note\.$/],
  ];
  for (const [overview, silentMs, tone, text] of cases) {
    const verdict = verdictOf(overview, silentMs);
    t.equal(verdict.tone, tone, verdict.text);
    t.match(verdict.text, text);
  }
  t.end();
});

t.test("values as text and as bytes", (t) => {
  const of = (value: string | Buffer): Uint8Array => bytesOf(Buffer.from(value).toString("base64"));
  t.equal(textOf(of("a\nb\u202e")), "a\nb\\u{202e}");
  t.equal(textOf(of(Buffer.from([0xff]))), null);
  t.equal(textOf(of(`${"x".repeat(4095)}ü`)), "x".repeat(4095), "a cut goes through a character");
  t.equal(textOf(of(Buffer.from([0x61, 0xc3]))), null, "a value that ends in half a character");
  t.equal(dumpOf(of("AB")), `0000  41 42${" ".repeat(43)} AB`);
  t.equal(dumpOf(of("x".repeat(5000))).split("\n").length, 256);
  for (const size of [0, 1, 2, 3, 4]) {
    t.equal(sizeOf(Buffer.alloc(size).toString("base64")), size);
  }
  t.end();
});

t.test("metrics that are wanted, with their labels", (t) => {
  const text = [
    "# HELP a_total what",
    "a_total 3",
    'b{partition="1",peer="x\\"y, z"} 4.5e1',
    'b{partition="2"} NaN',
    "b_other 1",
  ].join("\n");
  const read = readMetrics(text, ["a_total", "b", "none"]);
  t.strictSame(read.get("a_total"), [{ labels: {}, value: 3 }]);
  t.strictSame(read.get("b")?.[0], { labels: { partition: "1", peer: 'x\\"y, z' }, value: 45 });
  t.equal(read.get("b")?.length, 2);
  t.strictSame(read.get("none"), []);
  t.end();
});

t.test("the history of a page is bounded in time and number", (t) => {
  const history = new History();
  for (let at = 0; at < 1000; at++) history.add("x", at, at * 100);
  t.equal(history.of("x").length, 400);
  history.add("x", 1, SPAN_MS * 3);
  t.strictSame(history.of("x"), [{ atMs: SPAN_MS * 3, value: 1 }], "what is too old is gone");
  history.take(WELL);
  t.equal(history.of("requests")[0]?.value, 6);
  t.equal(history.of("node 2")[0]?.value, 3);
  t.strictSame(history.of("nobody"), []);
  t.end();
});
