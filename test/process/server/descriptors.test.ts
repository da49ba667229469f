/** How many connections a node has descriptors for. */
import t from "tap";
import { ConnectionCount } from "../../../src/base/connections.js";
import {
  connectionsFor,
  descriptorLimit,
  openFilesLimit,
} from "../../../src/server/listeners/descriptors.js";

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             95738                95738                processes
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
`;

t.test("P-199 the connection budget lies below the limit of open files", (t) => {
  t.equal(openFilesLimit(LIMITS), 1024, "the soft limit");
  t.equal(openFilesLimit(LIMITS.replace("1024      ", "unlimited ")), Infinity);
  t.equal(openFilesLimit("nothing of the kind"), null);
  t.ok((descriptorLimit() ?? 1) > 0, "of this process");
  const table: readonly (readonly [number | null, number])[] = [
    [null, 10_000],
    [Infinity, 10_000],
    [1_048_576, 10_000],
    [10_256, 10_000],
    [10_255, 9999],
    [4096, 3840],
    [1024, 768],
    [200, 16],
  ];
  for (const [limit, connections] of table) {
    t.equal(connectionsFor(limit), connections, `limit ${String(limit)}`);
  }
  t.end();
});

t.test("P-199 one count for all listeners; the refused are counted", (t) => {
  const count = new ConnectionCount(2);
  const quiet = { bytesRead: 3, bytesWritten: 5 };
  t.ok(count.enter("grpc", quiet));
  t.ok(count.enter("http", { bytesRead: 10, bytesWritten: 20 }));
  t.notOk(count.enter("https", quiet));
  t.same([count.open, count.refused], [{ grpc: 1, http: 1, https: 0 }, 1]);
  t.same(count.bytesMoved(), { received: 13, sent: 25 });
  count.leave("grpc", quiet);
  t.same(count.bytesMoved(), { received: 13, sent: 25 }, "what is past counts");
  t.ok(count.enter("https", quiet), "room again");
  t.throws(() => count.leave("grpc", quiet), "nobody leaves twice");
  t.end();
});
