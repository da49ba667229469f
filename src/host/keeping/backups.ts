/**
 * Everything on a node that takes backups, joined: the keepers of those that it was asked for, what
 * it ships for these and for others, and what its groups' leaders do for them.
 *
 * Invariant: nothing is decided here.
 */
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import type { Program } from "../../base/levels.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { LoadPort, LoggerPort, PeerStorage, TimerPort } from "../../ports.js";
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import type { Group } from "../group/group.js";
import type { GroupOwner } from "../group/group-owner.js";
import type { Replica } from "../group/replica.js";
import type { BackupFacts } from "../requests/backup-facts.js";
import { BackupLink } from "../backups/backup-link.js";
import {
  type BackupAnswer,
  type BackupAsk,
  type BackupWord,
  isBackupFrame,
} from "../backups/backup-messages.js";
import type { BackupCatalogue, BackupTaking, TakingFault } from "../backups/backup-taking.js";
import type { StreamWord } from "../backups/backup-messages.js";
import { ShipPace } from "../backups/ship-pace.js";
import { Keeper } from "./keeper.js";
import type { KeeperWorld } from "./keeper-world.js";
import { LeaderSide } from "../backups/leader-side.js";
import { Shipments } from "../backups/shipments.js";
import { TakingTally } from "./taking-tally.js";
import { Waits } from "../backups/waits.js";

export interface BackupsDeps {
  readonly nodeId: number;
  /** Advertised peer endpoint. */
  readonly endpoint: string;
  readonly storage: PeerStorage;
  readonly logger: LoggerPort;
  readonly load: LoadPort | null;
  readonly timer: TimerPort;
  /** Random. */
  uint32(): number;
  nowMs(): number;
  wallMs(): number;
  metaReads(): MetaReads | null;
  find(partition: PartitionId): Group | null;
  /** The other node that said lately that it leads the partition; 0 = none did. */
  reportedLeader(partition: PartitionId): number;
  /** What a linked node supports; null when it is not linked. */
  programOf(node: number): Program | null;
  send(to: number, lane: "control" | "bulk", bytes: Uint8Array): boolean;
  /** Base URL under which clients reach a node; "" while unknown. */
  clientEndpointOf(node: number): string;
  readonly proposeOnMeta: ProposeOnMeta;
  /** A turn is wanted then. */
  wakeAt(atMs: number): void;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

export class Backups implements GroupOwner {
  private readonly link: BackupLink;
  private readonly waits: Waits;
  private readonly shipments: Shipments;
  private readonly leaders: LeaderSide;
  private readonly tally = new TakingTally();
  private readonly keepers = new Set<Keeper>();
  private readonly routes = new Map<number, (word: StreamWord) => void>();
  private readonly world: KeeperWorld;
  /** The last one that was given out; 0: none yet in this life. */
  private sessions = 0;
  private cuts = { metaTerm: 0, rounds: 0 };
  private isStopped = false;

  constructor(private readonly deps: BackupsDeps) {
    const { nodeId, logger } = deps;
    const nowMs = (): number => deps.nowMs();
    const wakeAt = (atMs: number): void => deps.wakeAt(atMs);
    this.waits = new Waits(nowMs, wakeAt);
    this.link = new BackupLink({
      nodeId,
      nowMs,
      soon: (callback) => deps.timer.soon(callback),
      programOf: (node) => deps.programOf(node),
      send: (to, lane, bytes) => deps.send(to, lane, bytes),
      tickSoon: () => deps.tickSoon(),
    });
    const find = (partition: PartitionId): Group | null => deps.find(partition);
    const pace = new ShipPace(deps.load);
    const tell = (to: number, word: BackupWord): boolean => this.link.tell(to, word);
    this.shipments = new Shipments({ nowMs, find, wakeAt, pace, tell });
    this.leaders = new LeaderSide({
      nowMs,
      wallMs: () => deps.wallMs(),
      find,
      meta: () => {
        const [group, reads] = [find(META_PARTITION), deps.metaReads()];
        return group === null || reads === null ? null : { group, reads };
      },
    });
    this.link.listen({
      asked: (from, ask, deadlineMs, answer) => this.asked(from, ask, deadlineMs, answer),
      told: (from, word) => this.told(from, word),
    });
    this.world = {
      ...{ nodeId, logger, nowMs, link: this.link, waits: this.waits, tally: this.tally },
      wallMs: () => deps.wallMs(),
      uint32: () => deps.uint32(),
      metaReads: () => deps.metaReads(),
      leaderOf: (partition) => this.leaderOf(partitionId(partition)),
      nextSession: () => this.nextSession(),
      route: (session, take) => {
        if (take === null) this.routes.delete(session);
        else this.routes.set(session, take);
      },
    };
  }

