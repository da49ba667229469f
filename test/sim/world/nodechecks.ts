/**
 * Hands what the world sees of its nodes to the checkers of nodes, while a run goes on.
 *
 * Invariants: 1. A violation is told at the event that shows it, so that the run ends there. 2.
 * What a checker saw is in its verdict.
 */
import { readRaftFrame } from "../../../src/host/replication/raft-frames.js";
import type { BackupChecks } from "../backups/backup-checks.js";
import { CatchUp } from "../../judge/checkers/nodes/catch-up.js";
import type { Heard } from "../../judge/checkers/replicas/acks-of-one-life.js";
import { BoundedSize, type SizeBounds } from "../../judge/checkers/nodes/bounded-size.js";
import { ConfigSteps } from "../../judge/checkers/nodes/config-steps.js";
import { DurableMajority } from "../../judge/checkers/nodes/durable-majority.js";
import { ElectionSafety } from "../../judge/checkers/nodes/election-safety.js";
import { LateExpiry } from "../../judge/checkers/nodes/late-expiry.js";
import { LeaderCompleteness } from "../../judge/checkers/nodes/leader-completeness.js";
import { Leaderships } from "../../judge/checkers/clients/leaderships.js";
import { LeadersVote } from "../../judge/checkers/nodes/leaders-vote.js";
import { LogMatching } from "../../judge/checkers/nodes/log-matching.js";
import { NeverBack } from "../../judge/checkers/nodes/never-back.js";
import { type Directory, OneFounding } from "../../judge/checkers/nodes/one-founding.js";
import { OutdatedDisks } from "../../judge/checkers/nodes/outdated-disks.js";
import { OwnTerm } from "../../judge/checkers/nodes/own-term.js";
import type { Program } from "../../../src/base/levels.js";
import { LevelSteps } from "../../judge/checkers/levels/level-steps.js";
import { PermittedEntries } from "../../judge/checkers/levels/permitted-entries.js";
import { SpokenProtocols } from "../../judge/checkers/levels/spoken-protocols.js";
import { UpgradeSteps } from "../../judge/checkers/levels/upgrade-steps.js";
import { Promises } from "../../judge/checkers/promises.js";
import { ReadTurns } from "../../judge/checkers/nodes/read-turns.js";
import { MemberLists } from "../../judge/checkers/nodes/member-lists.js";
import { StateEquality } from "../../judge/checkers/nodes/state-equality.js";
import { type Verdict, violationsReported } from "../../judge/checkers/verdict.js";
import type { LogMirror } from "./logmirror.js";
import type { GroupSample, NodeMeasure, Observer } from "./observe.js";
import { RangeChecks, type RangeSetting } from "./range-checks.js";
import { ReplicaChecks, type ReplicaWorld } from "./replica-checks.js";

/** The slowest clock of a world is so much too slow; see the faults of clocks. */
const CLOCK_SLOW = 0.05;

/** What is looked at where nodes run different programs. */
class LevelChecks {
  readonly steps = new LevelSteps();
  readonly entries = new PermittedEntries();
  readonly protocols = new SpokenProtocols();
  readonly upgrades = new UpgradeSteps();
  readonly all = [this.steps, this.entries, this.protocols, this.upgrades];

  sample({ node, life, partition, appliedIndex, level, clusterLevel }: GroupSample): void {
    if (clusterLevel > 0) this.steps.clusterAt(node, life, appliedIndex, clusterLevel);
    this.steps.groupAt(node, life, partition, appliedIndex, level);
  }
}

interface Seen {
  life: number;
  incarnation: number;
  term: number;
  leading: boolean;
  applied: number;
}

export class NodeChecks implements Observer {
  /** When which leader began to serve. */
  readonly leaderships = new Leaderships();
  readonly replicas: ReplicaChecks;
  readonly ranges: RangeChecks | null;
  /** Where backups are taken. */
  backups?: BackupChecks;
  private readonly elections = new ElectionSafety();
  private readonly durable = new DurableMajority();
  private readonly completeness = new LeaderCompleteness();
  private readonly matching: LogMatching;
  private readonly neverBack = new NeverBack();
  private readonly equality = new StateEquality();
  private readonly sizes = new BoundedSize();
  private readonly memberLists: MemberLists;
  private readonly configs: ConfigSteps;
  private readonly leaders: LeadersVote;
  private readonly promises: Promises;
  private readonly ownTerm = new OwnTerm();
  private readonly founding = new OneFounding();
  private readonly outdated = new OutdatedDisks();
  private readonly readTurns = new ReadTurns();
  private readonly catchUp: CatchUp;
  private readonly levels: LevelChecks | null;
  private readonly lateExpiry: LateExpiry;
  private readonly logs = new Map<number, LogMirror>();
  private readonly last = new Map<number, Seen>();
  /** Partitions that are removed for good. */
  private readonly removed = new Set<number>();
  private known = 0;
  /** Violations of all checkers when they were looked at last. */
  private lookedAt = 0;

