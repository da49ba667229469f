/**
 * The JSON reader and decoder against JSON.parse, and what they must refuse.
 */
import fc from "fast-check";
import t from "tap";
import { isWellFormedText } from "../../../src/base/bytes.js";
import { decodeBase64, encodeBase64 } from "../../../src/rest/json/base64.js";
import { type BodyFault, decodeBody } from "../../../src/rest/json/decoder.js";
import { JsonScanner } from "../../../src/rest/json/json-scanner.js";
import {
  isLongList,
  listPieces,
  listText,
  ownerText,
  quoted,
} from "../../../src/rest/json/json-text.js";
import {
  base64,
  bool,
  type Decoded,
  durability,
  int32,
  int64,
  items,
  optionalText,
  owner,
  text,
  transactionalTableOf,
} from "../../../src/rest/json/members.js";

const itemTable = transactionalTableOf(text("key", ""), int64("revision", -1n, ""), durability());
const table = transactionalTableOf(
  text("name", ""),
  optionalText("note", ""),
  int64("big", 7n, ""),
  int32("small", ""),
  bool("flag", ""),
  base64("value", ""),
  durability(),
  owner("owner", ""),
  items("items", itemTable, ([key, revision, durable]) => ({ key, revision, durable }), ""),
);
const NAMES = ["name", "note", "big", "small", "flag", "value", "durability", "owner", "items"];

function decode(body: string | Buffer): Decoded | BodyFault {
  return decodeBody(Buffer.from(body), table.table);
}
function codeOf(body: string | Buffer): string {
  const decoded = decode(body);
  return "code" in decoded ? decoded.code : "accepted";
}
function valuesOf(body: string): readonly unknown[] {
  const decoded = decode(body);
  if ("code" in decoded) throw new Error(`${body}: ${decoded.code} ${decoded.detail}`);
  return decoded.values;
}
function valueOf(name: string, json: string): unknown {
  return valuesOf(`{"${name}":${json}}`)[NAMES.indexOf(name)];
}
function misfitOf(body: string): string | null {
  const decoded = decode(body);
  return "code" in decoded ? decoded.code : decoded.misfit;
}

t.test("P-144 64-bit integers are exact over the whole range, as numbers and as texts", (t) => {
  const edges = ["0", "1", "-1", "9007199254740993", "-9007199254740993", "123456789012345"];
  edges.push("9223372036854775807", "-9223372036854775808", "1234567890123456");
  for (const digits of edges) {
    t.equal(valueOf("big", digits), BigInt(digits), digits);
    t.equal(valueOf("big", `"${digits}"`), BigInt(digits), `"${digits}"`);
  }
  t.equal(valueOf("big", "-0"), 0n, "minus zero is zero");
  t.equal(valueOf("big", '"-000000000000000000000000000012"'), -12n, "leading zeros of a text");
  t.equal(valueOf("big", "null"), 7n, "null counts as omitted");
  t.equal(valueOf("small", "2147483647"), 2147483647);
  t.equal(valueOf("small", "-2147483648"), -2147483648);
  for (const number of [
    "9223372036854775808",
    "-9223372036854775809",
    "1.0",
    "1.5",
    "1e2",
    "1E400",
    "-1e-3",
    "9".repeat(100_000),
    '"9223372036854775808"',
    `"${"9".repeat(100_000)}"`,
  ]) {
    t.equal(misfitOf(`{"big":${number}}`), "big", `${number.slice(0, 30)} does not fit`);
  }
  for (const number of ["2147483648", "-2147483649", "1.0", "9".repeat(30), "1e0"]) {
    t.equal(misfitOf(`{"small":${number}}`), "small", `${number} does not fit`);
  }
  for (const wrong of ['"1.5"', '"1e2"', '"+1"', '""', '" 1"', '"0x1"', "true", "[1]", "{}"]) {
    t.equal(codeOf(`{"big":${wrong}}`), "wrong-type", wrong);
  }
  t.equal(codeOf('{"small":"1"}'), "wrong-type", "only 64-bit members are read from texts");
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      return valueOf("big", String(value)) === value && valueOf("big", `"${value}"`) === value;
    }),
  );
  t.end();
});

