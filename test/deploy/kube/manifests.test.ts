/** The Kubernetes manifests: every member is known, the decisions stand, names fit. */
import t from "tap";
import { readFlags } from "../../../src/server/flags/flags.js";
import { readText } from "../../tidy/sources.js";
import { at, baseObjects, baseTexts, objectOf, rendered } from "./manifests.js";
import { faultsOf } from "./shapes.js";
import { type Yaml, type YamlMap, readYaml } from "./yaml.js";

const objects = baseObjects();
const set = objectOf(objects, "StatefulSet", "svc");
const podSpec = at(set, "spec", "template", "spec");
const container = at(podSpec, "containers", 0) as YamlMap;

t.test("every member of every object is known, and of its kind", (t) => {
  for (const object of objects) t.same(faultsOf(object), []);
  t.equal(objects.length, 6);
  t.end();
});

t.test("a member that is not known, of another kind or missing is refused", (t) => {
  const [text = ""] = baseTexts();
  const changed = (from: string | RegExp, to: string): readonly string[] => {
    const other = text.replace(from, to);
    t.not(other, text);
    return readYaml(other).flatMap((each) => faultsOf(each));
  };
  t.match(changed("failureThreshold: 12", "failureTreshold: 12"), [/failureTreshold: not known/]);
  t.match(changed("replicas: 3", 'replicas: "3"'), [/replicas: a number is wanted/]);
  t.match(changed("podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady"), [
    /not played/,
  ]);
  t.match(changed(/ {6}enableServiceLinks: false\n/, ""), [/enableServiceLinks: is missing/]);
  t.match(changed("defaultMode: 0440", "defaultMode: 0440\n            items: []"), [
    /items: not known/,
  ]);
  t.throws(() => readYaml("a: &x 1"), /not read here/);
  t.throws(() => readYaml("a: 1\na: 2"), /twice/);
  t.same(faultsOf({ kind: "Ingress" }), ['"Ingress": no kind that is known here']);
  t.end();
});

t.test("its environment is one that the server takes", (t) => {
  const variables: Record<string, string> = {};
  for (const each of at(container, "env") as readonly YamlMap[]) {
    const name = String(each["name"]);
    if (name.startsWith("SVC_")) variables[name] = String(each["value"]);
  }
  const read = readFlags([], variables);
  t.ok(read.ok, read.ok ? "" : read.message);
  const founders = String(variables["SVC_INITIAL_CLUSTER"]).split(",");
  t.equal(founders.length, at(set, "spec", "replicas"));
  for (const [ordinal, founder] of founders.entries()) {
    t.ok(founder.startsWith(`${ordinal + 1}=svc-${ordinal}.svc-peers.`), founder);
  }
  t.end();
});

t.test("what refers to something refers to what is there", (t) => {
  const ports = new Set((at(container, "ports") as readonly YamlMap[]).map((port) => port["name"]));
  for (const object of objects as readonly YamlMap[]) {
    if (object["kind"] !== "Service") continue;
    for (const { targetPort } of at(object, "spec", "ports") as readonly YamlMap[]) {
      t.ok(ports.has(targetPort as Yaml), String(targetPort));
    }
    t.same(at(object, "spec", "selector"), at(set, "spec", "selector", "matchLabels"));
  }
  t.ok(objectOf(objects, "Service", String(at(set, "spec", "serviceName"))));
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    t.equal(at(container, probe, "httpGet", "port"), "health");
  }
  const volumes = [
    ...(at(podSpec, "volumes") as readonly YamlMap[]).map((volume) => volume["name"]),
    ...(at(set, "spec", "volumeClaimTemplates") as readonly YamlMap[]).map((claim) =>
      at(claim, "metadata", "name"),
    ),
  ].sort();
  const mounts = (at(container, "volumeMounts") as readonly YamlMap[]).map(
    (mount) => mount["name"],
  );
  t.same([...mounts].sort(), volumes);
  t.same(
    at(set, "spec", "template", "metadata", "labels"),
    at(set, "spec", "selector", "matchLabels"),
  );
  t.end();
});

t.test("liveness asks for the process alone, and a stop has the time that it takes", (t) => {
  t.equal(at(container, "livenessProbe", "httpGet", "path"), "/livez");
  t.equal(at(container, "startupProbe", "httpGet", "path"), "/livez");
  t.equal(at(container, "readinessProbe", "httpGet", "path"), "/readyz");
  t.notOk("lifecycle" in container, "no hook: a stop is never a leave");
  const grace = Number(at(podSpec, "terminationGracePeriodSeconds"));
  t.ok(grace >= 2 * (5 + 10 + 5.5), "twice delay, shutdown timeout and the end of a hung disk");
  t.end();
});

t.test("the overlays render, and every member of them is known", (t) => {
  const production = rendered("overlays/production");
  const monitoring = rendered("overlays/monitoring");
  if (production === null || monitoring === null) {
    t.pass("skipped: kubectl is not installed");
    return t.end();
  }
  const made = readYaml(production);
  for (const object of made) t.same(faultsOf(object), []);
  const spread = at(objectOf(made, "StatefulSet", "svc"), "spec", "template", "spec", "affinity");
  t.same(Object.keys(at(spread, "podAntiAffinity") as YamlMap), [
    "requiredDuringSchedulingIgnoredDuringExecution",
  ]);
  const base = rendered("base");
  t.same(
    sorted(readYaml(base ?? "")),
    sorted(objects),
    "our own reading of the base is kustomize's",
  );
  const [rules, ...others] = monitoring
    .split(/^---$/m)
    .sort((a) => (/PrometheusRule/.test(a) ? -1 : 1));
  t.match(rules, /SvcNoQuorum/);
  for (const text of others) for (const object of readYaml(text)) t.same(faultsOf(object), []);
  t.match(readText("scripts/deploy/kubernetes/overlays/monitoring/scrape.yaml"), /svc-job: svc/);
  t.end();
});

function sorted(all: readonly Yaml[]): readonly string[] {
  const text = (value: Yaml): string => {
    if (Array.isArray(value)) return `[${(value as readonly Yaml[]).map(text).join()}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const entries = Object.entries(value as YamlMap).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, own]) => `${key}:${text(own)}`).join()}}`;
  };
  return all.map(text).sort();
}
