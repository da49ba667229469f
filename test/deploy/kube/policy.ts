/**
 * Who may talk to whom by the NetworkPolicies, as rules of nftables for the namespace of one pod.
 *
 * After the documentation of Kubernetes, "Network Policies". Invariants: 1. A pod that no policy selects for a direction is open in
 * it; of several that select it the sum counts. 2. Answers go with what they answer, and the node of a pod (kubelet) always reaches it.
 * 3. A selector of pods alone means the namespace of the policy. 4. A port by name is that of the pod that is called.
 */
import { at } from "./manifests.js";
import type { Yaml, YamlMap } from "./yaml.js";

/** A pod as policies see it. */
export interface Inhabitant {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  /** Its ports by name. */
  readonly ports: ReadonlyMap<string, number>;
}

export interface Passage {
  /** Of the other end. */
  readonly address: string;
  readonly protocol: "tcp" | "udp";
  /** Of the one that is called. */
  readonly port: number;
}

/** null: not bound in that direction. */
export interface Passages {
  readonly ingress: readonly Passage[] | null;
  readonly egress: readonly Passage[] | null;
}

type Direction = "ingress" | "egress";

/** What a namespace has by itself. */
function namespaceLabels(namespace: string): Readonly<Record<string, string>> {
  return { "kubernetes.io/metadata.name": namespace };
}

function matches(selector: Yaml, labels: Readonly<Record<string, string>>): boolean {
  // An empty selector is everybody.
  const wanted = (selector as YamlMap)["matchLabels"] ?? {};
  return Object.entries(wanted as YamlMap).every(([key, value]) => labels[key] === value);
}

function isPeer(peer: YamlMap, policyNamespace: string, other: Inhabitant): boolean {
  const { podSelector, namespaceSelector } = peer;
  const isPlaced =
    namespaceSelector === undefined
      ? other.namespace === policyNamespace
      : matches(namespaceSelector, namespaceLabels(other.namespace));
  return isPlaced && (podSelector === undefined || matches(podSelector, other.labels));
}

function directed(
  direction: Direction,
  policies: readonly YamlMap[],
  namespace: string,
  self: Inhabitant,
  all: readonly Inhabitant[],
): readonly Passage[] | null {
  const kind = direction === "ingress" ? "Ingress" : "Egress";
  const selecting = policies.filter(
    (policy) =>
      self.namespace === namespace &&
      matches(at(policy, "spec", "podSelector"), self.labels) &&
      (at(policy, "spec", "policyTypes") as readonly Yaml[]).includes(kind),
  );
  if (selecting.length === 0) return null;
  const passages: Passage[] = [];
  for (const policy of selecting) {
    const rules = (at(policy, "spec") as YamlMap)[direction] ?? [];
    for (const rule of rules as readonly YamlMap[]) {
      const peers = at(rule, direction === "ingress" ? "from" : "to") as readonly YamlMap[];
      const others = all.filter((other) => peers.some((peer) => isPeer(peer, namespace, other)));
      for (const { protocol, port } of at(rule, "ports") as readonly YamlMap[]) {
        for (const other of others) {
          const called = direction === "ingress" ? self : other;
          const number = typeof port === "number" ? port : called.ports.get(String(port));
          if (number === undefined) continue;
          const passage = String(protocol).toLowerCase() as Passage["protocol"];
          passages.push({ address: other.address, protocol: passage, port: number });
        }
      }
    }
  }
  return passages;
}

/** What the policies of `namespace` let pass to and from one of its pods. */
export function passagesOf(
  policies: readonly YamlMap[],
  namespace: string,
  self: Inhabitant,
  all: readonly Inhabitant[],
): Passages {
  return {
    ingress: directed("ingress", policies, namespace, self, all),
    egress: directed("egress", policies, namespace, self, all),
  };
}

/** The whole rule set of a pod's network namespace, in one transaction. */
export function rulesOf({ ingress, egress }: Passages, nodeAddress: string): string {
  const chain = (direction: Direction, passages: readonly Passage[] | null): readonly string[] => {
    if (passages === null) return [];
    const [hook, side] = direction === "ingress" ? ["input", "saddr"] : ["output", "daddr"];
    return [
      `chain ${hook === "input" ? "inward" : "outward"} {`,
      `type filter hook ${hook} priority filter; policy drop;`,
      "ct state established,related accept",
      `${direction === "ingress" ? "iif" : "oif"} lo accept`,
      `ip ${side} ${nodeAddress} accept`,
      ...passages.map(
        ({ address, protocol, port }) => `ip ${side} ${address} ${protocol} dport ${port} accept`,
      ),
      "}",
    ];
  };
  return [
    "table inet pods",
    "delete table inet pods",
    "table inet pods {",
    ...chain("ingress", ingress),
    ...chain("egress", egress),
    "}",
    "",
  ].join("\n");
}
