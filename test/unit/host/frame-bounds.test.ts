/**
 * No frame between nodes is larger than its bound, whatever a leader believes about the sizes in its
 * log: the port ends the process of whoever sends one.
 */
import t from "tap";
import { PEER_FRAME_MAX_BYTES, SIZE_RUN_MAX_BYTES } from "../../../src/base/limits.js";
import { SizeRuns } from "../../../src/disk/log/sizeruns.js";
import { PeerOutbox } from "../../../src/host/replication/peer-outbox.js";
import {
  type HeartbeatSign,
  readRaftFrame,
  spanOf,
  NO_BEAT_SIGN,
} from "../../../src/host/replication/raft-frames.js";
import type { LogEntry, PeerPort } from "../../../src/ports.js";
import type { Message } from "../../../src/raft/state/types.js";
import { Cluster } from "../../doubles/host/peerworld.js";
import { setCommand } from "../../doubles/host/world.js";
import { message as fresh } from "../../doubles/raft/fresh.js";

const VALUE_BYTES = 1 << 20;

/** Writes a value and waits until it is applied on the node that serves. */
function put(cluster: Cluster, key: string, sizeBytes: number): void {
  const id = cluster.serverOf(1);
  let isApplied = false;
  const command = setCommand(key, new Uint8Array(sizeBytes));
  const group = cluster.node(id ?? 0).groups()[1];
  group?.propose(command, sizeBytes + 100, cluster.nowMs + 10_000, (result) => {
    isApplied = result.status === "applied";
  });
  cluster.passUntil(() => isApplied);
}

void t.test("P-189 restarted leaders feed a member that lags behind large values", (t) => {
  const cluster = new Cluster(3, { initialPartitions: 1, leaderBalanceEveryMs: 0 }).ready();
  const away = [1, 2, 3].find((id) => id !== cluster.serverOf(1)) ?? 0;
  cluster.kill(away);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  for (let at = 0; at < 12; at++) put(cluster, `large-${at}`, VALUE_BYTES);
  for (let at = 0; at < 130; at++) put(cluster, `small-${at}`, 10);
  const rest = [1, 2, 3].filter((id) => id !== away);
  for (const id of rest) cluster.kill(id);
  for (const id of rest) cluster.start(id);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  let largest = 0;
  cluster.network.filter = (_from, bytes) => {
    largest = Math.max(largest, bytes.length);
    return bytes;
  };
  cluster.start(away);
  const leader = cluster.node(cluster.serverOf(1) ?? 0).groups()[1];
  cluster.passUntil(() => {
    const facts = cluster.node(away).groups()[1]?.facts();
    return facts?.appliedIndex === leader?.facts().appliedIndex;
  });
  t.ok(largest > VALUE_BYTES, "values went over");
  // A message of entries that are small is as large as the core means it to be.
  t.ok(largest <= VALUE_BYTES + (1 << 20) + 4 * SIZE_RUN_MAX_BYTES, `largest frame: ${largest}`);
  for (const node of cluster.nodes.values()) t.equal(node.facts().oversizedMessages, 0);
  t.end();
});

function append(to: number, sizesBytes: readonly number[]): [Message, LogEntry[], HeartbeatSign] {
  const entries = sizesBytes.map((sizeBytes, at) => {
    return { index: at + 1, term: 1, kind: 0, payload: new Uint8Array(sizeBytes) };
  });
  const message = fresh("append", { from: 1, to, term: 1, entries: spanOf(entries) });
  return [message, entries, NO_BEAT_SIGN];
}

void t.test(
  "P-189 the port never gets more than a frame; what is larger is dropped and told",
  (t) => {
    const frames: Uint8Array[] = [];
    const told: string[] = [];
    const port: PeerPort = {
      start: () => undefined,
      setPeers: () => undefined,
      send: (_to, _lane, bytes) => frames.push(bytes) > 0,
      queuedBytes: () => 0,
      close: () => undefined,
    };
    const outbox = new PeerOutbox(port, (group, to) => void told.push(`${group} to ${to}`));
    outbox.linkUp(2);
    const groupsIn = (bytes: Uint8Array): number[] => {
      const groups: number[] = [];
      t.equal(
        readRaftFrame(bytes, 1, 2, ({ group }) => void groups.push(group)),
        0,
      );
      return groups;
    };
    // The first is below the size at which a frame leaves at once, and does not fit with the second.
    outbox.add(1, ...append(2, [1_000_000]));
    outbox.add(2, ...append(2, [4 << 20, 1_200_000]));
    outbox.add(3, ...append(2, [10]));
    outbox.flush();
    t.same(frames.map(groupsIn), [[1], [2], [3]]);
    t.ok(frames.every((bytes) => bytes.length <= PEER_FRAME_MAX_BYTES));
    frames.length = 0;
    outbox.add(4, ...append(2, [10]));
    outbox.add(5, ...append(2, [4 << 20, 2 << 20]));
    outbox.add(6, ...append(2, [10]));
    outbox.flush();
    t.same(frames.map(groupsIn), [[4, 6]]);
    t.same(told, ["5 to 2"]);
    t.equal(outbox.oversizedMessages, 1);
    // Exactly as large as may be.
    frames.length = 0;
    const room = PEER_FRAME_MAX_BYTES - 1 - 62 - 13;
    outbox.add(7, ...append(2, [room]));
    outbox.add(8, ...append(2, [room + 1]));
    outbox.flush();
    t.same(
      frames.map(({ length }) => length),
      [PEER_FRAME_MAX_BYTES],
    );
    t.equal(outbox.oversizedMessages, 2);
    t.end();
  },
);

void t.test("P-189 the false links of these tests refuse what real ones refuse", (t) => {
  const cluster = new Cluster(2, { initialPartitions: 1 }).ready();
  const port = cluster.world(1).peers;
  t.ok(port?.send(2, "log", new Uint8Array(PEER_FRAME_MAX_BYTES)));
  t.throws(() => port?.send(2, "log", new Uint8Array(PEER_FRAME_MAX_BYTES + 1)));
  t.end();
});

void t.test("P-189 a large entry stands alone in what a restart knows of sizes", (t) => {
  const runs = new SizeRuns();
  const sizesBytes = [10, SIZE_RUN_MAX_BYTES, 4 << 20, 4 << 20, 10, SIZE_RUN_MAX_BYTES - 10, 0, 1];
  for (const [at, sizeBytes] of sizesBytes.entries()) runs.add(at + 1, sizeBytes);
  t.same(runs.all, [
    { firstIndex: 1, sizeBytes: 10 },
    { firstIndex: 2, sizeBytes: SIZE_RUN_MAX_BYTES },
    { firstIndex: 3, sizeBytes: 4 << 20 },
    { firstIndex: 4, sizeBytes: 4 << 20 },
    { firstIndex: 5, sizeBytes: SIZE_RUN_MAX_BYTES },
    { firstIndex: 8, sizeBytes: 1 },
  ]);
  t.end();
});
