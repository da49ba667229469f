/**
 * The keeper's work on one partition: its image, and the log from there to the mark, as they come
 * from the replica that ships it, into files.
 *
 * Invariants: 1. A file is finished only when all of it came, in order, and is durable then. 2. The
 * log ends with the mark, and the replica's digest there is the leader's: a replica that differs is
 * no source (P-130, P-133). 3. A replica that is lost, or lost its hold, is replaced, so often at
 * most; what came of it is thrown away (P-135). 4. Every step ends once; a backup that is over
 * begins none.
 */
import { createImage, createLog } from "../../backup/artifact-files.js";
import type { BackupFault } from "../../backup/faults.js";
import { LogTail } from "../../backup/log-tail.js";
import { imageName, logName } from "../../backup/names.js";
import { present } from "../../base/assert.js";
import { ByteReader } from "../../base/codec.js";
import {
  BACKUP_BARRIER_MS,
  BACKUP_IMAGE_OVERRUNS_MAX,
  BACKUP_PARTITIONS_AT_ONCE,
  BACKUP_SHIPPERS_MAX,
} from "../../base/limits.js";
import { failure } from "../../base/result.js";
import type { ArchiveSum, LogEntry } from "../../ports.js";
import { ArrivingStream, type StreamEnd } from "./arriving-stream.js";
import type { BackupAnswer, ImageAnswer, LogAnswer } from "../backups/backup-messages.js";
import {
  type Part,
  type PartEnd,
  type Stepped,
  type Undertaking,
  unavailable,
} from "./keeper-world.js";
import { type PoolDone, type PoolOptions, runPool } from "./pool.js";
import type { Shippers } from "./shippers.js";

const ANSWER_MS = 5000;
const AGAIN_MS = 100;

type PartDone = (end: PartEnd) => void;

/** Uses the pieces of one stream. */
interface Sink {
  use(pieces: readonly Uint8Array[], done: (fault: BackupFault | null) => void): void;
  abandon(done: () => void): void;
}

/** Entries as pieces hold them; null: one does not. */
function readEntries(pieces: readonly Uint8Array[]): LogEntry[] | null {
  const entries: LogEntry[] = [];
  for (const bytes of pieces) {
    const reader = new ByteReader(bytes);
    const count = reader.length();
    if (count === 0 || count > reader.remainingBytes) return null;
    for (let at = 0; at < count && !reader.failed; at++) {
      const [index, term, kind] = [reader.uint53(), reader.uint53(), reader.uint8()];
      entries.push({ index, term, kind, payload: reader.bytesView() });
    }
    if (!reader.isComplete()) return null;
  }
  return entries;
}

export class Artifacts {
  private readonly streams = new Map<number, ArrivingStream>();

  constructor(
    private readonly undertaking: Undertaking,
    private readonly shippers: Shippers,
  ) {}

  tick(nowMs: number): void {
    for (const stream of [...this.streams.values()]) stream.tick(nowMs);
  }

  linkDown(node: number, parts: readonly Part[]): void {
    for (const part of parts) if (part.shipper === node) this.streams.get(part.partition)?.lose();
  }

  /** Nothing more is wanted. */
  end(): void {
    for (const stream of [...this.streams.values()]) stream.lose();
  }

  /** Images of parts, one at a time of those that this node ships. */
  images(parts: readonly Part[], told: () => void, done: PoolDone): void {
    const own = this.undertaking.world.nodeId;
    const mayBegin = (_part: Part, running: readonly Part[]): boolean => {
      return running.every(({ shipper }) => shipper !== 0 && shipper !== own);
    };
    this.pool(parts, mayBegin, (part, ended, rests) => this.image(part, rests, ended), told, done);
  }

  logs(parts: readonly Part[], told: () => void, done: PoolDone): void {
    const mayBegin = (): boolean => true;
    this.pool(parts, mayBegin, (part, ended) => this.log(part, ended), told, done);
  }

  private pool(
    parts: readonly Part[],
    mayBegin: PoolOptions["mayBegin"],
    run: PoolOptions["run"],
    told: () => void,
    done: PoolDone,
  ): void {
    const isOver = (): boolean => this.undertaking.isOver();
    runPool(parts, { atOnce: BACKUP_PARTITIONS_AT_ONCE, mayBegin, run, told, isOver }, done);
  }

  // Images ---------------------------------------------------------------------------------------

