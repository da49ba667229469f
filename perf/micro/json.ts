/**
 * The JSON reader against JSON.parse, on the bodies that the service sees most.
 *
 * Prints one row per body: nanoseconds per decode, best of five rounds, interleaved.
 */
import { decodeBody } from "../../src/rest/json/decoder.js";
import { base64, durability, int32, int64, optionalText } from "../../src/rest/json/members.js";
import { owner, tableOf, text, transactionalTableOf } from "../../src/rest/json/members.js";
import type { MemberTable } from "../../src/rest/json/members.js";

const next = tableOf(text("name", ""), optionalText("idempotencyKey", ""), durability());
const lock = tableOf(
  text("resource", ""),
  owner("owner", ""),
  int32("expiresMs", ""),
  durability(),
);
const set = transactionalTableOf(
  text("key", ""),
  base64("value", ""),
  base64("compareValue", ""),
  int64("compareRevision", 0n, ""),
  int32("expiresMs", ""),
  int32("flags", ""),
  durability(),
);

const value = Buffer.alloc(100, 7).toString("base64");
const megabyte = Buffer.alloc(1 << 20, 7).toString("base64");
const cases: readonly (readonly [string, MemberTable, string, number])[] = [
  ["next, 17 bytes", next.table, '{"name":"orders"}', 400_000],
  ["next, 51 bytes", next.table, '{"name":"customer-orders","durability":"Persistent"}', 400_000],
  [
    "try-lock, 79 bytes",
    lock.table,
    '{"resource":"jobs/mail","owner":"worker-17","expiresMs":30000,"durability":1}',
    200_000,
  ],
  ["try-set, 100 byte value", set.table, `{"key":"a/b/c","value":"${value}"}`, 100_000],
  ["next, not ASCII", next.table, '{"name":"Bestellungen für Köln"}', 200_000],
  ["try-set, 1 MiB value", set.table, `{"key":"a/b/c","value":"${megabyte}"}`, 20],
];

function nanoseconds(count: number, call: () => void): number {
  const start = process.hrtime.bigint();
  for (let at = 0; at < count; at++) call();
  return Number(process.hrtime.bigint() - start) / count;
}

for (const [name, table, body, count] of cases) {
  const bytes = Buffer.from(body);
  let sink = 0;
  const own = (): void => {
    if (!("code" in decodeBody(bytes, table))) sink++;
  };
  const builtIn = (): void => {
    sink += JSON.parse(bytes.toString()) === null ? 0 : 1;
  };
  let ownBest = Infinity;
  let builtInBest = Infinity;
  for (let round = 0; round < 5; round++) {
    ownBest = Math.min(ownBest, nanoseconds(count, own));
    builtInBest = Math.min(builtInBest, nanoseconds(count, builtIn));
  }
  const row = [
    name.padEnd(26),
    `reader ${ownBest.toFixed(0)} ns`.padEnd(20),
    `JSON.parse ${builtInBest.toFixed(0)} ns`.padEnd(24),
    `ratio ${(builtInBest / ownBest).toFixed(2)}`,
  ];
  process.stdout.write(`${row.join("")}${sink === 0 ? " (nothing decoded)" : ""}\n`);
}
