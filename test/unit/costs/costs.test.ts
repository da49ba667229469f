/**
 * What an operation may cost, counted: nothing here measures time, so that it says the same on every
 * machine. A count that rose above its ceiling is a change that somebody has to want: then the ceiling
 * rises with it, in the same commit. One that fell lets the ceiling fall.
 */
import { execFileSync } from "node:child_process";
import { Socket, connect } from "node:net";
import { join } from "node:path";
import { Writable } from "node:stream";
import t from "tap";
import { PREFACE, Frame } from "../../../src/grpc/h2/constants.js";
import { LaneSender } from "../../../src/net/sending.js";
import { laneBounds } from "../../../src/net/settings.js";
import { TIMES } from "../../doubles/net/world.js";
import { start } from "../grpc/harness.js";
import { FIELDS, MESSAGE, block, frame } from "../grpc/h2/raw.js";

/** What is looked at of what `run.ts` counts, for each operation, over three nodes. */
const COUNTED = [
  "callbacks",
  "timers",
  "frames",
  "messages",
  "durable writes",
  "log records",
  "allocated bytes",
] as const;
type Counted = (typeof COUNTED)[number];
type Costs = Readonly<Record<string, Readonly<Partial<Record<Counted, number>>>>>;

/**
 * A tenth above what was counted last, a twentieth of one at least: who leads which partition, and
 * when something else happens to be due, moves the counts by less than that. By operation and number
 * of callers.
 */
const CEILINGS: Readonly<Record<string, readonly number[]>> = {
  "set, 64": [9.4, 1.45, 4, 4.2, 0.82, 3.2, 90000],
  "set, 1": [15, 1.3, 4.7, 5.5, 3.3, 3.6, 108000],
  "get, 64": [8.4, 1.2, 3.7, 3.6, 0.05, 0.05, 47000],
  "get, 1": [11.5, 1.3, 4.6, 5.5, 0.05, 0.05, 53500],
  "lock or unlock, 64": [9.6, 1.4, 4.2, 4.3, 0.83, 3.2, 91000],
  "lock or unlock, 1": [20, 1.4, 7.1, 6.6, 3.3, 3.6, 136000],
  "next, 64": [8.3, 1.2, 3, 2.2, 0.06, 0.06, 36700],
  "next, 1": [12.3, 1.3, 4.6, 5.5, 0.05, 0.05, 53000],
};

/** Without an optimizer what is allocated is the same in each run; nothing is collected meanwhile. */
const FLAGS = ["--no-opt", "--single-threaded", "--expose-gc", "--min-semi-space-size=256"];

t.test("what an operation costs three nodes", (t) => {
  const program = join(import.meta.dirname, "run.js");
  const flags = [...FLAGS, "--max-semi-space-size=256"];
  const text = execFileSync(process.execPath, [...flags, program], { encoding: "utf8" });
  const costs = JSON.parse(text) as Costs;
  t.strictSame(Object.keys(costs), Object.keys(CEILINGS));
  for (const [work, ceilings] of Object.entries(CEILINGS)) {
    const counted = COUNTED.map((name) => costs[work]?.[name] ?? 0);
    t.comment(`${work}: ${counted.map((count) => Number(count.toPrecision(4))).join(", ")}`);
    for (const [at, name] of COUNTED.entries()) {
      const [count, ceiling] = [counted[at] ?? 0, ceilings[at] ?? 0];
      t.ok(count <= ceiling, `${work}: ${name} ${count.toFixed(3)}, at most ${ceiling}`);
    }
  }
  t.end();
});

t.test("P-128 the frames of a turn leave a lane with one write", (t) => {
  const writes: number[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk.length);
      done();
    },
  });
  const sender = new LaneSender(stream, laneBounds(TIMES).log);
  for (let at = 0; at < 100; at++) t.ok(sender.frame(new Uint8Array(64)));
  setImmediate(() => {
    t.strictSame(writes, [100 * (6 + 64)]);
    t.end();
  });
});

t.test("the answers of a turn leave a gRPC connection with one write", async (t) => {
  const { port } = await start(t);
  const calls = 64;
  let [writes, bytes] = [0, 0];
  const { _write: write, _writev: writev } = Socket.prototype;
  const count = (socket: Socket): void => {
    if (socket.localPort === port) writes += 1;
  };
  Socket.prototype._write = function (...given) {
    count(this);
    write.apply(this, given);
  };
  Socket.prototype._writev = function (...given) {
    count(this);
    writev?.apply(this, given);
  };
  t.teardown(() => Object.assign(Socket.prototype, { _write: write, _writev: writev }));
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  const parts = [PREFACE, frame(Frame.settings, 0, 0)];
  for (let at = 0; at < calls; at++) {
    parts.push(frame(Frame.headers, 4, 2 * at + 1, block(FIELDS)));
    parts.push(frame(Frame.data, 1, 2 * at + 1, MESSAGE));
  }
  let ended = 0;
  let rest = Buffer.alloc(0);
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        if (rest[3] === Frame.headers && ((rest[4] ?? 0) & 1) === 1) ended += 1;
        rest = rest.subarray(9 + rest.readUIntBE(0, 3));
      }
      if (ended === calls) resolve();
    });
    socket.write(Buffer.concat(parts));
  });
  // The settings, their acknowledgement, and what is answered: each may be a turn of its own.
  t.ok(writes <= 4, `${calls} calls were answered with ${writes} writes`);
  t.ok(bytes / calls < 200, `and ${Math.round(bytes / calls)} bytes for each call`);
});
