/**
 * Links between two nodes on loopback, the other node in a process of its own: the round trip of a
 * 1 KiB frame, how many frames pass in a second, and how long a heartbeat takes while a snapshot is
 * on its way. Run: npm run perf -- peers
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { PeerEvents, PeerLane } from "../../src/ports.js";
import type { PeerNetwork } from "../../src/net/network.js";
import {
  type Told,
  openNetwork,
  peerSettings,
  realPorts,
  until,
} from "../../test/doubles/net/world.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "./report.js";

const FRAME_BYTES = 1024;
const ROUND_TRIPS = 5000;
const AHEAD_FRAMES = 512;
const BULK_BYTES = 1 << 20;

type OnFrame = (lane: PeerLane, bytes: Uint8Array) => void;

async function openNode(
  nodeId: number,
  onFrame: OnFrame,
): Promise<{ network: PeerNetwork; endpoint: string; linked: () => boolean }> {
  let endpoint = "";
  const told: Told[] = [];
  const network = await openNetwork(
    peerSettings(nodeId, () => endpoint),
    realPorts(told),
  );
  endpoint = `127.0.0.1:${network.port}`;
  let isUp = false;
  const events: PeerEvents = {
    judge: () => null,
    admit: () => null,
    refused: () => undefined,
    linkUp: () => (isUp = true),
    linkDown: () => {
      // Frames were lost: what was measured means nothing.
      console.error(`node ${nodeId} lost the link`, told.at(-1)?.fields);
      process.exit(1);
    },
    frame: (_from, lane, bytes) => onFrame(lane, bytes),
    joinAsked: (_request, answer) => answer({ status: "retry", reason: "not here" }),
  };
  network.start(events, { bootNumber: 1, bootNonce: 1, earlierNonces: [] });
  return { network, endpoint, linked: () => isUp };
}

/** The other process: sends back frames of "control" and "log", drops those of "bulk". */
async function echoNode(peerEndpoint: string): Promise<void> {
  const node = await openNode(2, (lane, bytes) => {
    if (lane !== "bulk") node.network.send(1, lane, bytes);
  });
  node.network.setPeers([{ nodeId: 1, endpoint: peerEndpoint }]);
  process.send?.(node.endpoint);
  process.on("disconnect", () => process.exit(0));
}

function percentile(values: readonly number[], share: number): string {
  const sorted = [...values].sort((left, right) => left - right);
  return ((sorted[Math.floor(sorted.length * share)] ?? 0) * 1000).toFixed(0);
}

class Measuring {
  private waiting: (() => void) | null = null;
  arrived = 0;

  constructor(private readonly network: () => PeerNetwork) {}

  take(): void {
    this.arrived += 1;
    const { waiting } = this;
    this.waiting = null;
    waiting?.();
  }

  async roundTrips(lane: PeerLane, count: number, between: () => void): Promise<number[]> {
    const durations: number[] = [];
    const frame = new Uint8Array(FRAME_BYTES);
    for (let at = 0; at < count; at++) {
      between();
      const begin = performance.now();
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
        if (!this.network().send(2, lane, frame)) throw new Error("the link is down");
      });
      durations.push(performance.now() - begin);
    }
    return durations;
  }

  /** Frames that went there and back in a second. */
  async flood(seconds: number): Promise<number> {
    const frame = new Uint8Array(FRAME_BYTES);
    const begin = performance.now();
    const first = this.arrived;
    let sent = 0;
    while (performance.now() - begin < seconds * 1000) {
      while (sent - (this.arrived - first) < AHEAD_FRAMES) {
        if (!this.network().send(2, "log", frame)) throw new Error("the link is down");
        sent += 1;
      }
      await new Promise<void>((resolve) => (this.waiting = resolve));
    }
    return (this.arrived - first) / ((performance.now() - begin) / 1000);
  }
}

async function measure(): Promise<void> {
  printMachine();
  const measuring = new Measuring(() => node.network);
  const node = await openNode(1, () => measuring.take());
  const child = fork(fileURLToPath(import.meta.url), ["echo", node.endpoint]);
  const endpoint = await new Promise<string>((resolve) =>
    child.once("message", (text) => resolve(String(text))),
  );
  node.network.setPeers([{ nodeId: 2, endpoint }]);
  // The other node has its own link to this one: what comes before it stands is not sent back.
  await until("linked both ways", () => {
    if (node.linked()) node.network.send(2, "control", new Uint8Array(1));
    return measuring.arrived > 0;
  });
  await measuring.roundTrips("log", 500, () => undefined);
  const rows: string[][] = [];
  const row = (name: string, durations: readonly number[]): void => {
    const all = [0.5, 0.99].map((share) => percentile(durations, share));
    rows.push([name, ...all, thousands(1000 / median(durations))]);
  };
  row("log, 1 KiB", await measuring.roundTrips("log", ROUND_TRIPS, () => undefined));
  row("control, 1 KiB", await measuring.roundTrips("control", ROUND_TRIPS, () => undefined));
  const bulk = new Uint8Array(BULK_BYTES);
  const fill = (): void => {
    while (node.network.queuedBytes(2, "bulk") < 4 * BULK_BYTES) node.network.send(2, "bulk", bulk);
  };
  row("control, 1 KiB, beside a full bulk lane", await measuring.roundTrips("control", 300, fill));
  await until("bulk is through", () => node.network.queuedBytes(2, "bulk") === 0);
  printTable(["there and back", "p50 µs", "p99 µs", "per s, one at a time"], rows);
  const rates: number[] = [];
  for (let round = 0; round < 3; round++) rates.push(await measuring.flood(phaseSeconds(2)));
  const rate = thousands(median(rates));
  console.log(`\nlog, 1 KiB, ${AHEAD_FRAMES} on their way: ${rate} frames/s there and back`);
  child.disconnect();
  await new Promise<void>((resolve) => node.network.close(resolve));
}

if (process.argv[2] === "echo") await echoNode(process.argv[3] ?? "");
else await measure();
