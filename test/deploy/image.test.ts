/**
 * The image and the compose file, as far as they can be read: they, the manifests, the flags and the package say the same. That
 * the image can be built and run is for `npm run deploy-check` (built-image.ts).
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { FLAGS } from "../../src/server/flags/flag-table.js";
import { readFlags } from "../../src/server/flags/flags.js";
import { readText, root } from "../tidy/sources.js";
import { at, baseObjects, objectOf } from "./kube/manifests.js";
import { readYaml, type YamlMap } from "./kube/yaml.js";

const UID = 65532;
const PORTS = [8082, 8083, 8084, 8085];
/** Delay and timeout of a stop, and what a hung disk takes on top (s). */
const STOP_S = 5 + 10 + 5.5;

const compose = readYaml(readText("scripts/deploy/compose/compose.yaml"))[0] as YamlMap;
const services = Object.entries(compose["services"] as YamlMap) as [string, YamlMap][];
const podSpec = at(
  objectOf(baseObjects(), "StatefulSet", "svc"),
  "spec",
  "template",
  "spec",
) as YamlMap;
const container = at(podSpec, "containers", 0) as YamlMap;
const { version } = JSON.parse(readText("package.json")) as { readonly version: string };

interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** The instructions of a Containerfile, continued lines joined. */
function instructionsOf(text: string): Instruction[] {
  const lines = text.replace(/\\\n\s*/g, "").split("\n");
  return lines
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      return { name, text: rest };
    });
}

const all = instructionsOf(readText("scripts/deploy/image/Containerfile"));
const second = all.map(({ name }) => name).lastIndexOf("FROM");
/** Of the image itself: the stage before it is thrown away. */
const own = all.slice(second);
const textsOf = (name: string, from = own): string[] =>
  from.filter((one) => one.name === name).map(({ text }) => text);
const wordsOf = (text: string | undefined): string[] => JSON.parse(text ?? "[]") as string[];

/** Where in the repository's build a path of the image comes from. */
function isBuilt(path: string): boolean {
  return path.startsWith("/opt/svc/") && existsSync(join(root, path.slice("/opt/svc/".length)));
}

t.test(
  "the image: nobody's user, no shell, programs that are there, probes of its listener",
  (t) => {
    t.same(textsOf("USER"), [`${UID}:${UID}`]);
    const [entry = ""] = textsOf("ENTRYPOINT");
    t.same(wordsOf(entry).slice(0, 2), ["node", "--enable-source-maps"]);
    t.ok(isBuilt(wordsOf(entry)[2] ?? ""), entry);
    t.same(textsOf("EXPOSE"), [PORTS.join(" ")]);
    t.same(textsOf("VOLUME").map(wordsOf), [["/var/lib/svc"]]);
    for (const text of textsOf("RUN", all)) t.type(wordsOf(text), Array, "without a shell");
    const [check = ""] = textsOf("HEALTHCHECK");
    const probe = wordsOf(check.slice(check.indexOf("[")));
    t.ok(isBuilt(probe[1] ?? ""), check);
    t.same(probe.slice(2), ["--probe", "http://127.0.0.1:8085/livez"]);
    const links = textsOf("RUN")
      .map(wordsOf)
      .filter(([program]) => program === "ln");
    for (const [, , from = ""] of links) t.ok(isBuilt(from), from);
    t.equal(links.length, 1, "svc-cli has a name");
    const settings = (textsOf("ENV")[0] ?? "").split(" ").map((pair) => pair.split("="));
    const read = readFlags([], Object.fromEntries(settings) as Record<string, string>);
    t.ok(read.ok, read.ok ? "" : read.message);
    const variables = new Set<string | null>(FLAGS.map(({ variable }) => variable));
    t.same(
      settings.filter(([name = ""]) => !variables.has(name)),
      [],
    );
    const copied = textsOf("COPY", all).filter((text) => !text.startsWith("--from=build"));
    t.same(copied, [". ."], "all comes from what image.mjs staged");
    t.end();
  },
);

