/**
 * What bounds pods: network policies, the memory limit, processor time and probes. Each story begins with three pods that are ready and leaves three that are ready.
 *
 * Invariant: whatever must not pass is seen to pass without the bound, so that nothing else held it up.
 */
import type { Test } from "tap";
import { sleep } from "../../process/cluster/server-process.js";
import { readText } from "../../tidy/sources.js";
import { baseObjects } from "./manifests.js";
import { NEIGHBOURS, NODE_REACHES, PORTS, type Port } from "./neighbours.js";
import { knock, listenIn } from "./network.js";
import type { Play } from "./play.js";
import { readYaml } from "./yaml.js";

const MONITORING = "scripts/deploy/kubernetes/overlays/monitoring/scrape.yaml";
const ALL = Object.keys(PORTS) as Port[];
/** Where a neighbour listens whom no node has any business with. */
const STRANGE_PORT = 7000;

/** Callers that never pause, and how large what each writes is. */
const FLOOD_CALLERS = 96;
const FLOOD_VALUE_BYTES = 1024 * 1024;
const FLOOD_MS = 15_000;
/** How a call may end that was too much. */
const TOO_MUCH = ["overloaded", "must-retry", "request-timeout", "closed"];
/** As many as keep a log growing. */
const FILL_CALLERS = 12;
const FILL_VALUE_BYTES = 256 * 1024;
/** So many have to be stored all the same. */
const SETS_LEAST = 20;

/** How large the log is that is replayed (MiB); a log may be as large as 1 GiB for a peer that lags. */
const LOG_MIB = Number(process.env["SVC_KUBE_LOG_MIB"] ?? 64);
/** Of one processor, while it is replayed. */
const REPLAY_SHARE = 0.1;

/** Every listener, from every neighbour and from a peer: packets go by the policies and by nothing else. */
export async function guarded(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  if (!set.isGuarded) return void t.pass("skipped: nftables cannot filter here");
  const { address, network } = set.pod(0);
  const neighbours = NEIGHBOURS.map((one) => ({ ...one, ...set.neighbour(one) }));
  const reached = async (from: string, wanted: readonly Port[], who: string): Promise<void> => {
    const seen = await Promise.all(ALL.map((port) => knock(from, address, PORTS[port])));
    const asked = ALL.map((port) => (wanted.includes(port) ? "open" : "dropped"));
    // A machine that is busy may take longer to open one.
    for (const [at, one] of asked.entries()) {
      const port = ALL[at] as Port;
      if (one === "dropped" || seen[at] === "open") t.equal(seen[at], one, `${who}: ${port}`);
      else
        await play.until(`${who}: ${port} is open`, async () => {
          return (await knock(from, address, PORTS[port])) === "open";
        });
    }
  };
  const rounds = [
    { name: "the base", objects: baseObjects() },
    { name: "and monitoring", objects: [...baseObjects(), ...readYaml(readText(MONITORING))] },
    { name: "without policies", objects: [] },
  ] as const;
  const [stranger] = neighbours;
  const listener = listenIn(stranger?.network ?? "", STRANGE_PORT);
  t.teardown(() => listener.kill("SIGKILL"));
  for (const { name, objects } of rounds) {
    set.guardBy(objects);
    const isOpen = name === "without policies";
    const look = neighbours.map((one) => {
      const monitored = name === "and monitoring" ? one.reachesMonitored : undefined;
      const wanted = isOpen ? ALL : (monitored ?? one.reaches);
      return reached(one.network, wanted, `${name}, ${one.name}`);
    });
    await Promise.all([
      ...look,
      reached(set.pod(1).network, isOpen ? ALL : NODE_REACHES, `${name}, a peer`),
    ]);
    const outward = (): Promise<string> => knock(network, stranger?.address ?? "", STRANGE_PORT);
    if (isOpen) {
      await play.until(`${name}, outward`, async () => (await outward()) === "open");
    } else t.equal(await outward(), "dropped", `${name}, outward`);
  }
  listener.kill("SIGKILL");
  set.guardBy(baseObjects());
  await play.serves(0, 1, "guarded");
}

