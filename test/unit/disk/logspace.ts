/**
 * The log and space: bounded size, pinned segments, full disks, large writes. Run by log.test.ts.
 */
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { SECTOR_BYTES } from "../../../src/disk/log/records.js";
import {
  G,
  entries,
  machine,
  open,
  read,
  recoverFrom,
  restart,
  text,
  write,
} from "../../doubles/disk/fixture.js";

void t.test("P-116 one idle group beside busy ones does not pin the log", (t) => {
  const segmentBytes = 65_536;
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  const busy = 40;
  write(on, log, 1, entries(1, 20, 1), { term: 1, vote: 1, commit: 20 });
  const last = new Array<number>(busy).fill(0);
  let largest = 0;
  for (let round = 0; round < 400; round++) {
    const group = 2 + (round % busy);
    const first = (last[group - 2] as number) + 1;
    last[group - 2] = first + 9;
    write(on, log, group, entries(first, first + 9, 1, 300));
    if (round % 10 === 9) {
      for (let at = 0; at < busy; at++) {
        const index = last[at] as number;
        if (index > 0) log.raiseFloor(partitionId(at + 2), { index, term: 1 });
      }
    }
    on.steps.run();
    largest = Math.max(largest, log.sizeBytes() - log.liveBytes());
  }
  t.ok(log.segments.active.sequence > 20, "many segments were used");
  t.ok(
    largest <= 5 * segmentBytes,
    `at most ${String(largest / segmentBytes)} segments beyond live`,
  );
  t.equal(recoverFrom(restart(on)), text(entries(1, 20, 1)), "the idle group is whole");
  t.end();
});

void t.test("groups that pin the log are named, most urgent first", (t) => {
  const on = machine(65_536);
  const log = open(on);
  on.steps.run();
  t.same(log.pinningGroups(), []);
  write(on, log, 5, entries(1, 10, 1, 3000));
  write(on, log, 6, entries(1, 60, 1, 3000));
  t.equal(log.pinningGroups()[0], 5, "the oldest segment first");
  t.ok(log.pinningGroups().includes(partitionId(6)));
  log.raiseFloor(partitionId(5), { index: 10, term: 1 });
  log.raiseFloor(partitionId(6), { index: 60, term: 1 });
  on.steps.run();
  t.same(log.pinningGroups(), []);
  t.end();
});

void t.test("P-120 a full disk parks writes, reads go on, all resumes when space returns", (t) => {
  const on = machine(300_000 - (300_000 % SECTOR_BYTES));
  const log = open(on);
  on.steps.run();
  on.disk.freeBytes = 0;
  const acknowledged: number[] = [];
  let index = 0;
  const put = (): void => {
    const at = ++index;
    const done = (): void => void acknowledged.push(at);
    log.write({ group: G, hardState: null, entries: entries(at, at, 1, 5000), done });
    on.steps.run();
  };
  while (log.space() === "available") put();
  const told = index;
  t.equal(acknowledged.length, told, "what was accepted before was acknowledged");
  for (let more = 0; more < 200; more++) put();
  t.ok(acknowledged.length < index, "the rest is parked");
  t.same(on.fatals, []);
  const held = read(on, log, 1, 1, 3);
  t.equal(held === "compacted" ? held : text(held), text(entries(1, 3, 1, 5000)), "reads go on");
  on.steps.advance(5000);
  t.equal(log.space(), "full", "asked again in vain");
  log.raiseFloor(G, { index: 30, term: 1 });
  on.steps.run();
  t.ok(acknowledged.length < index);
  on.disk.freeBytes = 10_000_000;
  on.steps.advance(5000);
  t.equal(log.space(), "available");
  t.equal(acknowledged.length, index, "all parked writes are durable now");
  t.same(
    acknowledged,
    Array.from({ length: index }, (_, at) => at + 1),
    "in order",
  );
  t.equal(recoverFrom(restart(on)), text(entries(31, index, 1, 5000)));
  t.end();
});

