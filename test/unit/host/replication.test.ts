/** The inbox of one group beside an install: nothing is stepped whose payloads would be lost. */
import t from "tap";
import { FOUNDING_INCARNATION, partitionId } from "../../../src/base/ids.js";
import { PeerLives } from "../../../src/host/replication/peer-lives.js";
import { AppendBudget } from "../../../src/host/replication/append-budget.js";
import { CacheBudget, EntryCache } from "../../../src/host/replication/entry-cache.js";
import { PeerOutbox } from "../../../src/host/replication/peer-outbox.js";
import { NO_BEAT_SIGN, type RaftItem } from "../../../src/host/replication/raft-frames.js";
import { spanOf } from "../../../src/host/replication/raft-frames.js";
import { Replication } from "../../../src/host/replication/replication.js";
import { RaftCore } from "../../../src/raft/core.js";
import { defaultConfig } from "../../../src/raft/state/config.js";
import type { Message, MessageKind } from "../../../src/raft/state/types.js";
import { ManualLog, ManualTimer } from "../../doubles/host/world.js";
import { freshState, membershipOf, message as fresh } from "../../doubles/raft/fresh.js";

function item(kind: MessageKind, index: number, count: number): RaftItem {
  const entries = Array.from({ length: count }, (_, at) => {
    return { index: index + 1 + at, term: 2, kind: 0, payload: Uint8Array.of(at) };
  });
  const message = fresh(kind, {
    term: 2,
    logTerm: index === 0 ? 0 : 2,
    index,
    entries: spanOf(entries),
  });
  return { group: 1, fromLife: 0, toLife: 0, message, entries, sign: NO_BEAT_SIGN };
}

function group(): { replication: Replication; stepped: string[] } {
  const core = new RaftCore(
    defaultConfig(1, 7),
    freshState(membershipOf([1, 2, 3]), { term: 2, vote: 0, commit: 0 }),
  );
  const stepped: string[] = [];
  const replication = new Replication({
    partition: partitionId(1),
    core,
    lives: new PeerLives(FOUNDING_INCARNATION),
    cache: new EntryCache(new CacheBudget(1000), 1000),
    outbox: new PeerOutbox(null, () => undefined),
    log: new ManualLog(new ManualTimer()),
    appendBudget: new AppendBudget(1 << 20),
    wake: () => undefined,
    heartbeatSign: () => NO_BEAT_SIGN,
  });
  return { replication, stepped };
}

void t.test("P-043 what follows a snapshot waits until the snapshot is installed", (t) => {
  const { replication, stepped } = group();
  const observer = {
    before: (message: Message) => void stepped.push(message.kind),
    after: () => undefined,
  };
  replication.receive(item("heartbeat", 0, 0));
  replication.receive(item("snapshot", 0, 0));
  replication.receive(item("append", 0, 2));
  replication.receive(item("append", 2, 1));
  replication.stepInbox(() => false, observer);
  t.same(stepped, ["heartbeat", "snapshot"]);
  t.ok(replication.hasWork, "the rest waits");
  const payloads: (number | undefined)[] = [];
  replication.stepInbox(() => {
    payloads.push(replication.received(1, 2)?.payload[0], replication.received(3, 2)?.payload[0]);
    return true;
  }, observer);
  t.same(stepped, ["heartbeat", "snapshot", "append", "append"]);
  t.same(payloads, [0, undefined, undefined, 0, undefined, undefined]);
  t.notOk(replication.hasWork);
  t.end();
});