t.test("what is staged is in the repository, and enough to build", async (t) => {
  const script = join(root, "scripts", "image.mjs");
  const { imageFiles, labels } = (await import(script)) as {
    imageFiles(): string[];
    labels(): Record<string, string>;
  };
  if (!existsSync(join(root, ".git"))) return t.pass("skipped: no repository");
  const files = imageFiles();
  for (const path of ["package.json", "package-lock.json", "LICENSE", "src/server/main.ts"]) {
    t.ok(files.includes(path), path);
  }
  t.notOk(files.some((path) => /^(?:test|perf|docs|dist|node_modules)\/|deploy\//.test(path)));
  for (const folder of ["scripts", "asm", "proto"]) {
    t.ok(
      files.some((path) => path.startsWith(`${folder}/`)),
      folder,
    );
  }
  t.match(labels(), { VERSION: version, REVISION: /^[0-9a-f]{40}/, LEVELS: /^\d+-\d+$/ });
  for (const name of Object.keys(labels())) {
    t.ok(textsOf("ARG").includes(`${name}=unknown`), `${name} is a build argument`);
  }
});

const SERVICE_MEMBERS = [
  "cap_drop",
  "environment",
  "healthcheck",
  "hostname",
  "image",
  "init",
  "mem_limit",
  "ports",
  "read_only",
  "restart",
  "security_opt",
  "stop_grace_period",
  "stop_signal",
  "user",
  "volumes",
];

t.test(
  "compose: three nodes that differ in their names only, as bound as in the manifests",
  (t) => {
    t.same(Object.keys(compose).sort(), ["name", "services", "volumes"]);
    t.same(
      services.map(([name]) => name),
      ["svc-1", "svc-2", "svc-3"],
    );
    const texts = services.map(([name, service]) => {
      t.same(Object.keys(service).sort(), SERVICE_MEMBERS, name);
      return JSON.stringify(service).replaceAll(name.slice(4), "N");
    });
    const numbers = services.map(([name]) => name.slice(4));
    const blurred = texts.map((text) => numbers.reduce((one, n) => one.replaceAll(n, "N"), text));
    t.equal(new Set(blurred).size, 1);
    for (const [name, service] of services) {
      const n = name.slice(4);
      t.match(service, {
        image: `svc:${version}`,
        user: `${UID}:${UID}`,
        read_only: true,
        init: false,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
        stop_signal: "SIGTERM",
        volumes: [`data-${n}:/var/lib/svc`, "./secrets:/run/secrets/svc:ro"],
      });
      const grace = Number.parseInt(String(service["stop_grace_period"]), 10);
      t.ok(grace >= 2 * STOP_S, "twice what a stop may take");
      t.equal(grace, podSpec["terminationGracePeriodSeconds"]);
    }
    t.same(Object.keys(compose["volumes"] as YamlMap), ["data-1", "data-2", "data-3"]);
    t.equal(container["image"], `svc:${version}`);
    t.match(podSpec["securityContext"], { runAsUser: UID, runAsGroup: UID, fsGroup: UID });
    t.same(
      (container["ports"] as readonly YamlMap[]).map((port) => port["containerPort"]),
      PORTS,
    );
    t.end();
  },
);

t.test("compose: its environment is one that the server takes; ports and probes fit it", (t) => {
  for (const [name, service] of services) {
    const environment = service["environment"] as Record<string, string>;
    const read = readFlags([], environment);
    t.ok(read.ok, read.ok ? "" : read.message);
    for (const variable of Object.keys(environment)) {
      t.ok(
        FLAGS.some((flag) => flag.variable === variable),
        variable,
      );
    }
    const founders = String(environment["SVC_INITIAL_CLUSTER"]).split(",");
    t.same(
      founders,
      services.map(([other]) => `${other.slice(4)}=${other}:8084`),
    );
    t.equal(environment["SVC_ADVERTISED_PEER_ENDPOINT"], `${name}:8084`);
    t.equal(environment["SVC_RAFT_NODEID"], name.slice(4));
    const health = service["healthcheck"] as YamlMap;
    const [kind, , program = "", ...probe] = health["test"] as readonly string[];
    t.equal(kind, "CMD");
    t.ok(isBuilt(program), program);
    t.same(probe, ["--probe", `http://127.0.0.1:${environment["SVC_HEALTH_PORT"]}/livez`]);
    const inner = (service["ports"] as readonly string[]).map((text) => {
      t.match(text, /^127\.0\.0\.1:/, "on this machine only");
      return Number(text.split(":").at(-1));
    });
    t.same(inner, [8082, 8085]);
  }
  t.end();
});

t.test("the README names what there is", (t) => {
  const text = readText("scripts/deploy/README.md");
  for (const path of ["image", "compose"]) t.match(text, `](${path})`);
  const files = Object.values(services[0]?.[1]["environment"] as Record<string, string>)
    .filter((value) => value.startsWith("/run/secrets/svc/"))
    .map((value) => value.slice("/run/secrets/svc/".length));
  t.equal(files.length, 6);
  for (const file of files) t.ok(text.includes(file), `${file} is told of`);
  t.end();
});
