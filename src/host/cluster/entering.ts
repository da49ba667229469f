/**
 * How a node whose data directory belongs to no cluster comes to belong to one: founds it together
 * with the other founders, or joins it (contract 5.6).
 *
 * Runs before there is a host, on ports alone. Invariants: 1. It founds only on answers of this
 * life of the process, all of one round. 2. Once it knows that the cluster stands it never founds.
 * 3. It waits without end: what for is told in words, and again in the log every 30 s. 4. `done`
 * comes once, in a turn of its own, and never after `cancel`.
 */
import { assert } from "../../base/assert.js";
import type { Program } from "../../base/levels.js";
import { type OtherFounder, nextFoundingStep } from "../../control/founding.js";
import type {
  AskPort,
  ClockPort,
  EntropyPort,
  Founder,
  FounderDirectory,
  JoinAnswer,
  LoggerPort,
  PeerAddress,
  PeerStorage,
  Question,
  TimerHandle,
  TimerPort,
} from "../../ports.js";

export interface EnteringDeps {
  readonly nodeId: number;
  /** Advertised peer endpoint. */
  readonly endpoint: string;
  readonly storage: PeerStorage;
  /** What this node supports. */
  readonly program: Program;
  /** All founders by ascending id; none when the node was told of none. */
  readonly founders: readonly PeerAddress[];
  /** Endpoints of members to join through, beside the founders; read anew in each round. */
  seeds(): readonly string[];
  /** False: an empty directory is never a reason to found (`existing`). */
  readonly mayFound: boolean;
  readonly ask: AskPort;
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
}

export type Entered =
  /** `level`: the highest that the programs of all founders support. */
  | { readonly kind: "founds"; readonly founders: readonly Founder[]; readonly level: number }
  /** `founders`: ids of those that the cluster was founded with; `level`: where it is now. */
  | { readonly kind: "joined"; readonly founders: readonly number[]; readonly level: number }
  | { readonly kind: "refused"; readonly reason: string };

/** Pause between two rounds (ms): a random part of half of it to half more. */
const ROUND_PAUSE_MS = 500;
/** Pause after a round in which the cluster refused this node (ms). */
const REFUSED_PAUSE_MS = 5000;
const REMINDER_MS = 30_000;

export class Entering {
  private isOver = false;
  private timer: TimerHandle | null = null;
  private readonly questions = new Set<Question>();
  private words = "";
  private toldMs = -Infinity;
  private toldWords = "";

  constructor(private readonly deps: EnteringDeps) {}

  /** This node is named as one of the founders. */
  get isFounder(): boolean {
    return this.deps.founders.some((founder) => founder.nodeId === this.deps.nodeId);
  }

  /** What is waited for, for the operator; "" when nothing is. */
  get waitingFor(): string {
    return this.isOver ? "" : this.words;
  }

  /** Asks no more. */
  cancel(): void {
    this.isOver = true;
    this.timer?.cancel();
    for (const question of this.questions) question.cancel();
    this.questions.clear();
  }

  /** Which cluster there is to join, of whoever belongs to one and answers first. */
  findCluster(done: (clusterId: string) => void): void {
    const targets = this.targets();
    const reasons: string[] = [];
    const askNext = (at: number): void => {
      const endpoint = targets[at];
      if (endpoint === undefined) {
        this.wait(`waiting to hear which cluster to join: ${reasons.join("; ")}`);
        return this.later(ROUND_PAUSE_MS, () => this.findCluster(done));
      }
      this.question((asked) => {
        return this.deps.ask.identify(endpoint, (answer) => {
          asked();
          if (answer.ok && answer.value.state !== "empty") return done(answer.value.clusterId);
          const why = answer.ok ? "it belongs to no cluster yet" : answer.message;
          reasons.push(`${endpoint} (${why})`);
          askNext(at + 1);
        });
      });
    };
    askNext(0);
  }

  /** Founds or joins `clusterId` with the empty directory `storageId`. */
  enter(clusterId: string, storageId: string, done: (entered: Entered) => void): void {
    this.deps.timer.soon(() => {
      if (this.isOver) return;
      if (this.deps.mayFound && this.isFounder) this.meet(clusterId, storageId, done);
      else this.join(clusterId, storageId, done);
    });
  }

