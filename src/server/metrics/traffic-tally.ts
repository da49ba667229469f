/**
 * What went over the front ends: answers by route and status, calls by method and code, streams,
 * and who came without credentials. Plain numbers, read when somebody scrapes.
 *
 * Invariants: 1. Counting an answer costs two look-ups and no allocation, but for the first of its
 * kind. 2. Labels are routes and methods of this program, never what a client sent.
 */
import { type FamilyType, family, scalar } from "./exposition.js";

type Code = number | string;
type Counts = Map<string, Map<Code, number>>;

export type AuthListener = "grpc" | "https" | "http" | "health";

function count(counts: Counts, first: string, second: Code): void {
  let inner = counts.get(first);
  if (inner === undefined) counts.set(first, (inner = new Map()));
  inner.set(second, (inner.get(second) ?? 0) + 1);
}

/** What one front end tells; REST and gRPC each have one of their own. */
interface Front {
  unauthenticated(isSecure: boolean): void;
}

export class TrafficTally {
  private readonly responses: Counts = new Map();
  private readonly calls: Counts = new Map();
  private openStreams = 0;
  private readonly strangers: Record<AuthListener, number> = {
    grpc: 0,
    https: 0,
    http: 0,
    health: 0,
  };

  /** What the REST front end tells. */
  readonly rest: Front & { answered(path: string, code: number): void } = {
    answered: (path, code) => count(this.responses, path, code),
    unauthenticated: (isSecure) => this.unauthenticated(isSecure ? "https" : "http"),
  };

  /** What the gRPC front end tells. */
  readonly grpc: Front & {
    streams(open: number): void;
    ended(path: string, code: string): void;
  } = {
    streams: (open) => {
      this.openStreams = open;
    },
    ended: (path, code) => count(this.calls, path, code),
    unauthenticated: (isSecure) => this.unauthenticated(isSecure ? "https" : "grpc"),
  };

  unauthenticated(listener: AuthListener): void {
    this.strangers[listener]++;
  }

  lines(lines: string[]): void {
    const counter: FamilyType = "counter";
    const answers = "svc_http_responses_total";
    family(lines, answers, counter, "Answers of the REST API; route other: none was found");
    for (const [route, codes] of this.responses) {
      const shown = route === "" ? "other" : route;
      for (const [code, times] of codes) {
        lines.push(`${answers}{route="${shown}",status="${code}"} ${times}`);
      }
    }
    const calls = "svc_grpc_handled_total";
    family(lines, calls, counter, "gRPC calls that ended; method other: it does not exist");
    for (const [method, codes] of this.calls) {
      const shown = method === "" ? "other" : method;
      for (const [code, times] of codes) {
        lines.push(`${calls}{method="${shown}",code="${code}"} ${times}`);
      }
    }
    scalar(lines, "svc_streams", "gauge", "Open gRPC streams that may live long", this.openStreams);
    const strangers = "svc_auth_failures_total";
    family(lines, strangers, counter, "Requests with no or wrong credentials");
    for (const [listener, times] of Object.entries(this.strangers)) {
      lines.push(`${strangers}{listener="${listener}"} ${times}`);
    }
  }
}