  private image(part: Part, rests: () => void, done: PartDone): void {
    if (part.shipper !== 0) return this.askImage(part, 0, rests, done);
    this.shippers.hold(part, null, (end) => {
      if (end.status === "failed") return done(end.fault);
      if (end.status === "held") return this.askImage(part, 0, rests, done);
      done(this.lose(part));
    });
  }

  /** `rests`: all of it was shipped; what is left is for the disk. */
  private askImage(part: Part, overruns: number, rests: () => void, done: PartDone): void {
    const { world } = this.undertaking;
    if (this.undertaking.isOver()) return done(null);
    const { shipper, session } = part;
    const stream = ++part.streams;
    const deadlineMs = world.nowMs() + ANSWER_MS;
    world.link.ask(shipper, { kind: "image", session, stream }, deadlineMs, (answer) => {
      if (this.undertaking.isOver()) return done(null);
      if (answer?.kind === "image") return this.takeImage(part, answer, overruns, rests, done);
      if (!isBusy(answer) || part.shipper !== shipper) return done(this.lose(part));
      world.waits.after(AGAIN_MS, () => this.askImage(part, overruns, rests, done));
    });
  }

  private takeImage(
    part: Part,
    answer: ImageAnswer,
    overruns: number,
    rests: () => void,
    done: PartDone,
  ): void {
    const { archive, staged, world } = this.undertaking;
    const { partition } = part;
    const { index, term, stamp, chain, membership } = answer;
    const origin = this.undertaking.origin(partition);
    const path = staged.path(imageName(partition));
    createImage(archive, path, { origin, index, term, stamp, membership }, (created) => {
      if (!created.ok) return done(created);
      const file = created.value;
      const sink: Sink = {
        use: (pieces, used) => file.chunks(pieces, (result) => used(result.ok ? null : result)),
        abandon: (abandoned) => file.abandon(abandoned),
      };
      this.receive(part, "image", sink, (end, fault) => {
        if (fault !== null) return done(fault);
        if (end.status === "overrun" && overruns + 1 < BACKUP_IMAGE_OVERRUNS_MAX) {
          world.logger.log("info", "An image for a backup begins anew: too much changed.", {
            partition,
          });
          return this.askImage(part, overruns + 1, rests, done);
        }
        if (end.status !== "whole") return done(this.lose(part));
        const { highestToken, highestIncarnation } = end.end;
        rests();
        file.finish((sum) => {
          if (!sum.ok) return done(sum);
          part.before = { index, term, stamp, chain };
          Object.assign(part, { highestToken, highestIncarnation, image: sum.value });
          done(null);
        });
      });
    });
  }

  // Logs -----------------------------------------------------------------------------------------

  private log(part: Part, done: PartDone): void {
    const untilMs = this.undertaking.world.nowMs() + BACKUP_BARRIER_MS;
    if (part.shipper !== 0) return this.askLog(part, untilMs, done);
    // The image stays: any replica with the log from there on will do.
    this.shippers.hold(part, present(part.before, "a log goes on from somewhere"), (end) => {
      if (end.status === "failed") return done(end.fault);
      if (end.status === "held") return this.askLog(part, untilMs, done);
      this.dropImage(part, () => done(this.lose(part)));
    });
  }

  private askLog(part: Part, untilMs: number, done: PartDone): void {
    const { world, backupId } = this.undertaking;
    if (this.undertaking.isOver()) return done(null);
    const { shipper, session, before, mark } = part;
    const after = present(before, "a log goes on from somewhere");
    const last = present(mark, "a log ends with a mark");
    const stream = ++part.streams;
    const ask = { kind: "log", session, stream, after, last, backupId } as const;
    world.link.ask(shipper, ask, world.nowMs() + ANSWER_MS, (answer) => {
      if (this.undertaking.isOver()) return done(null);
      if (answer?.kind === "log") return this.takeLog(part, answer, done);
      const isBehind = answer?.kind === "no" && answer.why === "behind";
      if (!isBehind || part.shipper !== shipper || world.nowMs() >= untilMs) {
        return done(this.lose(part));
      }
      world.waits.after(AGAIN_MS, () => this.askLog(part, untilMs, done));
    });
  }

