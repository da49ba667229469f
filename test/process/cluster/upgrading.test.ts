/**
 * Three real nodes that were founded at level 1 are upgraded one after the other under callers that repeat nothing and under
 * programs that use the client library; one of them is rolled back on the way, the level is raised, and then there is no way
 * back.
 *
 * `npm run upgrade` gives it a program of the release before that was built from its own commit (`SVC_EARLIER_PROGRAM`);
 * without it this program stands in, told to be the one before.
 */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { LibraryCallers } from "../chaos/library-callers.js";
import { BLOCK_SIZE } from "../chaos/nodes.js";
import { runCli } from "../cli/programs.js";
import { call } from "../net/processes.js";
import { eventually } from "../placement/placed-nodes.js";
import { type Command, PRESENT, Rolling } from "./rolling.js";
import { endAll, serverModules, sleep } from "./server-process.js";

t.setTimeout(600_000);
t.teardown(endAll);

const ALL = [1, 2, 3];
const built = process.env["SVC_EARLIER_PROGRAM"] ?? null;
const preload = join(import.meta.dirname, "earlier-program.js");
const EARLIER: Command =
  built === null
    ? [process.execPath, "--import", preload, serverModules]
    : [process.execPath, built];
/** Without a factor of the cluster replicas are moved only where that is asked for. */
const UPGRADED: Command = [
  ...PRESENT,
  "--raft-enable-placement-rebalancer=true",
  "--raft-placement-pass-interval=1s",
];
const CALLERS = 8;
const PROGRAM_CALLERS = 6;
const FLAGS = ["--initial-cluster-partitions=4", `--sequencer-block-size=${BLOCK_SIZE}`];

interface Overview {
  readonly level: number;
  readonly nodes: readonly { readonly nodeId: number; readonly version: string }[];
}
interface Placement {
  readonly partitions: readonly {
    readonly generation: number;
    readonly replicas: readonly { readonly role: string }[];
  }[];
}

/** Every file with its content and the time of its last change. */
function filesBelow(path: string): readonly string[] {
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const file = join(path, name);
      const { mtimeMs, size } = statSync(file);
      if (statSync(file).isDirectory()) return name;
      const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
      return `${name} ${size} ${mtimeMs} ${digest}`;
    });
}

