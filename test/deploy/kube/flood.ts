/**
 * More large writes than a cluster can take, from a process of its own: callers that never pause and repeat nothing, over REST, until its
 * input ends. Then it prints as a line of JSON how many ended how.
 */
import { Agent, request } from "undici";

const CALLERS = Number(process.argv[2]);
const VALUE_BYTES = Number(process.argv[3]);
const endpoints = process.argv.slice(4);
/** So many keys in all: what is stored stays bounded. */
const KEYS = 64;
/** Between the first calls of two callers: not all handshakes come at once. */
const APART_MS = 30;
/** The node ended the connection. */
const CLOSED = ["EPIPE", "ECONNRESET", "UND_ERR_SOCKET"];
/** Longer than a node may take. */
const PATIENCE_MS = 30_000;

const value = Buffer.alloc(VALUE_BYTES, 7).toString("base64");
const agent = new Agent({
  connect: { rejectUnauthorized: false, timeout: PATIENCE_MS },
  ...{ headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS },
});
const authorization = `Bearer ${process.env["SVC_TOKEN"] ?? ""}`;
const ends: Record<string, number> = {};
let goesOn = true;

async function set(endpoint: string, key: string): Promise<string> {
  try {
    const { statusCode, body } = await request(`${endpoint}/v1/kv/try-set`, {
      ...({ method: "POST", dispatcher: agent } as const),
      headers: { "content-type": "application/json", authorization },
      body: JSON.stringify({ key, value, durability: 1 }),
    });
    const text = await body.text();
    if (statusCode === 200) return "set";
    return String((JSON.parse(text) as { readonly code?: string }).code ?? statusCode);
  } catch (error) {
    const { code = String(error) } = error as { readonly code?: string };
    return CLOSED.includes(code) ? "closed" : code;
  }
}

async function call(caller: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, caller * APART_MS));
  for (let turn = caller; goesOn; turn++) {
    const end = await set(endpoints[turn % endpoints.length] ?? "", `flood/${turn % KEYS}`);
    ends[end] = (ends[end] ?? 0) + 1;
  }
}

const calls = Array.from({ length: CALLERS }, (_, caller) => call(caller));
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.on("end", resolve).resume());
goesOn = false;
await Promise.all(calls);
process.stdout.write(`${JSON.stringify(ends)}\n`);
await agent.close();
process.exit(0);
