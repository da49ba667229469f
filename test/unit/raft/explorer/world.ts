/**
 * A model world: a few cores, the network between them as a bag of messages, their disks with writes
 * that take time, their state machines. Payloads are their positions: (term, index) names a value.
 *
 * Every event is followed by the checks of `History` and by the core's own `assertState`.
 *
 * Invariants: 1. An event touches one node. 2. Effects are carried out as src/raft/state/types.ts says.
 * 3. A copy made for an event on one node shares the other nodes, which do not change.
 */
import type { CoreConfig } from "../../../../src/raft/state/config.js";
import {
  needsSnapshot,
  type ConfigChange,
  type Effects,
  type Message,
} from "../../../../src/raft/state/types.js";
import { apply, change, compact, complete, crash, read, renew, report } from "./acts.js";
import { noCounts, type Counts } from "./counts.js";
import { digestOf } from "./copy.js";
import type { Event, Flight, Report } from "./events.js";
import { History, must } from "./history.js";
import { ModelNode, type Library } from "./node.js";

export interface Settings {
  /** How many nodes found the group, and how many more there are that can be added. */
  readonly founders: number;
  readonly spares: number;
  readonly core: Partial<CoreConfig>;
  /** Whether a write is durable, and a batch applied, as soon as it is asked for. */
  readonly writesAtOnce: boolean;
  readonly appliesAtOnce: boolean;
  /** Whether the host offers its newest snapshot for sending, or leaves that to the core. */
  readonly offersSnapshots: boolean;
  /** Whether only membership changes are made that cannot leave the group stuck. */
  readonly gentleChanges: boolean;
  /** Whether messages and states get digests. */
  readonly digests: boolean;
  readonly seed: number;
}

export class World {
  readonly settings: Settings;
  readonly library: Library;
  readonly ids: readonly number[];
  nodes: ModelNode[];
  network: Flight[] = [];
  reports: Report[] = [];
  history = new History();
  counts: Counts = noCounts();
  /** Membership changes by "term/index". */
  changes = new Map<string, ConfigChange>();
  lastContext = 0;

  constructor(library: Library, settings: Settings) {
    const total = settings.founders + settings.spares;
    this.library = library;
    this.settings = settings;
    this.ids = Array.from({ length: total }, (_, at) => at + 1);
    const founders = this.ids.slice(0, settings.founders);
    this.nodes = this.ids.map((id) => new ModelNode(library, this.configOf(id), founders));
  }

  configOf(id: number): CoreConfig {
    const { core, seed } = this.settings;
    return { ...this.library.defaultConfig(id, seed * 64 + id), ...core };
  }

  node(id: number): ModelNode {
    return this.nodes[id - 1] as ModelNode;
  }

  /** A world that goes on by itself after an event on node `id`; counts go to the same place. */
  copyFor(id: number): World {
    const to = Object.create(World.prototype) as World;
    Object.assign(to, this);
    to.nodes = this.nodes.slice();
    if (id > 0) to.nodes[id - 1] = this.node(id).copy();
    to.network = this.network.slice();
    to.reports = this.reports.slice();
    to.history = this.history.copy();
    to.changes = new Map(this.changes);
    return to;
  }

  get digest(): number {
    let flights = 0;
    for (const { key } of this.network) flights = (flights + key) % 0xf_ffff_ffff_ffff;
    const { leaders, truth, committedIn, votes, vouched, reads } = this.history;
    const nodes = this.nodes.map((node) => node.digest % 0x1_0000_0000);
    const high = this.nodes.map((node) => Math.floor(node.digest / 0x1_0000_0000));
    const rest = [leaders, truth, committedIn, votes, vouched, reads, this.reports];
    return digestOf(nodes, high, flights % 0x1_0000_0000, flights / 0x1_0000_0000, ...rest);
  }

  /** Lets the event happen. False if there is nothing for it to happen to. */
  perform(event: Event): boolean {
    const node = this.nodes[event.node - 1];
    if (!this.act(event, node)) return false;
    this.counts.steps++;
    if (node !== undefined) this.settle(node);
    return true;
  }

  private act(event: Event, node: ModelNode | undefined): boolean {
    const { kind, at } = event;
    if (kind === "deliver" || kind === "duplicate" || kind === "drop") return this.carry(kind, at);
    if (node === undefined) return false;
    const { core } = node;
    switch (kind) {
      case "tick":
        core.tick(at);
        return true;
      case "campaign":
        core.campaign();
        return true;
      case "complete":
        return complete(this, node);
      case "apply":
        return apply(this, node);
      case "crash":
        return crash(this, node, at);
      case "renew":
        return renew(this, node);
      case "propose":
        return core.propose(Array.from({ length: at }, () => 1 + (core.lastIndex % 7))).ok;
      case "change":
        return change(this, node, at);
      case "read":
        return read(this, node);
      case "transfer":
        if (node.id === at || core.role !== "leader") return false;
        core.transferLeadership(at);
        this.counts.transfersOrdered++;
        return true;
      case "flush":
        node.snapshot = node.applied;
        return true;
      case "compact":
        return compact(this, node, at);
      case "report":
        return report(this, node, at);
      case "unreachable":
        core.reportUnreachable(at);
        return true;
      case "forget":
        core.forgetLeader();
        return true;
    }
  }

