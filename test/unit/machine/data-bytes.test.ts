/** How large a group is, counted as its rows change: no row is read for that from the store. */
import t from "tap";
import { level } from "../../../src/base/ids.js";
import { TELLING_FROM_LEVEL } from "../../../src/machine/commands/group-record.js";
import { Prng } from "../../../src/base/prng.js";
import { generationPrefix, keySuccessor } from "../../../src/machine/store/keys.js";
import { Bench, extend, lock, remove, set, unlock } from "../../doubles/machine/bench.js";

/** Names and values of all rows of the group, by reading them. */
function read({ memtable, machine }: Bench): number {
  const prefix = generationPrefix(machine.group, machine.record().generation);
  let bytes = 0;
  memtable.scan(prefix, keySuccessor(prefix), (key, value) => {
    bytes += key.length - prefix.length - 1 + value.length;
    return true;
  });
  return bytes;
}

function fill(bench: Bench, random: Prng, text: () => string, commands: number): void {
  for (let at = 0; at < commands; at++) {
    const key = `k${random.below(40)}`;
    const kind = random.below(8);
    if (kind < 3) bench.one(at, set(key, text(), { revisionsRetained: 3 }));
    else if (kind === 3) bench.one(at, remove(key, 3));
    else if (kind === 4) bench.one(at, lock(key, `o${random.below(3)}`, 50));
    else if (kind === 5) bench.one(at, extend(key, `o${random.below(3)}`, 50));
    else if (kind === 6) bench.one(at, unlock(key, `o${random.below(3)}`));
    else {
      const retained = { lockRetentionMs: 10, tombstoneRetentionMs: 10 };
      const many = { limit: 100, after: null } as const;
      bench.one(at, { kind: "collect", ...retained, ...many });
    }
    if (random.below(30) === 0) bench.flush();
  }
}

t.test("P-106 the size of a group is exact while the values of a key keep their size", (t) => {
  const bench = new Bench();
  fill(bench, new Prng(7), () => "x".repeat(200), 3000);
  const bytes = read(bench);
  t.ok(bytes > 4000, `${bytes} bytes are there`);
  const apart = Math.abs(bench.machine.dataBytes - bytes) / bytes;
  t.ok(apart < 0.05, `counted ${bench.machine.dataBytes} of ${bytes}`);
  t.end();
});

t.test(
  "P-106 whatever the sizes, it is of the right order, is stored, and exact after a snapshot",
  (t) => {
    const bench = new Bench();
    const random = new Prng(8);
    fill(bench, random, () => "x".repeat(random.below(400)), 3000);
    const bytes = read(bench);
    const counted = bench.machine.dataBytes;
    t.ok(counted > bytes / 2 && counted < bytes * 2, `counted ${counted} of ${bytes}`);
    bench.flush();
    t.equal(new Bench(bench.store).machine.dataBytes, 0, "at level 1 it is not stored");
    bench.one(9999, { kind: "set-level", level: level(TELLING_FROM_LEVEL) });
    bench.flush();
    const again = new Bench(bench.store);
    t.equal(again.machine.dataBytes, counted, "a start goes on with it");
    const source = bench.machine.openSnapshot(1 << 30);
    const other = new Bench(undefined, 1);
    const sink = other.machine.beginRestore();
    for (let last = false; !last;) {
      const chunk = source.next(1 << 14);
      if (chunk === "overrun") throw new Error("nothing changes meanwhile");
      t.ok(sink.take(chunk.bytes).ok);
      last = chunk.last;
    }
    other.machine.install(sink);
    t.equal(other.machine.dataBytes, read(other));
    t.equal(read(other), bytes);
    t.end();
  },
);