t.test(
  `U1 U2 U4 U5 U7 U8 P-030 a rolling upgrade ${built === null ? "" : "from an earlier commit "}refuses nothing, and ends at level 2`,
  async (t) => {
    const rolling = new Rolling(FLAGS, EARLIER);
    t.teardown(() => rolling.end());
    await rolling.start();
    const ask = <Answer>(id: number, path: string, body?: object): Promise<Answer> =>
      call(rolling.node(id), path, body) as Promise<Answer>;
    const levelsOf = (): Promise<readonly number[]> =>
      Promise.all(ALL.map(async (id) => (await ask<Overview>(id, "/v1/cluster/overview")).level));
    /** As all nodes know each other's programs; told a moment after a start. */
    const versions = async (wanted: readonly string[]): Promise<void> => {
      let found: readonly string[] = [];
      const isTold = async (): Promise<boolean> => {
        const { nodes } = await ask<Overview>(2, "/v1/cluster/overview");
        found = nodes.map(({ version }) => version);
        return found.join() === wanted.join();
      };
      await eventually(`versions ${wanted.join()}`, isTold, () => found.join());
    };
    /** The first partition, as a node sees it. */
    const recordOf = async (by: number): Promise<Placement["partitions"][number] | undefined> =>
      (await ask<Placement>(by, "/v1/cluster/placement")).partitions[0];
    const finalize = async (): Promise<{ readonly exit: number; readonly stdout: string }> => {
      const { grpc } = await rolling.node(1).addresses();
      return runCli(["-c", `http://${grpc}`, "--cluster-finalize", "--yes"]);
    };

    /** How a node ends what level 2 brought to locks, and what names a grant. */
    const newToLocks = async (id: number): Promise<readonly unknown[]> => {
      const grant = { resource: `named by ${id}`, owner: "a" };
      const { fencingToken } = await ask<{ fencingToken: number }>(id, "/v1/locks/try-lock", {
        ...{ ...grant, expiresMs: 60_000 },
      });
      const ends: unknown[] = [];
      for (const [name, more] of [
        ["try-extend", { ...grant, expiresMs: 60_000, note: "n" }],
        ["force-unlock", { resource: grant.resource, fencingToken, reason: "r" }],
        ["try-unlock", { ...grant, fencingToken }],
        ["list", { prefix: "named by" }],
        ["audit", {}],
      ] as const) {
        const end = await ask<{ code?: string; type?: number }>(id, `/v1/locks/${name}`, more);
        ends.push(end.code ?? end.type);
      }
      return ends;
    };
    t.same(await levelsOf(), [1, 1, 1], "founded by the program before");
    t.match(
      await finalize(),
      { exit: 0, stdout: /Already finalized: level 1/ },
      "nobody knows more",
    );
    for (let at = 0; at < 8; at++) {
      const sequence = { Name: `sequence ${at}`, Increment: 1, Durability: 1 };
      await rolling.call("Sequencer", "CreateSequence", sequence, 0);
    }
    const held = { Resource: "held", Owner: Buffer.from("a"), ExpiresMs: 600_000, Durability: 0 };
    const granted = await rolling.call("Locker", "TryLock", held, 0);
    rolling.load(CALLERS);
    const programs = new LibraryCallers(rolling.urls, 16);
    programs.begin(PROGRAM_CALLERS);

    await t.test("U5 a node is upgraded, rolled back, and upgraded again", async (t) => {
      for (const command of [UPGRADED, EARLIER, UPGRADED]) {
        await rolling.restart(1, command);
        await sleep(300);
      }
      t.same(await levelsOf(), [1, 1, 1]);
    });

    await t.test("U1 U8 one node is left: it holds the level back", async (t) => {
      await rolling.restart(2, UPGRADED);
      t.match(await finalize(), { exit: 1, stdout: /RefusedMembers[^]*\n3 .*0\.1\.0/ });
      if (built === null) {
        const early = Array.from({ length: 5 }, () => "not-available-at-level");
        for (const id of ALL) t.same(await newToLocks(id), early, `node ${id}`);
      }
      const path = "/v1/cluster/replication-factor";
      const factor = { partitionId: 1, replicationFactor: 2 };
      const before = await recordOf(1);
      const set = (): Promise<{ success: boolean }[]> =>
        Promise.all(ALL.map((id) => ask<{ success: boolean }>(id, path, factor)));
      await eventually("a target is set", async () => (await set()).some(({ success }) => success));
      await sleep(1000);
      const generation = (before?.generation ?? 0) + 1;
      t.match(await recordOf(1), { generation }, "nothing is listed below level 2");
    });

    await t.test(
      "U1 U2 all are upgraded: the level rises on every node, and replicas move",
      async (t) => {
        await rolling.restart(3, UPGRADED);
        const now = (await ask<{ version: string }>(3, "/v1/cluster/health")).version;
        await versions([now, now, now]);
        t.same(await finalize(), { exit: 0, stdout: "Finalized: level 2.\n", stderr: "" });
        const isRaised = async (): Promise<boolean> => (await levelsOf()).join() === "2,2,2";
        await eventually("level 2 everywhere", isRaised, async () => (await levelsOf()).join());
        // Extended with a note, ended by force, and then nobody's.
        const known = async (): Promise<string> =>
          (await Promise.all(ALL.map(newToLocks))).map((ends) => ends.join()).join(" ");
        const wanted = ALL.map(() => "2,3,102,4,4").join(" ");
        await eventually("what is new to locks", async () => (await known()) === wanted, known);
        const isPlaced = async (): Promise<boolean> => {
          const roles = (await recordOf(2))?.replicas.map(({ role }) => role) ?? [];
          return roles.join() === "Voter,Voter";
        };
        await eventually("partition 1 has two voters", isPlaced, async () =>
          JSON.stringify(await recordOf(2)),
        );
        await sleep(500);
      },
    );

    await rolling.halt();
    t.same([...rolling.refusals], [], "no call was refused all the time");
    t.ok(rolling.answered > 1000, `${rolling.answered} calls`);
    const found = await rolling.call("Locker", "GetLock", { Resource: "held" }, 0);
    t.match(found, { Type: 4, FencingToken: granted?.["FencingToken"] }, "the lock is held");

    await t.test("C1 C10 programs that use the library saw one service all along", async (t) => {
      const { rejected, answered, repeated, verdicts, text } = await programs.end();
      t.same(rejected, [], "the library rejected no call");
      t.comment(`${answered} calls through the library, ${repeated} repeated`);
      for (const { property, kind } of verdicts) t.equal(kind, "pass", property);
      if (verdicts.some(({ kind }) => kind !== "pass")) t.comment(text);
    });

    await t.test("U4 U5 P-131 nobody goes back", async (t) => {
      await rolling.stop(3);
      const before = filesBelow(rolling.path(3));
      const earlier = rolling.launch(3, EARLIER);
      t.match(await earlier.ended, { code: 1 });
      t.same(filesBelow(rolling.path(3)), before, "not a byte was written");
      t.match(
        earlier.log,
        /data is of level 2, this program supports 1: use version 0\.2\.0 or later/,
      );
      rolling.launch(3, UPGRADED);
      await rolling.ready(3);
      t.same(await levelsOf(), [2, 2, 2]);
      t.match(await finalize(), { exit: 0, stdout: "Already finalized: level 2.\n" });
    });
  },
);
