/** The client library against a real node: both transports, exact numbers, batching, types, documentation. */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import {
  AccessError,
  AlreadyExistsError,
  BackupError,
  InvalidInputError,
  MaxValueExceededError,
  NotFoundError,
  SequenceMismatchError,
  SvcClient,
  SvcError,
  SvcRangeError,
  TooLargeError,
  toSafeNumber,
} from "../../../src/client/mod.js";
import { parseJson } from "../../../src/client/values/json.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { readText, root } from "../../tidy/sources.js";
import { failure } from "../../doubles/client/failure.js";
import { StandIn } from "../../doubles/server/stand-in.js";

const INT64_MAX = 9_223_372_036_854_775_807n;
const directory = temporaryDirectory();
const server = new ServerProcess([
  ...nodeFlags(directory.path).filter((flag) => !flag.startsWith("--https-port")),
  "--https-port=0",
]);
const { grpc, http, https } = await server.ready();

t.setTimeout(300_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** The same steps through one client; what they gave, without what must differ. */
async function steps(client: SvcClient, prefix: string): Promise<unknown[]> {
  const seen: unknown[] = [];
  const facts = (error: SvcError): unknown[] => [
    error.name,
    error.code,
    error.outcome,
    error.retryable,
  ];
  const name = `${prefix}-sequence`;
  const { createdAt, updatedAt, ...created } = await client.sequences.create(name, {
    initialValue: INT64_MAX - 10n,
    increment: 2,
    maxValue: INT64_MAX,
    blockSize: 1,
  });
  seen.push(createdAt.n, updatedAt.n, { ...created, name: "" });
  seen.push(await client.sequences.next(name));
  seen.push({ ...(await client.sequences.reserve(name, 3)), name: "" });
  seen.push(
    facts(await failure(client.sequences.next(name).then(() => client.sequences.next(name)))),
  );
  seen.push(facts(await failure(client.sequences.create(name))));
  seen.push(facts(await failure(client.sequences.next(`${name}-none`))));
  seen.push(await client.sequences.get(`${name}-none`));
  seen.push((await client.sequences.update(name, { maxValue: null, blockSize: null })).incarnation);
  seen.push(
    (await client.sequences.delete(name)).deleted,
    (await client.sequences.delete(name)).deleted,
  );
  const key = `${prefix}/ключ`;
  const plain = ({ applied, revision }: { applied: boolean; revision: bigint }): unknown[] => [
    applied,
    revision,
  ];
  seen.push(plain(await client.kv.set(key, "wert")));
  seen.push(plain(await client.kv.set(key, "x", { ifNotExists: true })));
  seen.push(plain(await client.kv.set(key, null, { ifRevision: 0 })));
  seen.push(plain(await client.kv.set(key, new Uint8Array([0, 255, 7]), { ifValue: null })));
  const entry = await client.kv.get(key);
  seen.push([...(entry?.value ?? [])], entry?.text, entry?.revision);
  seen.push((await client.kv.get(key, { revision: 0 }))?.text);
  seen.push((await client.kv.exists(key))?.revision, await client.kv.exists(`${key}-none`));
  seen.push(
    (await client.kv.extend(key, 60_000)).applied,
    (await client.kv.extend("none", 1)).applied,
  );
  const many = await client.kv.setMany([
    { key: `${prefix}/a`, value: "1" },
    { key: `${prefix}/b`, value: "" },
    { key: "", value: "" },
  ]);
  seen.push(many.map((one) => one.result?.applied ?? one.error?.code));
  const read = await client.kv.getMany([`${prefix}/a`, `${prefix}/b`, "none"]);
  seen.push(read.map((one) => one.result?.text ?? null));
  seen.push((await client.kv.existsMany([`${prefix}/a`])).map((one) => one.result?.revision));
  const scanned: string[] = [];
  for await (const item of client.kv.scan(`${prefix}/`, { limit: 1 }))
    scanned.push(item.key.slice(prefix.length));
  for await (const item of client.kv.range({ bucket: prefix, start: `${prefix}/b` }, { limit: 1 }))
    scanned.push(item.key.slice(prefix.length));
  seen.push(scanned, (await client.kv.bucket(prefix)).length);
  seen.push((await client.kv.delete(key)).deleted, (await client.kv.delete(key)).deleted);
  const owner = new Uint8Array([255, 0, 1]);
  const resource = `${prefix}-lock`;
  seen.push(await client.locks.tryLock(resource, { owner, leaseMs: 60_000 }));
  seen.push(await client.locks.tryLock(resource, { owner: "other", leaseMs: 60_000 }));
  seen.push(await client.locks.tryExtend(resource, { owner: "other", leaseMs: 60_000 }));
  seen.push(await client.locks.tryExtend(resource, { owner, leaseMs: 60_000 }));
  const info = await client.locks.info(resource);
  seen.push([...(info?.owner ?? [])], info?.ownerText, info?.fencingToken);
  seen.push(
    await client.locks.unlock(resource, { owner: "other" }),
    await client.locks.unlock(resource, { owner }),
  );
  seen.push(await client.locks.unlock(resource, { owner }), await client.locks.info(resource));
  const noted = { owner, leaseMs: 60_000, note: "n" };
  const { fencingToken } = await client.locks.tryLock(resource, noted);
  for await (const one of client.locks.list({ prefix: resource, limit: 1 }))
    seen.push({ ...one, expires: null, expiresInMs: one.expiresInMs > 50_000 });
  const step = { fencingToken, reason: "é" };
  seen.push({ ...(await client.locks.forceUnlock(resource, step)), auditId: null });
  seen.push(await client.locks.forceUnlock(resource, step));
  for await (const row of client.locks.audit({ prefix: resource, limit: 1 }))
    seen.push({ ...row, stamp: null, requestId: null, auditId: null, partitionId: null });
  for await (const one of client.locks.list({ prefix: resource, heldOnly: true })) seen.push(one);
  seen.push(
    (await client.locks.tryLock(resource, { owner, leaseMs: 1000, durability: "ephemeral" }))
      .acquired,
  );
  seen.push(await client.cluster.membership(), await client.cluster.placement(), {
    ...(await client.cluster.routing()),
    snapshotVersion: 0n,
  });
  seen.push(
    await client.cluster.setReplicationFactor(1, 3),
    await client.ranges.list(`${prefix}-none`),
  );
  seen.push(
    (await client.ranges.register(prefix)).status,
    await client.ranges.split(prefix, `${prefix}/m`),
  );
  seen.push(await client.ranges.merge(), (await client.ranges.unregister(prefix)).success);
  for (const call of [
    () => client.backups.full(),
    () => client.backups.list(),
    () => client.backups.incremental("6a0c7d1e-0000-4000-8000-000000000000"),
    () => client.backups.collectGarbage({ dryRun: true }),
    () => client.backups.restore("6a0c7d1e-0000-4000-8000-000000000000", "/tmp/never"),
  ]) {
    const error = await failure(call());
    seen.push(facts(error), error instanceof BackupError && error.backupOutcome);
  }
  seen.push((await client.cluster.leave()).outcome, (await client.health()).ready);
  return JSON.parse(
    JSON.stringify(seen, (_name, value: unknown) =>
      typeof value === "bigint" ? `${value}n` : value,
    ).replaceAll(prefix, ""),
  ) as unknown[];
}

t.test("REST and gRPC, plain and over TLS, give the same answers to the same steps", async (t) => {
  const clients = {
    grpc: new SvcClient({ endpoints: `http://${grpc}` }),
    rest: new SvcClient({ endpoints: http, transport: "rest" }),
    grpcTls: new SvcClient({ endpoints: `https://${https}`, tls: { insecure: true } }),
    restTls: new SvcClient({
      endpoints: `https://${https}`,
      transport: "rest",
      tls: { insecure: true },
    }),
  };
  const { generation } = await clients.grpc.cluster.setReplicationFactor(1, 3);
  // The partition is listed next, which is one more change of its record: what is compared must stand.
  const listed = async (): Promise<boolean> =>
    ((await clients.grpc.cluster.placement()).partitions[0]?.generation ?? 0n) > generation;
  while (!(await listed())) await sleep(20);
  const expected = await steps(clients.grpc, "eq-g");
  t.ok(expected.length > 60);
  t.same(await steps(clients.rest, "eq-r"), expected);
  t.same(await steps(clients.grpcTls, "eq-t"), expected);
  t.same(await steps(clients.restTls, "eq-u"), expected);
  for (const client of Object.values(clients)) await client.close();
  const strict = new SvcClient({ endpoints: `https://${https}`, deadlineMs: 300 });
  const refused = await failure(strict.kv.get("k"));
  t.equal(refused.outcome, "none", "an unverified server is never spoken to");
  await strict.close();
});

t.test("64-bit numbers: exact as bigint, refused as number", async (t) => {
  for (const transport of ["grpc", "rest"] as const) {
    const client = new SvcClient({ endpoints: transport === "grpc" ? grpc : http, transport });
    const name = `exact-${transport}`;
    await client.sequences.create(name, { initialValue: 2n ** 53n - 1n, blockSize: 1 });
    t.equal(await client.sequences.next(name), 2n ** 53n);
    const error = await failure(client.sequences.nextNumber(name));
    t.type(error, SvcRangeError);
    t.equal((error as SvcRangeError).value, 2n ** 53n + 1n, "the value is not lost");
    t.equal(error.outcome, "done");
    t.equal(
      (await failure(client.sequences.create("n", { initialValue: 2 ** 53 }))).code,
      "out-of-range",
    );
    t.equal(
      (await failure(client.sequences.create("n", { initialValue: 2n ** 63n }))).code,
      "out-of-range",
    );
    t.equal((await failure(client.sequences.reserve("n", 2 ** 31))).code, "out-of-range");
    await client.close();
  }
  t.throws(() => toSafeNumber(-(2n ** 53n)), SvcRangeError);
  t.equal(toSafeNumber(-5n), -5);
  t.same(
    parseJson('{"part":0.1234567890123456,"whole":-9223372036854775808}'),
    { part: 0.1234567890123456, whole: -9223372036854775808n },
    "a long fraction is no integer",
  );
  t.same(
    parseJson(
      '{"a":9223372036854775807,"b":"12345678901234567890","c":1.5,"d":[-9223372036854775808]}',
    ),
    {
      a: INT64_MAX,
      b: "12345678901234567890",
      c: 1.5,
      d: [-INT64_MAX - 1n],
    },
  );
});

t.test(
  "errors have their class, code and outcome; text that is no text never leaves",
  async (t) => {
    const client = new SvcClient({ endpoints: grpc });
    t.type(await failure(client.sequences.next("no such")), NotFoundError);
    await client.sequences.create("twice", { maxValue: 1 });
    t.type(await failure(client.sequences.create("twice")), AlreadyExistsError);
    t.type(await failure(client.sequences.reserve("twice", 2)), MaxValueExceededError);
    const mismatch = await failure(client.sequences.ensure("twice", { increment: 2, maxValue: 1 }));
    t.type(mismatch, SequenceMismatchError);
    t.equal((mismatch as SequenceMismatchError).differences.length, 1);
    t.equal((await client.sequences.ensure("twice", { maxValue: 1n })).maxValue, 1n);
    t.type(await failure(client.kv.set("\ud800", "x")), InvalidInputError);
    t.type(await failure(client.kv.set("__svc:x", "x")), InvalidInputError);
    t.type(await failure(client.kv.set("large", Buffer.alloc(3 * 1024 * 1024))), InvalidInputError);
    t.type(await failure(client.kv.set("large", Buffer.alloc(5 * 1024 * 1024))), TooLargeError);
    t.equal(
      (await client.kv.set("large", Buffer.alloc(1024 * 1024))).applied,
      true,
      "an item larger than a frame",
    );
    t.equal((await client.kv.get("large"))?.value?.length, 1024 * 1024);
    t.throws(() => new SvcClient({ endpoints: "ftp://x" }), InvalidInputError);
    t.throws(() => new SvcClient({ endpoints: [] }), InvalidInputError);
    await client.close();
    t.equal((await failure(client.kv.get("k"))).code, "client-closed");
  },
);

t.test(
  "calls of one turn travel in one frame; without frames or streams they still travel",
  async (t) => {
    let value = 0;
    const behave = () => ({ type: 0, value: ++value });
    for (const options of [{}, { frames: false }, { streams: false }]) {
      const node = await StandIn.open(behave, options);
      const client = new SvcClient({ endpoints: node.address, channels: 1 });
      await client.sequences.next("first");
      node.messages.length = 0;
      const values = await Promise.all(
        Array.from({ length: 600 }, () => client.sequences.next("s")),
      );
      t.equal(new Set(values).size, 600);
      if ("frames" in options) t.equal(node.messages.length, 600, "item by item");
      else if ("streams" in options)
        t.equal(node.asked.filter(({ alone }) => alone).length, 601, "unary calls");
      else t.same(node.messages, [256, 256, 88], "frames of at most 256");
      await client.close();
      node.stop();
    }
  },
);

t.test(
  "prefetch: every value once, in order, gaps told, the end of a bounded sequence reached",
  async (t) => {
    const client = new SvcClient({ endpoints: grpc });
    await client.sequences.create("supply", { increment: 3, maxValue: 3000, blockSize: 1 });
    const supply = client.sequence("supply").prefetch(64);
    const values: bigint[] = [];
    let end: unknown = null;
    while (end === null) {
      try {
        values.push(supply.tryNext() ?? (await supply.next()));
      } catch (error) {
        end = error;
      }
    }
    t.type(end, MaxValueExceededError);
    t.same(
      values,
      Array.from({ length: 1000 }, (_, at) => BigInt(at + 1) * 3n),
      "all 1000 values",
    );
    t.same(supply.close(), { unused: 0, underWay: 0 });
    await client.sequences.create("gaps");
    const other = client.sequence("gaps").prefetch(10);
    await other.next();
    t.equal(other.close().unused, 9);
    t.equal(await client.sequence("gaps").next(), 11n, "what was reserved is skipped");
    t.equal((await failure(other.next())).code, "client-closed");
    await client.close();
  },
);

t.test("tokens: sent with every kind of call, refused ones are named", async (t) => {
  const place = temporaryDirectory();
  const token = "0123456789abcdef0123";
  const hash = spawnSync(
    process.execPath,
    [join(root, "dist/bin/svc-server.js"), "--print-token-hash"],
    {
      input: token,
    },
  );
  const file = join(place.path, "tokens");
  const digest = /sha256:[0-9a-f]{64}/.exec(hash.stdout.toString())?.[0] ?? "";
  writeFileSync(file, `writer tester ${digest}\n`, { mode: 0o600 });
  const guarded = new ServerProcess([
    ...nodeFlags(join(place.path, "data")),
    `--auth-tokens-file=${file}`,
    "--allow-insecure",
  ]);
  const addresses = await guarded.ready();
  for (const transport of ["grpc", "rest"] as const) {
    const endpoints = transport === "grpc" ? addresses.grpc : addresses.http;
    const right = new SvcClient({ endpoints, transport, token: () => token });
    await right.kv.set("k", "v");
    t.equal((await right.kv.bucket("k")).length, 1);
    const forbidden = await failure(right.cluster.leave());
    t.same([forbidden instanceof AccessError, forbidden.code], [true, "forbidden"]);
    const wrong = new SvcClient({ endpoints, transport, token: "wrong-wrong-wrong-wrong" });
    for (const call of [() => wrong.kv.set("k", "v"), () => wrong.kv.bucket("k")]) {
      t.equal((await failure(call())).code, "unauthenticated");
    }
    await right.close();
    await wrong.close();
  }
  await guarded.stop();
  place.remove();
});

/** Runs `node` on a program and returns how it ended. */
function run(folder: string, file: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--unhandled-rejections=strict", file], { cwd: folder });
    let output = "";
    child.stdout.on("data", (text: Buffer) => (output += text.toString()));
    child.stderr.on("data", (text: Buffer) => (output += text.toString()));
    const limit = setTimeout(() => child.kill("SIGKILL"), 20_000);
    child.on("close", (code) => {
      clearTimeout(limit);
      resolve({ code, output });
    });
  });
}