  /** Numbers of an earlier life of this node must not come again: where they begin is drawn. */
  private nextSession(): number {
    if (this.sessions === 0) this.sessions = this.deps.uint32() * 2 ** 20;
    return ++this.sessions;
  }

  /** Takes backups into a catalogue. */
  taking(catalogue: BackupCatalogue): BackupTaking {
    const { deps, world } = this;
    return {
      take: (request, progress, done) => {
        const keeper: Keeper = new Keeper(
          {
            ...{
              world,
              catalogue,
              timer: deps.timer,
              endpoint: deps.endpoint,
              storageType: deps.storage,
            },
            proposeOnMeta: deps.proposeOnMeta,
            nextRound: (metaTerm) => this.nextRound(metaTerm),
            leader: () => this.metaLeader(),
          },
          request,
          progress,
          (end) => {
            this.keepers.delete(keeper);
            done(end);
          },
        );
        this.keepers.add(keeper);
        deps.tickSoon();
        if (this.isStopped) keeper.cancel("The node stops.");
        return { cancel: () => keeper.cancel() };
      },
    };
  }

  private metaLeader(): TakingFault["leader"] {
    const nodeId = this.leaderOf(META_PARTITION);
    if (nodeId === 0) return null;
    const endpoint = this.deps.metaReads()?.member(nodeId)?.endpoint ?? "";
    return { nodeId, endpoint, clientEndpoint: this.deps.clientEndpointOf(nodeId) };
  }

  private nextRound(metaTerm: number): number {
    if (this.cuts.metaTerm !== metaTerm) this.cuts = { metaTerm, rounds: 0 };
    return ++this.cuts.rounds;
  }

  private leaderOf(partition: PartitionId): number {
    const known = this.deps.find(partition)?.leaderNode() ?? 0;
    return known !== 0 ? known : this.deps.reportedLeader(partition);
  }

  private asked(
    from: number,
    ask: BackupAsk,
    deadlineMs: number,
    answer: (answer: BackupAnswer) => void,
  ): void {
    const { leaders, shipments } = this;
    if (this.isStopped) return answer({ kind: "no", why: "busy" });
    switch (ask.kind) {
      case "topology":
        return leaders.topology(deadlineMs, answer);
      case "mark":
        return leaders.mark(ask, deadlineMs, answer);
      case "prepare":
        return leaders.prepare(ask, answer);
      case "close":
        return leaders.close(ask, deadlineMs, answer);
      case "verify":
        return leaders.verify(ask, deadlineMs, answer);
      case "hold":
        return answer(shipments.hold(from, ask));
      case "renew":
        return answer(shipments.renew(from, ask));
      case "image":
        return answer(shipments.image(from, ask));
      case "log":
        return answer(shipments.log(from, ask));
    }
  }

  private told(from: number, word: BackupWord): void {
    switch (word.kind) {
      case "release":
        return this.leaders.release(word);
      case "leave":
        return this.shipments.leave(from, word.session);
      case "pull":
        return this.shipments.pull(from, word);
      case "piece":
      case "end":
      case "broken":
        return this.routes.get(word.session)?.(word);
    }
  }

  /** Takes a frame of the lanes "control" and "bulk" if it is one of these; false: it is not. */
  frame(from: number, bytes: Uint8Array): boolean {
    if (!isBackupFrame(bytes)) return false;
    this.link.frame(from, bytes);
    return true;
  }

  /** Once per tick, inside a turn. */
  tick(nowMs: number): void {
    this.link.tick(nowMs);
    this.shipments.tick();
    for (const keeper of this.keepers) keeper.tick(nowMs);
  }

  /** In each turn, and at once where nothing is to be done. */
  turn(nowMs: number): void {
    this.waits.turn(nowMs);
    this.shipments.turn(nowMs);
  }

  /** When a turn is wanted although nothing happens. */
  get wakeAtMs(): number {
    return Math.min(this.waits.wakeAtMs, this.shipments.wakeAtMs);
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.link.hasWork || this.shipments.hasWork || this.keepers.size > 0;
  }

  linkDown(node: number): void {
    this.link.linkDown(node);
    for (const keeper of this.keepers) keeper.linkDown(node);
  }

  /** `replica` left this node. */
  removed({ partition }: Replica): void {
    this.shipments.removed(partition);
  }

  /** The node stops: what is taken ends, and nothing is shipped any more. */
  stop(): void {
    this.isStopped = true;
    for (const keeper of this.keepers) keeper.cancel("The node stops.");
    this.shipments.stop();
  }

  facts(): BackupFacts {
    return this.tally.facts();
  }
}
