/**
 * Whoever asks for backups: one kind after the other, of nodes at random, several at once, and now and
 * then gone before the answer.
 *
 * Invariants: 1. All calls go through the operations of a node, as those of a front end do. 2. Whoever
 * asks learns nothing but the answers.
 */
import type { CallName, EndNamed, RequestNamed } from "../../../src/api/calls.js";
import { uuidOf } from "../../../src/backup/names.js";
import type { Prng } from "../../../src/base/prng.js";
import { call } from "../../doubles/operations/administration.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { BACKUP_ASKS, type BackupAskKind, type BackupPlan } from "../plan/backup-plan.js";

/** Longest wait for an answer (ms). */
const BOUND_MS = 60_000;

/** What whoever asks has learned, or may look up. */
export interface AskerView {
  /** Ids of backups whose manifest lies in the directory now. */
  published(): readonly string[];
  /** A backup was asked for of a node, and came to this. */
  answered(server: Server, kind: BackupAskKind, said: string): void;
  /** A pass of the collection was asked for and has ended; ids that it names. */
  collected(isDry: boolean, ids: readonly string[], changes: number): void;
  /** How often the directory has changed. */
  changes(): number;
}

export class Asker {
  private readonly prng: Prng;
  private readonly kinds: readonly BackupAskKind[];
  private isStopped = false;
  private open = 0;

  constructor(
    private readonly world: World,
    private readonly plan: BackupPlan,
    private readonly servers: () => readonly Server[],
    private readonly view: AskerView,
    name = "asker",
  ) {
    this.prng = world.prng(name);
    this.kinds = BACKUP_ASKS.flatMap((kind) => Array.from({ length: plan.asks[kind] }, () => kind));
  }

  get isWaiting(): boolean {
    return this.open > 0;
  }

  start(afterMs = 1000): void {
    this.world.schedule(afterMs, () => this.act());
  }

  stop(): void {
    this.isStopped = true;
  }

  private act(): void {
    if (this.isStopped) return;
    const kind = this.kinds[this.prng.below(this.kinds.length)] as BackupAskKind;
    this.ask(kind);
    this.world.schedule(1 + this.prng.below(2 * this.plan.askEveryMs), () => this.act());
  }

  /** Mostly who leads meta, where only that one may be asked. */
  private serverFor(kind: BackupAskKind): Server {
    const servers = this.servers();
    const any = servers[this.prng.below(servers.length)] as Server;
    if (kind !== "coordinated" || this.prng.chance(1, 8)) return any;
    return servers.find(({ running }) => running?.node.metaGroup().isServing() === true) ?? any;
  }

  private leaf(): string {
    const ids = this.view.published();
    // The newest ones above all: chains grow.
    const at = this.prng.chance(2, 3) ? ids.length - 1 : this.prng.below(Math.max(1, ids.length));
    return ids[at] ?? "0".repeat(32);
  }

  private ask(kind: BackupAskKind): void {
    const server = this.serverFor(kind);
    const told = (said: string): void => this.view.answered(server, kind, said);
    switch (kind) {
      case "full":
        return this.call(server, "backups.full", {}, (end) => told(wordsOf(end)));
      case "coordinated":
        return this.call(server, "backups.coordinated", {}, (end) => told(wordsOf(end)));
      case "incremental": {
        const request = { parentBackupId: uuidOf(this.leaf()) };
        return this.call(server, "backups.incremental", request, (end) => told(wordsOf(end)));
      }
      case "validate": {
        const request = { leafBackupId: uuidOf(this.leaf()) };
        return this.call(server, "backups.validateChain", request, (end) => told(wordsOf(end)));
      }
      case "list":
        return this.call(server, "backups.list", {}, (end) => told(wordsOf(end)));
      case "collect": {
        const dryRun = this.prng.chance(1, 2);
        return this.call(server, "backups.collectGarbage", { dryRun }, (end) => {
          told(wordsOf(end));
          if (!("answer" in end)) return;
          const { retentionDeletions, orphanReclamations } = end.answer;
          const gone = retentionDeletions.map(({ backupId }) => backupId);
          const ids = [...gone, ...orphanReclamations.map(({ name }) => name)];
          this.view.collected(dryRun, ids, this.view.changes());
        });
      }
    }
  }

  private call<N extends CallName>(
    server: Server,
    name: N,
    request: RequestNamed<N>,
    done: (end: EndNamed<N>) => void,
  ): void {
    const { running } = server;
    if (running === null) return;
    const { life, operations } = running;
    this.open++;
    let isOpen = true;
    const ended = (): boolean => {
      if (!isOpen) return false;
      isOpen = false;
      this.open--;
      server.closeCall(waiting);
      return true;
    };
    const waiting = { ended: () => void ended(), disturbed: () => undefined };
    server.openCall(waiting);
    const isGone = this.prng.chance(this.plan.gonePercent, 100);
    const goneMs = this.prng.below(1000);
    life.enter(() => {
      const context = {
        ...{ deadlineMs: life.monotonicMs() + BOUND_MS, forwardHops: 0, requestId: name },
        ...(isGone
          ? { whenGone: (callback: () => void): void => void life.at(goneMs, callback) }
          : {}),
      };
      call(operations, name, request, context, (end) => {
        if (ended()) done(end);
      });
    });
  }
}

/** An answer in a word: "Ok", its outcome, or why it was not admitted. */
export function wordsOf(end: object): string {
  if ("answer" in end) return "Ok";
  if ("refused" in end) return String(end.refused);
  const { refusal } = end as { refusal: { outcome: string | null; message: string } };
  return refusal.outcome ?? refusal.message;
}
