/**
 * Looks at heirs of locks in a world: what is proposed and applied of each lock, what leaders tell
 * ahead of what is applied, and lists that outlived their terms. Tells the checkers of
 * `../../judge/checkers/heirs/`.
 *
 * Invariants: 1. What is looked at goes on as it would: no draw, no delay, no other order. 2. An
 * entry is told once, when the first replica applies it: that all come to the same is for another
 * checker. 3. What the service did of itself, so that an order of what clients saw may need it, is
 * recorded as an attempt that nobody knows the end of.
 */
import type { Group } from "../../../src/host/group/group.js";
import type { ProposalResult } from "../../../src/host/requests/results.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { Replica } from "../../../src/host/group/replica.js";
import type { Attempt, History, HistoryRecorder, LockOperation } from "../../judge/history.js";
import type { Verdict } from "../../judge/checkers/verdict.js";
import type { SeenGrant } from "../../judge/checkers/waits/lease-from-grant.js";
import { ListForward } from "../../judge/checkers/heirs/list-forward.js";
import type { Deed, NaiveRow, SeenHeir, When } from "../../judge/checkers/heirs/naive-row.js";
import { OrphanBounded } from "../../judge/checkers/heirs/orphan-bounded.js";
import { type OnItsWay, StepByText } from "../../judge/checkers/heirs/step-by-text.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { ForcedTap } from "./forced-tap.js";
import { neededAttempts } from "./needed-attempts.js";
import { deedOf, endOf, seenRowOf } from "./seen-deeds.js";

/** What a leader has in memory of one lock, as far as it is seen. */
interface AtLeader {
  readonly onItsWay: Set<OnItsWay>;
  /** The grant that was told last; -1: none in this term. */
  position: bigint;
  term: number;
  /** When it told of a grant ahead of what is applied last (ms). */
  steppedMs: number;
}

type Done = (result: ProposalResult) => void;
type Mutable = Omit<SeenGrant, "decidedMs"> & { decidedMs: number };

/** Who is told of a grant. */
export type Told = Pick<SeenHeir, "owner" | "waitId" | "attempt">;

/** Names a command of a holder in a term. */
function wordOf(lock: string, term: number, deed: Deed): string {
  const owner = "owner" in deed ? deed.owner : "";
  const token = "token" in deed ? deed.token : null;
  return `${lock} ${term} ${deed.kind} ${token} ${owner}`;
}

export class HeirTap {
  readonly lists = new ListForward();
  readonly steps = new StepByText();
  readonly forced = new ForcedTap();
  readonly orphans = new OrphanBounded();
  private readonly highest = new Map<number, number>();
  private readonly leaders = new WeakMap<Group, Map<string, AtLeader>>();
  /** Tokens that were granted, by lock and owner. */
  private readonly tokens = new Map<string, Set<bigint>>();
  /** Stretches in which a list was orphaned, by lock. */
  private readonly stretches = new Map<string, { fromMs: number; toMs: number }[]>();
  private readonly lastMs = new Map<string, number>();
  /** Since when (ms), by lock and owner of presumed holders. */
  private readonly presumed = new Map<string, number>();
  /** Of whoever was made the holder last, by lock and owner (ms). */
  private readonly made = new Map<string, { proposedMs: number; appliedMs: number }>();
  /** When a command was proposed first in its term: its entry got its time no sooner (ms). */
  private readonly proposedMs = new Map<string, number>();
  /** Grants upon whose release the next holder was told ahead of what was applied. */
  private readonly handedOn = new Set<string>();
  /** Grants that were told along lists. */
  private readonly grants = new Map<string, Mutable>();

  constructor(
    private readonly world: World,
    private readonly servers: readonly Server[],
    private readonly history: HistoryRecorder,
  ) {}

  /** A life of `server` is open. */
  opened({ running }: Server): void {
    if (running === null) return;
    const { registry } = running.node["parts"];
    for (const { replica } of registry.all) this.listen(replica);
    registry.onAdded((replica) => this.listen(replica));
  }