t.test(
  "P-156 P-157 after close nothing is left: a program ends by itself, in every state",
  async (t) => {
    const place = temporaryDirectory();
    const program = join(place.path, "program.mjs");
    writeFileSync(
      program,
      `import { SvcClient } from ${JSON.stringify(join(root, "dist/src/client/mod.js"))};
     const clients = [
       new SvcClient({ endpoints: "${grpc}" }),
       new SvcClient({ endpoints: "${http}", transport: "rest" }),
       new SvcClient({ endpoints: "127.0.0.1:1" }),
       new SvcClient({ endpoints: "127.0.0.1:1", transport: "rest" }),
     ];
     const open = [];
     for (const client of clients) {
       for (let at = 0; at < 50; at++) open.push(client.kv.set("leak/" + at, "x"), client.kv.bucket("leak"));
       open.push(client.locks.acquire("leak", { leaseMs: 60_000, waitMs: 60_000 }));
       client.sequence("leak").prefetch(100);
     }
     const ends = Promise.allSettled(open);
     await new Promise((resolve) => setTimeout(resolve, 300));
     await Promise.all(clients.map((client) => client.close({ releaseMs: 500 })));
     for (const client of clients) await client.kv.get("late").catch((error) => error.code);
     await new Promise((resolve) => setTimeout(resolve, 300));
     console.log((await ends).length);
     console.log(process.getActiveResourcesInfo().filter((name) => !/TTY|Pipe/.test(name)).join());`,
    );
    const begin = performance.now();
    const { code, output } = await run(place.path, program);
    t.equal(code, 0, output);
    t.equal(output, "404\n\n", "no timer, no socket");
    t.ok(performance.now() - begin < 15_000);
    place.remove();
  },
);

