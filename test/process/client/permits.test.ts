/** Permits of the client against a real node, over both transports. */
import t from "tap";
import { failure } from "../../doubles/client/failure.js";
import { sleep } from "../cluster/server-process.js";
import { clientOf } from "./one-node.js";

t.setTimeout(60_000);

const LEASE = { leaseMs: 60_000 };

for (const transport of ["grpc", "rest"] as const) {
  t.test(`Q2 ${transport}: of three permits three are held, whoever asks next waits`, async (t) => {
    const client = clientOf(transport);
    const name = `permit-${transport}`;
    const held = await Promise.all([1, 2, 3].map(() => client.locks.permit(name, 3, LEASE)));
    // Those who tried at once may have met each other at one and passed on: none is in the way of all.
    while (held.some(({ acquired }) => !acquired)) {
      const at = held.findIndex(({ acquired }) => !acquired);
      held[at] = await client.locks.permit(name, 3, LEASE);
    }
    t.same(
      held.map(({ resource }) => resource).sort(),
      [0, 1, 2].map((at) => `${name}#${at}`),
    );
    const late = await client.locks.permit(name, 3, LEASE);
    t.same([late.acquired, late.signal.aborted], [false, true]);
    const waiting = client.locks.permit(name, 3, { ...LEASE, waitMs: 30_000 });
    const waited = async (): Promise<string | null> => {
      for (const { resource } of held) {
        if ((await client.locks.info(resource))?.waiters === 1) return resource;
      }
      return null;
    };
    let resource = await waited();
    for (; resource === null; resource = await waited()) await sleep(5);
    const before = held.find((permit) => permit.resource === resource);
    await before?.release();
    const next = await waiting;
    t.same([next.acquired, next.resource], [true, resource]);
    t.ok(next.fencingToken > (before?.fencingToken ?? 0n), "tokens grow for each lock");
    await next.release();
    const free = await client.locks.permit(name, 3, LEASE);
    t.equal(free.resource, resource, "the free one is found among all");
    await client.close();
    const after = clientOf("grpc");
    for (const one of held) t.equal(await after.locks.info(one.resource), null, "closing releases");
    await after.close();
  });
}

t.test("P-202 permits refuse what is of the wrong type or out of bounds, by name", async (t) => {
  const client = clientOf("grpc");
  const wrong = (value: unknown): never => value as never;
  for (const [name, count, options, word] of [
    [5, 1, LEASE, /name/],
    ["p", 0, LEASE, /count/],
    ["p", 1001, LEASE, /count/],
    ["p", "3", LEASE, /count/],
    ["p", 3, undefined, /options/],
    ["p", 3, { leaseMs: "1" }, /leaseMs/],
    ["p", 3, { ...LEASE, waitMs: "1" }, /waitMs/],
  ] as const) {
    const error = await failure(client.locks.permit(wrong(name), wrong(count), wrong(options)));
    t.match(error, { code: "invalid-input", outcome: "none", message: word });
  }
  const stop = new AbortController();
  stop.abort();
  const error = await failure(client.locks.permit("p", 3, { ...LEASE, signal: stop.signal }));
  t.match(error, { code: "cancelled" });
  await client.close();
});
