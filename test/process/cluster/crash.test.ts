/**
 * A real server under kill -9: mixed operations through REST and gRPC, twenty kills at random moments, and after each
 * restart a look at everything. What was acknowledged is there, no value and no token comes twice, what timed out is
 * wholly there or wholly absent. Kill -9 never loses the page cache: this is no proof of durability against power loss.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { grpcClient, restClient, type Call, type CallResult, type Client } from "./clients.js";
import { createSequences, makeObjects, step, verifyAll } from "./crash-objects.js";
import { Findings, type Send } from "./crash-workload.js";
import { ServerProcess, endAll, nodeFlags, sleep, temporaryDirectory } from "./server-process.js";

const OPERATIONS = Number(process.env["SVC_CRASH_OPERATIONS"] ?? 40_000);
const KILLS = Number(process.env["SVC_CRASH_KILLS"] ?? 20);
const WORKERS = 96;
const SEED = Number(process.env["SVC_CRASH_SEED"] ?? Date.now() % 1_000_000);

/** The node under test and the clients that talk to whichever process runs now. */
class Target {
  private readonly flags: readonly string[];
  private server: ServerProcess | null = null;
  private clients: Client[] = [];
  /** Resolves when there is a server to talk to. */
  private up: Promise<void> = Promise.resolve();
  private markUp: () => void = () => {};

  constructor(flags: readonly string[]) {
    this.flags = flags;
  }

  async start(): Promise<void> {
    this.server = new ServerProcess(this.flags);
    const addresses = await this.server.ready();
    this.clients = [
      restClient(addresses.http),
      grpcClient(addresses.grpc),
      restClient(addresses.http),
      grpcClient(addresses.grpc),
    ];
    this.markUp();
  }

  async kill(): Promise<void> {
    this.up = new Promise((resolve) => (this.markUp = resolve));
    await this.server?.kill();
    for (const client of this.clients) client.close();
  }

  async stop(): Promise<{ readonly code: number | null }> {
    for (const client of this.clients) client.close();
    return (await this.server?.stop()) ?? { code: null };
  }

  /** A sender that uses one front end, of whichever process runs when it is called. */
  sender(at: number): Send {
    return async (call: Call): Promise<CallResult> => {
      await this.up;
      const client = this.clients[at % this.clients.length];
      return client === undefined ? { kind: "unknown" } : client.call(call);
    };
  }
}

/** Lets the workers in, or holds them back between two steps so that a look at everything is undisturbed. */
class Gate {
  stopping = false;
  private inside = 0;
  private opened: Promise<void> = Promise.resolve();
  private open: () => void = () => {};

  async enter(): Promise<void> {
    await this.opened;
    this.inside += 1;
  }

  leave(): void {
    this.inside -= 1;
  }

  pause(): void {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }

  resume(): void {
    this.open();
  }

  async idle(): Promise<void> {
    while (this.inside > 0) await sleep(2);
  }
}

t.setTimeout(600_000);

t.test(
  "80,000 operations under 20 kill -9 (P-003, P-024, P-028, P-033, P-057, P-074, P-077)",
  { timeout: 600_000 },
  async (t) => {
    t.comment(`seed ${SEED}`);
    const draw = new Prng(SEED);
    const directory = temporaryDirectory();
    t.teardown(async () => {
      await endAll();
      directory.remove();
    });
    const target = new Target(nodeFlags(directory.path, "--initial-cluster-partitions=8"));
    await target.start();

    const findings = new Findings();
    const objects = makeObjects(WORKERS, findings);
    await createSequences(objects, target.sender(0));

    const gate = new Gate();
    const workers = Array.from({ length: WORKERS }, async (_, worker) => {
      const own = draw.fork(`worker ${worker}`);
      const send = target.sender(worker);
      for (let serial = 0; !gate.stopping; serial++) {
        await gate.enter();
        await step(worker, serial, own, objects, send);
        gate.leave();
      }
    });

    const perKill = Math.floor(OPERATIONS / (KILLS + 1));
    for (let kill = 1; kill <= KILLS; kill++) {
      while (findings.operations < kill * perKill) await sleep(5);
      await sleep(draw.below(40));
      await target.kill();
      gate.pause();
      await target.start();
      await gate.idle();
      await verifyAll(objects, target.sender(kill));
      gate.resume();
    }
    while (findings.operations < OPERATIONS) await sleep(20);
    gate.stopping = true;
    await Promise.all(workers);
    await verifyAll(objects, target.sender(0));
    await verifyAll(objects, target.sender(1));

    t.same(findings.violations, [], "nothing lost, nothing twice, nothing back");
    t.comment(`operations ${findings.operations}, unknown ${findings.unknowns}`);
    t.comment(JSON.stringify(findings.compared));
    const least: Record<string, number> = {
      "value unique": 1000,
      "value order": 1000,
      "keyed replay identical": 500,
      "token grows": 500,
      "one holder": 500,
      "grant kept": 50,
      "write kept": 1000,
      "open write decided": KILLS > 0 ? 5 : 0,
      "revision grows by one a write": 1000,
    };
    for (const [check, count] of Object.entries(least)) {
      const enough = Math.min(count, Math.floor((count * OPERATIONS) / 200_000) + 1);
      t.ok((findings.compared[check] ?? 0) >= enough, `${check}: not vacuous`);
    }
    t.ok(findings.unknowns > 0, "kills hit operations in progress");
    t.equal((await target.stop()).code, 0, "a clean stop at the end");
  },
);
