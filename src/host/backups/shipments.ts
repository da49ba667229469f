/**
 * What this node ships for backups: logs that it holds, images and stretches of logs that it sends
 * to whoever keeps them, to itself as well.
 *
 * A session is of one replica for one keeper. Invariants: 1. Pieces are made at one pace for all
 * sessions, which take turns; of images one at a time for each keeper. 2. A session ends with its
 * hold, and so HOLD_LAPSES_MS after its keeper was heard last; with its replica, and when its
 * keeper says so. 3. A log is shipped by a replica that has applied its end, and tells the digest
 * that it has there (P-133). 4. Nothing is shipped by a hold that was lost (P-135).
 */
import { type PartitionId, partitionId } from "../../base/ids.js";
import { BACKUP_IMAGE_HELD_MAX_BYTES, BACKUP_SESSIONS_MAX } from "../../base/limits.js";
import type { Group } from "../group/group.js";
import { encodeMembership } from "../replication/config-entries.js";
import type { LogHold } from "../storage/backup-floors.js";
import type {
  BackupAnswer,
  HoldAsk,
  ImageAsk,
  LogAsk,
  PullWord,
  RenewAsk,
  ShipRefusal,
} from "./backup-messages.js";
import type { BackupWord } from "./backup-messages.js";
import type { ShipPace } from "./ship-pace.js";
import { ImageMaker, LogMaker, type PieceMaker, ShippedStream } from "./shipped-stream.js";

export interface ShipmentsDeps {
  nowMs(): number;
  find(partition: PartitionId): Group | null;
  tell(to: number, word: BackupWord): boolean;
  /** A turn is wanted then. */
  wakeAt(atMs: number): void;
  readonly pace: ShipPace;
}

/** Making pieces takes no longer of a turn, but for the last one (ms). */
const TURN_MS = 3;

interface Session {
  readonly keeper: number;
  readonly number: number;
  readonly group: Group;
  readonly hold: LogHold;
  stream: ShippedStream | null;
}

function no(why: ShipRefusal): BackupAnswer {
  return { kind: "no", why };
}

function keyOf(keeper: number, session: number): string {
  return `${keeper}/${session}`;
}

export class Shipments {
  private readonly sessions = new Map<string, Session>();

  constructor(private readonly deps: ShipmentsDeps) {}

  hold(keeper: number, { session, partition, after }: HoldAsk): BackupAnswer {
    const key = keyOf(keeper, session);
    if (this.sessions.has(key)) return { kind: "held" };
    const group = this.deps.find(partitionId(partition));
    if (group === null) return no("unhosted");
    if (this.sessions.size >= BACKUP_SESSIONS_MAX) return no("busy");
    const { appliedIndex, appliedTerm } = group.machine;
    if (appliedIndex === 0) return no("behind");
    const applied = { index: appliedIndex, term: appliedTerm };
    if (after !== null) {
      const stretch = group.logStretch(after, applied);
      if (typeof stretch === "string") return no(stretch);
    }
    const hold = group.holdLog((after ?? applied).index);
    if (hold === null) return no("compacted");
    this.sessions.set(key, { keeper, number: session, group, hold, stream: null });
    return { kind: "held" };
  }

  renew(keeper: number, { sessions }: RenewAsk): BackupAnswer {
    const lost = sessions.filter((session) => {
      return this.sessions.get(keyOf(keeper, session))?.hold.renew() !== "held";
    });
    return { kind: "renewed", lost };
  }

  image(keeper: number, { session, stream }: ImageAsk): BackupAnswer {
    const found = this.living(keeper, session);
    if (found === null) return no("unknown");
    found.stream?.close();
    found.stream = null;
    if (this.isShippingImage(keeper)) return no("busy");
    const maker = new ImageMaker(found.group.machine, BACKUP_IMAGE_HELD_MAX_BYTES);
    const { appliedIndex, appliedTerm, stamp, membership } = maker.source.record;
    const { chainDigest: chain } = found.group.machine;
    this.begin(found, stream, maker);
    const at = { index: appliedIndex, term: appliedTerm, stamp };
    // Before the first change only the nodes know who the group began with: they may leave the
    // cluster before the end of the chain, and the entries that say so rest on them.
    const members = membership ?? encodeMembership(found.group.membership);
    return { kind: "image", ...at, chain, membership: members };
  }

