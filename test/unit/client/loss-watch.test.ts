/** A handle that watches its lock: what of a watch says that the grant is over. */
import t from "tap";
import type { LockHandle, WatchBatch } from "../../../src/client/mod.js";
import { watchLossOf } from "../../../src/client/locks/loss-watch.js";
import type { Watches } from "../../../src/client/watching/watches.js";

const TOKEN = 7n;
type Told = readonly [what: string, how?: Partial<WatchBatch>];

/** "locked 7": type and token. */
function batch([what, how = {}]: Told): WatchBatch {
  const [type = "", token = "0", forced = ""] = what.split(" ");
  const event = { type, fencingToken: BigInt(token), forced: forced !== "" };
  const events = (what === "" ? [] : [event]) as unknown as WatchBatch["events"];
  return { events, cursor: "c", initial: false, merged: false, reset: false, ...how };
}

/** What the handle is told was seen; "": nothing. */
async function seen(...told: readonly Told[]): Promise<string> {
  let why = "";
  const handle = {
    signal: new AbortController().signal,
    resource: "r",
    fencingToken: TOKEN,
    seenLost: (text: string) => void (why = text),
  };
  let isRead = false;
  const watches = {
    async *lock() {
      for (const each of told) yield await Promise.resolve(batch(each));
      isRead = true;
    },
  };
  watchLossOf(handle as unknown as LockHandle, watches as unknown as Watches);
  for (let turn = 0; turn < 100 && !isRead && why === ""; turn++) await Promise.resolve();
  return why;
}

t.test("it is told as an event", async (t) => {
  const held: Told = ["locked 7", { initial: true, cursor: null }];
  const whole: Told = [""];
  t.equal(await seen(held, whole), "");
  t.equal(await seen(held, whole, ["unlocked 6"]), "", "of an older grant");
  t.equal(await seen(held, whole, ["unlocked 7 forced"]), "was released by force");
  t.equal(await seen(held, whole, ["lock-expired 7"]), "is held by nobody");
  t.equal(await seen(held, whole, ["locked 8"]), "has another holder");
});

t.test("a state that does not have it tells it, too", async (t) => {
  t.equal(await seen(["", { initial: true }]), "is held by nobody", "before the watch began");
  t.equal(await seen(["", { initial: true, cursor: null }]), "", "a part of a state says nothing");
  const held: Told = ["locked 7", { initial: true }];
  t.equal(await seen(held, ["", { reset: true, cursor: null }], [""]), "is held by nobody");
  t.equal(await seen(held, ["", { reset: true, cursor: null }], held), "");
  t.equal(await seen(held, ["unlocked 0", { merged: true }]), "is held by nobody", "without a row");
});
