/**
 * A program that waits for one lock through the library, holds it once it has it, and does nothing else: to be killed or
 * stopped meanwhile. Arguments: endpoint, transport, resource, owner, lease (ms). It prints `granted TOKEN`, or `busy`.
 */
import { SvcClient } from "../../../../src/client/mod.js";

const [endpoints = "", transport = "", resource = "", owner = "", leaseMs = ""] =
  process.argv.slice(2);
const client = new SvcClient({ endpoints, transport: transport === "rest" ? "rest" : "grpc" });
const asked = { owner, leaseMs: Number(leaseMs), waitMs: 60_000, renew: false };
const handle = await client.locks.acquire(resource, asked);
process.stdout.write(handle.acquired ? `granted ${handle.fencingToken}\n` : "busy\n");
// Its connection keeps it alive.
setInterval(() => undefined, 1000);
