/**
 * How fast snapshots leave, by virtual time: each purpose by its rate, and planned moves by how well
 * the node keeps up.
 */
import t from "tap";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../../src/host/snapshots/snapshot-limits.js";
import {
  SnapshotPace,
  type SnapshotPurpose,
} from "../../../../src/host/snapshots/snapshot-pace.js";

const MIB = 2 ** 20;
const CHUNK_BYTES = 64 << 10;
const TICK_MS = 100;
const { bytesPerSecond, balanceBytesPerSecond, behindMs } = DEFAULT_SNAPSHOT_SETTINGS;
const LEAST = {
  drain: DEFAULT_SNAPSHOT_SETTINGS.drainLeastBytesPerSecond,
  balance: DEFAULT_SNAPSHOT_SETTINGS.balanceLeastBytesPerSecond,
};

class Line {
  nowMs = 1000;
  readonly pace = new SnapshotPace(DEFAULT_SNAPSHOT_SETTINGS, this.nowMs);
  sentBytes = 0;

  /** Sends all that may leave for so long, on a node whose ticks come `lateMs` late. */
  send(purpose: SnapshotPurpose, seconds: number, lateMs: number): number {
    const beganBytes = this.sentBytes;
    for (let ms = 0; ms < seconds * 1000; ms += TICK_MS) {
      this.nowMs += TICK_MS;
      this.pace.ticked(this.nowMs, lateMs);
      while (this.pace.allows(purpose, this.nowMs)) {
        this.pace.charge(purpose, CHUNK_BYTES);
        this.sentBytes += CHUNK_BYTES;
      }
    }
    return (this.sentBytes - beganBytes) / seconds;
  }

  get drainRate(): number {
    return this.pace.plannedRates().find(({ purpose }) => purpose === "drain")?.bytesPerSecond ?? 0;
  }

  rest(seconds: number): void {
    for (let ms = 0; ms < seconds * 1000; ms += TICK_MS) {
      this.nowMs += TICK_MS;
      this.pace.ticked(this.nowMs, 0);
    }
  }
}

function isAbout(actual: number, wanted: number): boolean {
  return actual > wanted * 0.9 && actual < wanted * 1.1 + CHUNK_BYTES;
}

t.test("P-106 a repair takes the whole rate, however busy the node is", (t) => {
  for (const lateMs of [0, 50]) {
    const perSecond = new Line().send("repair", 4, lateMs);
    t.ok(isAbout(perSecond, bytesPerSecond), `${perSecond / MIB} MiB/s, ${lateMs} ms late`);
  }
  t.end();
});

t.test("P-106 planned moves keep to the least rate while the node is behind", (t) => {
  for (const purpose of ["drain", "balance"] as const) {
    const perSecond = new Line().send(purpose, 20, behindMs + 1);
    t.ok(isAbout(perSecond, LEAST[purpose]), `${purpose}: ${perSecond / MIB} MiB/s`);
  }
  t.end();
});

t.test("P-106 a drain gets faster on a node that keeps up, and at once slower", (t) => {
  const line = new Line();
  const first = line.send("drain", 1, 0);
  t.ok(isAbout(first, LEAST.drain), "it begins slowly");
  line.send("drain", 12, 0);
  t.ok(isAbout(line.send("drain", 4, 0), bytesPerSecond), "and ends at the whole rate");
  line.send("drain", 1, behindMs + 1);
  const slower = line.send("drain", 1, behindMs + 1);
  t.ok(slower < bytesPerSecond * 0.6, `${slower / MIB} MiB/s a second after the node is behind`);
  line.send("drain", 6, behindMs + 1);
  t.ok(isAbout(line.send("drain", 4, behindMs + 1), LEAST.drain));
  t.end();
});

t.test("P-106 balance never takes more than its own rate", (t) => {
  const line = new Line();
  line.send("balance", 20, 0);
  t.ok(isAbout(line.send("balance", 4, 0), balanceBytesPerSecond));
  t.end();
});

t.test("P-106 a repair does not wait for a drain that used up its rate", (t) => {
  const line = new Line();
  line.send("drain", 2, behindMs + 1);
  t.notOk(line.pace.allows("drain", line.nowMs));
  t.ok(line.pace.allows("repair", line.nowMs));
  t.end();
});

t.test("P-106 after a pause a planned move begins slowly again", (t) => {
  const line = new Line();
  line.send("drain", 12, 0);
  line.rest(3);
  t.equal(line.drainRate, LEAST.drain);
  const first = line.send("drain", 1, 0);
  t.ok(first < 2 * LEAST.drain, `${first / MIB} MiB/s`);
  t.end();
});

t.test("P-106 one late tick among many is no sign of a node that is behind", (t) => {
  const line = new Line();
  for (let at = 0; at < 120; at++) line.send("drain", 0.1, at % 20 === 0 ? 10 * behindMs : 0);
  t.equal(line.drainRate, bytesPerSecond);
  t.end();
});
