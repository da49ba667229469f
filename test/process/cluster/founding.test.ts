/** Real processes whose disks are lost: no second cluster is founded, and no token is granted twice. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  sleep,
  temporaryDirectory,
} from "./server-process.js";

const directory = temporaryDirectory();
t.setTimeout(240_000);
// Its tests wait for most of their time, each for nodes of its own.
t.jobs = 4;
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** How long it is looked at that nothing happens (ms). */
const QUIET_MS = 6000;
const PATIENCE_MS = 60_000;

class Founders {
  readonly nodes = new Map<number, ServerProcess>();

  private constructor(
    private readonly name: string,
    private readonly count: number,
    private readonly ports: readonly number[],
  ) {}

  /** So many founders, and ports for so many nodes beyond them. */
  static async of(name: string, count: number, others = 0): Promise<Founders> {
    return new Founders(name, count, await freePorts(count + others));
  }

  private pathOf(id: number): string {
    return join(directory.path, `${this.name}-${id}`);
  }

  start(id: number, ...flags: readonly string[]): ServerProcess {
    const list = foundersOf(this.ports.slice(0, this.count));
    const node = new ServerProcess([
      "--grpc-port=off",
      "--https-port=off",
      "--http-port=0",
      "--initial-cluster-partitions=2",
      `--raft-nodeid=${id}`,
      `--peer-port=${this.ports[id - 1] ?? 0}`,
      `--initial-cluster=${list}`,
      `--storage-path=${this.pathOf(id)}`,
      ...flags,
    ]);
    this.nodes.set(id, node);
    return node;
  }

  node(id: number): ServerProcess {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was started`);
    return node;
  }

  async lose(id: number): Promise<void> {
    await this.node(id).kill();
    rmSync(this.pathOf(id), { recursive: true, force: true });
  }
}

interface LockAnswer {
  readonly type: number;
  readonly fencingToken?: number;
  readonly left?: boolean;
}

async function post(node: ServerProcess, path: string, body: object): Promise<LockAnswer> {
  const { http } = await node.addresses();
  const answer = await fetch(`http://${http}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as LockAnswer;
}

/** Grants and gives back until it is granted; the token. */
async function grant(node: ServerProcess, owner: string): Promise<number> {
  const endMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const body = { resource: "r", owner, expiresMs: 60_000 };
    const { type, fencingToken } = await post(node, "/v1/locks/try-lock", body);
    if (type === 0 && fencingToken !== undefined) {
      await post(node, "/v1/locks/try-unlock", { resource: "r", owner });
      return fencingToken;
    }
    if (performance.now() > endMs) throw new Error(`no grant: type ${type}`);
    await sleep(50);
  }
}

async function logged(node: ServerProcess, words: RegExp): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!words.test(node.log)) {
    if (performance.now() > endMs) throw new Error(`never said ${String(words)}:\n${node.log}`);
    await sleep(20);
  }
}

t.test(
  "P-191 two of three founders lose their disks while the third is away",
  { buffered: true },
  async (t) => {
    const founders = await Founders.of("wiped", 3);
    for (const id of [1, 2, 3]) founders.start(id);
    for (const id of [1, 2, 3]) await founders.node(id).ready();
    const tokens = [await grant(founders.node(1), "a"), await grant(founders.node(2), "b")];
    await founders.node(3).kill();
    await founders.lose(1);
    await founders.lose(2);
    founders.start(1);
    founders.start(2);
    for (const id of [1, 2])
      await logged(founders.node(id), /waiting for founders: 3 127\.0\.0\.1/);
    await sleep(QUIET_MS);
    for (const id of [1, 2]) {
      t.equal(founders.node(id).output, "", `node ${id} serves nobody`);
      t.notMatch(founders.node(id).log, /founding the cluster/);
    }
    founders.start(3);
    const remedy = (id: number): RegExp => {
      return new RegExp(
        `belongs to no cluster yet.*(--cluster-leave --member ${id}|to be taken in)`,
      );
    };
    for (const id of [1, 2]) await logged(founders.node(id), remedy(id));
    await founders.node(3).addresses();
    await sleep(QUIET_MS);
    // The only one with the data has no majority, and nobody makes another cluster.
    const answer = await post(founders.node(3), "/v1/locks/try-lock", {
      resource: "r",
      owner: "c",
      expiresMs: 1000,
    });
    t.not(answer.type, 0, "nothing is granted");
    for (const id of [1, 2]) {
      t.equal(founders.node(id).output, "", `node ${id} serves nobody still`);
      t.ok(await founders.node(id).stop(), "a signal ends it at once");
    }
    await founders.node(3).kill();
    t.ok((tokens[1] ?? 0) > (tokens[0] ?? 0), "tokens rose while there was a cluster");
  },
);

t.test(
  "P-090 P-191 one lost disk: it waits, names the command, and the rest goes on",
  { buffered: true },
  async (t) => {
    const founders = await Founders.of("one", 3);
    for (const id of [1, 2, 3]) founders.start(id);
    for (const id of [1, 2, 3]) await founders.node(id).ready();
    const first = await grant(founders.node(1), "a");
    await founders.lose(2);
    founders.start(2);
    await logged(founders.node(2), /belongs to no cluster yet.*--cluster-leave --member 2/);
    t.ok((await grant(founders.node(3), "b")) > first);
    t.equal(founders.node(2).output, "");
    // One command heals it: the member is removed, and the node that waits is taken in anew.
    const endMs = performance.now() + PATIENCE_MS;
    let left: boolean | undefined = false;
    while (left !== true && performance.now() < endMs) {
      await sleep(1000);
      ({ left } = await post(founders.node(1), "/v1/cluster/leave", { nodeId: 2 }));
    }
    t.equal(left, true);
    await founders.node(2).ready();
    t.match(founders.node(2).log, /taken in by the cluster/);
    for (const id of [1, 2, 3]) t.same(await founders.node(id).stop(), { code: 0, signal: null });
  },
);

t.test(
  "5.6 founders wait for each other; who comes as existing founds nothing",
  { buffered: true },
  async (t) => {
    const founders = await Founders.of("slow", 3);
    founders.start(1);
    founders.start(2);
    await logged(founders.node(1), /waiting for founders: 3 127/);
    // A crash in between changes nothing.
    await founders.node(2).kill();
    founders.start(2);
    await sleep(1000);
    t.equal(founders.node(1).output, "");
    const late = founders.start(3, "--initial-cluster-state=existing");
    await logged(late, /belongs to no cluster yet/);
    await sleep(1000);
    t.equal(founders.node(1).output, "", "nothing is founded for one that only joins");
    await late.kill();
    founders.start(3);
    for (const id of [1, 2, 3]) await founders.node(id).ready();
    await grant(founders.node(2), "a");
    for (const id of [1, 2, 3]) t.same(await founders.node(id).stop(), { code: 0, signal: null });
  },
);

t.test(
  "5.6 a node that is not listed joins through the founders of its list",
  { buffered: true },
  async (t) => {
    const founders = await Founders.of("fourth", 2, 1);
    for (const id of [3, 1, 2]) founders.start(id);
    for (const id of [1, 2, 3]) await founders.node(id).ready();
    t.match(founders.node(3).log, /taken in by the cluster/);
    for (const id of [3, 2, 1]) t.same(await founders.node(id).stop(), { code: 0, signal: null });
  },
);