void t.test("P-120 raised floors alone free a full disk", (t) => {
  const segmentBytes = 600_000 - (600_000 % SECTOR_BYTES);
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  on.disk.freeBytes = segmentBytes;
  let index = 0;
  let durable = 0;
  while (log.space() === "available" || durable === index) {
    const at = ++index;
    const done = (): void => {
      durable = at;
    };
    log.write({ group: G, hardState: null, entries: entries(at, at, 1, 9000), done });
    on.steps.run();
  }
  log.raiseFloor(G, { index: durable, term: 1 });
  on.steps.run();
  on.steps.advance(2000);
  t.equal(durable, index, "the parked write went through");
  t.same(on.fatals, []);
  t.end();
});

void t.test("P-199 without descriptors writes are parked, whichever call lacks one", (t) => {
  for (const lacking of ["allocate", "syncDirectory", "open"] as const) {
    const on = machine(300_000 - (300_000 % SECTOR_BYTES));
    const log = open(on);
    on.steps.run();
    on.disk.withoutDescriptors = (call) => call === lacking;
    let index = 0;
    let durable = 0;
    const put = (): void => {
      const at = ++index;
      const done = (): void => void (durable = at);
      log.write({ group: G, hardState: null, entries: entries(at, at, 1, 9000), done });
      on.steps.run();
    };
    while (log.space() === "available" && index < 1000) put();
    t.equal(durable, index, "the segment made ahead took what was accepted");
    for (let more = 0; more < 100; more++) put();
    t.ok(durable < index, "the rest is parked");
    // Segments become needless meanwhile: their removal lacks the same descriptor.
    log.raiseFloor(G, { index: Math.floor(durable / 2), term: 1 });
    on.steps.advance(5000);
    t.equal(log.space(), "full", "asked again in vain");
    t.same(on.fatals, [], `nothing is fatal (${lacking})`);
    on.disk.withoutDescriptors = () => false;
    on.steps.advance(5000);
    t.equal(log.space(), "available");
    t.equal(durable, index, "all parked writes are durable now");
    t.same(on.fatals, []);
    const found = recoverFrom(restart(on));
    t.ok(found.endsWith(text(entries(index, index, 1, 9000))), "and are found again");
  }
  t.end();
});

void t.test("P-199 a removed segment is settled when a descriptor comes back", (t) => {
  const on = machine(65_536);
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 60, 1, 3000));
  const before = log.sizeBytes();
  on.disk.withoutDescriptors = (call) => call === "syncDirectory";
  log.raiseFloor(G, { index: 60, term: 1 });
  on.steps.advance(5000);
  t.same(on.fatals, [], "the missing sync of the directory is not fatal");
  const between = log.sizeBytes();
  t.ok(between < before && between > 2 * 65_536, "no second removal before the first is durable");
  on.disk.withoutDescriptors = () => false;
  on.steps.advance(5000);
  t.ok(log.sizeBytes() <= 3 * 65_536, "removal goes on");
  t.same(on.fatals, []);
  t.end();
});

void t.test("a failing write to allocated space is fatal even when it says no space", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  on.disk.writeFault = () => "no-space";
  log.write({ group: G, hardState: null, entries: entries(1, 1, 1), done: () => t.fail() });
  on.steps.run();
  t.match(on.fatals, [{ reason: "log write failed", fields: { code: "no-space" } }]);
  t.end();
});

void t.test("one write larger than a batch region and than what is left of a segment", (t) => {
  const on = machine(16 * 1024 * 1024);
  const log = open(on);
  on.steps.run();
  const list = entries(1, 9, 1, 1_500_000);
  write(on, log, 1, list, { term: 1, vote: 1, commit: 9 });
  t.ok(on.disk.writes > 1);
  write(on, log, 1, entries(10, 12, 1, 3_000_000));
  const after = restart(on);
  t.equal(recoverFrom(after), text([...list, ...entries(10, 12, 1, 3_000_000)]));
  t.end();
});
