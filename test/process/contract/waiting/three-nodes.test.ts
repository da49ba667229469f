/**
 * Contract 4.8 and 4.9 on three real nodes: what becomes of those who wait when leaders go (Q11) or are cut off (Q12), and of
 * cursors at other nodes (W5, W6).
 */
import t, { type Test } from "tap";
import { endAll, sleep } from "../../cluster/server-process.js";
import { PlacedNodes } from "../../placement/placed-nodes.js";
import { PlacedCallers } from "../placed-callers.js";
import type { Json } from "../wire.js";
import { Answer, Kind, Told } from "./told.js";

t.setTimeout(240_000);
t.teardown(endAll);

const LEASE_MS = 60_000;
/** Of locks. */
const MUST_RETRY = 101;

class Three {
  constructor(
    readonly nodes: PlacedNodes,
    readonly callers: PlacedCallers,
  ) {}

  async call(id: number, path: string, body: object): Promise<Json> {
    return (await this.callers.post(id, `/v1/${path}`, body)).body;
  }

  /** Asks until it is not MustRetry, as while leaders change. */
  async insist(id: number, path: string, body: object): Promise<Json> {
    for (let tries = 0; ; tries++) {
      const answer = await this.call(id, path, body);
      if (answer["type"] !== MUST_RETRY || tries > 300) return answer;
      await sleep(50);
    }
  }

  /** Waits for the lock, as often as it is told to come again. */
  async acquired(id: number, wait: object, onRetry: () => void = () => undefined): Promise<Json> {
    for (let tries = 1; ; tries++) {
      const body = { expiresMs: LEASE_MS, waitMs: 60_000, ...wait, try: tries * 65_536 };
      const answer = await this.call(id, "locks/try-lock", body);
      if (answer["type"] !== MUST_RETRY || tries > 300) return answer;
      onRetry();
      await sleep(50);
    }
  }

  /** Takes the lock for `owner` and tells who leads its partition. */
  async taken(resource: string, owner: string, expiresMs = LEASE_MS): Promise<number> {
    await this.insist(1, "locks/try-lock", { resource, owner, expiresMs });
    const { route } = await this.insist(1, "locks/get-info", { resource });
    for (const id of this.nodes.running) {
      const { grpc } = await this.nodes.addresses(id);
      if (((route as Json)["endpoint"] as string).endsWith(grpc)) return id;
    }
    throw new Error(`no node is at ${JSON.stringify(route)}`);
  }

  /** A name of `group` whose lock another node than `not` leads, and by whom. */
  async ledElsewhere(group: string, not: number): Promise<{ name: string; leader: number }> {
    for (let at = 0; at < 200; at++) {
      const name = `${group}/${at}`;
      const leader = await this.taken(name, "holder");
      if (leader !== not) return { name, leader };
    }
    throw new Error("every partition has one leader");
  }

  async queued(id: number, resource: string, waiters: number): Promise<void> {
    while ((await this.call(id, "locks/get-info", { resource }))["waiters"] !== waiters) {
      await sleep(10);
    }
  }
}

async function killedLeader(t: Test, three: Three): Promise<void> {
  const { name, leader } = await three.ledElsewhere("q11", 1);
  const other = [2, 3].find((id) => id !== leader) as number;
  let retries = 0;
  const onRetry = (): void => void retries++;
  const waits = [
    three.acquired(1, { resource: name, owner: "b", waitId: 1 }, onRetry),
    three.acquired(other, { resource: name, owner: "c", waitId: 2 }, onRetry),
  ] as const;
  await three.queued(1, name, 2);
  await three.nodes.kill(leader);
  await sleep(500);
  await three.queued(1, name, 2);
  t.comment(`told to come again: ${retries}`);
  const info = await three.insist(1, "locks/get-info", { resource: name });
  t.match(info, { type: 4, owner: "holder" }, "T3 a lease outlives its leader, those who wait too");
  const release = { resource: name, owner: "holder", fencingToken: info["fencingToken"] };
  t.match(await three.insist(1, "locks/try-unlock", release), { type: 3 });
  t.match(await Promise.race(waits), { type: 0 });
  const { owner } = await three.insist(1, "locks/get-info", { resource: name });
  t.ok(owner === "b" || owner === "c");
  await three.insist(1, "locks/try-unlock", { resource: name, owner });
  const [b, c] = await Promise.all(waits);
  const distance = (b["fencingToken"] as number) - (c["fencingToken"] as number);
  t.equal(Math.abs(distance), 1, "one after the other");
  three.nodes.launch(leader);
  await three.nodes.node(leader).ready();
}