/** Of a document, the examples in TypeScript. */
function examplesOf(...paths: string[]): string[] {
  const text = paths.map(readText).join("\n");
  return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
}

/** The examples of the pages about waiting, each in a scope of its own, with what they take as given. */
function pagesProgram(t: Test): string {
  const given = [
    'import type { SvcClient } from "svc";',
    "declare const client: SvcClient;",
    "declare function load(how: { signal: AbortSignal }): Promise<void>;",
    "declare function send(how: { signal: AbortSignal; fencingToken: bigint }): Promise<void>;",
    "declare function apply(type: string, name: string, text: string | null): void;",
    "declare function remember(cursor: string): Promise<void>;",
    "declare function index(how: { signal: AbortSignal; epoch: bigint }): Promise<void>;",
  ];
  const scopes = ["locks", "watches", "elections"].flatMap((page) => {
    const examples = examplesOf(`docs/${page}.md`);
    t.ok(examples.length > 0, `docs/${page}.md has examples`);
    return examples.map((body, at) => `export async function ${page}${at}() {\n${body}}`);
  });
  return [...given, ...scopes].join("\n");
}

t.test(
  "a program of another package: types resolve, the examples of the documents compile and run",
  async (t) => {
    const built = spawnSync(process.execPath, [join(root, "scripts/build-types.mjs")]);
    t.equal(built.status, 0, built.stdout.toString());
    const blocks = examplesOf("README.md", "docs/client.md");
    t.ok(blocks.length >= 6, "there are examples");
    const place = temporaryDirectory();
    mkdirSync(join(place.path, "node_modules"));
    symlinkSync(root, join(place.path, "node_modules", "svc"));
    mkdirSync(join(place.path, "node_modules", "@types"));
    symlinkSync(
      join(root, "node_modules/@types/node"),
      join(place.path, "node_modules/@types/node"),
    );
    writeFileSync(join(place.path, "package.json"), '{"type":"module","private":true}');
    // One program: imports once, each example in a scope of its own.
    const imports = new Set<string>();
    const bodies = blocks.map((block) =>
      block.replace(/^import \{([^}]*)\} from "svc";\n/gm, (_all, names: string) => {
        for (const name of names.split(",")) if (name.trim() !== "") imports.add(name.trim());
        return "";
      }),
    );
    const text = [
      `import { ${[...imports].join(", ")} } from "svc";`,
      ...bodies.map(
        (body) => `{\n${body.replaceAll("http://127.0.0.1:8083", `http://${grpc}`)}\n}`,
      ),
      'console.log("done");',
    ].join("\n");
    writeFileSync(join(place.path, "program.ts"), text);
    writeFileSync(join(place.path, "pages.ts"), pagesProgram(t));
    writeFileSync(
      join(place.path, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          module: "NodeNext",
          moduleResolution: "NodeNext",
          target: "ES2022",
          lib: ["ES2022", "ESNext.Disposable"],
          types: ["node"],
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          outDir: ".",
        },
        files: ["program.ts", "pages.ts"],
      }),
    );
    const compiled = spawnSync(
      process.execPath,
      [join(root, "node_modules/typescript/bin/tsc"), "-p", "."],
      {
        cwd: place.path,
      },
    );
    t.equal(compiled.status, 0, `${compiled.stdout.toString()}\n${text}`);
    const { code, output } = await run(place.path, "program.js");
    t.equal(code, 0, output);
    t.match(output, /done\n$/);
    place.remove();
  },
);

