/**
 * Which changes are events, and what these tell: every kind of command with every sort of outcome
 * (W1, W12).
 */
import t from "tap";
import { WatchEventType } from "../../../src/base/result-types.js";
import type { Command, ForceUnlockCommand } from "../../../src/machine/commands/command.js";
import { type AppliedCommand, type WatchEvent, eventsOf } from "../../../src/machine/events.js";
import {
  Bench,
  allocate,
  bytes,
  collect,
  create,
  extend,
  lock,
  lockNoted,
  giveBack,
  remove as del,
  reserve,
  set,
  unlock,
  update,
} from "../../doubles/machine/bench.js";

class Tapped extends Bench {
  readonly events: WatchEvent[] = [];
  readonly entries: number[] = [];
  replacements = 0;

  constructor() {
    super();
    this.machine.tap = {
      begin: (_stamp, leaseMs) => void this.entries.push(leaseMs),
      deciding: () => undefined,
      changed: (applied: AppliedCommand) => {
        const { command } = applied;
        const record = "name" in command ? this.machine.reads.getSequence(command.name) : null;
        this.events.push(...eventsOf(applied, record));
      },
      replaced: () => void this.replacements++,
      appended: () => undefined,
    };
  }

  /** The events of one entry, in short. */
  told(leaseMs: number, ...commands: Command[]): string[] {
    this.events.length = 0;
    this.apply(leaseMs, ...commands);
    return this.events.map(short);
  }
}

const NAMES = new Map<number, string>(
  Object.entries(WatchEventType).map(([name, number]) => [number, name]),
);

function short(event: WatchEvent): string {
  const { name, revision, token, owner, note, sequence, forced } = event;
  const parts = [NAMES.get(event.type), name];
  if (revision !== 0) parts.push(`r${revision}`);
  if (owner !== null) parts.push(`t${token}`);
  if (owner !== null) parts.push(Buffer.from(owner).toString());
  if (note !== null) parts.push(`(${Buffer.from(note).toString()})`);
  if (sequence !== null) parts.push(`=${sequence.currentValue}`);
  if (forced) parts.push("forced");
  return parts.join(" ");
}

function force(resource: string, token: bigint, owner: string | null = null): ForceUnlockCommand {
  const who = {
    actor: "a",
    reason: "r",
    requestId: "q",
    nodeId: 1,
    waitersDropped: 0,
    retained: 9,
  };
  const holder = owner === null ? null : bytes(owner);
  return { kind: "force-unlock", resource, token, owner: holder, ...who };
}

t.test("W1 what a key is told of: sets and deletions that took effect", (t) => {
  const bench = new Tapped();
  t.same(bench.told(1, set("k", "v", { flags: 8 })), ["set k"], "not there yet");
  const [first] = bench.events;
  t.same(first?.value, bytes("v"));
  t.same(first?.stamp, { n: 1, l: 1001, c: 0 }, "of the entry");
  t.same(bench.told(2, set("k", "w", { flags: 8 })), [], "refused: it exists");
  t.same(bench.told(3, set("k", "w", { flags: 4 })), ["set k r1"]);
  t.same(bench.told(4, { kind: "kv-extend", key: "k", expiresMs: 100 }), [], "an extension");
  t.same(bench.told(5, del("none")), []);
  t.same(bench.told(6, del("k")), ["deleted k r2"]);
  t.same(bench.told(7, del("k")), [], "deleted already");
  t.same(bench.told(8, set("k", "x", { expiresMs: 10 })), ["set k r3"]);
  t.same(bench.told(20, del("k")), [], "its end was the change");
  t.same(bench.told(21, set("a", "1"), set("a", "2"), del("a")), [
    "set a",
    "set a r1",
    "deleted a r2",
  ]);
  t.end();
});

t.test("P-160 the bytes of an event are its own", (t) => {
  const bench = new Tapped();
  const command = set("k", "value");
  bench.apply(1, command);
  const value = command.kind === "kv-set" ? command.value : null;
  value?.fill(0);
  t.same(bench.events[0]?.value, bytes("value"));
  t.end();
});

t.test("W1 what a lock is told of: grants and releases", (t) => {
  const bench = new Tapped();
  t.same(bench.told(1, lock("r", "A", 100)), ["locked r t0 A"]);
  t.same(bench.told(2, lock("r", "A", 100)), [], "it holds: the same grant");
  t.same(bench.told(3, lock("r", "B", 100)), [], "busy");
  t.same(bench.told(4, extend("r", "A", 100)), []);
  t.same(bench.told(5, unlock("r", "B")), [], "not the owner");
  t.same(bench.told(6, unlock("r", "A"), lockNoted("r", "B", 50, "n")), [
    "unlocked r t0 A",
    "locked r t1 B (n)",
  ]);
  t.same(bench.told(7, force("r", 0n)), [], "another grant");
  t.same(bench.told(8, force("r", 1n)), ["unlocked r t1 B forced"]);
  t.same(bench.told(9, unlock("r", "B")), []);
  t.same(bench.told(10, lock("r", "C", 5)), ["locked r t2 C"]);
  t.same(bench.told(20, unlock("r", "C")), [], "its lease had ended");
  t.same(bench.told(21, lock("r", "D", 5)), ["locked r t3 D"]);
  t.same(bench.told(40, lock("r", "E", 5)), ["locked r t4 E"], "over a lease that ended");
  t.same(bench.told(41, force("e", 7n, "X")), [], "of an ephemeral lock: the row alone");
  t.end();
});

t.test("W12 what a sequence is told of: definitions, and what is reserved", (t) => {
  const bench = new Tapped();
  t.same(bench.told(1, reserve("s", 5)), [], "not there");
  t.same(bench.told(2, create("s")), ["sequenceCreated s =0"]);
  t.same(bench.told(3, create("s")), [], "there already");
  t.same(bench.told(3, update("s", { maxValue: 99n })), ["sequenceUpdated s r1 =0"]);
  t.same(bench.told(4, reserve("s", 5), reserve("s", 5)), [
    "sequenceReserved s r2 =10",
    "sequenceReserved s r3 =20",
  ]);
  t.same(bench.told(5, allocate("s", 3, "i")), ["sequenceReserved s r4 =23"]);
  t.same(bench.told(6, allocate("s", 3, "i")), [], "remembered");
  t.same(bench.told(7, allocate("s", 4, "i")), [], "the key is of another allocation");
  const cursor = { incarnation: 0, revision: 4, lastHandedOut: 23n };
  t.same(bench.told(8, giveBack("s", cursor)), []);
  t.same(bench.told(9, { kind: "delete-sequence", name: "s" }), ["sequenceDeleted s"]);
  t.same(bench.told(10, { kind: "delete-sequence", name: "s" }), []);
  t.end();
});

t.test("what belongs to nobody's data is no event, and each entry is announced", (t) => {
  const bench = new Tapped();
  t.same(bench.told(1, { kind: "advance-clock" }, set("k", "v", { expiresMs: 1 })), ["set k"]);
  t.same(bench.told(9, collect(10, 1)), []);
  t.same(bench.entries, [1, 9]);
  t.end();
});
