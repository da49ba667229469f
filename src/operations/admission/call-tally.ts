/**
 * What is counted of administrative calls: how many ended how, and how long they took.
 *
 * Owns its counts. Invariants: 1. A call is counted once, when it ends. 2. Outcomes are those of
 * closed lists: what is counted is bounded.
 */
import { Distribution } from "../../host/requests/distribution.js";
import { CALL_LIST, type CallName } from "../../api/calls.js";
import type { Administration } from "../api/administration.js";
import { DURATION_BOUNDS_MS } from "./tally.js";

/** Of one call. */
export interface CallCounts {
  /** Of `svc_requests_total`: family and operation. */
  readonly api: string;
  readonly operation: string;
  readonly outcomes: Map<string, number>;
  /** How long they took (ms), by DURATION_BOUNDS_MS. */
  readonly durations: Distribution;
}

type End = Readonly<Record<string, unknown>>;
type Counted = (request: unknown, context: unknown, done: (end: End) => void) => void;

/** `setReplicationFactor` as labels have it: in lower case, with hyphens. */
function hyphened(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function newCounts(name: CallName): CallCounts {
  const [api = "", operation = ""] = name.split(".").map(hyphened);
  return { api, operation, outcomes: new Map(), durations: new Distribution(DURATION_BOUNDS_MS) };
}

/** How a call ended, in a word. */
function outcomeOf(end: End): string {
  if ("refused" in end) return "Refused";
  if ("notAtLevel" in end) return "NotAtLevel";
  const said = (end["answer"] ?? end["refusal"]) as { outcome?: unknown; status?: unknown };
  const word = said.outcome ?? said.status;
  if (typeof word === "string") return word;
  return "refusal" in end ? "InvalidInput" : "Success";
}

export class CallTally {
  private readonly counts = new Map<CallName, CallCounts>();

  constructor(private readonly nowMs: () => number) {}

  /** The same calls, counted. */
  counted(calls: Administration): Administration {
    const all: Record<string, Counted> = {};
    for (const [name] of CALL_LIST) {
      const call = calls[name] as Counted;
      all[name] = (request, context, done): void => {
        const beganMs = this.nowMs();
        call(request, context, (end) => {
          this.ended(name, outcomeOf(end), this.nowMs() - beganMs);
          done(end);
        });
      };
    }
    return all as unknown as Administration;
  }

  /** Those that ever ended. */
  all(): Iterable<CallCounts> {
    return this.counts.values();
  }

  private ended(name: CallName, outcome: string, durationMs: number): void {
    let counts = this.counts.get(name);
    if (counts === undefined) this.counts.set(name, (counts = newCounts(name)));
    counts.outcomes.set(outcome, (counts.outcomes.get(outcome) ?? 0) + 1);
    counts.durations.observe(durationMs);
  }
}
