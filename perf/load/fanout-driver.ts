/**
 * Load driver for watches, a process of its own: many watches of one key, which it sets itself, and
 * one JSON line with what was delivered, how late, and what the servers spent on it.
 *
 * node dist/perf/load/fanout-driver.js --address 127.0.0.1:8083 --service own --watchers 1000
 * --streams 10 --window 4 --seconds 2 --pids 1,2,3
 *
 * Invariants: 1. Closed loop: of `window` sets each is followed by the next one when all watches were
 * told of it, so that nobody falls behind. 2. Delays are from the sending of a set until a watch has
 * its event, by one clock. 3. A set that was not told to all within a second is counted as missing.
 */
import { parseArgs } from "node:util";
import { addressesOf, headersFor } from "./grpc-options.js";
import { LeanConnection } from "./lean-http2.js";
import { processorMs } from "./processor.js";
import { ETCD_WATCHES, OWN_WATCHES, valueOf } from "./watch-items.js";
import { WatchStreams } from "./watch-streams.js";

const MISSING_MS = 1000;
/** Delays are counted in steps of 10 us, up to 10 s. */
const STEPS_PER_MS = 100;
const STEPS = 1_000_000;

const text = (fallback: string) => ({ type: "string", default: fallback }) as const;
const { values } = parseArgs({
  options: {
    address: text("127.0.0.1:8083"),
    service: text("own"),
    key: text("fanout"),
    watchers: text("1000"),
    streams: text("10"),
    window: text("1"),
    "value-bytes": text("100"),
    seconds: text("2"),
    "warmup-seconds": text("0.5"),
    pids: text(""),
  },
});
const service = values.service === "etcd" ? ETCD_WATCHES : OWN_WATCHES;
const watchers = Number(values.watchers);
const valueBytes = Number(values["value-bytes"]);
const pids = values.pids.split(",").map(Number);
const addresses = addressesOf(values.address);
const [first] = addresses as [(typeof addresses)[number]];

/** A set that not every watch was told of. */
interface Open {
  readonly sentMs: number;
  left: number;
}

const open = new Map<number, Open>();
const delays = new Uint32Array(STEPS);
let sets = 0;
let done = 0;
let delivered = 0;
let missing = 0;
let progressMs = performance.now();

const streams = await WatchStreams.open(
  {
    ...{ service, addresses, watchers, streams: Number(values.streams), isPrefix: false },
    nameOf: () => values.key,
  },
  (set, watches) => {
    delivered += watches;
    const found = open.get(set);
    if (found === undefined) return;
    const nowMs = performance.now();
    const step = Math.min(STEPS - 1, Math.floor((nowMs - found.sentMs) * STEPS_PER_MS));
    delays[step] = (delays[step] ?? 0) + watches;
    found.left -= watches;
    if (found.left > 0) return;
    open.delete(set);
    done += 1;
    progressMs = nowMs;
    send();
  },
);
const failed = (reason: string): void => {
  process.stderr.write(`sets of a measurement: ${reason}\n`);
  process.exit(1);
};
const writer = await LeanConnection.open(first.host, first.port, false, {
  onData: () => undefined,
  onEnd: (_, reset) => (reset ? failed("a call was reset") : undefined),
  onClose: failed,
});
const fields = headersFor({ ...first, tls: false, token: "" }, service.setPath);

function send(): void {
  const set = (sets += 1);
  open.set(set, { sentMs: performance.now(), left: watchers });
  writer.call(fields, service.set(values.key, valueOf(set, valueBytes)));
  writer.flush();
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function percentile(share: number): number {
  const total = delays.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  const step = delays.findIndex((count) => (seen += count) >= total * share);
  return step / STEPS_PER_MS;
}

for (let at = 0; at < Number(values.window); at++) send();
const watchdog = setInterval(() => {
  if (performance.now() - progressMs < MISSING_MS) return;
  const again = open.size;
  missing += again;
  open.clear();
  progressMs = performance.now();
  for (let at = 0; at < again; at++) send();
}, MISSING_MS / 4);
await sleep(Number(values["warmup-seconds"]) * 1000);
delays.fill(0);
delivered = 0;
done = 0;
const beganMs = performance.now();
const beforeMs = processorMs(pids);
const ownBefore = process.cpuUsage();
await sleep(Number(values.seconds) * 1000);
const tookMs = performance.now() - beganMs;
const used = process.cpuUsage(ownBefore);
const report = {
  deliveredPerSecond: (delivered * 1000) / tookMs,
  setsPerSecond: (done * 1000) / tookMs,
  p50Ms: percentile(0.5),
  p99Ms: percentile(0.99),
  processorUs: ((processorMs(pids) - beforeMs) * 1000) / Math.max(1, delivered),
  driverUs: (used.user + used.system) / Math.max(1, delivered),
  missing,
};
clearInterval(watchdog);
process.stdout.write(`${JSON.stringify(report)}\n`);
streams.close();
process.exit(0);
