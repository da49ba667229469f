/**
 * Programs beside the pods: they find nodes by the names of a headless Service, use the client library, and judge what they
 * were told. A process of its own, since names are those of the pods' `/etc/hosts`.
 *
 * Says `ready` when calls are answered. It goes on until its input ends; then it prints the judgement as a line of JSON.
 */
import { LibraryCallers } from "../../process/chaos/library-callers.js";
import { sleep } from "../../process/cluster/server-process.js";

const CALLERS = 8;
/** Calls that were answered before the test begins. */
const ENOUGH = 50;

const [, , ...names] = process.argv;
const urls = {
  grpc: names.map((name) => `http://${name}:8083`),
  rest: names.map((name) => `https://${name}:8082`),
};
const token = process.env["SVC_TOKEN"] ?? "";
const callers = new LibraryCallers(urls, 3, { token, tls: { insecure: true } });
callers.begin(CALLERS);
while (callers.answered < ENOUGH) await sleep(20);
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.on("end", resolve).resume());
process.stdout.write(`${JSON.stringify(await callers.end())}\n`);
process.exit(0);
