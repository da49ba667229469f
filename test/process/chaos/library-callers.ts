/**
 * Callers of a running cluster as programs are: each has clients of the library that know all nodes, over gRPC and over REST,
 * and everything that they are told is judged.
 *
 * Invariants: 1. A call that the library rejects is counted and told: in a planned restart there is none. 2. The history is
 * judged with what the library repeated, and by all checkers.
 */
import { Prng } from "../../../src/base/prng.js";
import type { SvcClientOptions } from "../../../src/client/mod.js";
import { HISTORY_CHECKS } from "../../judge/checkers/history-checks.js";
import { type Verdict, verdictText } from "../../judge/checkers/verdict.js";
import { HistoryRecorder } from "../../judge/history.js";
import { judge } from "./chaos.js";
import { LibraryEndpoint, withEarlierTries } from "./library-endpoint.js";
import { ChaosWorkload } from "./workload.js";

/** Programs: each is as many callers as the load is shared among. */
const PROGRAMS = 3;
const DEADLINE_MS = 15_000;
const HISTORY_MAX = 400_000;

/** Base URLs of all nodes. */
export interface NodeUrls {
  readonly grpc: readonly string[];
  readonly rest: readonly string[];
}

export interface Judgement {
  /** Calls that the library rejected, by why. */
  readonly rejected: readonly string[];
  readonly answered: number;
  /** Calls of which an earlier try may have taken effect. */
  readonly repeated: number;
  readonly verdicts: readonly Verdict[];
  readonly text: string;
}

export class LibraryCallers {
  private readonly endpoints: LibraryEndpoint[] = [];
  private readonly history = new HistoryRecorder(HISTORY_MAX);
  private readonly workload: ChaosWorkload;
  private running: Promise<void> = Promise.resolve();

  /** `more`: how its clients show themselves, and verify the nodes. */
  constructor(urls: NodeUrls, seed: number, more: Pick<SvcClientOptions, "tls" | "token"> = {}) {
    const programs = Array.from({ length: PROGRAMS }, (_, at) => at + 1);
    const asked = {
      ...{ count: PROGRAMS, all: programs, ports: new Map(), disturbances: new Map() },
      endpoint: (_: number, wire: "rest" | "grpc"): LibraryEndpoint => {
        const options = { endpoints: urls[wire], transport: wire, deadlineMs: DEADLINE_MS };
        const made = new LibraryEndpoint({ ...options, ...more });
        this.endpoints.push(made);
        return made;
      },
    };
    this.workload = new ChaosWorkload(asked, this.history, new Prng(seed));
  }

  begin(count: number): void {
    this.running = this.workload.run(count);
  }

  get answered(): number {
    return this.workload.outcomes.ok;
  }

  /** Ends the callers, reads everything once more, and judges. */
  async end(): Promise<Judgement> {
    this.workload.stop();
    await this.running;
    const unserved = await this.workload.sweep();
    const wasRepeated = (operation: Parameters<LibraryEndpoint["wasRepeated"]>[0]): boolean =>
      this.endpoints.some((endpoint) => endpoint.wasRepeated(operation));
    const told = this.history.history(performance.now());
    const whole = withEarlierTries(told, wasRepeated);
    this.workload.close();
    const { unknownReasons, refusedReasons, store, outcomes } = this.workload;
    const rejected = [...unknownReasons, ...refusedReasons].map(
      ([reason, count]) => `${reason}: ${count}`,
    );
    if (unserved > 0) rejected.push(`${unserved} objects could not be read in the end`);
    const verdicts = [...judge(whole, false, HISTORY_CHECKS), store.verdict()];
    return {
      ...{ rejected, answered: outcomes.ok, verdicts },
      repeated: whole.attempts.length - told.attempts.length,
      text: verdicts.map(verdictText).join("\n"),
    };
  }
}
