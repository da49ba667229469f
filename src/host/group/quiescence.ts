/**
 * Lets one idle group sleep: no ticks, no heartbeats, until something happens.
 *
 * A leader sends its followers to sleep by a heartbeat that is marked (`reject`); whoever has
 * caught up with it goes along. A sleeping follower asks its leader from time to time, by a marked
 * answer, whether the group still lives there, so that a group that is stuck on a living node is
 * failed over too. Invariants: 1. A leader sleeps only when every member is linked and has
 * confirmed the last index (P-013). 2. Every message but the marked ones, every command, read and
 * broken link wakes the group. 3. A pre-vote of the believed leader proves that its seat is vacant.
 * 4. A sleeping follower that gets no sign within an election timeout of asking wakes.
 */
import type { RaftCore } from "../../raft/core.js";
import type { Message, MessageKind } from "../../raft/state/types.js";
import type { Leadership } from "./leadership.js";

/**
 * A sleeping follower asks about this often, at times that are multiples of the step, so that all
 * groups ask in one frame (ms).
 */
const PROBE_EVERY_MS = 10_000;
export const PROBE_STEP_MS = 5000;

/** A member counts as away after so many election timeouts without a link. */
const AWAY_ELECTIONS = 5;

export interface QuiescenceSettings {
  readonly nodeId: number;
  readonly electionMs: number;
  readonly heartbeatMs: number;
  /** Idle time before a group sleeps; 0 = never. */
  readonly quiesceAfterMs: number;
}

/** The parts of the group. */
export interface QuiescenceGroup {
  readonly core: RaftCore;
  readonly leadership: Leadership;
  /** Nothing is queued, on its way to the disk, or unapplied. */
  readonly isQuiet: boolean;
  isLinked(node: number): boolean;
  /** How long a node has not been linked (ms); 0 while it is. */
  unlinkedMs(node: number, nowMs: number): number;
  send(message: Message): void;
  /** The group slept, and does so no more. */
  woken(): void;
}

export class Quiescence {
  private quiesced = false;
  private activeMs = 0;
  private probeAtMs = Infinity;
  private askedMs = Infinity;

  constructor(
    private readonly settings: QuiescenceSettings,
    private readonly group: QuiescenceGroup,
  ) {}

  get isQuiesced(): boolean {
    return this.quiesced;
  }

  /** Asleep, and not waiting for a sign of its leader. */
  get isAtRest(): boolean {
    return this.quiesced && (this.isLeader || this.askedMs === Infinity);
  }

  /** Something happened: the group is awake for a while. */
  wake(nowMs: number): void {
    this.activeMs = nowMs;
    this.rise();
  }

  private rise(): void {
    if (!this.quiesced) return;
    this.quiesced = false;
    this.group.woken();
  }

  /**
   * The sign for which a follower asked that sleeps with all there is: it says nothing to the core,
   * whose answer to it would only run the groups of both nodes once more.
   */
  isSign(message: Message): boolean {
    if (!this.quiesced || message.kind !== "heartbeat" || !message.reject) return false;
    return this.isOfSleep(message);
  }

  /** A message is about to be stepped. */
  before(message: Message): void {
    const { leadership, core } = this.group;
    if (message.kind === "preVote" && message.from === leadership.leader) core.forgetLeader();
  }

  /** A message was stepped. */
  after(message: Message, nowMs: number): void {
    if (message.kind === "heartbeat" && message.reject) return this.follow(message, nowMs);
    if (message.kind === "heartbeatAnswer") {
      if (message.reject && this.quiesced && this.isLeader) this.answerProbe(message);
      return;
    }
    if (message.kind !== "heartbeat") this.activeMs = nowMs;
    this.rise();
  }

