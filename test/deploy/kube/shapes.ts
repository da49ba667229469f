/**
 * Which members the objects of our manifests may have, and of what kind: a member that is not listed is refused.
 *
 * The names are those of the API reference of Kubernetes 1.29. "Played" are those that `stateful-set.ts`, `pod.ts`, `policy.ts` and
 * `memory-group.ts` carry out; the others (where pods are put, what they ask for) are checked here only.
 */
import type { Yaml, YamlMap } from "./yaml.js";

export type Shape = (value: Yaml, path: string, faults: string[]) => void;

const kindOf =
  (type: "string" | "number" | "boolean"): Shape =>
  (value, path, faults) => {
    if (typeof value !== type) faults.push(`${path}: a ${type} is wanted`);
  };
const text = kindOf("string");
const count = kindOf("number");
const flag = kindOf("boolean");

const choice =
  (...values: readonly Yaml[]): Shape =>
  (value, path, faults) => {
    if (!values.includes(value)) faults.push(`${path}: ${JSON.stringify(value)} is not played`);
  };

const amount: Shape = (value, path, faults) => {
  if (!/^\d+(m|Ki|Mi|Gi|Ti)?$/.test(String(value))) faults.push(`${path}: no quantity`);
};

const nameOrNumber: Shape = (value, path, faults) => {
  if (typeof value !== "number" && typeof value !== "string") faults.push(`${path}: no port`);
};

function isMap(value: Yaml): value is YamlMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Members with a `?` may be missing. */
function members(shapes: Readonly<Record<string, Shape>>): Shape {
  return (value, path, faults) => {
    if (!isMap(value)) return void faults.push(`${path}: a map is wanted`);
    for (const [key, member] of Object.entries(value)) {
      const shape = shapes[key] ?? shapes[`${key}?`];
      if (shape === undefined) faults.push(`${path}.${key}: not known here`);
      else shape(member, `${path}.${key}`, faults);
    }
    for (const key of Object.keys(shapes)) {
      if (!key.endsWith("?") && !(key in value)) faults.push(`${path}.${key}: is missing`);
    }
  };
}

function list(shape: Shape): Shape {
  return (value, path, faults) => {
    if (!Array.isArray(value)) return void faults.push(`${path}: a list is wanted`);
    for (const [at, item] of (value as readonly Yaml[]).entries()) {
      shape(item, `${path}[${at}]`, faults);
    }
  };
}

const labels: Shape = (value, path, faults) => {
  if (!isMap(value)) return void faults.push(`${path}: a map is wanted`);
  for (const [key, own] of Object.entries(value)) text(own, `${path}.${key}`, faults);
};

const selector = members({ matchLabels: labels });
const metadata = members({ name: text, "labels?": labels, "namespace?": text });
const object = (apiVersion: string, kind: string, rest: Readonly<Record<string, Shape>>): Shape =>
  members({ apiVersion: choice(apiVersion), kind: choice(kind), metadata, ...rest });

const probe = members({
  httpGet: members({ path: text, port: nameOrNumber }),
  "periodSeconds?": count,
  "timeoutSeconds?": count,
  "failureThreshold?": count,
});
const quantities = members({ "cpu?": amount, "memory?": amount });
const apart = members({ topologyKey: text, labelSelector: selector });

