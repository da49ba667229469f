/**
 * The packages as programs get them: packed, installed into empty projects, compiled against and bundled. Needs the
 * packages that they depend on, from npm's cache or a registry; where neither gives them, the rest is skipped and says so.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { temporaryDirectory } from "../cluster/server-process.js";
import { root } from "../../tidy/sources.js";

t.setTimeout(600_000);
const directory = temporaryDirectory();
t.teardown(() => directory.remove());
const VERSION = (
  JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }
).version;

interface Ended {
  readonly status: number | null;
  readonly output: string;
}

function run(command: string, words: readonly string[], cwd: string): Ended {
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd,
    encoding: "utf8",
    timeout: 240_000,
  });
  return { status, output: stdout + stderr };
}

const packed = join(directory.path, "packed");
const packing = run(process.execPath, [join(root, "scripts", "pack.mjs"), packed], root);
const tarball = (name: string): string => join(packed, `${name}-${VERSION}.tgz`);

/** An empty project with this package in it; null: the packages that it needs cannot be had. */
function installed(name: string, manifest: object): { folder: string; output: string } | null {
  const folder = join(directory.path, `project-${name}`);
  mkdirSync(folder);
  const base = { name: "project", version: "1.0.0", type: "module", ...manifest };
  writeFileSync(join(folder, "package.json"), JSON.stringify(base));
  const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--engine-strict"];
  // Native parts are compiled by node-gyp alone: that is not what is tested here.
  const bounded = ["--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=20000"];
  const { status, output } = run("npm", ["install", ...quiet, ...bounded, tarball(name)], folder);
  if (status === 0) return { folder, output };
  if (!/ENOTCACHED|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|network/i.test(output)) {
    throw new Error(output);
  }
  return null;
}

const UNAVAILABLE = "its packages are neither in npm's cache nor to be had from a registry";

t.test("both packages are packed with their code", (t) => {
  t.equal(packing.status, 0, packing.output);
  for (const [name, wanted] of [
    [
      "svc",
      [
        "dist/bin/svc-server.js",
        "dist/bin/svc-cli.js",
        "dist/console/files.json",
        "dist/console/index.html.br",
        "dist/types/client/mod.d.ts",
      ],
    ],
    ["svc-client", ["index.js", "types/client/mod.d.ts", "LICENSE", "README.md", "docs/client.md"]],
  ] as const) {
    const { output } = run("tar", ["tzf", tarball(name)], packed);
    for (const file of wanted) t.ok(output.includes(`package/${file}\n`), `${name}: ${file}`);
  }
  t.end();
});

t.test("npm pack of a clone builds first", (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  t.equal(scripts["prepack"], "npm run build");
  t.end();
});

const PROGRAM = `import { SvcClient, SvcError } from "svc-client";
const client = new SvcClient({ endpoints: "127.0.0.1:1", failWhenRefused: true });
for (const transport of ["grpc", "rest"]) {
  const client = new SvcClient({ endpoints: "127.0.0.1:1", transport, failWhenRefused: true });
  const error = await client.kv.get("a").catch((error) => error);
  console.log(transport, error instanceof SvcError, error.code);
  await client.close();
}
await client.close();
`;
const SAYS = "grpc true unreachable\nrest true unreachable\n";
const BANNER =
  'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

t.test("svc-client: runs, compiles and bundles in a project of its own", (t) => {
  const project = installed("svc-client", {});
  if (project === null) {
    t.pass("installed", { skip: UNAVAILABLE });
    return t.end();
  }
  const { folder } = project;
  const names = readdirSync(join(folder, "node_modules"));
  for (const name of ["node-lmdb", "fastify", "pino", "enquirer"])
    t.notOk(names.includes(name), name);
  writeFileSync(join(folder, "program.js"), PROGRAM);
  t.equal(run(process.execPath, ["program.js"], folder).output, SAYS);

  writeFileSync(
    join(folder, "program.ts"),
    `import { SvcClient, SvcError, type LockHandle, type KvEntry } from "svc-client";
     export async function main(): Promise<bigint> {
       await using client = new SvcClient({ endpoints: "127.0.0.1:1", token: async () => "t" });
       const entry: KvEntry | null = await client.kv.get("a");
       await using lock: LockHandle = await client.locks.acquire("r", { leaseMs: 1000 });
       for await (const { key } of client.kv.scan("a")) if (key === entry?.key) return lock.fencingToken;
       try { return await client.sequences.next("s", { signal: lock.signal }); }
       catch (error) { if (error instanceof SvcError && error.outcome === "none") return 0n; throw error; }
     }`,
  );
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  for (const [module, moduleResolution] of [
    ["ESNext", "Bundler"],
    ["Node16", "Node16"],
  ] as const) {
    const compilerOptions = {
      ...{ target: "ES2022", lib: ["ES2022", "DOM"], types: [], strict: true, noEmit: true },
      ...{ module, moduleResolution, skipLibCheck: false, exactOptionalPropertyTypes: true },
    };
    const project = { compilerOptions, files: ["program.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
    const compiled = run(process.execPath, [compiler, "-p", "."], folder);
    t.equal(
      compiled.status,
      0,
      `${moduleResolution} without the types of Node: ${compiled.output}`,
    );
  }

  const bundler = join(root, "node_modules", "esbuild", "bin", "esbuild");
  const common = [
    "program.js",
    "--bundle",
    "--platform=node",
    "--target=node20",
    "--log-level=error",
  ];
  const esm = [...common, "--format=esm", `--banner:js=${BANNER}`, "--outfile=bundle.mjs"];
  t.equal(run(bundler, esm, folder).status, 0);
  const alone = join(directory.path, "bundle.mjs");
  writeFileSync(alone, readFileSync(join(folder, "bundle.mjs")));
  t.equal(run(process.execPath, [alone], directory.path).output, SAYS, "an ES module, alone");
  t.end();
});

t.test("svc: the server, svc-cli and the client run from an installed package", (t) => {
  // For Node 20 and those who insist on engines: light-my-request asks for a cookie of Node 22.
  const project = installed("svc", { overrides: { cookie: "^1.1.1" } });
  if (project === null) {
    t.pass("installed", { skip: UNAVAILABLE });
    return t.end();
  }
  const { folder } = project;
  const bin = (name: string): string => join(folder, "node_modules", ".bin", name);
  t.equal(run(bin("svc-cli"), ["--version"], folder).output, `svc-cli ${VERSION}\n`);
  t.ok(existsSync(bin("svc-server")));
  // All but its native part, which was not compiled here and may have no build for this machine.
  const help = run(bin("svc-server"), ["--help"], folder).output;
  t.match(help, /--storage-path|node-lmdb.*(?:\.node|native)|No native build/s);
  writeFileSync(join(folder, "program.js"), PROGRAM.replace("svc-client", "svc"));
  t.equal(run(process.execPath, ["program.js"], folder).output, SAYS);
  t.end();
});
