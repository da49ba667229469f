/** First starts of a restored directory that are killed: the next one goes on with it, as one cluster and one node. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ServerProcess, endAll, temporaryDirectory } from "../cluster/server-process.js";
import { DiskCatalogue } from "./catalogue.js";

const directory = temporaryDirectory();
t.setTimeout(400_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

function start(path: string, id: number): ServerProcess {
  const listeners = ["--grpc-port=off", "--https-port=off", "--http-port=0", "--peer-port=0"];
  return new ServerProcess([...listeners, `--raft-nodeid=${id}`, `--storage-path=${path}`]);
}

t.test("P-140 P-138 a first start that is killed at any moment can be made again", async (t) => {
  const catalogue = new DiskCatalogue(directory.path);
  catalogue.write(20);
  catalogue.take(1);
  t.match(await catalogue.restore(1, "new"), { ok: true });
  const path = join(catalogue.restoreRoot, "new");
  const identity = join(path, "v1", "identity.json");
  const read = (file: string): { clusterId: string } =>
    JSON.parse(readFileSync(file, "utf8")) as { clusterId: string };
  const { clusterId } = read(join(path, "v1", "restored.json"));
  // From before anything is written to behind the first entry of the new cluster.
  for (const afterMs of [0, 40, 120]) {
    const node = start(path, 5);
    for (let look = 0; look < 4000 && !existsSync(identity); look++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await node.kill();
    t.equal(read(identity).clusterId, clusterId);
  }
  const other = start(path, 6);
  t.not((await other.ended).code, 0, "the directory is node 5's");
  const node = start(path, 5);
  const { http } = await node.ready();
  const answer = await fetch(`http://${http}/v1/kv/try-get`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key: "key 3", durability: 1 }),
  });
  t.match(await answer.json(), { value: String });
  const members = await fetch(`http://${http}/v1/cluster/membership`);
  t.equal((await members.text()).match(/"nodeId"/g)?.length, 1);
  await node.stop();
});