  private takeLog(part: Part, answer: LogAnswer, done: PartDone): void {
    const { archive, staged } = this.undertaking;
    const { partition } = part;
    const before = present(part.before, "a log goes on from somewhere");
    const mark = present(part.mark, "a log ends with a mark");
    if (answer.chain !== mark.chain) return done(this.differs(part));
    const head = { origin: this.undertaking.origin(partition), before };
    const path = staged.path(logName(partition));
    createLog(archive, path, head, (created) => {
      if (!created.ok) return done(created);
      const file = created.value;
      const tail = new LogTail(part, before.index, before.term);
      const sink: Sink = {
        use: (pieces, used) => {
          const entries = readEntries(pieces);
          const fault =
            entries === null ? failure("IoError", "a damaged piece") : tail.take(entries);
          if (fault !== null || entries === null) return file.abandon(() => used(fault));
          file.entries(entries, (result) => used(result.ok ? null : result));
        },
        abandon: (abandoned) => file.abandon(abandoned),
      };
      this.receive(part, "log", sink, (end, fault) => {
        if (fault !== null) return done(fault);
        if (end.status !== "whole") return done(this.lose(part));
        if (tail.last.index !== mark.index || tail.last.term !== mark.term) {
          return file.abandon(() => done(this.lose(part)));
        }
        const { ephemeralFloor, tokenFloor } = answer;
        const handedOut = tail.handedOut(tokenFloor);
        const ends = { end: mark, ...handedOut, ephemeralFloor, ephemeralTerm: mark.term };
        file.finish(ends, (sum) => {
          if (!sum.ok) return done(sum);
          part.log = sum.value;
          done(null);
        });
      });
    });
  }

  private differs(part: Part): Stepped {
    const { logger } = this.undertaking.world;
    const { partition, shipper } = part;
    const event = "A replica differs from its leader at the mark of a backup.";
    logger.log("error", event, { partition, node: shipper });
    return unavailable(`The replica of partition ${partition} on node ${shipper} differs.`);
  }

  /** Throws away the logs that are written: they are to end elsewhere. */
  dropLogs(parts: readonly Part[], done: () => void): void {
    const { archive, staged } = this.undertaking;
    const written = parts.filter(({ log }) => log !== null);
    const next = (at: number): void => {
      const part = written[at];
      if (part === undefined) return done();
      part.log = null;
      archive.remove(staged.path(logName(part.partition)), () => next(at + 1));
    };
    next(0);
  }

  // Both -----------------------------------------------------------------------------------------

  /** `done`: how the stream ended, and what was wrong with the file, which is gone then. */
  private receive(
    part: Part,
    kind: "image" | "log",
    sink: Sink,
    done: (end: StreamEnd, fault: BackupFault | null) => void,
  ): void {
    const { world } = this.undertaking;
    const { partition, session, streams, shipper } = part;
    let fault: BackupFault | null = null;
    let isUsing = false;
    let ended: (() => void) | null = null;
    const finish = (end: StreamEnd): void => {
      world.route(session, null);
      this.streams.delete(partition);
      if (fault !== null || end.status === "whole") return done(end, fault);
      sink.abandon(() => done(end, null));
    };
    const stream = new ArrivingStream(
      {
        nowMs: () => world.nowMs(),
        tell: (word) => void world.link.tell(shipper, word),
        use: (pieces, used) => {
          if (this.undertaking.isOver()) return used(false);
          isUsing = true;
          sink.use(pieces, (wrong) => {
            isUsing = false;
            fault = wrong;
            for (const { length } of pieces) this.undertaking.wrote(kind, length);
            if (ended !== null) return ended();
            used(wrong === null && !this.undertaking.isOver());
          });
        },
        // A file is not abandoned while a piece of it is being written.
        done: (end) => {
          if (isUsing) ended = () => finish(end);
          else finish(end);
        },
      },
      session,
      streams,
    );
    this.streams.set(partition, stream);
    world.route(session, (word) => {
      if (word.stream === stream.stream) stream.take(word);
    });
  }

  /** Another replica is to be found, unless too many were lost already. */
  private lose(part: Part): PartEnd {
    if (this.undertaking.isOver()) return null;
    this.shippers.lost(part);
    if (part.lost < BACKUP_SHIPPERS_MAX) return "again";
    return unavailable(`Partition ${part.partition} lost ${part.lost} replicas that shipped it.`);
  }

  /** No log goes on from the image any more. */
  private dropImage(part: Part, done: () => void): void {
    const { archive, staged } = this.undertaking;
    if (part.image === null) return done();
    Object.assign(part, { image: null as ArchiveSum | null, before: null, mark: null });
    archive.remove(staged.path(imageName(part.partition)), () => done());
  }
}

function isBusy(answer: BackupAnswer | null): boolean {
  return answer?.kind === "no" && answer.why === "busy";
}