  /**
   * Called at each tick of the node, before those of Raft. Returns whether the group is to be
   * ticked.
   */
  tick(nowMs: number): boolean {
    if (!this.quiesced) this.rest(nowMs);
    if (!this.quiesced) return true;
    if (this.isLeader) return false;
    if (nowMs >= this.askedMs + this.settings.electionMs) this.wake(nowMs);
    else if (this.askedMs === Infinity && nowMs >= this.probeAtMs) this.ask(nowMs);
    return !this.quiesced;
  }

  /**
   * Sends the group to sleep if it is idle. No heartbeat of the core is under way then: it would
   * overtake the marked one, and wake whoever had just gone to sleep.
   */
  private rest(nowMs: number): void {
    const { quiesceAfterMs, heartbeatMs } = this.settings;
    const { leadership, core } = this.group;
    const isStill = leadership.isServing && !core.hasEffects() && this.group.isQuiet;
    if (!isStill || !this.isCaughtUp(core.lastIndex)) {
      this.activeMs = nowMs;
      return;
    }
    // A heartbeat more: followers have applied what the last one told them to be committed.
    if (quiesceAfterMs === 0 || nowMs < this.activeMs + quiesceAfterMs + heartbeatMs) return;
    const { progress, membership, transferTo } = core.status();
    if (transferTo !== 0 || membership.votersOutgoing.length > 0) return;
    let votes = membership.voters.includes(core.id) ? 1 : 0;
    const caughtUp: number[] = [];
    for (const peer of progress) {
      if (peer.id === core.id || this.isAway(peer.id, nowMs)) continue;
      if (peer.match !== core.lastIndex || !peer.active) return;
      // It confirmed before its link broke: who slept now would lead without a majority for ever.
      if (!this.group.isLinked(peer.id)) return;
      if (!peer.learner) votes++;
      caughtUp.push(peer.id);
    }
    if (caughtUp.length === 0 || votes * 2 <= membership.voters.length) return;
    for (const id of caughtUp) this.sendToSleep(id);
    this.quiesced = true;
  }

  /** A member that was not linked for long is waited for asleep: its return wakes the group. */
  private isAway(node: number, nowMs: number): boolean {
    return this.group.unlinkedMs(node, nowMs) > AWAY_ELECTIONS * this.settings.electionMs;
  }

  private answerProbe(probe: Message): void {
    const { core } = this.group;
    const peer = core.status().progress.find((each) => each.id === probe.from);
    const isCaughtUp = peer !== undefined && peer.match === core.lastIndex;
    if (isCaughtUp && probe.term === core.term) this.sendToSleep(probe.from);
    else this.rise();
  }

  private get isLeader(): boolean {
    return this.group.core.role === "leader";
  }

  private isCaughtUp(index: number): boolean {
    const { core } = this.group;
    return core.lastIndex === index && core.commitIndex === index && core.appliedIndex === index;
  }

  private follow(message: Message, nowMs: number): void {
    if (!this.isOfSleep(message)) {
      this.rise();
      return;
    }
    this.quiesced = true;
    this.askedMs = Infinity;
    this.probeAtMs = Math.ceil((nowMs + PROBE_EVERY_MS) / PROBE_STEP_MS) * PROBE_STEP_MS;
  }

  /** A marked heartbeat of the leader of this term, and this node has all that it has. */
  private isOfSleep({ from, term, commit }: Message): boolean {
    const { core } = this.group;
    return core.leader === from && core.term === term && this.isCaughtUp(commit);
  }

  private ask(nowMs: number): void {
    this.askedMs = nowMs;
    const { core } = this.group;
    this.group.send(this.marked("heartbeatAnswer", core.leader, 0));
  }

  private sendToSleep(to: number): void {
    this.group.send(this.marked("heartbeat", to, this.group.core.lastIndex));
  }

  private marked(kind: MessageKind, to: number, commit: number): Message {
    return {
      kind,
      from: this.settings.nodeId,
      to,
      term: this.group.core.term,
      logTerm: 0,
      index: 0,
      commit,
      reject: true,
      rejectHint: 0,
      context: 0,
      entries: null,
      snapshot: null,
      proposal: null,
    };
  }
}