  /** `violate` ends the run. `bounds`: of memory and log of a node (bytes). */
  constructor(
    private readonly violate: (text: string) => void,
    private readonly bounds: SizeBounds,
    nodes: number,
    /** Nodes join and leave: the checkers of that must see some of it. */
    hasOperators = false,
    /** Snapshots of a node until it has caught up. */
    snapshotsMax = Infinity,
    /** Longest election timeout (ms). */
    electionEndMs = 2000,
    /** Processes that run are looked at so often (ms). */
    lookEveryMs = 1000,
    /** Nodes run different programs. */
    hasUpgrades = false,
    /** Replicas come and go by the map: the checkers of that must see some of it. */
    replicas: ReplicaWorld | null = null,
    /** Key ranges are moved. */
    ranges: RangeSetting | null = null,
  ) {
    // Cut off, a leader takes two timeouts to notice; what runs is looked at once a second.
    const slackMs = 2 * electionEndMs + 2000;
    this.lateExpiry = new LateExpiry({
      ...{ drift: CLOCK_SLOW, slackMs, minimum: 0 },
      seenEveryMs: lookEveryMs + 500,
    });
    this.catchUp = new CatchUp(snapshotsMax);
    this.levels = hasUpgrades ? new LevelChecks() : null;
    const none = hasOperators ? undefined : {};
    this.memberLists = new MemberLists(none);
    this.configs = new ConfigSteps(none);
    this.leaders = new LeadersVote(none);
    this.replicas = new ReplicaChecks(replicas);
    this.ranges = ranges === null ? null : new RangeChecks(ranges);
    // The log of a node alone has no other to be compared with.
    this.matching = new LogMatching(nodes > 1 ? 100 : 0);
    // A node alone tells nobody anything.
    this.promises = new Promises(nodes > 1 ? { votes: 1, acknowledgements: 50 } : {});
  }

  entry(
    node: number,
    group: number,
    index: number,
    term: number,
    previousTerm: number,
    digest: number,
  ): void {
    this.matching.entry(node, group, index, term, previousTerm, digest.toString(16));
  }

  sample(sample: GroupSample): void {
    const { node, life, partition: group, term, appliedIndex, commitIndex } = sample;
    const { incarnation } = sample;
    const key = node * 4096 + group;
    let seen = this.last.get(key);
    if (seen === undefined || seen.life !== life || seen.incarnation !== incarnation) {
      seen = { life, incarnation, term: 0, leading: false, applied: appliedIndex };
      this.last.set(key, seen);
    }
    this.founding.term(group, term);
    this.replicas.sample(sample, sample.leading && (!seen.leading || seen.term !== term));
    if (sample.serving) this.leaderships.serves(group, term, sample.atMs, sample.inherits);
    if (sample.leading && (!seen.leading || seen.term !== term)) {
      this.elections.leader(group, term, node);
      this.ranges?.leaderChanged(group);
      this.founding.elected(node, group, term, sample.voters);
      this.outdated.leads(node, group, term);
      this.completeness.leader(node, group, term, sample.termAt);
    }
    this.durable.disk(node, life, group, sample.isDurable);
    if (sample.leading) {
      const committedTerm = sample.termAt(commitIndex);
      this.ownTerm.leads(node, group, { life, term, commitIndex }, committedTerm ?? null);
      // What was removed is dropped by one node after the other.
      if (typeof committedTerm === "number" && !this.removed.has(group)) {
        this.durable.commit(node, group, commitIndex, committedTerm, sample.voters);
      }
    }
    // Right after the install of a snapshot the log is still the old one: it says nothing then.
    const isOwnLog = sample.termAt(appliedIndex) === sample.appliedTerm;
    for (let index = seen.applied + 1; isOwnLog && index <= appliedIndex; index++) {
      const own = sample.termAt(index);
      if (own !== null && own !== undefined) this.completeness.commit(node, group, index, own);
    }
    if (sample.leading) this.leaders.leads(node, life, group, term);
    const log = this.logs.get(node);
    const isWhole = isOwnLog && log !== undefined && !log.isReset(group);
    const durable = isWhole ? log.durable(group).lastIndex : null;
    // A term that is not on the disk yet may be forgotten by a crash: nobody was told of it.
    const { durableTerm } = sample;
    const [commit, applied] = [commitIndex, appliedIndex];
    const progress = {
      node,
      life,
      incarnation,
      group,
      commit,
      applied,
      term: durableTerm,
      durable,
    };
    this.neverBack.observe(progress);
    if (appliedIndex > 0) this.equality.applied(node, group, appliedIndex, sample.chainDigest);
    this.levels?.sample(sample);
    seen.term = term;
    seen.leading = sample.leading;
    seen.applied = appliedIndex;
    // The meta partition holds no leases: what becomes of its clock matters to nobody.
    if (group !== 0) this.lateExpiry.sample(sample);
    this.tell();
  }

  ran(node: number, life: number, atMs: number): void {
    this.lateExpiry.ran(node, life, atMs);
  }