  log(keeper: number, ask: LogAsk): BackupAnswer {
    const found = this.living(keeper, ask.session);
    if (found === null) return no("unknown");
    const { group } = found;
    const stretch = group.logStretch(ask.after, ask.last);
    if (typeof stretch === "string") return no(stretch);
    const mark = group.machine.marks.find(({ index, backupId }) => {
      return index === ask.last.index && backupId === ask.backupId;
    });
    // It was applied before a start of this node, or came with a snapshot.
    if (mark === undefined) return no("unknown");
    found.stream?.close();
    this.begin(found, ask.stream, new LogMaker(stretch));
    const { tokenFloor, ephemeralFloor } = group.machine;
    return { kind: "log", chain: mark.chain, tokenFloor, ephemeralFloor };
  }

  private living(keeper: number, session: number): Session | null {
    const found = this.sessions.get(keyOf(keeper, session));
    return found?.hold.renew() === "held" ? found : null;
  }

  private isShippingImage(keeper: number): boolean {
    for (const session of this.sessions.values()) {
      if (session.keeper === keeper && session.stream?.isImage === true) return true;
    }
    return false;
  }

  private begin(session: Session, stream: number, maker: PieceMaker): void {
    const { keeper, number } = session;
    const { pace, nowMs } = this.deps;
    const deps = {
      tell: (word: BackupWord) => this.deps.tell(keeper, word),
      wake: () => this.deps.wakeAt(Math.max(nowMs(), pace.nextMs)),
      made: (sizeBytes: number, beganMs: number) => pace.made(sizeBytes, beganMs, nowMs()),
      nowMs,
    };
    session.stream = new ShippedStream(deps, number, stream, maker);
  }

  pull(keeper: number, word: PullWord): void {
    const found = this.living(keeper, word.session);
    if (found?.stream?.stream === word.stream) return found.stream.pull(word);
    const { session, stream } = word;
    this.deps.tell(keeper, { kind: "broken", session, stream, isOverrun: false });
  }

  /** The session is not wanted any more. */
  leave(keeper: number, session: number): void {
    const found = this.sessions.get(keyOf(keeper, session));
    if (found !== undefined) this.end(found);
  }

  private end(session: Session): void {
    session.stream?.close();
    session.hold.release();
    this.sessions.delete(keyOf(session.keeper, session.number));
  }

  /** In each turn: makes what may be made now, and no more than a turn has time for. */
  turn(nowMs: number): void {
    if (this.sessions.size === 0) return;
    const untilMs = nowMs + TURN_MS;
    for (let hasMade = true; hasMade;) {
      hasMade = false;
      for (const [key, session] of [...this.sessions]) {
        if (session.stream?.wantsMore !== true) continue;
        const atMs = this.deps.nowMs();
        if (atMs < this.deps.pace.nextMs || atMs >= untilMs) return;
        session.stream.make();
        hasMade = true;
        // Whoever had its turn comes last now.
        if (this.sessions.delete(key)) this.sessions.set(key, session);
      }
    }
  }

  /** When a turn is wanted although nothing happens. */
  get wakeAtMs(): number {
    for (const { stream } of this.sessions.values()) {
      if (stream?.wantsMore === true) return this.deps.pace.nextMs;
    }
    return Infinity;
  }

  /** Once per tick: sends what found no room, and lets go of what is over. */
  tick(): void {
    for (const session of [...this.sessions.values()]) {
      if (session.hold.state === "held") session.stream?.send();
      else this.end(session);
    }
  }

  get hasWork(): boolean {
    return this.sessions.size > 0;
  }

  /** The replica left this node. */
  removed(partition: PartitionId): void {
    for (const session of [...this.sessions.values()]) {
      if (session.group.partition === partition) this.end(session);
    }
  }

  stop(): void {
    for (const session of [...this.sessions.values()]) this.end(session);
  }
}
