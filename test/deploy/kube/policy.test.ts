/** The NetworkPolicies as they are read: who may reach which port. That packets go by it is for `kube.test.ts`. */
import t from "tap";
import { readText } from "../../tidy/sources.js";
import { baseObjects } from "./manifests.js";
import { NEIGHBOURS, NODE_REACHES, PORTS } from "./neighbours.js";
import { type Inhabitant, passagesOf, rulesOf } from "./policy.js";
import { type YamlMap, readYaml } from "./yaml.js";

const isPolicy = (object: YamlMap): boolean => object["kind"] === "NetworkPolicy";
const base = (baseObjects() as readonly YamlMap[]).filter(isPolicy);
const monitoring = "scripts/deploy/kubernetes/overlays/monitoring/scrape.yaml";
const more = (readYaml(readText(monitoring)) as readonly YamlMap[]).filter(isPolicy);

const node = (ordinal: number): Inhabitant => ({
  ...{ name: `svc-${ordinal}`, namespace: "play", address: `10.0.0.${ordinal}` },
  labels: { "app.kubernetes.io/name": "svc" },
  ports: new Map(Object.entries(PORTS)),
});
const nodes = [node(0), node(1)] as const;
const others = NEIGHBOURS.map((one, at) => ({
  ...one,
  ...{ address: `10.0.1.${at}`, ports: new Map<string, number>() },
}));
const dns = { ...node(9), name: "dns", namespace: "kube-system", labels: {}, ports: new Map() };
const all: readonly Inhabitant[] = [...nodes, ...others, dns];

/** Ports of the first node that `who` reaches. */
function reached(policies: readonly YamlMap[], who: Inhabitant): readonly string[] {
  const { ingress } = passagesOf(policies, "play", nodes[0], all);
  return Object.entries(PORTS)
    .filter(([, port]) => {
      if (ingress === null) return true;
      return ingress.some((one) => one.address === who.address && one.port === port);
    })
    .map(([name]) => name);
}

t.test("every listener is open to whom it is for, and to nobody else", (t) => {
  for (const other of others) {
    t.same(reached(base, other), other.reaches, `${other.name}: the base`);
    const wanted = other.reachesMonitored ?? other.reaches;
    t.same(reached([...base, ...more], other), wanted, `${other.name}: and monitoring`);
    t.equal(reached([], other).length, 4, "without a policy everybody reaches everything");
  }
  t.same(reached(base, nodes[1]), NODE_REACHES);
  t.end();
});

t.test("a node calls its peers and asks for names, and nobody else anything", (t) => {
  const { egress } = passagesOf(base, "play", nodes[0], all);
  const to = (address: string): readonly string[] =>
    (egress ?? [])
      .filter((one) => one.address === address)
      .map(({ protocol, port }) => `${protocol} ${port}`)
      .sort();
  t.same(to(nodes[1].address), ["tcp 53", "tcp 8084", "udp 53"]);
  for (const { address } of [...others, dns]) t.same(to(address), ["tcp 53", "udp 53"]);
  t.end();
});

t.test("a policy binds the pods that it selects, in its directions only", (t) => {
  t.same(passagesOf(more, "play", nodes[0], all).egress, null);
  const [other] = others;
  t.same(passagesOf(base, "play", other as Inhabitant, all), { ingress: null, egress: null });
  t.same(passagesOf(base, "elsewhere", nodes[0], all), { ingress: null, egress: null });
  t.notMatch(rulesOf({ ingress: [], egress: null }, "10.0.0.9"), /outward/);
  t.match(rulesOf({ ingress: [], egress: null }, "10.0.0.9"), /policy drop;[^]*10\.0\.0\.9 accept/);
  t.end();
});
