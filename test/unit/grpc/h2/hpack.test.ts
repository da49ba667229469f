/** HPACK: the Huffman code, the tables, the examples of RFC 7541, what is malformed. */
import fc from "fast-check";
import t from "tap";
import type { Field } from "../../../../src/grpc/h2/fields.js";
import { HpackDecoder } from "../../../../src/grpc/h2/hpack.js";
import { canonicalCodes, CODE_LENGTHS, decodeHuffman } from "../../../../src/grpc/h2/huffman.js";
import { STATIC_TABLE } from "../../../../src/grpc/h2/static-table.js";

/** The text in the code of HPACK, a bit at a time. */
function huffman(text: string): Buffer {
  const codes = canonicalCodes(CODE_LENGTHS);
  let bits = "";
  for (const byte of Buffer.from(text, "latin1")) {
    bits += (codes[byte] ?? 0).toString(2).padStart(CODE_LENGTHS[byte] ?? 0, "0");
  }
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

/** The fields of a block; null = malformed. */
function decode(decoder: HpackDecoder, bytes: Buffer): [string, string][] | null {
  const fields: [string, string][] = [];
  const sink = { take: ({ name, value }: Field) => void fields.push([name, value]) };
  return decoder.decode(bytes, 0, bytes.length, sink) ? fields : null;
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

t.test("the Huffman code is complete and that of the standard's table", (t) => {
  t.equal(CODE_LENGTHS.length, 257);
  t.equal(
    CODE_LENGTHS.reduce((sum, bits) => sum + 2 ** (30 - bits), 0),
    2 ** 30,
    "a prefix code without gaps",
  );
  const codes = canonicalCodes(CODE_LENGTHS);
  // Rows of RFC 7541, appendix B, of each length that it has.
  const rows: readonly (readonly [symbol: number, code: number, bits: number])[] = [
    [48, 0x0, 5],
    [116, 0x9, 5],
    [32, 0x14, 6],
    [117, 0x2d, 6],
    [58, 0x5c, 7],
    [122, 0x7b, 7],
    [38, 0xf8, 8],
    [90, 0xfd, 8],
    [33, 0x3f8, 10],
    [63, 0x3fc, 10],
    [39, 0x7fa, 11],
    [124, 0x7fc, 11],
    [35, 0xffa, 12],
    [62, 0xffb, 12],
    [0, 0x1ff8, 13],
    [126, 0x1ffd, 13],
    [94, 0x3ffc, 14],
    [125, 0x3ffd, 14],
    [60, 0x7ffc, 15],
    [123, 0x7ffe, 15],
    [92, 0x7fff0, 19],
    [208, 0x7fff2, 19],
    [128, 0xfffe6, 20],
    [153, 0x1fffdc, 21],
    [129, 0x3fffd2, 22],
    [1, 0x7fffd8, 23],
    [9, 0xffffea, 24],
    [199, 0x1ffffec, 25],
    [192, 0x3ffffe0, 26],
    [255, 0x3ffffee, 26],
    [203, 0x7ffffde, 27],
    [2, 0xfffffe2, 28],
    [249, 0xffffffe, 28],
    [10, 0x3ffffffc, 30],
    [13, 0x3ffffffd, 30],
    [22, 0x3ffffffe, 30],
    [256, 0x3fffffff, 30],
  ];
  for (const [symbol, code, bits] of rows) {
    t.equal(CODE_LENGTHS[symbol], bits, `length of ${symbol}`);
    t.equal(codes[symbol]?.toString(16), code.toString(16), `code of ${symbol}`);
  }
  t.end();
});

t.test("Huffman: round trips, and nothing else is read", (t) => {
  const every = Array.from({ length: 256 }, (_, at) => String.fromCharCode(at)).join("");
  const coded = huffman(every);
  t.equal(decodeHuffman(coded, 0, coded.length), every);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const text = Buffer.from(bytes).toString("latin1");
      const coded = Buffer.concat([Buffer.from([7]), huffman(text), Buffer.from([7])]);
      return decodeHuffman(coded, 1, coded.length - 1) === text;
    }),
  );
  // Whatever is read is what the code of its text says: there is one way to write a text.
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
      const given = Buffer.from(bytes);
      const text = decodeHuffman(given, 0, given.length);
      return text === null || huffman(text).equals(given);
    }),
    { numRuns: 5000 },
  );
  t.equal(decodeHuffman(hex("ffffffff"), 0, 4), null, "the end of the string");
  t.equal(decodeHuffman(hex("1fff"), 0, 2), null, "padding of eight bits");
  t.equal(decodeHuffman(hex("00"), 0, 1), null, "padding that is not of ones");
  t.end();
});

t.test("the examples of RFC 7541: requests, plain and Huffman coded, on one table", (t) => {
  t.equal(STATIC_TABLE.length, 61);
  const plain = [
    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    "8286 84be 5808 6e6f 2d63 6163 6865",
    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
  ];
  const coded = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
  ];
  const site = [":authority", "www.example.com"];
  const first = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/"],
  ];
  const last = [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/index.html"],
    site,
    ["custom-key", "custom-value"],
  ];
  for (const blocks of [plain, coded]) {
    const decoder = new HpackDecoder();
    t.strictSame(decode(decoder, hex(blocks[0] ?? "")), [...first, site]);
    const second = [...first, site, ["cache-control", "no-cache"]];
    t.strictSame(decode(decoder, hex(blocks[1] ?? "")), second);
    t.strictSame(decode(decoder, hex(blocks[2] ?? "")), last);
  }
  t.end();
});

t.test("the examples of RFC 7541: a small table pushes out its oldest", (t) => {
  const decoder = new HpackDecoder();
  const value = "307";
  t.ok(decode(decoder, Buffer.concat([hex("3f e1 01")])), "the table has 256 bytes");
  const blocks = [
    `4803 3330 3258 0770 7269 7661 7465 611d
     4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768
     7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
    "4803 3330 37c1 c0bf",
  ];
  t.match(decode(decoder, hex(blocks[0] ?? "")), [[":status", "302"]]);
  t.strictSame(decode(decoder, hex(blocks[1] ?? "")), [
    [":status", value],
    ["cache-control", "private"],
    ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
    ["location", "https://www.example.com"],
  ]);
  t.equal(decode(decoder, hex("c2")), null, "what was pushed out is no more");
  t.end();
});

t.test("malformed blocks are refused, whatever they are", (t) => {
  const cases: readonly (readonly [title: string, bytes: string])[] = [
    ["index 0", "80"],
    ["beyond the tables", "be"],
    ["a name beyond the tables", "7f 00 01 61"],
    ["a number that never ends", "ff ff ff ff ff ff 01"],
    ["a number that is cut", "ff"],
    ["a length beyond the block", "40 05 61"],
    ["a value that is missing", "40 01 61"],
    ["a table larger than permitted", "3f e2 1f"],
    ["a size that comes too late", "82 20"],
    ["a code that is none", "40 81 ff 01 61"],
  ];
  for (const [title, bytes] of cases) t.equal(decode(new HpackDecoder(), hex(bytes)), null, title);
  t.strictSame(decode(new HpackDecoder(), hex("20 3f e1 1f 82")), [[":method", "GET"]]);
  const large = Buffer.concat([hex("40 01 61 7f a2 1f"), Buffer.alloc(4129, 0x61)]);
  const decoder = new HpackDecoder();
  t.equal(decode(decoder, large)?.length, 1);
  t.equal(decode(decoder, hex("be")), null, "a field larger than the table empties it");
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      decode(new HpackDecoder(), Buffer.from(bytes));
    }),
    { numRuns: 5000 },
  );
  t.end();
});
