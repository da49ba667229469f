/** The node debug: one at a time, bounded, and what cannot be had has its reason. */
import t from "tap";
import { LogRing } from "../../../src/server/log-ring.js";
import { NodeDebug, cpuProfile } from "../../../src/server/node-debug.js";

const soon = { after: (_: number, callback: () => void) => setTimeout(callback, 1) };

class Sources {
  ending = false;
  scrapes = 0;
  lines: string[] = ["one", "two"];
  readonly at: Record<string, () => unknown> = {
    version: () => "1",
    broken: () => {
      throw new Error("it is not there");
    },
  };

  metrics(): Promise<string> {
    this.scrapes++;
    return Promise.resolve(`scrape ${this.scrapes}`);
  }

  logs(): readonly string[] {
    return this.lines;
  }

  isEnding(): boolean {
    return this.ending;
  }
}

function made(debug: NodeDebug, seconds = 0): Promise<Record<string, unknown> | null> {
  return new Promise((resolve) => {
    debug.make(seconds, (text) => {
      resolve(text === null ? null : (JSON.parse(text) as Record<string, unknown>));
    });
  });
}

t.test("5.7 all members, two texts of metrics, and reasons for what is missing", async (t) => {
  const sources = new Sources();
  const debug = new NodeDebug(sources, { ...soon, profile: () => Promise.reject(new Error("no")) });
  t.same(await made(debug), {
    version: "1",
    broken: null,
    metrics: ["scrape 1", "scrape 2"],
    logs: ["one", "two"],
    profile: null,
    missing: { broken: "Error: it is not there" },
  });
  t.match(await made(debug, 3), { profile: null, missing: { profile: "Error: no" } });
});

t.test("5.7 one at a time, and none of a node that ends", async (t) => {
  const sources = new Sources();
  const debug = new NodeDebug(sources, { ...soon, profile: (seconds) => Promise.resolve(seconds) });
  const [first, second] = await Promise.all([made(debug, 7), made(debug)]);
  t.match(first, { profile: 7 });
  t.equal(second, null);
  t.not(await made(debug), null, "the next one");
  sources.ending = true;
  t.equal(await made(debug), null);
});

t.test("11: what is too large loses its profile first, then the oldest lines", async (t) => {
  const sources = new Sources();
  const profile = (): Promise<unknown> => Promise.resolve("x".repeat(33 * 1024 * 1024));
  const debug = new NodeDebug(sources, { ...soon, profile });
  t.match(await made(debug, 1), {
    profile: null,
    logs: ["one", "two"],
    missing: { profile: "it is too large" },
  });
  sources.lines = Array.from({ length: 40 }, (_, at) => `${at} ${"y".repeat(1024 * 1024)}`);
  const { logs } = (await made(debug)) as { logs: string[] };
  t.equal(logs.length, 20);
  t.match(logs.at(-1), /^39 /);
});

t.test("the last lines of the log are kept, so many and no more", (t) => {
  const ring = new LogRing();
  for (let at = 0; at < 9000; at++) ring.add(`line ${at}`);
  t.equal(ring.lines().length, 4000);
  t.equal(ring.lines()[0], "line 5000");
  for (let at = 0; at < 30; at++) ring.add("z".repeat(100 * 1024));
  t.equal(ring.lines().length, 10);
  ring.add("z".repeat(2 * 1024 * 1024));
  t.equal(ring.lines().length, 1, "one that is larger than all may be");
  t.end();
});

t.test("a profile of the processor is one of V8", async (t) => {
  const profile = (await cpuProfile(0.05)) as { nodes: readonly unknown[]; endTime: number };
  t.ok(profile.nodes.length > 0);
  t.ok(profile.endTime > 0);
});