  /** Asks all other founders at once, and goes by what they say. */
  private meet(clusterId: string, storageId: string, done: (entered: Entered) => void): void {
    const { nodeId, storage, founders, program } = this.deps;
    const others = founders.filter((founder) => founder.nodeId !== nodeId);
    const heard: OtherFounder[] = [];
    const decide = (): void => {
      const sorted = heard.sort((a, b) => a.nodeId - b.nodeId);
      const step = nextFoundingStep({
        ...{ nodeId, storageId, storage, program, clusterId },
        others: sorted,
      });
      if (step.kind === "found") return this.end(done, this.founding(step.founders, step.level));
      if (step.kind === "join") return this.join(clusterId, storageId, done);
      this.wait(`waiting for founders: ${step.missing.join(", ")}`);
      this.later(ROUND_PAUSE_MS, () => this.meet(clusterId, storageId, done));
    };
    if (others.length === 0) return decide();
    for (const other of others) {
      this.question((asked) => {
        return this.deps.ask.identify(other.endpoint, (answer) => {
          asked();
          const known = answer.ok
            ? { answer: answer.value, silence: "" }
            : { answer: null, silence: answer.message };
          heard.push({ ...other, ...known });
          if (heard.length === others.length) decide();
        });
      });
    }
  }

  private founding(directories: readonly FounderDirectory[], level: number): Entered {
    const founders = directories.map(({ nodeId, storageId }) => {
      const listed = this.deps.founders.find((founder) => founder.nodeId === nodeId);
      assert(listed !== undefined, "who has the same cluster id has the same list");
      return { ...listed, storageId };
    });
    return { kind: "founds", founders, level };
  }

  /** Asks one after the other to be taken in. */
  private join(clusterId: string, storageId: string, done: (entered: Entered) => void): void {
    const { nodeId, endpoint, storage, program } = this.deps;
    const targets = this.targets();
    const request = { nodeId, storageId, endpoint, storage, program };
    const reasons: string[] = [];
    let refusal = "";
    const roundEnds = (): void => {
      if (refusal !== "" && this.deps.founders.length === 0) {
        return this.end(done, { kind: "refused", reason: refusal });
      }
      this.wait(
        refusal === "" ? `waiting to be taken in: ${reasons.join("; ")}` : this.remedy(refusal),
      );
      const pauseMs = refusal === "" ? ROUND_PAUSE_MS : REFUSED_PAUSE_MS;
      this.later(pauseMs, () => this.join(clusterId, storageId, done));
    };
    const askNext = (at: number): void => {
      const target = targets[at];
      if (target === undefined) return roundEnds();
      this.question((asked) => {
        return this.deps.ask.join(target, request, (result) => {
          asked();
          const answer: JoinAnswer = result.ok
            ? result.value
            : { status: "retry", reason: result.message };
          if (answer.status === "accepted" && answer.clusterId === clusterId) {
            const { founders, level } = answer;
            return this.end(done, { kind: "joined", founders, level });
          }
          if (answer.status === "retry") reasons.push(`${target} (${answer.reason})`);
          else if (answer.status === "refused") refusal = answer.reason;
          else {
            const both = `${answer.clusterId}, but this data directory belongs to ${clusterId}`;
            refusal = `the seeds belong to cluster ${both}`;
          }
          // What the cluster decided it says through every member.
          if (refusal !== "") roundEnds();
          else askNext(at + 1);
        });
      });
    };
    askNext(0);
  }

  private remedy(refusal: string): string {
    const command = `--cluster-leave --member ${this.deps.nodeId}`;
    return `waiting to be taken in: ${refusal} If its disk was lost, run svc-cli ${command}`;
  }

  /** Seeds and other founders, each once. */
  private targets(): string[] {
    const { founders, nodeId, endpoint } = this.deps;
    const others = founders.filter((founder) => founder.nodeId !== nodeId);
    const all = [...this.deps.seeds(), ...others.map((founder) => founder.endpoint)];
    return [...new Set(all)].filter((target) => target !== endpoint);
  }

  private question(put: (asked: () => void) => Question): void {
    if (this.isOver) return;
    const question = put(() => this.questions.delete(question));
    this.questions.add(question);
  }

  private later(pauseMs: number, next: () => void): void {
    if (this.isOver) return;
    const share = 0.5 + this.deps.entropy.uint32() / 0x1_0000_0000;
    this.timer = this.deps.timer.after(pauseMs * share, () => {
      if (!this.isOver) next();
    });
  }

  private wait(words: string): void {
    this.words = words;
    const nowMs = this.deps.clock.monotonicMs();
    const isNews = this.words !== this.toldWords;
    if (!isNews && nowMs < this.toldMs + REMINDER_MS) return;
    this.toldMs = nowMs;
    this.toldWords = this.words;
    this.deps.logger.log("warn", "This node belongs to no cluster yet.", { detail: this.words });
  }

  private end(done: (entered: Entered) => void, entered: Entered): void {
    this.isOver = true;
    done(entered);
  }
}

/** What a host begins with: a joiner knows ids only, its member list brings the rest. */
export function foundersOf(entered: Exclude<Entered, { readonly kind: "refused" }>): Founder[] {
  if (entered.kind === "founds") return [...entered.founders];
  return entered.founders.map((nodeId) => ({ nodeId, endpoint: "", storageId: "" }));
}
