/**
 * The log over damaged, torn, lost, misdirected, foreign and newer bytes. Run by log.test.ts.
 */
import t from "tap";
import { SECTOR_BYTES } from "../../../src/disk/log/records.js";
import { Steps } from "../../doubles/disk/fakedisk.js";
import {
  G,
  IDENTITY,
  type Machine,
  bytesOf,
  close,
  entries,
  machine,
  open,
  recoverFrom,
  restart,
  segmentPath,
  text,
  tryOpen,
  write,
} from "../../doubles/disk/fixture.js";

/** A log that was closed after 40 entries over several segments. */
function closedLog(segmentBytes: number, count: number): Machine {
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  // Four records fill a sector, so that the segments are too full to be written forward.
  for (let at = 1; at <= count; at += 4) write(on, log, 1, entries(at, at + 3, 1, 900));
  close(on, log);
  return on;
}

function lastUsed(on: Machine): number {
  const sequences = [...on.disk.names.keys()].map((name) =>
    Number.parseInt(name.slice(-20, -8), 10),
  );
  let last = 0;
  for (const sequence of sequences) {
    const bytes = bytesOf(on, sequence).subarray(SECTOR_BYTES);
    if (bytes.some((byte) => byte !== 0)) last = Math.max(last, sequence);
  }
  return last;
}

void t.test(
  "P-113 P-114 every flipped byte of sealed and of last segment is found or harmless",
  (t) => {
    const on = closedLog(32_768, 100);
    const whole = text(entries(1, 100, 1, 900));
    const last = lastUsed(on);
    t.ok(last > 3, "several segments");
    const kernels = on.kernels;
    const counts = new Map<string, number>();
    for (const sequence of [2, last]) {
      for (let at = 0; at < 32_768; at += sequence === last ? 9 : 11) {
        const after = machine(32_768, on.disk.copy(new Steps()), kernels);
        const bytes = bytesOf(after, sequence);
        bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
        const found = recoverFrom(after);
        const verdict = found === whole ? "whole" : found;
        counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
        if (verdict !== "whole" && verdict !== "log-damaged" && verdict !== "log-newer") {
          t.fail(`segment ${String(sequence)}, byte ${String(at)}: ${verdict.slice(0, 80)}`);
        }
      }
    }
    t.ok((counts.get("log-damaged") ?? 0) > 1500, JSON.stringify([...counts]));
    t.end();
  },
);

void t.test("P-113 a log cut at every byte keeps all that was durable before", (t) => {
  const on = machine(65_536);
  const log = open(on);
  on.steps.run();
  const ends: { end: number; index: number }[] = [];
  for (let index = 1; index <= 8; index++) {
    write(on, log, 1, entries(index, index, 1, 500));
    ends.push({ end: log.segments.active.endOffset, index });
  }
  const end = log.segments.active.endOffset;
  for (let cut = SECTOR_BYTES; cut <= end; cut += 7) {
    const after = machine(65_536, on.disk.copy(new Steps()), on.kernels);
    bytesOf(after, 1).fill(0, cut);
    const found = recoverFrom(after);
    const kept = ends.filter((place) => place.end <= cut).length;
    // The sector padding of a batch belongs to its last record but holds nothing.
    const least = text(entries(1, kept, 1, 500));
    if (!found.startsWith(least)) t.equal(found, least, `cut at ${String(cut)}`);
    t.same(after.fatals, []);
  }
  t.end();
});

void t.test("P-113 a torn tail is reported, and the log goes on in a new segment", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 3, 1));
  const end = log.segments.active.endOffset;
  write(on, log, 1, entries(4, 9, 1, 2000));
  const after = restart(on);
  bytesOf(after, 1).fill(0, end + 3000, end + 3512);
  const second = open(after);
  t.match(after.events, [
    { event: "cut a torn tail off the log", fields: { file: segmentPath(1) } },
  ]);
  t.equal(second.recovered().get(G)?.lastIndex, 4, "whole records of the torn write stay");
  after.steps.run();
  write(after, second, 1, entries(5, 6, 2));
  t.equal(second.segments.active.sequence, 2);
  const third = restart(after);
  const whole = [...entries(1, 3, 1), ...entries(4, 4, 1, 2000), ...entries(5, 6, 2)];
  t.equal(recoverFrom(third), text(whole));
  t.end();
});

