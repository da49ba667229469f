/**
 * Waiting for a lock at a service over REST that does not know waiting: what asks for it is refused
 * as `unknown-member`, and so the lock is asked for again and again without it.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { failure } from "../../doubles/client/failure.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

const time = new VirtualTime();
t.setTimeout(30_000);
t.teardown(() => time.stop());

const [LOCKED, BUSY, EXTENDED, UNLOCKED, NOT_HELD] = [0, 1, 2, 3, 100];
const KNOWN = ["resource", "owner", "expiresMs", "durability"];
const RETRY_MS = 1000;

/** A service whose locks somebody else holds for the first `busyTries` tries. */
class OldService {
  /** Members of each try that it did not know. */
  readonly refused: string[] = [];
  /** When tries came that it could read (ms). */
  readonly triedMs: number[] = [];
  readonly held = new Map<string, string>();
  busyTries = 0;
  isUpgraded = false;
  private token = 0;
  private readonly server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const [status, answer] = this.answer(request.url ?? "", body);
      const json = status === 200 ? "application/json" : "application/problem+json";
      response.writeHead(status, { "content-type": json });
      response.end(JSON.stringify(answer));
    });
  });

  constructor() {
    // Connections end by no real time: in this test's an hour is a moment, and a moment may be long.
    this.server.keepAliveTimeout = 0;
  }

  async client(): Promise<SvcClient> {
    if (!this.server.listening)
      await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    const { port } = this.server.address() as AddressInfo;
    return new SvcClient({ endpoints: `http://127.0.0.1:${port}`, transport: "rest" }, time);
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private answer(url: string, body: string): [number, object] {
    const asked = JSON.parse(body) as Record<string, string>;
    const unknown = Object.keys(asked).find((name) => !KNOWN.includes(name));
    if (unknown !== undefined && !this.isUpgraded) {
      this.refused.push(unknown);
      const detail = `unknown member "${unknown}"`;
      return [400, { type: "about:blank", title: "", status: 400, detail, code: "unknown-member" }];
    }
    const { resource = "", owner = "" } = asked;
    const holder = this.held.get(resource);
    if (url.endsWith("try-lock")) {
      this.triedMs.push(time.nowMs());
      this.busyTries -= 1;
      if (this.busyTries >= 0 || (holder ?? owner) !== owner)
        return [200, this.told(BUSY, asked["waitMs"])];
      this.held.set(resource, owner);
      this.token += 1;
      return [200, this.told(LOCKED, asked["waitMs"])];
    }
    if (holder !== owner) return [200, this.told(NOT_HELD)];
    if (url.endsWith("try-extend")) return [200, this.told(EXTENDED)];
    this.held.delete(resource);
    return [200, this.told(UNLOCKED)];
  }

  private told(type: number, waitMs?: string): object {
    const answer = { type, fencingToken: this.token, servedFrom: null, route: null };
    if (!this.isUpgraded) return answer;
    const waitedMs = type === BUSY ? Number(waitMs ?? 0) : 0;
    return { ...answer, leaseLeftMs: 60_000, waitedMs, position: 0, waiters: 0 };
  }
}

const WISH = { leaseMs: 60_000, waitMs: 60_000, retryMs: RETRY_MS, renew: false };

t.test("4.7 a lock is waited for by asking again, with pauses, and is got when free", async (t) => {
  const service = new OldService();
  const client = await service.client();
  service.busyTries = 5;
  const lock = await client.locks.acquire("r", WISH);
  t.same([lock.acquired, lock.fencingToken, lock.held], [true, 1n, true]);
  t.same(service.refused, ["waitMs"], "it is asked once whether it knows waiting");
  t.equal(service.triedMs.length, 6);
  for (const [at, triedMs] of service.triedMs.entries())
    if (at > 0) t.ok(triedMs - (service.triedMs[at - 1] as number) >= RETRY_MS / 2, `pause ${at}`);

  const busy = await client.locks.acquire("r", { ...WISH, waitMs: 3 * RETRY_MS });
  t.equal(busy.acquired, false, "the wait is over");
  const vain = { owner: "me", leaseMs: 1000, waitMs: 30_000 };
  t.match(await client.locks.tryLock("r", vain), { acquired: false, waitedMs: null });
  t.equal(await lock.release(), true);
  t.same([...service.held], [], "nothing stays held");
  t.same(service.refused, ["waitMs"]);
  await client.close();
  service.stop();
});

t.test("4.7 so do withLock, permit and campaign wait", async (t) => {
  const service = new OldService();
  const client = await service.client();
  service.busyTries = 3;
  t.equal(await client.locks.withLock("with", WISH, async (_, token) => token), 1n);
  service.busyTries = 6;
  const permit = await client.locks.permit("few", 2, WISH);
  t.match(permit, { acquired: true, fencingToken: 2n });
  await permit.release();
  service.busyTries = 3;
  const leadership = await client.election("e").campaign({ leaseMs: 60_000 });
  t.same([leadership.leads, leadership.epoch], [true, 3n]);
  await leadership.resign();
  t.same([...service.held], []);
  t.same(service.refused, ["waitMs"]);
  await client.close();
  service.stop();
});

t.test("4.7 an endpoint that was upgraded is asked to wait after a while", async (t) => {
  const service = new OldService();
  const client = await service.client();
  service.busyTries = 1000;
  const lock = client.locks.acquire("r", { ...WISH, waitMs: 600_000, retryMs: 5000 });
  while (service.triedMs.length < 30) await time.sleep(1000);
  t.ok(service.refused.length >= 2 && service.refused.length <= 4, `${service.refused.length}`);
  service.isUpgraded = true;
  service.busyTries = 20;
  t.equal((await lock).acquired, true);
  const told = { owner: "other", leaseMs: 1000, waitMs: 30_000 };
  await time.sleep(60_000);
  t.match(await client.locks.tryLock("r", told), { acquired: false, waitedMs: 30_000 });
  await client.close();
  service.stop();
});

t.test(
  "what is unknown for another reason is raised, and a note is not lost unheard",
  async (t) => {
    const service = new OldService();
    const client = await service.client();
    for (const waitMs of [0, 1000]) {
      const error = await failure(client.locks.acquire("r", { ...WISH, waitMs, note: "host-7" }));
      t.match(error, { code: "invalid-input", outcome: "none", message: /note/ });
    }
    t.same(service.triedMs, []);
    const step = { owner: "me", leaseMs: 1000, fencingToken: 1 };
    t.match(await failure(client.locks.tryExtend("r", step)), { code: "invalid-input" });
    await client.close();
    service.stop();
  },
);
