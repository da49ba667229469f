/**
 * Lives of replicas on the wire: which of them a message is between, and which messages are not
 * listened to.
 */
import t from "tap";
import { FOUNDING_INCARNATION, NO_PLACEMENT, incarnation } from "../../../../src/base/ids.js";
import { Prng } from "../../../../src/base/prng.js";
import { PeerLives } from "../../../../src/host/replication/peer-lives.js";
import {
  FrameRoom,
  NO_BEAT_SIGN,
  RaftFrameWriter,
  type RaftItem,
  itemSizeBytes,
  readRaftFrame,
} from "../../../../src/host/replication/raft-frames.js";
import { message } from "../../../doubles/raft/fresh.js";

function framed(fromLife: number, toLife: number): Uint8Array {
  const writer = new RaftFrameWriter(new FrameRoom());
  const heartbeat = message("heartbeat", { term: 5, commit: 3 });
  writer.add(7, heartbeat, [], NO_BEAT_SIGN, fromLife, toLife);
  writer.add(8, message("appendAnswer", { term: 5, index: 9 }), [], NO_BEAT_SIGN);
  return writer.take() ?? new Uint8Array(0);
}

function read(bytes: Uint8Array): { readonly items: RaftItem[]; readonly bad: number } {
  const items: RaftItem[] = [];
  const bad = readRaftFrame(bytes, 1, 2, (item) => items.push(item));
  return { items, bad };
}

t.test("P-089 a message is bound to the lives of its sender and its receiver", (t) => {
  const largest = Number.MAX_SAFE_INTEGER;
  for (const [fromLife, toLife] of [
    [0, 0],
    [0, 4],
    [9, 0],
    [largest, largest - 1],
  ] as const) {
    const { items, bad } = read(framed(fromLife, toLife));
    t.equal(bad, 0);
    t.match(items, [
      { group: 7, fromLife, toLife },
      { group: 8, fromLife: 0, toLife: 0 },
    ]);
  }
  t.equal(framed(0, 1).length - framed(0, 0).length, 16, "full replication pays nothing for it");
  const sizeBytes = itemSizeBytes("heartbeat", [], 3, 0) + itemSizeBytes("appendAnswer", []);
  t.equal(framed(3, 0).length, 1 + sizeBytes, "sizes are told before");
  t.end();
});

t.test("fuzz: a frame with lives that is cut or changed never throws (P-012, P-128)", (t) => {
  const random = new Prng(11);
  const whole = framed(6, 2 ** 40);
  for (let round = 0; round < 3000; round++) {
    const bytes = whole.slice(0, random.below(whole.length + 1));
    for (let hits = random.below(4); hits > 0 && bytes.length > 1; hits--) {
      bytes[1 + random.below(bytes.length - 1)] = random.below(256);
    }
    read(bytes);
  }
  const twice = whole.slice();
  twice.fill(0, 10, 26);
  t.match(read(twice), { bad: 1, items: [{ group: 8 }] }, "founding lives have one encoding");
  t.end();
});

t.test("P-089 what a former life says, or is told, is not listened to", (t) => {
  const lives = new PeerLives(incarnation(5));
  t.equal(lives.of(3), FOUNDING_INCARNATION);
  t.equal(lives.strayReason(3, 0, 5), null);
  t.equal(lives.strayReason(3, 0, 0), "receiver-life", "told to a life before this one");
  t.equal(lives.strayReason(3, 0, 6), "receiver-life", "or to one that is none here");
  const replica = { nodeId: 3, role: "learner", since: NO_PLACEMENT, replaces: 0 } as const;
  lives.learn([{ ...replica, incarnation: incarnation(8) }]);
  t.equal(lives.strayReason(3, 0, 5), "sender-life", "an acknowledgement of the life before");
  t.equal(lives.strayReason(3, 8, 5), null);
  t.equal(lives.strayReason(3, 9, 5), null, "news: the map here may be old");
  lives.learn([{ ...replica, incarnation: incarnation(2) }]);
  t.equal(lives.of(3), 8, "never back");
  t.end();
});
