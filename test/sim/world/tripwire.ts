/**
 * Makes every way around the ports throw while a world runs: a clock, a random number or a timer of
 * the platform would end determinism without a word.
 *
 * Owns the platform's functions between `arm` and `disarm`. Invariants: 1. Whatever happens in
 * between, everything is as before after `guarded`. 2. A run is synchronous: nobody else runs
 * meanwhile who might need them.
 */
import { createRequire, syncBuiltinESMExports } from "node:module";

const require = createRequire(import.meta.url);

/** Somebody reached for the platform during a run. */
export class TripwireError extends Error {
  override readonly name = "TripwireError";
}

interface Wire {
  readonly owner: object;
  readonly name: string;
}

function wires(): Wire[] {
  const crypto = require("node:crypto") as object;
  const timers = require("node:timers") as object;
  const list: Wire[] = [
    { owner: Date, name: "now" },
    { owner: Math, name: "random" },
    { owner: performance, name: "now" },
    { owner: process, name: "hrtime" },
    { owner: process, name: "nextTick" },
    { owner: globalThis.crypto, name: "getRandomValues" },
    { owner: globalThis.crypto, name: "randomUUID" },
  ];
  for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
    list.push({ owner: globalThis, name }, { owner: timers, name });
  }
  list.push({ owner: globalThis, name: "queueMicrotask" }, { owner: globalThis, name: "Date" });
  for (const name of ["randomBytes", "randomInt", "randomFillSync", "randomUUID"]) {
    list.push({ owner: crypto, name });
  }
  return list;
}

let armed = false;

/** Runs `body` with the wires armed. Throws TripwireError out of whoever touches one. */
export function guarded<T>(body: () => T): T {
  if (armed) throw new Error("one world runs at a time");
  const saved: { readonly wire: Wire; readonly own: PropertyDescriptor | undefined }[] = [];
  const list = wires();
  armed = true;
  try {
    for (const wire of list) {
      const own = Object.getOwnPropertyDescriptor(wire.owner, wire.name);
      saved.push({ wire, own });
      const trip = function (): never {
        throw new TripwireError(`${wire.name} of the platform was used during a simulated run`);
      };
      Object.defineProperty(wire.owner, wire.name, {
        // Date has functions of its own.
        value: Object.assign(trip, { now: trip }),
        configurable: true,
        writable: true,
      });
    }
    syncBuiltinESMExports();
    return body();
  } finally {
    for (const { wire, own } of saved.reverse()) {
      if (own === undefined) Reflect.deleteProperty(wire.owner, wire.name);
      else Object.defineProperty(wire.owner, wire.name, own);
    }
    syncBuiltinESMExports();
    armed = false;
  }
}