t.test("P-142 P-143 faults are typed, name their member, and syntax outranks meaning", (t) => {
  const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const cases: readonly (readonly [string, string])[] = [
    ["", "malformed-json"],
    [" ", "malformed-json"],
    ["{", "malformed-json"],
    ["{}x", "malformed-json"],
    ["{} {}", "malformed-json"],
    ["{,}", "malformed-json"],
    ['{"name":"a",}', "malformed-json"],
    ['{"name" "a"}', "malformed-json"],
    ["{'name':'a'}", "malformed-json"],
    ["{name:1}", "malformed-json"],
    ['{"name":"a"', "malformed-json"],
    ['{"name":"a', "malformed-json"],
    ['{"name":"a\\', "malformed-json"],
    ['{"name":"\\x"}', "malformed-json"],
    ['{"name":"\\u12g4"}', "malformed-json"],
    ['{"name":"\n"}', "malformed-json"],
    ['{"big":01}', "malformed-json"],
    ['{"big":-}', "malformed-json"],
    ['{"big":1.}', "malformed-json"],
    ['{"big":.5}', "malformed-json"],
    ['{"big":1e}', "malformed-json"],
    ['{"big":+1}', "malformed-json"],
    ['{"big":NaN}', "malformed-json"],
    ['{"flag":tru}', "malformed-json"],
    ['{"flag":nul', "malformed-json"],
    ["/**/{}", "malformed-json"],
    ["\ufeff{}", "malformed-json"],
    ["[]", "wrong-type"],
    ["null", "wrong-type"],
    ['"text"', "wrong-type"],
    ['{"nome":1}', "unknown-member"],
    ['{"Name":"a"}', "unknown-member"],
    ['{"name ":"a"}', "unknown-member"],
    ['{"":1}', "unknown-member"],
    ['{"__proto__":{"x":1}}', "unknown-member"],
    ['{"constructor":1}', "unknown-member"],
    ['{"toString":1}', "unknown-member"],
    ['{"name":"a","name":"b"}', "duplicate-member"],
    ['{"name":null,"name":"b"}', "duplicate-member"],
    ['{"name":"a","n\\u0061me":"b"}', "duplicate-member"],
    ['{"name":1}', "wrong-type"],
    ['{"name":["a"]}', "wrong-type"],
    ['{"flag":1}', "wrong-type"],
    ['{"flag":"true"}', "wrong-type"],
    ['{"value":1}', "wrong-type"],
    ['{"items":{}}', "wrong-type"],
    ['{"items":[null]}', "wrong-type"],
    ['{"items":[{"key":1}]}', "wrong-type"],
    ['{"items":[{"keys":"a"}]}', "unknown-member"],
    ['{"items":[{"key":"a","key":"a"}]}', "duplicate-member"],
    ['{"transactionId":{"n":0,"x":0}}', "unknown-member"],
    ['{"transactionId":1}', "wrong-type"],
    ['{"durability":true}', "wrong-type"],
    ['{"nome":1} x', "malformed-json"],
    ['{"name":1,"nome":}', "malformed-json"],
    [`{"name":${deep(15)}}`, "wrong-type"],
    [`{"name":${deep(16)}}`, "malformed-json"],
    [`{"other":${deep(100_000)}}`, "malformed-json"],
    [deep(16), "wrong-type"],
    [deep(17), "malformed-json"],
    ['{"nested":'.repeat(50_000), "malformed-json"],
  ];
  for (const [body, code] of cases) t.equal(codeOf(body), code, body.slice(0, 60));
  t.match(decode('{"nome":1}'), { detail: /"nome"/ });
  t.match(decode('{"items":[{},{"key":true}]}'), { detail: /"items\[1\]\.key"/ });
  t.match(decode('{"transactionId":{"l":"x"}}'), { detail: /"transactionId\.l"/ });
  t.end();
});

