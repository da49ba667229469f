/** What one turn of the event loop reads out of the state. */
import t from "tap";
import { KvType } from "../../../src/machine/commands/command.js";
import { Bench, get, set } from "../../doubles/operations/fixture.js";

const VALUE_BYTES = 1024 * 1024;

for (const durability of [0, 1]) {
  t.test(`P-200 a turn reads a few large values, durability ${durability}`, async (t) => {
    const bench = new Bench();
    bench.ask(set("k", "x".repeat(VALUE_BYTES), { durability }));
    bench.ask(set("small", "y", { durability }));
    const { world } = bench;
    // The turn ends when the test lets it: what is to happen in a later one is held back.
    let later: (() => void)[] = [];
    const after = world.timer.after.bind(world.timer);
    world.timer.after = (delayMs, callback) => {
      if (delayMs > 0) return after(delayMs, callback);
      later.push(callback);
      return { cancel: () => undefined };
    };
    const answers = bench.send(get("k", -1n, durability));
    for (let count = 1; count < 30; count++) bench.send(get("k", -1n, durability), answers);
    const perTurn: number[] = [];
    for (let turn = 0, before = 0; answers.length < 30 && turn < 100; turn++) {
      world.settle();
      perTurn.push(answers.length - before);
      before = answers.length;
      const round = later;
      later = [];
      for (const callback of round) callback();
    }
    t.equal(answers.length, 30, "all are answered");
    t.ok(answers.every(({ type, value }) => type === KvType.got && value?.length === VALUE_BYTES));
    t.ok(Math.max(...perTurn) <= 8, `at most 8 MiB in a turn, not ${perTurn.join(" ")}`);
    world.settle();
    for (const callback of later) callback();
    const many = bench.send(get("small", -1n, durability));
    for (let count = 1; count < 1000; count++) bench.send(get("small", -1n, durability), many);
    world.settle();
    t.equal(many.length, 1000, "small values are read in any number");
  });
}