  /** Looks at what `group` proposes at a node from now on. */
  proposals(node: number, group: Group): void {
    if (this.leaders.has(group)) return;
    const locks = new Map<string, AtLeader>();
    this.leaders.set(group, locks);
    const propose = group.proposeFinal.bind(group);
    group.proposeFinal = (command, sizeBytes, deadlineMs, done, joined, marks) => {
      const watched = (of: Command, then: Done): Done => {
        const seen = deedOf(of);
        if (seen === null) return then;
        const lock = `lock ${seen.resource}`;
        const { onItsWay } = this.atLeader(locks, lock, group);
        const one = { deed: seen.deed, proposedMs: this.world.nowMs, isOfStep: false };
        onItsWay.add(one);
        const word = wordOf(lock, group.term(), seen.deed);
        if (!this.proposedMs.has(word)) this.proposedMs.set(word, one.proposedMs);
        this.steps.proposed(lock, node, one);
        return (result) => {
          onItsWay.delete(one);
          then(result);
        };
      };
      const first = watched(command, done);
      const next = joined && { ...joined, done: watched(joined.command, joined.done) };
      return propose(command, sizeBytes, deadlineMs, first, next, marks);
    };
  }

  /** A leader tells `to` of the grant `token`; returns whether it is ahead of what it has applied. */
  told(node: number, group: Group, resource: string, token: bigint, to: Told): boolean {
    const lock = `lock ${resource}`;
    const locks = this.leaders.get(group) ?? new Map<string, AtLeader>();
    const at = this.atLeader(locks, lock, group);
    const row = seenRowOf(group.machine, resource);
    const applied = row?.isHeld === true ? row.base.token : -1n;
    const position = at.position > applied ? at.position : applied;
    at.position = token > position ? token : position;
    this.granted(lock, to.owner, token);
    if (row === null || token <= applied) return false;
    at.steppedMs = this.world.nowMs;
    this.handedOn.add(`${lock} ${position}`);
    this.steps.stepped({
      ...{ lock, node, term: group.term(), atMs: this.world.nowMs, row, position, token, to },
      leaseNowMs: group.leaseNowMs(),
      onItsWay: [...at.onItsWay],
      isDeposed: this.isDeposed(group),
    });
    return true;
  }

  /** The grant that was told now; null: what its lease is nobody here knows. */
  grantOf(lock: string, group: Group, token: bigint): SeenGrant | null {
    const known = this.lists.at(lock)?.line ?? [];
    const named = seenRowOf(group.machine, lock.slice(lock.indexOf(" ") + 1))?.heirs ?? [];
    const heir = [...known, ...named].find((one) => one.token === token);
    if (heir === undefined) return null;
    const { nowMs } = this.world;
    const { owner, leaseMs } = heir;
    const times = { proposedMs: nowMs, decidedMs: nowMs };
    const grant = { lock, partition: group.partition, owner, token, leaseMs, ...times };
    this.grants.set(`${lock} ${token}`, grant);
    return grant;
  }

  /** The row of the lock that is applied there has that owner for its holder or next ones. */
  isNamed(group: Group, resource: string, owner: string): boolean {
    const row = seenRowOf(group.machine, resource);
    if (row?.isHeld !== true) return false;
    return [row.base, ...row.heirs].some((member) => member.owner === owner);
  }

  /** That of an orphaned list: its members come before all others (Q11). */
  isOfOrphan(group: Group, resource: string, owner: string): boolean {
    const when = { term: group.term(), leaseMs: group.leaseNowMs() };
    const naive = this.lists.at(`lock ${resource}`);
    return naive?.isOrphaned(when) === true && naive.line.some((one) => one.owner === owner);
  }

  /** By what is applied at the leader a list of an earlier term binds the lock. */
  isBound(group: Group, resource: string): boolean {
    const row = seenRowOf(group.machine, resource);
    if (row?.isHeld !== true || row.heirs.length === 0) return false;
    return row.listTerm !== group.term() && group.leaseNowMs() < row.untilMs;
  }

  /** Something about the lock is on its way at its leader. */
  isBusy(group: Group, resource: string): boolean {
    const at = this.leaders.get(group)?.get(`lock ${resource}`);
    return at !== undefined && at.onItsWay.size > 0;
  }

