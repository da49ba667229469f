/** How much of a volume is too little, and for how long. */
import t from "tap";
import { type VolumeBytes, VolumeSpace } from "../../../src/disk/space.js";
import { ManualTimer } from "../../doubles/host/world.js";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Whether so much is little of a volume of this size. */
function isShortWith(free: number, total: number): boolean {
  const timer = new ManualTimer();
  const logger = { log: (): void => undefined };
  const paths = new Map([["log", "/log"]] as const);
  const space = new VolumeSpace(paths, (_, done) => done({ free, total }), timer, logger);
  space.close();
  return space.isShort();
}

t.test("11: two segments, or a twentieth of the volume up to 256 MiB, are kept free", (t) => {
  for (const [totalBytes, reserveBytes] of [
    [512 * MIB, 128 * MIB],
    [4000 * MIB, 200 * MIB],
    [20 * GIB, 256 * MIB],
    [0, 128 * MIB],
  ] as const) {
    t.ok(isShortWith(reserveBytes - 1, totalBytes), `of ${totalBytes}`);
    t.notOk(isShortWith(reserveBytes, totalBytes));
  }
  t.end();
});

t.test("P-120 a volume that was short is so until twice its reserve is free", (t) => {
  const timer = new ManualTimer();
  const bytes: Record<string, VolumeBytes | null> = { "/log": null, "/state": null };
  const told: string[] = [];
  let asked = 0;
  const space = new VolumeSpace(
    new Map([
      ["log", "/log"],
      ["state", "/state"],
    ]),
    (path, done) => {
      asked++;
      done(bytes[path] ?? null);
    },
    timer,
    { log: (level, _event, fields) => void told.push(`${level} ${String(fields?.["volume"])}`) },
  );
  const look = (path: string, freeMib: number): boolean => {
    bytes[path] = { free: freeMib * MIB, total: 20 * GIB };
    timer.nowMs += 5000;
    while (timer.step());
    return space.isShort();
  };
  t.equal(space.freeBytes(), Infinity);
  t.equal(space.isShort(), false, "nothing is known yet");
  t.equal(look("/log", 300), false);
  t.equal(look("/log", 255), true);
  t.equal(space.freeBytes(), 255 * MIB);
  t.equal(look("/log", 511), true);
  t.equal(look("/state", 100), true);
  t.equal(look("/log", 512), true, "the other one is short");
  bytes["/state"] = null;
  timer.nowMs += 5000;
  while (timer.step());
  t.equal(space.isShort(), true, "without an answer the last one counts");
  t.equal(look("/state", 600), false);
  t.same(told, ["error log", "error state", "info log", "info state"]);
  const before = asked;
  space.close();
  timer.nowMs += 60_000;
  while (timer.step());
  t.equal(asked, before, "closed: nobody is asked any more");
  t.end();
});