void t.test("P-114 lost, misdirected, shifted, renamed and foreign writes are refused", (t) => {
  const make = (): Machine => {
    const on = machine(32_768);
    const log = open(on);
    on.steps.run();
    for (let at = 1; at <= 60; at += 2) write(on, log, 1, entries(at, at + 1, 1, 1900));
    return on;
  };
  const sector = (on: Machine, at: number): Uint8Array =>
    bytesOf(on, 2).subarray(at * SECTOR_BYTES, (at + 1) * SECTOR_BYTES);
  const cases: Record<string, (on: Machine) => string> = {
    "a lost write": (on) => (sector(on, 3).fill(0), "log-damaged"),
    "a write in the wrong place": (on) => (sector(on, 4).set(sector(on, 3)), "log-damaged"),
    "two writes exchanged": (on) => {
      const first = sector(on, 3).slice();
      sector(on, 3).set(sector(on, 4));
      sector(on, 4).set(first);
      return "log-damaged";
    },
    "a write of another segment": (on) => {
      sector(on, 3).set(bytesOf(on, 1).subarray(3 * SECTOR_BYTES, 4 * SECTOR_BYTES));
      return "log-damaged";
    },
    "a missing segment": (on) => (on.disk.names.delete(segmentPath(2)), "log-incomplete"),
    "a renamed segment": (on) => {
      on.disk.names.set(segmentPath(2), { bytes: bytesOf(on, 3).slice() });
      return "log-damaged";
    },
    "a segment of another size": (on) => {
      on.disk.names.set(segmentPath(2), { bytes: bytesOf(on, 2).slice(0, 20_000) });
      return "log-damaged";
    },
  };
  for (const [title, spoil] of Object.entries(cases)) {
    const on = restart(make());
    const expected = spoil(on);
    const opened = tryOpen(on);
    t.equal(opened.ok ? "opened" : opened.code, expected, title);
    if (!opened.ok) {
      t.match(opened.message, /segment/, "names the file");
      if (expected === "log-damaged") t.match(opened.message, /offset \d+/, "names the offset");
      t.match(opened.message, /restore/, "names a remedy");
    }
  }
  const foreign = tryOpen(restart(make()), { ...IDENTITY, nodeId: 2 });
  t.equal(foreign.ok ? "opened" : foreign.code, "log-foreign");
  const empty = tryOpen(machine(), IDENTITY, false);
  t.equal(empty.ok ? "opened" : empty.code, "log-incomplete", "a lost log directory");
  t.end();
});

void t.test("P-114 zeros, and a recycled segment, decode to nothing", (t) => {
  const on = machine(32_768);
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 3, 1));
  // The segment that comes next holds leftovers of the first, as if it had been recycled.
  const after = restart(on);
  bytesOf(after, 2).set(bytesOf(after, 1).subarray(SECTOR_BYTES), SECTOR_BYTES);
  t.equal(recoverFrom(after), text(entries(1, 3, 1)));
  t.match(after.events[0], { event: "cut a torn tail off the log" });
  t.end();
});

void t.test("P-131 a newer format is refused by name", (t) => {
  const on = machine();
  open(on);
  on.steps.run();
  const { kernels } = on;
  const region = kernels.record.acquire();
  region?.append(16, 0, 0, 1, 0, new Uint8Array([2, 0, 0, 0, 99]));
  const place = { segmentId: 0, salt: 0, offset: 0, previousChecksum: 0, durableOffset: 0 };
  const sealed = region?.seal({ ...place, sectorBytes: SECTOR_BYTES });
  bytesOf(on, 1).set(sealed?.bytes ?? new Uint8Array(0));
  region?.release();
  const opened = tryOpen(restart(on));
  t.match(opened, { ok: false, code: "log-newer", message: /format version 2/ });
  t.end();
});

void t.test("a damaged record met by a read ends the process", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 5, 1));
  const bytes = bytesOf(on, 1);
  bytes[SECTOR_BYTES + 60] = (bytes[SECTOR_BYTES + 60] as number) ^ 1;
  log.read(G, 1, 5, 1000, () => t.fail("no answer"));
  on.steps.run();
  t.match(on.fatals, [{ reason: "log record damaged", fields: { file: segmentPath(1) } }]);
  t.end();
});