  /** When a leader last told of a grant ahead of what it had applied (ms). */
  steppedMs(group: Group): number {
    const locks = [...(this.leaders.get(group)?.values() ?? [])];
    return Math.max(-Infinity, ...locks.map(({ steppedMs }) => steppedMs));
  }

  /** Whoever holds the lock by what was applied last; null: nobody. */
  baseOf(resource: string): SeenHeir | null {
    const naive = this.lists.at(`lock ${resource}`);
    return naive?.isHeld === true ? naive.base : null;
  }

  /** Heirs that the longest list has there, as applied. */
  longestList(group: Group): number {
    const locks = [...(this.leaders.get(group)?.keys() ?? [])];
    const lengths = locks.map((lock) => {
      return seenRowOf(group.machine, lock.slice(lock.indexOf(" ") + 1))?.heirs.length ?? 0;
    });
    return Math.max(0, ...lengths);
  }

  /** Time has gone on. */
  look(): void {
    this.steps.look(this.world.nowMs);
  }

  /** A leader was looked at: whether the list of the lock has outlived its term there. */
  orphaned(group: Group, resource: string): NaiveRow | null {
    const when = { term: group.term(), leaseMs: group.leaseNowMs() };
    const lock = `lock ${resource}`;
    const naive = this.lists.at(lock);
    const isOrphaned = this.lists.look(lock, when);
    if (isOrphaned) this.note(lock);
    return isOrphaned ? naive : null;
  }

  /** Whether somebody may have been told Busy for the sake of a list alone, at some time between. */
  wasOrphaned(lock: string, fromMs: number, toMs: number): boolean {
    const stretches = this.stretches.get(lock) ?? [];
    return stretches.some((one) => one.fromMs <= toMs && one.toMs >= fromMs);
  }

  /** The owner was made the holder by a list that had outlived its leader, wherever it was itself. */
  isPresumed(lock: string, owner: string, atMs: number): boolean {
    return (this.presumed.get(`${lock} ${owner}`) ?? Infinity) <= atMs;
  }

  /** When the command that made the owner the holder last was proposed, and when it was applied. */
  heldBy(lock: string, owner: string): { proposedMs: number; appliedMs: number } | null {
    return this.made.get(`${lock} ${owner}`) ?? null;
  }

  /** The attempts among which an order has to be searched for. */
  needed(attempts: readonly Attempt[]): Attempt[] {
    const nothing: ReadonlySet<bigint> = new Set();
    return neededAttempts(attempts, {
      of: (lock, owner) => this.tokens.get(`${lock} ${owner}`) ?? nothing,
      isHandedOn: (lock, token) => this.handedOn.has(`${lock} ${token}`),
    });
  }

  judge(history: History): Verdict[] {
    this.steps.judge(history);
    this.orphans.judge(history);
    return [this.steps.verdict(), this.lists.verdict(), this.orphans.verdict()];
  }

  private atLeader(locks: Map<string, AtLeader>, lock: string, group: Group): AtLeader {
    const known = locks.get(lock);
    const term = group.term();
    if (known?.term === term) return known;
    const at = { onItsWay: new Set<OnItsWay>(), position: -1n, term, steppedMs: -Infinity };
    locks.set(lock, at);
    return at;
  }

  private isDeposed(group: Group): boolean {
    const { partition } = group;
    return this.servers.some(({ running }) => {
      const other = running?.node.group(partition) ?? null;
      return other !== null && other.isLeader() && other.term() > group.term();
    });
  }

  private listen({ partition, machine }: Replica): void {
    const apply = machine.apply.bind(machine);
    machine.apply = (entry, commands, outcomes) => {
      const first = outcomes.length;
      const { tokenFloor: floor } = machine;
      apply(entry, commands, outcomes);
      const { index, term } = entry;
      if (index <= (this.highest.get(partition) ?? 0)) return;
      this.highest.set(partition, index);
      const when = { term, leaseMs: machine.leaseMs, floor };
      const resources = new Set<string>();
      commands.forEach((command, at) => {
        const seen = deedOf(command);
        const outcome = outcomes[first + at];
        const end = outcome === undefined ? null : endOf(outcome);
        if (seen === null || end === null) return;
        resources.add(seen.resource);
        this.applied(seen.resource, when, seen.deed, end);
      });
      for (const resource of resources) {
        this.lists.row(`lock ${resource}`, when, seenRowOf(machine, resource));
      }
    };
  }