  membership(...seen: Parameters<ConfigSteps["membership"]>): void {
    const [node, life, group, index, membership] = seen;
    this.configs.membership(...seen);
    this.leaders.membership(node, life, group, index, membership);
    this.replicas.membership(group, index, membership);
  }

  records(...seen: Parameters<ReplicaChecks["records"]>): void {
    for (const { partitionId, state } of seen[0]) {
      if (state === "Removed") this.removed.add(partitionId);
    }
    this.replicas.records(...seen);
  }

  cluster(...seen: Parameters<ReplicaChecks["cluster"]>): void {
    this.replicas.cluster(...seen);
  }

  heard(heard: Heard): void {
    this.replicas.acks.heard(heard);
    this.tell();
  }

  dropped(node: number, group: number): void {
    this.replicas.drops.dropped(node, group);
    this.tellNow();
  }

  members(node: number, life: number, version: number, text: string): void {
    this.memberLists.members(node, life, version, text);
    this.founding.members(node, version, JSON.parse(text) as Directory[]);
  }

  founded(node: number, directories: readonly Directory[]): void {
    this.founding.founded(node, directories);
    this.tellNow();
  }

  admitted(node: number): void {
    this.founding.admitted(node);
  }

  recovered(node: number, log: LogMirror): void {
    const before = this.logs.get(node);
    if (before !== undefined) this.promises.restarted(node, before, log);
    this.logs.set(node, log);
    if (this.promises.isBroken) this.tellNow();
  }

  sent(node: number, to: number, bytes: Uint8Array, log: LogMirror): void {
    readRaftFrame(bytes, node, to, ({ group, message }) => {
      this.promises.sent(node, group, message, log);
      this.outdated.sent(node, group, message);
      this.replicas.votes.sent(node, group, message);
    });
    if (this.promises.isBroken) this.tellNow();
  }

  wiped(node: number): void {
    this.forget(node);
    this.founding.wiped(node);
    this.outdated.wiped(node);
  }

  rolledBack(node: number): void {
    this.forget(node);
    this.outdated.rolledBack(node);
  }

  refusedBy(...refusal: Parameters<OutdatedDisks["refused"]>): void {
    this.outdated.refused(...refusal);
  }

  private forget(node: number): void {
    this.replicas.votes.forgot(node);
    this.logs.delete(node);
    this.neverBack.wiped(node);
  }

  size(node: number, measured: NodeMeasure): void {
    this.sizes.measure(node, measured, this.bounds);
    this.tell();
  }

  readTurn(...turn: Parameters<ReadTurns["turn"]>): void {
    this.readTurns.turn(...turn);
    if (this.readTurns.isBroken) this.tellNow();
  }

  caughtUp(...seen: Parameters<CatchUp["measure"]>): void {
    this.catchUp.measure(...seen);
  }

  openedLevel(...opened: Parameters<UpgradeSteps["opened"]>): void {
    this.levels?.upgrades.opened(...opened);
  }

  refusedLevel(...refused: Parameters<UpgradeSteps["refused"]>): void {
    this.levels?.upgrades.refused(...refused);
  }

  rolled(how: "forward" | "back"): void {
    this.levels?.upgrades.rolled(how);
  }

  admittedAt(...admitted: Parameters<UpgradeSteps["admitted"]>): void {
    this.levels?.upgrades.admitted(...admitted);
  }

  wroteBefore(node: number): void {
    this.levels?.upgrades.wrote(node);
  }

  leftBehind(node: number): void {
    this.levels?.upgrades.leftBehind(node);
  }

  finalized(tookMs: number): void {
    this.levels?.upgrades.finalized(tookMs);
  }

  written(...written: Parameters<PermittedEntries["written"]>): void {
    this.levels?.entries.written(...written);
  }

  spoken(node: number, own: Program, peer: number, theirs: Program, protocol: number): void {
    const { protocols } = own;
    this.levels?.protocols.linked(node, protocols, peer, theirs.protocols, protocol);
  }

  verdicts(): Verdict[] {
    const { elections, durable, completeness, matching, neverBack, equality, sizes } = this;
    const { memberLists, configs, leaders } = this;
    const ofLogs = [elections, durable, completeness, matching, neverBack, equality, sizes];
    const ofLosses = [this.founding, this.outdated, this.readTurns];
    const own = [this.promises, this.ownTerm, this.catchUp, this.lateExpiry, ...ofLosses];
    const all = [...ofLogs, memberLists, configs, leaders, ...own, ...this.replicas.all];
    const special = [...(this.levels?.all ?? []), ...(this.ranges?.all ?? [])];
    return [...all, ...special].map((checker) => checker.verdict());
  }

  /** Ends the run at the first violation. Looked at only now and then where it costs. */
  private tell(): void {
    if (++this.known % 16 === 0) this.tellNow();
  }

  private tellNow(): void {
    const reported = violationsReported();
    if (reported === this.lookedAt) return;
    this.lookedAt = reported;
    for (const verdict of this.verdicts()) {
      if (verdict.kind === "fail") {
        this.violate(`${verdict.property}: ${verdict.violations[0] ?? ""}`);
        return;
      }
    }
  }
}