t.test("P-146 text is well-formed Unicode or refused", (t) => {
  const quote = (bytes: number[]): Buffer =>
    Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]);
  for (const bytes of [
    [0xff],
    [0xc3],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe2, 0x82],
    [0x80],
  ]) {
    t.equal(codeOf(quote(bytes)), "malformed-json", `bytes ${bytes.join(" ")}`);
  }
  for (const escape of ["\\ud800", "\\udc00", "\\ud800x", "\\udc00\\ud800", "\\ud800\\n"]) {
    t.equal(codeOf(`{"name":"${escape}"}`), "malformed-json", escape);
  }
  t.equal(codeOf(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d])), "malformed-json", "BOM");
  t.equal(valueOf("name", '"\\ud83d\\ude00"'), "😀");
  t.equal(valueOf("name", '"a\\u0000\\/\\"\\\\\\b\\f\\n\\r\\t"'), 'a\0/"\\\b\f\n\r\t');
  t.equal(valueOf("name", '"Köln 日本"'), "Köln 日本");
  t.end();
});

t.test("the reader accepts exactly what JSON.parse accepts, and reads the same text", (t) => {
  /** Syntax alone, over any value. */
  const accepts = (body: string): boolean => {
    const scanner = new JsonScanner();
    return scanner.run(Buffer.from(body), () => scanner.skip()) === null;
  };
  const parses = (body: string): boolean => {
    try {
      JSON.parse(body);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(fc.json({ maxDepth: 10 }), (body) => accepts(body)),
    { numRuns: 500 },
  );
  const letters = fc.constantFrom(...'{}[]:,"\\u0123456789abcdefEnrtlus+-. \n\u00e9'.split(""));
  const noise = fc.array(letters, { maxLength: 12 }).map((list) => list.join(""));
  fc.assert(
    fc.property(noise, (body) => accepts(body) === parses(body)),
    { numRuns: 20_000 },
  );
  fc.assert(
    fc.property(fc.json({ maxDepth: 3 }), fc.nat(), letters, (body, at, letter) => {
      const where = body.length === 0 ? 0 : at % body.length;
      const changed = body.slice(0, where) + letter + body.slice(where + 1);
      return accepts(changed) === parses(changed);
    }),
    { numRuns: 20_000 },
  );
  const anyText = fc.string({ unit: "binary", maxLength: 40 }).filter(isWellFormedText);
  fc.assert(
    fc.property(anyText, (value) => {
      const same = valueOf("name", JSON.stringify(value)) === value;
      return same && JSON.parse(quoted(value)) === value;
    }),
    { numRuns: 3000 },
  );
  t.end();
});

t.test("P-145 base64 is strict and its memory is its own", (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const sent = encodeBase64(bytes);
      const escaped = sent.replaceAll("/", "\\/");
      t.strictSame(Buffer.from(valueOf("value", `"${sent}"`) as Uint8Array), Buffer.from(bytes));
      t.strictSame(Buffer.from(valueOf("value", `"${escaped}"`) as Uint8Array), Buffer.from(bytes));
    }),
    { numRuns: 200 },
  );
  for (const bad of ["A", "AA", "AAA", "A===", "AA=A", "AAAA=", "AB==", "AAB=", "AA-_", "A A="]) {
    t.equal(codeOf(`{"value":"${bad}"}`), "invalid-base64", bad);
  }
  for (const bad of ["====", "AAAAé===", "\\u00e9AAA", "AA==AAAA", "AAAA\\n"]) {
    t.equal(codeOf(`{"value":"${bad}"}`), "invalid-base64", bad);
  }
  t.equal(codeOf('{"value":"AAA'), "malformed-json");
  t.equal(codeOf('{"value":"AAAA\n"}'), "malformed-json");
  const small = decodeBase64(Buffer.from("AAAA"));
  t.equal(small?.buffer.byteLength, 3, "no pooled memory is kept");
  t.end();
});