  private applied(
    resource: string,
    when: When,
    deed: Parameters<ListForward["applied"]>[2],
    outcome: Parameters<ListForward["applied"]>[3],
  ): void {
    const lock = `lock ${resource}`;
    const naive = this.lists.at(lock);
    const before = naive?.isHeld === true ? naive.base.token : -1n;
    const wasOrphaned = naive?.isOrphaned(when) === true;
    if (wasOrphaned) this.note(lock);
    this.lists.applied(lock, when, deed, outcome);
    this.lastMs.set(lock, this.world.nowMs);
    const { nowMs } = this.world;
    const now = this.lists.at(lock);
    if (now?.isHeld === true) this.granted(lock, now.base.owner, now.base.token);
    const sinceMs = this.proposedMs.get(wordOf(lock, when.term, deed)) ?? nowMs;
    if (outcome.end === "unlocked") {
      this.steps.released(lock, outcome.token, nowMs);
      const owner = "owner" in deed ? deed.owner : "";
      const release = { kind: "try-unlock", expiresMs: 0, isGiveBack: true } as const;
      if (owner !== "") this.record(resource, owner, outcome.token, release, nowMs);
    }
    if (now?.isHeld !== true || now.base.token === before) return;
    const { owner, token } = now.base;
    this.forced.granted(resource, owner, token, nowMs);
    this.made.set(`${lock} ${owner}`, { proposedMs: sinceMs, appliedMs: nowMs });
    if (deed.kind === "try") return;
    // Its lease runs from here on: never shorter than it was told.
    const grant = this.grants.get(`${lock} ${token}`);
    if (grant !== undefined) grant.decidedMs = Math.max(grant.decidedMs, nowMs);
    const expiresMs = Math.max(1, now.endMs - when.leaseMs);
    // Its lease may be longer than a client may ask for, up to the end of the list.
    const grantNow = { kind: "try-lock", expiresMs, isPresumed: wasOrphaned } as const;
    this.record(resource, owner, token, grantNow, sinceMs);
    // It is presumed to hold it to that end, whatever it was told before (Q15).
    if (!wasOrphaned) return;
    if (!this.presumed.has(`${lock} ${owner}`)) this.presumed.set(`${lock} ${owner}`, sinceMs);
    const presumed = { kind: "try-extend", expiresMs, isPresumed: true } as const;
    this.record(resource, owner, token, presumed, sinceMs);
  }

  private granted(lock: string, owner: string, token: bigint): void {
    const name = `${lock} ${owner}`;
    const known = this.tokens.get(name);
    if (known === undefined) this.tokens.set(name, new Set([token]));
    else known.add(token);
  }

  /** `sinceMs`: a lease that it gives may have begun then. */
  private record(
    resource: string,
    owner: string,
    token: bigint,
    deed: Pick<LockOperation, "kind" | "expiresMs" | "isGiveBack" | "isPresumed">,
    sinceMs: number,
  ): void {
    const { history, world } = this;
    if (history.isFull()) return;
    const named = deed.kind === "try-lock" ? {} : { fencingToken: `${token}` };
    const operation: LockOperation = { ...deed, resource, ephemeral: false, owner, ...named };
    const id = history.call("leader", 0, operation, sinceMs);
    history.lost(id, "the service did it", world.nowMs);
  }

  /** A list is found orphaned now, and was since the last command at least. */
  private note(lock: string): void {
    const { nowMs } = this.world;
    const list = this.stretches.get(lock) ?? [];
    this.stretches.set(lock, list);
    const fromMs = this.lastMs.get(lock) ?? nowMs;
    const last = list.at(-1);
    if (last !== undefined && last.toMs >= fromMs) last.toMs = nowMs;
    else list.push({ fromMs, toMs: nowMs });
  }
}
