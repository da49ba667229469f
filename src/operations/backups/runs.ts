/**
 * What runs on this node now: a backup, a restore, a collection; how far it has come, and who may
 * end it.
 *
 * Invariants: 1. One operation runs at a time; another one waits for its turn, at most
 * BACKUP_TURN_WAIT_MS. 2. What runs ends when its caller has gone, when the caller's time is over,
 * or when the node stops; each once. 3. A caller gets its answer once, whatever ends first.
 */
import type { AnswerNamed } from "../../api/calls.js";
import { utcText } from "../../backup/manifest.js";
import { BACKUP_TURN_WAIT_MS } from "../../base/limits.js";
import type { ClockPort, EntropyPort, TimerPort } from "../../ports.js";
import type { BackupProgress } from "../api/backup-world.js";
import type { RequestContext } from "../api/context.js";
import { Turns } from "./turns.js";

export type RunningAnswer = AnswerNamed<"backups.running">;

/** What an operation is given when its turn has come. */
export interface Course {
  readonly operation: string;
  progress(progress: BackupProgress): void;
  isCancelled(): boolean;
  /** `cancel` is called when the operation is to end; at once when it is already. */
  onCancel(cancel: () => void): void;
  /** It has ended, and the next one may begin. */
  end(): void;
}

class Running implements Course {
  private cancels: (() => void)[] = [];
  private cancelled = false;
  told: BackupProgress | null = null;

  constructor(
    readonly operation: string,
    readonly kind: string,
    readonly startedWallMs: number,
    readonly startedMs: number,
    private readonly ended: () => void,
  ) {}

  progress(progress: BackupProgress): void {
    this.told = progress;
  }

  isCancelled(): boolean {
    return this.cancelled;
  }

  onCancel(cancel: () => void): void {
    if (this.cancelled) cancel();
    else this.cancels.push(cancel);
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    const { cancels } = this;
    this.cancels = [];
    for (const cancel of cancels) cancel();
  }

  end(): void {
    this.cancels = [];
    this.ended();
  }
}

export interface RunPorts {
  readonly clock: ClockPort;
  readonly entropy: EntropyPort;
  readonly timer: TimerPort;
}

export class Runs {
  private readonly turns: Turns;
  private readonly running = new Set<Running>();
  private stopped = false;

  constructor(private readonly ports: RunPorts) {
    this.turns = new Turns(ports.timer);
  }

  /** A text of 12 hexadecimal digits under which one operation is logged. */
  operationId(): string {
    return (this.tag() + this.tag()).slice(0, 12);
  }

  /** 8 hexadecimal digits by chance. */
  tag(): string {
    return this.ports.entropy.uint32().toString(16).padStart(8, "0");
  }

  /** The node stops. */
  get isStopping(): boolean {
    return this.stopped;
  }

  /** Ends what runs, and lets nothing begin any more. */
  stop(): void {
    this.stopped = true;
    for (const run of this.running) run.cancel();
  }

  /**
   * Runs something that reads and waits for nobody. `context` null: the node itself wants it.
   */
  beside(kind: string, operation: string, context: RequestContext | null): Course {
    return this.begin(kind, operation, context, () => undefined);
  }

  /** Runs something when its turn has come; `turned` gets null when it did not. */
  inTurn(
    kind: string,
    operation: string,
    context: RequestContext | null,
    turned: (course: Course | null) => void,
  ): void {
    const restMs = context === null ? Infinity : context.deadlineMs - this.nowMs();
    this.turns.take(Math.min(BACKUP_TURN_WAIT_MS, restMs), (release) => {
      if (release === null || this.stopped) {
        release?.();
        return turned(null);
      }
      turned(this.begin(kind, operation, context, release));
    });
  }

  private begin(
    kind: string,
    operation: string,
    context: RequestContext | null,
    ended: () => void,
  ): Running {
    const { clock, timer } = this.ports;
    const nowMs = this.nowMs();
    const limit =
      context === null
        ? null
        : timer.after(Math.max(0, context.deadlineMs - nowMs), () => run.cancel());
    const run = new Running(operation, kind, clock.wallMs(), nowMs, () => {
      limit?.cancel();
      this.running.delete(run);
      ended();
    });
    this.running.add(run);
    context?.whenGone?.(() => run.cancel());
    if (this.stopped) run.cancel();
    return run;
  }

  private nowMs(): number {
    return this.ports.clock.monotonicMs();
  }

  /** In the order in which they began. */
  answer(): RunningAnswer {
    const nowMs = this.nowMs();
    return [...this.running].map(({ operation, kind, told, startedWallMs, startedMs }) => ({
      operation,
      kind,
      phase: told?.phase ?? "begins",
      startedAtUtc: utcText(startedWallMs),
      elapsedMs: Math.floor(nowMs - startedMs),
      partitionsDone: told?.partitionsDone ?? 0,
      partitionsTotal: told?.partitionsTotal ?? 0,
      bytesDone: told?.bytesDone ?? 0,
      bytesTotal: told?.bytesTotal ?? 0,
    }));
  }
}