/** P-163 More large writes than they can take: nobody is ended for its memory, and what is too much is refused. */
export async function flooded(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const groups = [0, 1, 2].map((ordinal) => set.pod(ordinal).group);
  if (groups.includes(null)) return void t.pass("skipped: no memory group can be made here");
  const limit = await play.figure(0, "svc_memory_limit_bytes");
  t.equal(limit, 1024 ** 3, "the server knows the limit of the manifest");
  const client = { name: "flood", namespace: "play", labels: { "svc-client": "true" } };
  const ends = await play.flood(set.neighbour(client).network, FLOOD_CALLERS, FLOOD_VALUE_BYTES);
  const peaks = [0, 0, 0];
  const endMs = performance.now() + FLOOD_MS;
  while (performance.now() < endMs) {
    for (const [at, group] of groups.entries()) {
      peaks[at] = Math.max(peaks[at] ?? 0, group?.use().ownBytes ?? 0);
    }
    await sleep(100);
  }
  const counts = await ends();
  t.comment(
    `own memory at most: ${peaks.map((one) => `${Math.round(one / 1024 ** 2)} MiB`).join()}`,
  );
  t.comment(JSON.stringify(counts));
  for (const [at, group] of groups.entries()) t.equal(group?.use().kills, 0, `svc-${at} lives`);
  t.equal(play.restarts(), 0, "no probe ended anything either");
  const { set: sets = 0, ...others } = counts;
  t.ok(sets >= SETS_LEAST, `${sets} sets`);
  const strange = Object.keys(others).filter((end) => !TOO_MUCH.includes(end));
  t.same(strange, [], "what is too much is refused");
  await play.ready("all are ready", 0, 1, 2);
  await play.serves(2, 0, "flooded");
}

/** A large log is replayed by a node that has hardly any processor time, under the probes of the manifest. */
export async function replayed(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  if (set.pod(0).group === null) return void t.pass("skipped: no control group can be made here");
  const before = set.settings;
  // What keeps the log: a window of incremental backups.
  const window = { SVC_PITR_BACKUP_DIR: "/var/lib/svc/backups", SVC_PITR_WINDOW: "1h" };
  set.settings = { ...before, ...window };
  await play.stopped(0, 1, 2);
  set.create(0, 1, 2);
  await play.ready("they keep their logs", 0, 1, 2);
  const client = { name: "filler", namespace: "play", labels: { "svc-client": "true" } };
  const { network } = set.neighbour(client);
  const ends = await play.flood(network, FILL_CALLERS, FILL_VALUE_BYTES);
  const size = async (): Promise<number> =>
    (await play.figure(2, "svc_wal_size_bytes")) / 1024 ** 2;
  await play.until(`a log of ${LOG_MIB} MiB`, async () => (await size()) >= LOG_MIB);
  await ends();
  await set.crash(2);
  const replaying = (): Promise<string> => play.text(2, "/livez?verbose");
  set.share = REPLAY_SHARE;
  set.create(2);
  await play.until("it listens, and replays", async () => (await replaying()) !== "");
  t.equal((await set.delete(2))[0], 0, "a signal ends it meanwhile");
  const beganMs = performance.now();
  set.create(2);
  const phases = new Set<string>();
  await play.until("it is ready, with hardly any processor time", async () => {
    const text = await replaying();
    const [, phase = ""] = /start[^:\n]*: ?(.*)/.exec(text) ?? [];
    phases.add(text === "" ? "silent" : phase);
    return set.pod(2).isReady;
  });
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  t.comment(`${Math.round(await size())} MiB, ready after ${seconds} s: ${[...phases].join("; ")}`);
  t.equal(set.pod(2).restarts, 0, "no probe ended it meanwhile");
  await play.serves(2, 0, "replayed");
  set.share = null;
  set.settings = before;
  await play.stopped(0, 1, 2);
  set.create(0, 1, 2);
  await play.ready("all are ready", 0, 1, 2);
}