t.test("durability, owner and the transactional members", (t) => {
  const form = (json: string): readonly [unknown, boolean, string | null] => {
    const decoded = decode(`{"durability":${json}}`);
    if ("code" in decoded) throw new Error(decoded.detail);
    return [decoded.values[6], decoded.numericDurability, decoded.misfit];
  };
  t.strictSame(form("null"), [1, false, null]);
  t.strictSame(form("0"), [0, true, null]);
  t.strictSame(form("1"), [1, true, null]);
  t.strictSame(form("7"), [7, true, null]);
  t.strictSame(form("1.5"), [-1, true, "durability"]);
  t.strictSame(form('"Persistent"'), [1, false, null]);
  t.strictSame(form('"Ephemeral"'), [0, false, null]);
  t.strictSame(form('"P\\u0065rsistent"'), [1, false, null]);
  t.strictSame(form('"persistent"'), [-1, false, null]);
  t.strictSame(form('"1"'), [-1, false, null]);

  const bytes = (json: string): Buffer => Buffer.from(valueOf("owner", json) as Uint8Array);
  t.strictSame(bytes('"me"'), Buffer.from("me"));
  t.strictSame(bytes('"m\\u00e9"'), Buffer.from("mé"));
  t.strictSame(bytes('"base64:/w=="'), Buffer.from([0xff]));
  t.strictSame(bytes('"base64:"'), Buffer.alloc(0));
  t.equal(codeOf('{"owner":"base64:!"}'), "invalid-base64");
  t.equal(ownerText(Buffer.from("me")), '"me"');
  t.equal(ownerText(Buffer.from([0xff])), '"base64:/w=="');
  t.equal(ownerText(Buffer.from("base64:x")), '"base64:YmFzZTY0Ong="');
  t.equal(ownerText(null), "null");
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 30 }), (owner) => {
      t.strictSame(bytes(ownerText(owner)), Buffer.from(owner), "an owner comes back as it was");
    }),
    { numRuns: 300 },
  );

  const plain = (json: string): boolean | string => {
    const decoded = decode(json);
    return "code" in decoded ? decoded.code : decoded.plain;
  };
  t.equal(
    plain('{"transactionId":{"n":0,"l":0,"c":0},"readTimestamp":{},"conflictPolicy":1}'),
    true,
  );
  t.equal(plain('{"coordinatorKey":"","operationIdHigh":0,"operationIdLow":"0"}'), true);
  t.equal(plain('{"transactionId":null,"routedGeneration":null,"conflictPolicy":0}'), true);
  for (const member of [
    '"transactionId":{"l":1}',
    '"readTimestamp":{"c":1}',
    '"coordinatorKey":"x"',
    '"operationIdHigh":1',
    '"operationIdLow":"5"',
    '"routedGeneration":-1',
    '"conflictPolicy":2',
  ]) {
    t.equal(plain(`{${member}}`), false, member);
  }
  t.end();
});

t.test("P-145 special names stay data, and items are bounded", (t) => {
  const decoded = decode('{"items":[{"key":"__proto__"},{"key":"b","revision":"3"}]}');
  t.match(decoded, { misfit: null });
  t.strictSame(valuesOf('{"items":[{"key":"__proto__"},{"key":"b","revision":"3"}]}')[8], [
    { key: "__proto__", revision: -1n, durable: 1 },
    { key: "b", revision: 3n, durable: 1 },
  ]);
  t.equal(({} as Record<string, unknown>)["x"], undefined);
  const many = `{"items":[${new Array(600_000).fill("{}").join(",")}]}`;
  t.equal((valuesOf(many)[8] as unknown[]).length, 2048, "a flood of items is not kept");
  t.end();
});

t.test("P-127 long lists are written in slices, to the same text", async (t) => {
  const write = (at: number): string => quoted(`é ${at}`);
  for (const count of [0, 1, 999, 1000, 1001, 2000, 2001, 12_345]) {
    const list = Array.from({ length: count }, (_, at) => at);
    t.equal(isLongList(list), count > 1000);
    let turns = 0;
    let running = true;
    const turn = (): void => {
      turns++;
      if (running) setImmediate(turn);
    };
    setImmediate(turn);
    const pieces = await new Promise<Buffer[]>((resolve) => listPieces(list, write, resolve));
    running = false;
    t.equal(Buffer.concat(pieces).toString(), listText(list, write), `${count} items`);
    t.ok(turns >= Math.floor(count / 1000), `others had ${turns} turns`);
  }
});
