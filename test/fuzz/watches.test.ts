/**
 * Fuzzing of watches: cursors, and sequences of requests on a stream of a real hub.
 *
 * Whatever is asked, in whatever order: each watch is told that it began once at most, that it
 * ended once, and nothing before and after; nothing is kept of what is over. The seed is printed,
 * and can be set by SVC_FUZZ_SEED; the number of sequences by SVC_FUZZ_INPUTS.
 */
import fc from "fast-check";
import t from "tap";
import { level } from "../../src/base/ids.js";
import { WATCH_CURSOR_MAX_BYTES } from "../../src/base/limits.js";
import { WatchEnd, WatchKind } from "../../src/base/result-types.js";
import { queryOf } from "../../src/host/watching/filters.js";
import {
  type Position,
  clusterMark,
  decodePositions,
  encodePositions,
} from "../../src/host/watching/positions.js";
import type { Command } from "../../src/machine/commands/command.js";
import { sealCursor } from "../../src/machine/kv/cursor.js";
import type { WatchMessage } from "../../src/operations/api/requests.js";
import { WatchBench } from "../doubles/host/watch-bench.js";
import { WatchCaller, watchRequest } from "../doubles/operations/watching.js";
import {
  Account,
  type Asked,
  CLUSTER,
  COMMANDS,
  asked,
  cursorOf,
  madePayload,
  positions,
} from "./watch-inputs.js";

const seed = Number(process.env["SVC_FUZZ_SEED"] ?? Date.now() % 1_000_000_000);
const SEQUENCES = Number(process.env["SVC_FUZZ_INPUTS"] ?? 1500);
const HISTORY_BYTES = 3000;
t.setTimeout(300_000);
t.comment(`seed ${seed}, ${SEQUENCES} sequences`);

class AccountedCaller extends WatchCaller {
  readonly account = new Account();

  override deliver(message: WatchMessage): void {
    super.deliver(message);
    this.account.told(message);
  }
}

type Act =
  | { readonly act: "create"; readonly asked: Asked }
  | { readonly act: "cancel" | "sync"; readonly id: number }
  | { readonly act: "apply"; readonly partition: number; readonly commands: readonly number[] }
  | { readonly act: "pass"; readonly ms: number }
  | { readonly act: "fill" | "drain" | "forget" | "leave" };

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ act: fc.constant("create" as const), asked }) },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom("cancel" as const, "sync" as const),
      id: fc.constantFrom(0, 1, 2, 3, -1, 77),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant("apply" as const),
      partition: fc.constantFrom(1, 1, 2),
      commands: fc.array(fc.nat(COMMANDS.length - 1), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ act: fc.constant("pass" as const), ms: fc.constantFrom(1, 30, 300) }),
  },
  fc.constantFrom<Act>({ act: "fill" }, { act: "drain" }, { act: "forget" }, { act: "leave" }),
);

/** Does it, as far as it can be done. */
function perform(bench: WatchBench, caller: AccountedCaller, each: Act): void {
  const { stream, account } = caller;
  switch (each.act) {
    case "create": {
      const { id, kind, name, ...rest } = each.asked;
      account.ask(id);
      const cursor = cursorOf(each.asked, account.cursors);
      stream.create(id, watchRequest(kind, name, { ...rest, cursor }));
      return;
    }
    case "cancel":
      return stream.cancel(each.id);
    case "sync":
      return stream.sync(account.sync(), each.id);
    case "apply": {
      const commands = each.commands.map((at) => COMMANDS[at]?.() as Command);
      return bench.apply(each.partition, ...commands);
    }
    case "pass":
      return bench.pass(each.ms);
    case "fill":
      caller.full = true;
      return;
    case "drain":
      return caller.drain();
    case "forget":
      return bench.pass(2000);
    case "leave": {
      const group = bench.group(2);
      bench.leave(2);
      bench.join(2, group);
    }
  }
}

t.test("W5 W16 P-185 any sequence of requests: one end each, and nothing is left", (t) => {
  let began = 0;
  let told = 0;
  const kinds = new Map<string, number>();
  const property = fc.property(fc.array(act, { maxLength: 40, size: "max" }), (acts) => {
    const bench = new WatchBench(2, { historyBytes: HISTORY_BYTES });
    bench.apply(1, { kind: "set-level", level: level(2) });
    const caller = new AccountedCaller(bench.watches);
    for (const each of acts) perform(bench, caller, each);
    bench.settle();
    caller.drain();
    bench.pass(300);
    if (caller.account.openSyncs > 0) throw new Error("a barrier was never told");
    for (const { end } of caller.messages) {
      const word = Object.entries(WatchEnd).find(([, number]) => number === end)?.[0] ?? "";
      kinds.set(word, (kinds.get(word) ?? 0) + 1);
    }
    began += bench.hub.count;
    told += caller.account.count;
    bench.hub.stop();
    bench.settle();
    caller.account.close();
    caller.stream.close();
    const { tally, turns } = bench.hub;
    const left = [bench.hub.count, tally.behind, tally.streams, turns.count];
    if (left.some((count) => count !== 0)) throw new Error(`left: ${left.join()}`);
    if (tally.watchers.some((count) => count !== 0)) throw new Error("watchers are left");
    if (tally.historyBytes > HISTORY_BYTES) throw new Error("the history is too large");
  });
  fc.assert(property, { seed, numRuns: SEQUENCES });
  t.comment(JSON.stringify([...kinds]));
  t.ok(began > SEQUENCES / 4, `${began} watches lived to the end`);
  t.ok(told > SEQUENCES, `${told} messages`);
  for (const end of ["cancelled", "invalidInput", "notHosted"]) {
    t.ok((kinds.get(end) ?? 0) > SEQUENCES / 50, end);
  }
  t.end();
});

t.test("W5 cursors: what was written is read, or is earlier; what is made up is harmless", (t) => {
  const mark = clusterMark(CLUSTER);
  const query = queryOf(WatchKind.prefix, "p/");
  let shared = 0;
  fc.assert(
    fc.property(positions, (written) => {
      const text = encodePositions(query, mark, written);
      if (text.length > WATCH_CURSOR_MAX_BYTES) throw new Error("it is too long");
      const read = decodePositions(query, mark, text, [...written.keys()]);
      if (!(read instanceof Map) || read.size !== written.size) throw new Error("it is not read");
      for (const [id, at] of written) {
        const then = read.get(id) as Position;
        const isLater = then.l > at.l || (then.l === at.l && then.c > at.c);
        if (isLater || then.leaseMs > at.leaseMs) throw new Error(`${id} would lose something`);
        if (then !== at) shared++;
      }
    }),
    { seed, numRuns: SEQUENCES },
  );
  t.ok(shared > 0);
  let readable = 0;
  fc.assert(
    fc.property(madePayload, (payload) => {
      const read = decodePositions(query, mark, sealCursor(query, payload), [1, 2, 70_000]);
      if (read instanceof Map) {
        readable++;
        if (read.size > 213) throw new Error("a cursor fills memory");
      }
    }),
    { seed, numRuns: SEQUENCES },
  );
  t.ok(readable > SEQUENCES / 20, `${readable} were read`);
  t.end();
});