async function cutOffLeader(t: Test, three: Three): Promise<void> {
  const name = "q12";
  const leader = await three.taken(name, "holder", 1500);
  const others = three.nodes.running.filter((id) => id !== leader);
  const body = { resource: name, owner: "b", expiresMs: LEASE_MS, waitMs: 8000, waitId: 3 };
  const wait = three.call(leader, "locks/try-lock", { ...body, try: 1 });
  await three.queued(leader, name, 1);
  for (const id of others) three.nodes.node(id).signal("SIGSTOP");
  let end: Json;
  try {
    end = await wait;
  } finally {
    for (const id of others) three.nodes.node(id).signal("SIGCONT");
  }
  t.match(end, { type: MUST_RETRY }, "the lease ended, and nobody was granted anything");
  // What the leader had proposed for it may be committed now: nobody else may have it then.
  const again = await three.acquired(leader, { resource: name, owner: "b", waitId: 3 });
  t.match(again, { type: 0 }, "Q5 no grant that a repeat does not find");
}

async function cursorsElsewhere(t: Test, three: Three): Promise<void> {
  const grpc = (id: number) => {
    const caller = three.callers.grpc.get(id);
    if (caller === undefined) throw new Error(`no caller of node ${id}`);
    return { grpc: caller };
  };
  const set = (key: string, text: string) =>
    three.insist(1, "kv/try-set", { key, value: Buffer.from(text).toString("base64") });
  for (let at = 0; at < 30; at++) await set(`w6/${at}`, "old");
  const told = new Told(grpc(1));
  await told.created(1, Kind.prefix, "w6/", { ProgressMs: 100 });
  const cursor = (await told.next(Answer.mark, 1))["Cursor"];
  told.stream.cancel();
  for (const text of ["1", "2", "newest"]) for (const at of [0, 7, 29]) await set(`w6/${at}`, text);
  await three.insist(1, "kv/try-delete", { key: "w6/7" });
  await set("w6/new", "newest");
  for (const id of [2, 3]) {
    const again = new Told(grpc(id));
    again.create(1, Kind.prefix, "w6/", { Cursor: cursor });
    const answers: Json[] = [];
    const events = () =>
      answers
        .flatMap((answer) => answer["Events"] as Json[])
        .filter(({ Name }) => Name !== "w6/live");
    while (events().length < 4) answers.push(await again.next(Answer.events, 1));
    t.ok(
      answers.every(({ Merged, Reset }) => Merged === true && Reset === false),
      "W6 said so",
    );
    const byName = (one: Json, other: Json): number =>
      (one["Name"] as string) < (other["Name"] as string) ? -1 : 1;
    t.match(
      events().sort(byName),
      [
        { Name: "w6/0", Type: 1, Value: Buffer.from("newest") },
        { Name: "w6/29", Type: 1, Value: Buffer.from("newest") },
        { Name: "w6/7", Type: 2 },
        { Name: "w6/new", Type: 1, Value: Buffer.from("newest") },
      ],
      `node ${id}: each name that changed once, with its newest state, the deleted one too`,
    );
    const revision = (await set("w6/live", "v"))["revision"] as number;
    for (;;) {
      const { Merged, Events } = await again.next(Answer.events, 1);
      const live = (Events as Json[]).find(({ Revision }) => Revision === String(revision));
      if (live === undefined) continue;
      t.match([Merged, live], [false, { Name: "w6/live" }], "then exactly what comes");
      break;
    }
    again.stream.cancel();
  }
  const strange = new Told(grpc(2));
  strange.create(1, Kind.prefix, "w6", { Cursor: cursor });
  t.match(await strange.next(Answer.ended), { End: 2 }, "W5 of another name");
  strange.stream.cancel();
}

t.test("three nodes", async (t) => {
  const nodes = await PlacedNodes.start(3, 0, ["--initial-cluster-partitions=4"]);
  const callers = await new PlacedCallers(nodes).open();
  t.teardown(() => {
    callers.close();
    return nodes.end();
  });
  const three = new Three(nodes, callers);
  await t.test("W5, W6 a cursor at another node", (t) => cursorsElsewhere(t, three));
  await t.test("Q12 a leader that is cut off grants nothing", (t) => cutOffLeader(t, three));
  await t.test("Q11 who waits outlives the leader", (t) => killedLeader(t, three));
});
