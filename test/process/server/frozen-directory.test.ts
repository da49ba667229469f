/** A node starts on the data directories that earlier releases wrote, and answers as they did. */
import t from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import { askFrozen, unpackFrozen } from "../../compat/directory.js";
import { readAbout, releases } from "../../compat/frozen.js";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { call } from "../net/processes.js";

t.setTimeout(120_000);
t.teardown(endAll);

for (const release of releases()) {
  if (readAbout(release).level < PROGRAM.levels.min) continue;
  t.test(`P-131 the directory of ${release}: all of it is there`, async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    const { found, wanted } = await askFrozen(release, directory.path);
    t.strictSame(found, wanted);
  });
}

interface Placement {
  readonly partitions: readonly { readonly partitionId: number; readonly generation: number }[];
}

async function generationOf(node: ServerProcess, partition: number): Promise<number> {
  const { partitions } = (await call(node, "/v1/cluster/placement")) as Placement;
  return partitions.find(({ partitionId }) => partitionId === partition)?.generation ?? 0;
}

t.test(
  "U2 U5 P-030 the directory of 0.1 stays at level 1, and no partition is placed, until somebody finalizes",
  async (t) => {
    const directory = temporaryDirectory();
    t.teardown(() => directory.remove());
    unpackFrozen("0.1", directory.path);
    const node = new ServerProcess(nodeFlags(directory.path));
    await node.ready();
    t.match(await call(node, "/v1/cluster/overview"), { level: 1 });
    const factor = { partitionId: 1, replicationFactor: 1 };
    const set = (await call(node, "/v1/cluster/replication-factor", factor)) as object;
    t.match(set, { success: true });
    const { generation } = set as { readonly generation: number };
    await sleep(1000);
    t.equal(await generationOf(node, 1), generation, "the target is known, the list is not made");
    t.match(await call(node, "/v1/cluster/finalize", {}), { status: "Finalized", level: 2 });
    const endMs = performance.now() + 30_000;
    while ((await generationOf(node, 1)) === generation && performance.now() < endMs) {
      await sleep(20);
    }
    t.equal(await generationOf(node, 1), generation + 1, "listed");
    t.match(await call(node, "/v1/cluster/overview"), { level: 2 });
    t.same(await node.stop(), { code: 0, signal: null });
    // And it comes back as what it is now.
    const again = new ServerProcess(nodeFlags(directory.path));
    await again.ready();
    t.match(await call(again, "/v1/cluster/overview"), { level: 2 });
    t.equal(await generationOf(again, 1), generation + 1);
    await again.stop();
  },
);