const container = members({
  name: text,
  image: text,
  env: list(
    members({
      name: text,
      "value?": text,
      "valueFrom?": members({
        fieldRef: members({ fieldPath: choice("metadata.name", "metadata.namespace") }),
      }),
    }),
  ),
  "envFrom?": list(members({ configMapRef: members({ name: text, optional: choice(true) }) })),
  ports: list(members({ name: text, containerPort: count })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  resources: members({ requests: quantities, limits: quantities }),
  securityContext: members({
    allowPrivilegeEscalation: choice(false),
    readOnlyRootFilesystem: choice(true),
    capabilities: members({ drop: choiceList("ALL") }),
  }),
  volumeMounts: list(members({ name: text, mountPath: text, "readOnly?": flag })),
});

function choiceList(only: string): Shape {
  return list(choice(only));
}

const pod = members({
  automountServiceAccountToken: choice(false),
  enableServiceLinks: choice(false),
  terminationGracePeriodSeconds: count,
  securityContext: members({
    runAsNonRoot: choice(true),
    runAsUser: count,
    runAsGroup: count,
    fsGroup: count,
    fsGroupChangePolicy: choice("OnRootMismatch", "Always"),
    seccompProfile: members({ type: choice("RuntimeDefault") }),
  }),
  affinity: members({
    podAntiAffinity: members({
      "preferredDuringSchedulingIgnoredDuringExecution?": list(
        members({ weight: count, podAffinityTerm: apart }),
      ),
      "requiredDuringSchedulingIgnoredDuringExecution?": list(apart),
    }),
  }),
  topologySpreadConstraints: list(
    members({
      maxSkew: count,
      topologyKey: text,
      whenUnsatisfiable: choice("ScheduleAnyway", "DoNotSchedule"),
      labelSelector: selector,
    }),
  ),
  containers: list(container),
  volumes: list(members({ name: text, secret: members({ secretName: text, defaultMode: count }) })),
});

const statefulSet = object("apps/v1", "StatefulSet", {
  spec: members({
    serviceName: text,
    replicas: count,
    podManagementPolicy: choice("Parallel"),
    minReadySeconds: count,
    updateStrategy: members({
      type: choice("RollingUpdate"),
      rollingUpdate: members({ partition: count }),
    }),
    persistentVolumeClaimRetentionPolicy: members({
      whenDeleted: choice("Retain"),
      whenScaled: choice("Retain"),
    }),
    selector,
    template: members({ metadata: members({ labels }), spec: pod }),
    volumeClaimTemplates: list(
      members({
        metadata: members({ name: text }),
        spec: members({
          accessModes: choiceList("ReadWriteOnce"),
          resources: members({ requests: members({ storage: amount }) }),
        }),
      }),
    ),
  }),
});

const service = object("v1", "Service", {
  spec: members({
    "type?": choice("ClusterIP"),
    "clusterIP?": choice("None"),
    "publishNotReadyAddresses?": flag,
    selector: labels,
    ports: list(members({ name: text, port: count, targetPort: nameOrNumber })),
  }),
});

const budget = object("policy/v1", "PodDisruptionBudget", {
  spec: members({
    maxUnavailable: count,
    unhealthyPodEvictionPolicy: choice("AlwaysAllow", "IfHealthyBudget"),
    selector,
  }),
});

const emptyOr =
  (shape: Shape): Shape =>
  (value, path, faults) => {
    if (!isMap(value) || Object.keys(value).length > 0) shape(value, path, faults);
  };
const peers = list(
  members({ "podSelector?": emptyOr(selector), "namespaceSelector?": emptyOr(selector) }),
);
const policyPorts = list(members({ protocol: choice("TCP", "UDP"), port: nameOrNumber }));
const policy = object("networking.k8s.io/v1", "NetworkPolicy", {
  spec: members({
    podSelector: selector,
    policyTypes: list(choice("Ingress", "Egress")),
    "ingress?": list(members({ from: peers, ports: policyPorts })),
    "egress?": list(members({ to: peers, ports: policyPorts })),
  }),
});

const certificate = object("cert-manager.io/v1", "Certificate", {
  spec: members({
    secretName: text,
    duration: text,
    renewBefore: text,
    privateKey: members({ algorithm: choice("ECDSA"), rotationPolicy: choice("Always") }),
    dnsNames: list(text),
    usages: list(choice("server auth", "client auth")),
    issuerRef: members({ kind: choice("Issuer", "ClusterIssuer"), name: text }),
  }),
});

const monitor = object("monitoring.coreos.com/v1", "ServiceMonitor", {
  spec: members({
    jobLabel: text,
    selector,
    endpoints: list(
      members({
        port: text,
        path: text,
        interval: text,
        authorization: members({
          type: choice("Bearer"),
          credentials: members({ name: text, key: text }),
        }),
      }),
    ),
  }),
});

const KINDS: Readonly<Record<string, Shape>> = {
  StatefulSet: statefulSet,
  Service: service,
  PodDisruptionBudget: budget,
  NetworkPolicy: policy,
  Certificate: certificate,
  ServiceMonitor: monitor,
};

/** What is wrong with an object. Alert rules are promtool's business. */
export function faultsOf(value: Yaml): readonly string[] {
  const kind = isMap(value) ? value["kind"] : null;
  if (kind === "PrometheusRule") return [];
  const shape = KINDS[String(kind)];
  if (shape === undefined) return [`${JSON.stringify(kind)}: no kind that is known here`];
  const faults: string[] = [];
  shape(value, String(kind), faults);
  return faults;
}