t.test("every public symbol is documented; methods have an example", (t) => {
  for (const file of [
    "sequences/sequences",
    "locks/locks",
    "kv/kv",
    "admin/cluster",
    "admin/ranges",
    "admin/backups",
    "client",
    "locks/lock-handle",
  ]) {
    const text = readFileSync(join(root, `src/client/${file}.ts`), "utf8");
    for (const match of text.matchAll(
      /^ {2}(?:async )?\*?(?:\[|[a-z])[\w.[\]]*(?:<\w+>)?\([^;{]*\{$/gm,
    )) {
      const name = match[0].trim();
      const line = text.slice(0, match.index).split("\n");
      if (/^(constructor|private|if|for|while|switch|\[)/.test(name)) continue;
      t.match(line.at(-2) ?? "", /\*\/$/, `${file}: ${name} has a docstring`);
    }
  }
  for (const line of readFileSync(join(root, "src/client/mod.ts"), "utf8").matchAll(
    /from "\.\/(\S+)\.js"/g,
  )) {
    const text = readFileSync(join(root, `src/client/${line[1] as string}.ts`), "utf8");
    for (const match of text.matchAll(/^export (?:abstract )?(?:class|function) (\w+)/gm)) {
      const before = text.slice(0, match.index).split("\n").at(-2) ?? "";
      t.match(before, /\*\/$/, `${match[1] as string} has a docstring`);
    }
  }
  t.end();
});
