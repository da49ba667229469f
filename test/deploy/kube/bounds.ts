/**
 * What bounds pods: the network policies. Each story begins with three pods that are ready and leaves three that are ready.
 *
 * Invariant: whatever must not pass is seen to pass without the bound, so that nothing else held it up.
 */
import type { Test } from "tap";
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
