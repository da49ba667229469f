/** A group that keeps its entries back for a moment: for how long, and how often. */
import t from "tap";
import { EntryPause } from "../../../src/host/pauses/entry-pause.js";
import { World } from "../../doubles/host/world.js";

t.test("P-193 a pause is short, and the next one far away", (t) => {
  const pause = new EntryPause();
  t.equal(pause.wakeAtMs, Infinity);
  pause.begin(1000, 60_000);
  t.equal(pause.wakeAtMs, 1500, "no longer than its bound, whoever asks");
  pause.begin(1490, 100);
  t.ok(pause.isOn(1499));
  t.notOk(pause.isOn(1500), "who asks meanwhile shares it");
  pause.pass(1500);
  t.equal(pause.wakeAtMs, Infinity);
  pause.begin(2499, 100);
  t.notOk(pause.isOn(2499), "writers get twice as long");
  pause.begin(2500, 100);
  t.ok(pause.isOn(2599));
  t.notOk(pause.isOn(2600));
  t.end();
});

t.test("C9 what is queued in a pause is cut when it ends", (t) => {
  const world = new World();
  const node = world.ready();
  const group = world.group(node, "key");
  const ends: string[] = [];
  group.holdEntries(100);
  const deadlineMs = world.timer.nowMs + 1000;
  group.propose({ kind: "advance-clock" }, 10, deadlineMs, ({ status }) => void ends.push(status));
  world.pass(90);
  t.strictSame(ends, []);
  let isRead = false;
  group.read(deadlineMs, ({ status }) => (isRead = status === "confirmed"));
  world.settle();
  t.ok(isRead, "reads go on");
  world.pass(20);
  t.strictSame(ends, ["applied"]);
  t.end();
});

t.test("C9 who lingers in a pause waits for its end, and does not spin", (t) => {
  const world = new World({ lingerMs: 20 });
  const group = world.group(world.ready(), "key");
  const ends: string[] = [];
  group.holdEntries(100);
  const deadlineMs = world.timer.nowMs + 1000;
  group.propose({ kind: "advance-clock" }, 10, deadlineMs, ({ status }) => void ends.push(status));
  for (let ms = 0; ms < 90; ms++) {
    world.timer.nowMs++;
    t.doesNotThrow(() => world.settle(100), `${ms} ms`);
  }
  t.strictSame(ends, []);
  world.pass(20);
  t.strictSame(ends, ["applied"]);
  t.end();
});
