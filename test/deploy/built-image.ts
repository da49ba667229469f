/**
 * The image, built and run on this machine (`npm run deploy-check`): bases made of Debian packages and this machine's Node, no
 * registry; then nobody's user, a read-only root, no capability, no new privileges, bounded memory, a stop in time.
 *
 * Then once more by podman without root, as a user of this machine that `SVC_ROOTLESS_USER` names: one with subordinate ids (`useradd` gives
 * them); nobody is made for it. Memory is not bounded there: control groups of version 1 are root's.
 *
 * Owns its folder with all storage of containers in it. `SVC_IMAGE_BASE`: a root file system (tar) with g++, make and python3
 * that saves making one. `SVC_IMAGE_RUNTIME`: another runtime than runc. Packages come from npm's cache on this machine where it
 * has them: to fetch 600 of them takes longer than all else.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { root } from "../tidy/sources.js";

const PROGRAMS = ["buildah", "podman", "mmdebstrap", "runc"];
const PACKAGES = "ca-certificates,g++,make,python3";
const UID = 65532;
const TAG = "localhost/svc:check";
const MEMORY_MIB = 512;
/** Where npm's cache is while the image is built. */
const CACHE = "/var/cache/npm";

t.setTimeout(5_400_000);
const missing = PROGRAMS.filter((name) => spawnSync(name, ["--version"]).error !== undefined);
const folder = mkdtempSync(join(tmpdir(), "svc-image-"));
const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")];
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, ...words: readonly string[]): Ended {
  return spawnSync(program, words, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
}

function done(program: string, ...words: readonly string[]): string {
  const { status, stdout, stderr } = run(program, ...words);
  if (status !== 0)
    throw new Error(`${program} ${words.join(" ")}\n${stdout}\n${stderr}`.slice(-8000));
  return stdout.trim();
}

/** Layers over one another where the kernel lets it be; else each is copied whole, which takes most of the time. */
function storageDriver(): string {
  const words = [...storage, "--storage-driver", "overlay"];
  const { status, stdout } = run("buildah", ...words, "from", "scratch");
  if (status === 0 && run("buildah", ...words, "rm", stdout.trim()).status === 0) return "overlay";
  return "vfs";
}

const driver = ["--storage-driver", missing.length === 0 ? storageDriver() : "vfs"];
const buildah = (...words: readonly string[]): string =>
  done("buildah", ...storage, ...driver, ...words);
const runtime = process.env["SVC_IMAGE_RUNTIME"] ?? "runc";
const podmanRaw = (...words: readonly string[]): Ended =>
  run(
    "podman",
    ...storage,
    ...driver,
    "--runtime",
    runtime,
    "--cgroup-manager",
    "cgroupfs",
    ...words,
  );

function podman(...words: readonly string[]): string {
  const { status, stdout, stderr } = podmanRaw(...words);
  if (status !== 0) throw new Error(`podman ${words.join(" ")}\n${stdout}\n${stderr}`.slice(-8000));
  return stdout.trim();
}

const seconds = (): number => Math.round(performance.now() / 1000);
const npmSetting = (name: string): string => run("npm", "config", "get", name).stdout.trim();

/** A base with this machine's Node, its npm and its headers where the official images have them. */
function makeBase(name: string): void {
  let files = process.env["SVC_IMAGE_BASE"] ?? "";
  if (files === "") {
    files = join(folder, "base.tar");
    done("mmdebstrap", "--variant=minbase", `--include=${PACKAGES}`, "bookworm", files);
  }
  const prefix = dirname(dirname(process.execPath));
  const container = buildah("from", "scratch");
  buildah("add", "--quiet", container, files, "/");
  buildah("copy", "--quiet", container, process.execPath, "/usr/local/bin/node");
  for (const [from, to] of [
    ["lib/node_modules/npm", "/usr/local/lib/node_modules/npm"],
    ["include/node", "/usr/local/include/node"],
  ] as const) {
    buildah("copy", "--quiet", container, join(prefix, from), to);
  }
  const settings = [`cache=${CACHE}`, "prefer-offline=true"];
  const authorities = npmSetting("cafile");
  if (existsSync(authorities)) {
    buildah("copy", "--quiet", container, authorities, "/usr/local/etc/authorities.pem");
    settings.push("cafile=/usr/local/etc/authorities.pem");
  }
  writeFileSync(join(folder, "npmrc"), `${settings.join("\n")}\n`);
  buildah("copy", "--quiet", container, join(folder, "npmrc"), "/usr/local/etc/npmrc");
  const npm = "../lib/node_modules/npm/bin/npm-cli.js";
  const link = ["ln", "-s", npm, "/usr/local/bin/npm"];
  buildah("run", "--isolation", "chroot", container, "--", ...link);
  buildah("commit", "--quiet", "--disable-compression", "--rm", container, name);
}

/** As the README has it run; `--network host`, so that no network has to be made. */
const HARD = [
  "--network=host",
  "--read-only",
  "--read-only-tmpfs=false",
  "--cap-drop=ALL",
  "--security-opt=no-new-privileges",
  `--memory=${MEMORY_MIB}m`,
  "--ulimit=nofile=4096:4096",
  "--ulimit=nproc=4096:4096",
  "--init=false",
];
const NODE = ["--peer-port=off", "--grpc-port=0", "--https-port=off", "--health-port=0"];

async function until<T>(what: string, seen: () => T | null): Promise<T> {
  const endMs = performance.now() + 120_000;
  for (;;) {
    const value = seen();
    if (value !== null) return value;
    if (performance.now() > endMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function statusOf(name: string): Record<string, string> {
  const lines = podman("exec", name, "cat", "/proc/1/status").split("\n");
  const pairs = lines.map((line) => line.split(":\t", 2) as [string, string]);
  return Object.fromEntries(pairs.map(([key, value]) => [key, value.trim()]));
}

t.test("the image is built, and runs as nobody in a read-only root", async (t) => {
  if (missing.length > 0) return t.pass(`skipped: ${missing.join(", ")} not installed`);
  const script = pathToFileURL(join(root, "scripts", "image.mjs")).href;
  const { buildWords, labels } = (await import(script)) as {
    buildWords(builder: string, tag: string, more: readonly string[]): string[];
    labels(): Readonly<Record<string, string>>;
  };
  const bases = ["BUILD_BASE", "RUN_BASE"].flatMap((name) => [
    "--build-arg",
    `${name}=localhost/base:check`,
  ]);
  const cache = npmSetting("cache");
  const mounted = existsSync(cache) ? ["--volume", `${cache}:${CACHE}`] : [];
  // Staged before all else: whoever works on the sources meanwhile does not change what is built.
  const { VERSION, REVISION, LEVELS } = labels();
  const words = buildWords("buildah", TAG, ["--isolation", "chroot", ...mounted, ...bases]);
  makeBase("localhost/base:check");
  t.comment(`the base is made, ${seconds()} s`);
  buildah(...words);
  t.comment(`the image is built, ${seconds()} s`);
  const [inspected] = JSON.parse(podman("image", "inspect", TAG)) as [
    { readonly Labels: Record<string, string>; readonly Size: number; readonly User: string },
  ];
  t.match(inspected, {
    User: `${UID}:${UID}`,
    Labels: {
      "org.opencontainers.image.version": VERSION,
      "org.opencontainers.image.revision": REVISION,
      "svc.levels": LEVELS,
    },
  });
  const version = podmanRaw("run", "--rm", ...HARD, TAG, "--version");
  t.equal(version.stdout.trim(), `svc-server ${VERSION}`, version.stderr);
  const volume = ["--volume", "svc-check:/var/lib/svc"];
  podman("run", "--detach", "--name", "one", ...HARD, ...volume, TAG, ...NODE);
  const logs = (): string => podmanRaw("logs", "one").stdout;
  const listening = await until("it listens", () =>
    /listening grpc=(\S+) .* health=(\S+)/.exec(logs()),
  );
  const [, grpc = "", health = ""] = listening;
  const status = statusOf("one");
  t.match(status, { Uid: new RegExp(`^${UID}\\t${UID}`), Gid: new RegExp(`^${UID}`) });
  t.match(status, { CapEff: /^0+$/, CapPrm: /^0+$/, NoNewPrivs: "1", Name: /^node/ });
  const exec = (...words: string[]): Ended => podmanRaw("exec", "one", ...words);
  t.not(exec("touch", "/opt/svc/x").status, 0, "the root is read only");
  const probe = ["node", "/opt/svc/dist/bin/svc-server.js", "--probe"];
  t.equal(exec(...probe, `http://${health}/livez`).status, 0);
  await until("it is ready", () =>
    exec(...probe, `http://${health}/readyz`).status === 0 ? true : null,
  );
  const cli = ["svc-cli", "-c", grpc];
  t.match(exec(...cli, "--set", "k", "--value", "v").stdout, /^r0 set/);
  const beganMs = performance.now();
  podman("stop", "--time", "45", "one");
  const stopMs = performance.now() - beganMs;
  t.ok(stopMs < 44_000, "it was not killed");
  const ended = podman("inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", "one");
  t.equal(ended, "0 false");
  podman("start", "one");
  const again = await until("it listens again", () => {
    const found = [...logs().matchAll(/listening grpc=(\S+) /g)];
    return found.length < 2 ? null : (found[1]?.[1] ?? "");
  });
  const kept = await until("what was written is there", () => {
    const { status: exit, stdout } = exec("svc-cli", "-c", again, "--get", "k");
    return exit === 0 ? stdout : null;
  });
  t.match(kept, /^r0 get v/);
  podman("rm", "--force", "--time", "20", "one");
  const mib = Math.round(inspected.Size / 1024 / 1024);
  t.comment(`${mib} MiB with a base of its own; stopped in ${(stopMs / 1000).toFixed(2)} s`);
});

/** A user that can be root of a user namespace, by the files of subordinate ids; "" where none is named. */
function rootlessUser(): { readonly name: string; readonly why: string } {
  const name = process.env["SVC_ROOTLESS_USER"] ?? "";
  if (name === "") return { name, why: "SVC_ROOTLESS_USER names no user" };
  for (const file of ["/etc/subuid", "/etc/subgid"]) {
    const isListed = existsSync(file) && readFileSync(file, "utf8").includes(`${name}:`);
    if (!isListed) return { name: "", why: `${file} has no ids for ${name}` };
  }
  const wanted = ["runuser", "newuidmap"];
  const absent = wanted.filter((program) => run("sh", "-c", `command -v ${program}`).status !== 0);
  return absent.length === 0 ? { name, why: "" } : { name: "", why: `no ${absent.join(", ")}` };
}

t.test("the same image runs where nobody is root", async (t) => {
  const { name: user, why } = rootlessUser();
  if (missing.length > 0 || user === "") return t.pass(`skipped: ${why || "no programs"}`);
  const own = join(folder, "rootless");
  mkdirSync(own);
  chmodSync(folder, 0o755);
  done("chown", user, own);
  const archive = join(folder, "image.tar");
  podman("save", "--format", "oci-archive", "--output", archive, TAG);
  chmodSync(archive, 0o644);
  const settings = ["--root", join(own, "storage"), "--runroot", join(own, "run")];
  const raw = (...words: readonly string[]): Ended =>
    run(
      ...(["runuser", "-u", user, "--", "env", `XDG_RUNTIME_DIR=${own}`, `HOME=${own}`] as const),
      ...["podman", ...settings, ...driver, "--runtime", runtime, "--cgroup-manager", "cgroupfs"],
      ...words,
    );
  const asUser = (...words: readonly string[]): string => {
    const { status, stdout, stderr } = raw(...words);
    if (status !== 0)
      throw new Error(`podman ${words.join(" ")}\n${stdout}\n${stderr}`.slice(-8000));
    return stdout.trim();
  };
  asUser("load", "--input", archive);
  const unbound = HARD.filter((word) => !word.startsWith("--memory="));
  asUser(
    "run",
    "--detach",
    "--name",
    "two",
    ...unbound,
    "--volume=data:/var/lib/svc",
    TAG,
    ...NODE,
  );
  const listening = await until("it listens", () =>
    /listening grpc=(\S+) .* health=(\S+)/.exec(raw("logs", "two").stdout),
  );
  const [, grpc = ""] = listening;
  const pid = asUser("inspect", "--format", "{{.State.Pid}}", "two");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  t.match(status, /^CapEff:\t0+$/m);
  t.match(status, /^NoNewPrivs:\t1$/m);
  const [, outside = "0"] = /^Uid:\t(\d+)/m.exec(status) ?? [];
  t.ok(Number(outside) > UID, `its user ${UID} is ${outside} here: nobody`);
  const exec = (...words: string[]): Ended => raw("exec", "two", ...words);
  await until("it serves", () => {
    const { stdout } = exec("svc-cli", "-c", grpc, "--set", "k", "--value", "v");
    return stdout.startsWith("r0 set") ? true : null;
  });
  asUser("stop", "--time", "45", "two");
  t.equal(asUser("inspect", "--format", "{{.State.ExitCode}}", "two"), "0");
  asUser("rm", "two");
});
