/** The collection that is ordered when a server begins to serve. */
import t from "tap";
import { collectFirst } from "../../../src/server/first-collection.js";

t.test("all of the heap is collected, and nothing of the way to it is left", async (t) => {
  const hadIt = Reflect.has(globalThis, "gc");
  const lost = new WeakRef({ garbage: true });
  // Whoever made a reference keeps its object until the end of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(lost.deref() !== undefined, "nobody collected it before");
  await new Promise((resolve) => setImmediate(resolve));
  collectFirst();
  t.equal(lost.deref(), undefined);
  t.equal(Reflect.has(globalThis, "gc"), hadIt);
});
