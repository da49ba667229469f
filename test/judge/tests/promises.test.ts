/**
 * The checker of promises: it fires when a vote or an acknowledgement leaves before it is durable, or
 * is forgotten by a restart, and passes the stories beside those.
 */
import t from "tap";
import { type PartitionId, partitionId } from "../../../src/base/ids.js";
import type { RecoveredGroupLog, LogPort, LogWrite } from "../../../src/ports.js";
import type { Message } from "../../../src/raft/state/types.js";
import { OwnTerm } from "../checkers/nodes/own-term.js";
import { type DurableLog, type DurableState, Promises } from "../checkers/promises.js";
import { LogMirror } from "../../sim/world/logmirror.js";
import { message as fresh } from "../../doubles/raft/fresh.js";

const GROUP = 7;

/** A log whose entries have these terms, from index 1 on. */
function log(state: Partial<DurableState>, terms: readonly number[]): DurableLog {
  const whole = { term: 3, vote: 2, lastIndex: terms.length, issuedTerm: 3, ...state };
  return {
    durableGroups: [GROUP],
    durable: () => whole,
    termAt: (_group, index) => terms[index - 1],
  };
}

function message(kind: Message["kind"], more: Partial<Message> = {}): Message {
  return fresh(kind, { from: 1, to: 2, term: 3, ...more });
}

function saidOf(observe: (promises: Promises) => void): string {
  const promises = new Promises({});
  observe(promises);
  const { violations } = promises.verdict();
  t.equal(promises.isBroken, violations.length > 0);
  return violations.join();
}

t.test("P-003 P-022 what leaves a node is durable there", (t) => {
  const own = log({}, [1, 3]);
  const sent = (what: Message, from = own): string =>
    saidOf((promises) => promises.sent(1, GROUP, what, from));
  t.equal(sent(message("voteAnswer")), "");
  t.match(sent(message("voteAnswer", { to: 3 })), /votes for node 3/);
  t.match(sent(message("voteAnswer"), log({ term: 2 }, [1])), /its disk says term 2/);
  t.equal(sent(message("voteAnswer", { to: 3, reject: true })), "");
  t.equal(sent(message("appendAnswer", { index: 2 })), "");
  t.match(sent(message("appendAnswer", { index: 3 })), /acknowledges index 3/);
  const later = log({ issuedTerm: 4 }, [1]);
  t.equal(sent(message("appendAnswer", { index: 3 }), later), "", "a term that is left behind");
  t.equal(new Promises().verdict().kind, "vacuous");
  t.end();
});

t.test("P-111 what was durable is there after a restart", (t) => {
  const restarted = (before: DurableLog, after: DurableLog): string =>
    saidOf((promises) => promises.restarted(1, before, after));
  const before = log({}, [1, 3]);
  t.equal(restarted(before, log({}, [1, 3, 3])), "");
  t.match(restarted(before, log({}, [1])), /index 2 of term 3 was durable, nothing is found/);
  t.match(restarted(before, log({}, [1, 2])), /an entry of term 2 is found/);
  t.match(restarted(before, log({ term: 2 }, [1, 3])), /term 2 with a vote/);
  t.match(restarted(before, log({ vote: 1 }, [1, 3])), /a vote for 1 is found/);
  t.equal(restarted(before, log({ term: 4, vote: 0 }, [1, 3])), "");
  t.end();
});

t.test("P-018 a leader commits by an entry of its own term", (t) => {
  const judged = (entryTerm: number | null, commitIndex = 5, life = 1): string => {
    const ownTerm = new OwnTerm(1);
    ownTerm.leads(1, GROUP, { life: 1, term: 3, commitIndex: 4 }, 2);
    ownTerm.leads(1, GROUP, { life, term: 3, commitIndex }, entryTerm);
    const { kind, violations } = ownTerm.verdict();
    return `${kind} ${violations.join()}`;
  };
  t.equal(judged(3), "pass ");
  t.match(judged(2), /fail .* commits index 5, of term 2/);
  t.equal(judged(2, 4), "vacuous ");
  t.equal(judged(2, 5, 2), "vacuous ", "another life");
  t.equal(judged(null), "vacuous ");
  t.end();
});

/** A log in which everything waits until `finish`, as on a full disk. */
class SlowLog implements LogPort {
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly found: ReadonlyMap<PartitionId, RecoveredGroupLog>) {}

  finish(): void {
    for (const done of this.waiting.splice(0)) done();
  }

  recovered = (): ReadonlyMap<PartitionId, RecoveredGroupLog> => this.found;
  write = ({ done }: LogWrite): void => void this.waiting.push(done);
  resetGroup: LogPort["resetGroup"] = (_group, _floor, _state, done) =>
    void this.waiting.push(done);
  read = (): void => undefined;
  raiseFloor = (): void => undefined;
  forgetGroup: LogPort["forgetGroup"] = (_group, done) => void this.waiting.push(done);
  space: LogPort["space"] = () => "full";
  sizeBytes = (): number => 0;
  pinningGroups = (): readonly PartitionId[] => [];
  close = (done: () => void): void => done();
}

t.test("P-111 a reset that waits for space has changed nothing on the disk yet", (t) => {
  const group = partitionId(GROUP);
  const hardState = { term: 3, vote: 2, commit: 2 };
  const termRuns = [{ firstIndex: 1, term: 3 }];
  const snapshot = {
    group,
    hardState,
    floor: { index: 0, term: 0 },
    termRuns,
    lastIndex: 2,
    specialEntries: [],
    sizeRuns: [],
  };
  const open = (): { readonly log: SlowLog; readonly mirror: LogMirror } => {
    const log = new SlowLog(new Map([[group, snapshot]]));
    return { log, mirror: new LogMirror(log, () => undefined) };
  };
  const { log: slow, mirror } = open();
  mirror.resetGroup(group, { index: 9, term: 3 }, { ...hardState, commit: 9 }, () => undefined);
  t.equal(mirror.isReset(GROUP), true);
  t.equal(mirror.durable(GROUP).lastIndex, 2);
  t.equal(mirror.isDurable(GROUP, 2, 3), true, "what was there is there");
  t.equal(mirror.isDurable(GROUP, 9, 3), false);
  const restarted = saidOf((promises) => promises.restarted(1, mirror, open().mirror));
  t.equal(restarted, "", "it is begun again after a restart");
  const early = saidOf((promises) => {
    promises.sent(1, GROUP, message("appendAnswer", { index: 9 }), mirror);
  });
  t.match(early, /acknowledges index 9/, "and nobody may hear of it before it is done");
  slow.finish();
  t.equal(mirror.isReset(GROUP), false);
  t.equal(mirror.durable(GROUP).lastIndex, 9);
  t.equal(mirror.isDurable(GROUP, 9, 3), true);
  t.match(
    saidOf((promises) => promises.restarted(1, mirror, open().mirror)),
    /index 9 of term 3 was durable, nothing is found/,
  );
  t.end();
});
