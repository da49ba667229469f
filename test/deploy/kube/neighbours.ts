/** Who lives beside the pods, and which of their ports each may reach: what scripts/deploy/README.md says of it, as a table. */
import type { Inhabitant } from "./policy.js";

export type Port = "https" | "grpc" | "peers" | "health";

export const PORTS: Readonly<Record<Port, number>> = {
  https: 8082,
  grpc: 8083,
  peers: 8084,
  health: 8085,
};

export interface Neighbour extends Pick<Inhabitant, "name" | "namespace" | "labels"> {
  /** Under the policies of the base. */
  readonly reaches: readonly Port[];
  /** With those of the overlay `monitoring` as well; absent: the same. */
  readonly reachesMonitored?: readonly Port[];
}

/** What one node reaches of another. */
export const NODE_REACHES: readonly Port[] = ["peers"];

const CLIENT = { "svc-client": "true" };

export const NEIGHBOURS: readonly Neighbour[] = [
  { name: "client", namespace: "play", labels: CLIENT, reaches: ["https", "grpc"] },
  { name: "ordinary pod", namespace: "play", labels: { "svc-client": "false" }, reaches: [] },
  { name: "client elsewhere", namespace: "other", labels: CLIENT, reaches: [] },
  {
    ...{ name: "namesake elsewhere", namespace: "other" },
    ...{ labels: { "app.kubernetes.io/name": "svc" }, reaches: [] },
  },
  {
    ...{ name: "Prometheus", namespace: "monitoring", labels: {} },
    ...{ reaches: [], reachesMonitored: ["health"] },
  },
];
