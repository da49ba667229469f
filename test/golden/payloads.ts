/**
 * The payloads that a node of a scenario has seen, by (term, index), and the way between the core's
 * spans and entries.
 *
 * Invariants: 1. (term, index) names one payload for ever. 2. A span that is given to the core is
 * built from what arrived.
 */
import type { RaftCore } from "../../src/raft/core.js";
import type {
  CommittedRange,
  ConfigChange,
  ConfigPosition,
  EntrySpan,
  LogRange,
  Proposal,
  TermRun,
} from "../../src/raft/state/types.js";
import { encodedChangeBytes, encodedPayloadBytes } from "./change.js";
import type { Entry, EntryType } from "./wire.js";

const leave: ConfigChange = { version: 2, transition: "auto", operations: [] };

interface Payload {
  readonly data: string;
  readonly change: ConfigChange | null;
}

/** The size of an entry's payload as the core is told. */
export function payloadBytes(entry: Pick<Entry, "data" | "change">, bare: boolean): number {
  if (bare) return 0;
  const bytes = entry.change === null ? entry.data.length : encodedChangeBytes(entry.change);
  return encodedPayloadBytes(bytes);
}

function typeOf(change: ConfigChange | null): EntryType {
  if (change === null) return "EntryNormal";
  return change.version === 1 ? "EntryConfChange" : "EntryConfChangeV2";
}

/** Entries of the given terms from `first` on, that a history elsewhere is said to have left. */
export function madeEntries(first: number, terms: readonly number[]): Entry[] {
  return terms.map((term, at): Entry => {
    const index = first + at;
    return { term, index, type: "EntryNormal", data: `${term}.${index}`, change: null };
  });
}

export class Payloads {
  private readonly byPosition = new Map<string, Payload>();
  private readonly byToken = new Map<number, readonly Payload[]>();
  private lastToken = 0;

  record(entry: Entry): void {
    const { data, change } = entry;
    this.byPosition.set(`${entry.term}/${entry.index}`, { data, change });
  }

  /** An entry that the core speaks of; one that the core made itself has no payload. */
  entryAt(term: number, index: number, kind: EntryType): Entry {
    const known = this.byPosition.get(`${term}/${index}`);
    if (kind === "EntryNormal") {
      return { term, index, type: kind, data: known?.data ?? "", change: null };
    }
    return { term, index, type: kind, data: "", change: known?.change ?? leave };
  }

  entriesOf(range: LogRange): Entry[] {
    const entries: Entry[] = [];
    const kinds = new Map(range.configChanges.map(({ index, kind }) => [index, kind]));
    range.termRuns.forEach(({ first, term }, at) => {
      const end = (range.termRuns[at + 1]?.first ?? range.last + 1) - 1;
      for (let index = first; index <= end; index++) {
        const kind = kinds.get(index);
        const type = kind === "configChangeV1" ? "EntryConfChange" : "EntryConfChangeV2";
        entries.push(this.entryAt(term, index, kind === undefined ? "EntryNormal" : type));
      }
    });
    return entries;
  }

  /** The entries that the core hands out for applying. */
  committedOf(core: RaftCore, range: CommittedRange | null): Entry[] {
    const entries: Entry[] = [];
    if (range === null) return entries;
    for (let index = range.first; index <= range.last; index++) {
      const lookup = core.termAt(index);
      if (lookup.kind !== "known") throw new Error(`committed entry ${index} is ${lookup.kind}`);
      const kind = core.kindAt(index);
      const type = kind === "configChangeV1" ? "EntryConfChange" : "EntryConfChangeV2";
      entries.push(this.entryAt(lookup.term, index, kind === "normal" ? "EntryNormal" : type));
    }
    return entries;
  }

  /** The span of entries that arrived, whose payloads are recorded. Null for none. */
  spanOf(entries: readonly Entry[]): EntrySpan | null {
    const [first] = entries;
    const last = entries.at(-1);
    if (first === undefined || last === undefined) return null;
    const termRuns: TermRun[] = [];
    const configChanges: ConfigPosition[] = [];
    const sizesBytes: number[] = [];
    let sizeBytes = 0;
    for (const entry of entries) {
      this.record(entry);
      if (termRuns.at(-1)?.term !== entry.term) {
        termRuns.push({ first: entry.index, term: entry.term });
      }
      if (entry.type !== "EntryNormal") {
        const kind = entry.type === "EntryConfChange" ? "configChangeV1" : "configChangeV2";
        configChanges.push({ index: entry.index, kind });
      }
      const bytes = payloadBytes(entry, entry.change === leave);
      sizesBytes.push(bytes);
      sizeBytes += bytes;
    }
    return { first: first.index, last: last.index, termRuns, configChanges, sizeBytes, sizesBytes };
  }

  /** Keeps payloads that have no position yet, and returns the token to find them by. */
  keep(payloads: readonly Payload[]): number {
    this.lastToken++;
    this.byToken.set(this.lastToken, payloads);
    return this.lastToken;
  }

  /** Kept payloads have got positions. */
  place(token: number, term: number, firstIndex: number): void {
    (this.byToken.get(token) ?? []).forEach(({ data, change }, at) => {
      this.record({ term, index: firstIndex + at, type: typeOf(change), data, change });
    });
    this.byToken.delete(token);
  }

  /** Entries without a position, for a forwarded proposal. */
  forwarded(proposal: Proposal): Entry[] {
    const payloads = this.byToken.get(proposal.token) ?? [];
    return payloads.map(({ data, change }) => {
      return { term: 0, index: 0, type: typeOf(change), data, change };
    });
  }
}
