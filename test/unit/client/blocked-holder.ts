/**
 * A program that holds a lock, blocks its event loop for longer than the lease, and reports what each kind of code
 * that runs on afterwards sees. Arguments: address, lease (ms), block (ms). Prints one JSON line.
 */
import { SvcClient } from "../../../src/client/mod.js";

const [address = "", lease = "0", block = "0"] = process.argv.slice(2);
const client = new SvcClient({ endpoints: address });
const lock = await client.locks.acquire("blocked", { leaseMs: Number(lease) });
const { signal } = lock;
const seen: [string, boolean, boolean][] = [];
let listened = false;
signal.addEventListener("abort", () => (listened = true));
const look = (who: string): void => void seen.push([who, signal.aborted, listened]);

const before = [lock.acquired, signal.aborted, lock.held];
// Everything that may run first after the block is under way when it begins.
setTimeout(() => look("timer due during the block"), Number(block) / 2);
setImmediate(() => look("immediate"));
const read = import("node:fs/promises")
  .then((fs) => fs.readFile("/dev/null"))
  .then(() => look("input"));
process.nextTick(() => {
  const begin = performance.now();
  while (performance.now() - begin < Number(block));
  look("the blocking code itself");
  queueMicrotask(() => look("microtask"));
  process.nextTick(() => look("next tick"));
  let thrown = "";
  try {
    lock.assertHeld();
  } catch (error) {
    thrown = (error as { code: string }).code;
  }
  seen.push([thrown, lock.held === false, lock.remainingMs === 0]);
});
await read;
await new Promise((resolve) => setTimeout(resolve, 20));
look("end");
const released = await lock.release();
await client.close();
console.log(JSON.stringify({ before, seen, released }));