  private carry(kind: "deliver" | "duplicate" | "drop", at: number): boolean {
    const flight = this.network[at];
    if (flight === undefined) return false;
    if (kind !== "duplicate") this.network.splice(at, 1);
    const { message } = flight;
    if (kind === "drop") this.counts.dropped++;
    else this.counts.delivered++;
    if (kind === "duplicate") this.counts.duplicated++;
    if (message.kind === "snapshot") {
      this.reports.push({ node: message.from, about: message.to, ok: kind !== "drop" });
    }
    if (kind === "drop") return true;
    if (this.isStray(flight)) {
      this.counts.strays++;
      return true;
    }
    if (message.kind === "timeoutNow") this.counts.transferCampaigns++;
    if (message.kind === "appendAnswer" && message.reject) this.counts.refusedAppends++;
    if (message.reject && message.context === needsSnapshot) this.counts.snapshotsNeeded++;
    const { core } = this.node(message.to);
    const { term, vote } = core;
    core.step(message);
    must(
      message.kind !== "preVote" || (core.term === term && core.vote === vote),
      () => `a pre-vote takes ${message.to} from term ${term} to ${core.term}`,
    );
    return true;
  }

  /** From or to a life that is over: the host's duty is to drop it. */
  private isStray({ message, fromLife, toLife }: Flight): boolean {
    const { incarnation } = this.node(message.to);
    return toLife !== incarnation || fromLife !== this.node(message.from).incarnation;
  }

  /** Puts a message on its way. */
  send(message: Message): void {
    const fromLife = this.node(message.from).incarnation;
    const toLife = this.node(message.to).incarnation;
    const key = this.settings.digests ? digestOf(message, fromLife, toLife) : 0;
    this.network.push({ message, fromLife, toLife, key });
  }

  /** Carries out everything that the node's core asks for, and checks what has become of it. */
  settle(node: ModelNode): void {
    const { writesAtOnce, appliesAtOnce } = this.settings;
    do {
      while (node.core.hasEffects()) this.take(node, node.core.takeEffects());
      this.watch(node);
    } while ((writesAtOnce && complete(this, node)) || (appliesAtOnce && apply(this, node)));
    node.core.assertState();
  }

  private take(node: ModelNode, effects: Effects): void {
    const { append, snapshot, committed, messagesAfterWrite } = effects;
    const { history, counts } = this;
    if (snapshot !== null) {
      node.log.restart(snapshot.index, snapshot.term);
      node.batches = [];
    }
    if (append !== null) {
      if (append.first <= node.log.last) counts.truncations++;
      must(append.first > node.commit || append.first > node.log.last, () => {
        return `${node.id} rewrites ${append.first}, committed is ${node.commit}`;
      });
      node.log.append(append);
      history.matches(node, this.nodes);
      if (append.configChanges.length > 0 && node.core.role === "leader") history.proposed(node);
    }
    if (committed !== null) node.batches.push(committed);
    for (const message of effects.messages) {
      history.vouch(node, message);
      this.send(message);
    }
    for (const { context, index } of effects.readStates) {
      counts.readsAnswered++;
      history.answered(context, index);
    }
    for (const context of effects.droppedReads) {
      counts.readsDropped++;
      history.reads.delete(context);
    }
    const writes = append !== null || snapshot !== null || effects.hardState !== null;
    if (writes || messagesAfterWrite.length > 0 || effects.receipt !== null) {
      node.writes.push(effects);
    }
  }

  /** What may never fall did not; what is new is examined. */
  watch(node: ModelNode): void {
    const { core } = node;
    const { term, commitIndex, role } = core;
    must(term >= node.term, () => `the term of ${node.id} falls from ${node.term} to ${term}`);
    must(commitIndex >= node.commit, () => {
      return `the commit index of ${node.id} falls from ${node.commit} to ${commitIndex}`;
    });
    node.term = term;
    const before = node.commit;
    node.commit = commitIndex;
    const { history, counts } = this;
    const led = role === "leader" && history.leaders[term] === node.id;
    if (role === "leader" && !led) history.leads(node, counts);
    if (commitIndex === before) return;
    history.commits(node, before, counts);
    // The vote that makes a leader may tell what is committed; only a leader counts.
    if (led) history.counted(node, this.nodes);
  }
}
