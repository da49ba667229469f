/** Traced requests over three real nodes and a real collector, which takes spans, hangs, or is gone. */
import { type IncomingMessage, type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { type Client, grpcClient, restClient } from "../cluster/clients.js";
import {
  type Addresses,
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const directory = temporaryDirectory();
const servers: Server[] = [];
t.setTimeout(240_000);
t.teardown(async () => {
  await endAll();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  directory.remove();
});

interface Span {
  readonly node: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

interface Document {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Omit<Span, "node">[] }[];
  }[];
}

/** A collector, and what it was sent; `answer` has the say over each request. */
async function collector(
  answer: (request: IncomingMessage) => "takes" | "hangs",
): Promise<{ port: number; spans: Span[]; requests: string[] }> {
  const spans: Span[] = [];
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers["content-type"]}`);
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => void parts.push(part));
    request.on("end", () => {
      const document = JSON.parse(Buffer.concat(parts).toString()) as Document;
      for (const { resource, scopeSpans } of document.resourceSpans) {
        const of = resource.attributes.find(({ key }) => key === "svc.node_id");
        const node = Number(of?.value.intValue);
        for (const scope of scopeSpans) spans.push(...scope.spans.map((one) => ({ ...one, node })));
      }
      if (answer(request) === "takes") response.end("{}");
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, spans, requests };
}

async function until(what: string, seen: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await seen())) {
    if (performance.now() > endMs) throw new Error(`it never came to this: ${what}`);
    await sleep(50);
  }
}

const trace = (digit: string): string => digit.repeat(32);
const CALLER = "00f067aa0ba902b7";
const header = (digit: string, flags = "01"): { traceparent: string } => ({
  traceparent: `00-${trace(digit)}-${CALLER}-${flags}`,
});

async function cluster(endpoint: string): Promise<readonly [ServerProcess[], Addresses[]]> {
  const ports = await freePorts(3);
  const nodes = ports.map((port, at) => {
    const path = `${directory.path}/${endpoint.split(":").at(-1)}-${at + 1}`;
    const own = [
      `--raft-nodeid=${at + 1}`,
      `--peer-port=${port}`,
      "--initial-cluster-partitions=1",
    ];
    const all = [`--initial-cluster=${foundersOf(ports)}`, `--trace-endpoint=${endpoint}`];
    const flags = nodeFlags(path, ...own, ...all);
    return new ServerProcess(
      flags.map((flag) => flag.replace(/^--log-level=.*/, "--log-level=debug")),
    );
  });
  return [nodes, await Promise.all(nodes.map((node) => node.ready()))];
}

async function metric({ http }: Addresses, result: string): Promise<number> {
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const line = new RegExp(`^svc_trace_spans_total\\{result="${result}"\\} (\\d+)$`, "m");
  return Number(line.exec(text)?.[1]);
}

async function set(client: Client, key: string): Promise<void> {
  await until(`${key} is set`, async () => {
    const { kind } = await client.call({ op: "set", key, value: "v" });
    return kind === "answer";
  });
  client.close();
}

t.test(
  "contract 1.5 item 6: spans of requests to leader and followers, REST and gRPC, with their parents; their id is in the logs of both nodes",
  async (t) => {
    const { port, spans, requests } = await collector(() => "takes");
    const [nodes, addresses] = await cluster(`http://127.0.0.1:${port}`);
    const [at] = addresses as [Addresses, ...Addresses[]];
    await set(restClient(at.http), "k");
    await set(restClient(at.http, header("1", "00")), "k");
    await set(restClient(at.http, { traceparent: "00-broken" }), "k");
    await set(grpcClient(at.grpc, { traceparent: `00-${trace("0")}-${CALLER}-01` }), "k");
    const beganMs = Date.now();
    const asked = new Map<string, number>();
    for (const [number, { http, grpc }] of addresses.entries()) {
      const [first, second] = ["abc".charAt(number), "def".charAt(number)];
      const named = { ...header(first), "x-request-id": `asked-at-${number + 1}` };
      await set(restClient(http, named), "k");
      await set(grpcClient(grpc, header(second)), "k");
      asked.set(first, number + 1).set(second, number + 1);
    }
    const endedMs = Date.now();
    const steps = ["queue", "replicate", "apply"];
    // One of the three led: there is no forward at that one.
    await until("all spans came", () => spans.length >= 2 * (4 + 6 + 6));
    let forwards = 0;
    for (const [digit, node] of asked) {
      const own = spans.filter(({ traceId }) => traceId === trace(digit));
      const one = (name: string, parent: string): Span => {
        const found = own.filter((span) => span.name === name && span.parentSpanId === parent);
        t.equal(found.length, 1, `${name} below ${parent}: ${JSON.stringify(own)}`);
        return found[0] as Span;
      };
      const server = one("kv-set", CALLER);
      t.match(server, { node, kind: 2 });
      const isForwarded = own.some(({ name }) => name === "forward");
      let there = server;
      if (isForwarded) {
        forwards++;
        const forward = one("forward", server.spanId);
        t.match(forward, { node, kind: 3 });
        t.ok(BigInt(forward.startTimeUnixNano) >= BigInt(server.startTimeUnixNano));
        t.ok(BigInt(forward.endTimeUnixNano) <= BigInt(server.endTimeUnixNano));
        there = one("kv-set", forward.spanId);
        t.not(there.node, node);
        t.equal(there.kind, 2);
      }
      for (const step of steps.map((name) => one(name, there.spanId))) {
        t.equal(step.node, there.node);
        t.ok(BigInt(step.startTimeUnixNano) >= BigInt(there.startTimeUnixNano));
        t.ok(BigInt(step.endTimeUnixNano) <= BigInt(there.endTimeUnixNano));
      }
      for (const { startTimeUnixNano, endTimeUnixNano } of own) {
        // One reading of a clock of whole milliseconds stands for all of a request.
        t.ok(Number(BigInt(startTimeUnixNano) / 1_000_000n) >= beganMs - 2);
        t.ok(Number(BigInt(endTimeUnixNano) / 1_000_000n) <= endedMs + 2);
      }
      t.equal(own.length, isForwarded ? 6 : 4);
    }
    t.equal(forwards, 4, "of each three requests two came to followers");
    const traces = new Set(spans.map(({ traceId }) => traceId));
    t.same([...traces].sort(), [...asked.keys()].map(trace).sort(), "of the others nothing came");
    t.same([...new Set(requests)], ["POST /v1/traces application/json"]);
    await Promise.all(nodes.map((node) => node.stop()));
    for (const [digit, at] of asked) {
      const led = spans.find(
        (span) => span.traceId === trace(digit) && span.name === "apply",
      )?.node;
      if (led === undefined || led === at || !"abc".includes(digit)) continue;
      const id = `requestId="asked-at-${at}"`;
      t.match(nodes[at - 1]?.log, `request to another node ${id} to=${led}`);
      t.match(nodes[led - 1]?.log, `request of another node ${id} from=${at}`);
    }
  },
);

t.test(
  "a collector that hangs, or is not there, holds up neither requests nor the stop",
  async (t) => {
    const [gone = 0] = await freePorts(1);
    const hanging = await collector(() => "hangs");
    for (const port of [hanging.port, gone]) {
      const endpoint = `http://127.0.0.1:${port}`;
      const path = `${directory.path}/alone-${port}`;
      const node = new ServerProcess(nodeFlags(path, `--trace-endpoint=${endpoint}`));
      const at = await node.ready();
      // Each leaves four spans: with these a batch is full.
      const client = restClient(at.http, header("d"));
      let answered = 0;
      while (answered < 150) {
        const calls = Array.from({ length: 50 }, (_, number) =>
          client.call({ op: "set", key: `k${number}`, value: "v" }),
        );
        for (const { kind } of await Promise.all(calls)) if (kind === "answer") answered++;
      }
      client.close();
      t.equal(await metric(at, "sent"), 0);
      t.same(await node.stop(), { code: 0, signal: null });
      t.match(node.log, /the trace collector does not take spans|^$/);
    }
  },
);
