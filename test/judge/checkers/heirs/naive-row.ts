/**
 * A lock with heirs, once more and as plainly as its table says (Q14 to Q16): what the checkers hold
 * the applied commands against. A naive second version, which decides nothing.
 *
 * Invariants: 1. The holder and those who follow stand in one line, the holder first; whoever is
 * done leaves it at the front, and new ones come in at the end. 2. `top` is the highest token that
 * was granted or named.
 */

/** Whoever asks for a lock, or is named to have it. `waitId` 0: it is no part of a wait. */
export interface SeenAsk {
  readonly owner: string;
  readonly waitId: bigint;
  readonly attempt: bigint;
  readonly leaseMs: number;
}

export interface SeenHeir extends SeenAsk {
  readonly token: bigint;
}

/** What a command asks of a lock. `token` null: it does not say which grant is meant. */
export type Deed =
  | ({ readonly kind: "try" } & SeenAsk)
  | {
      readonly kind: "extend";
      readonly owner: string;
      readonly token: bigint | null;
      readonly leaseMs: number;
    }
  | { readonly kind: "unlock"; readonly owner: string; readonly token: bigint | null }
  | { readonly kind: "force"; readonly token: bigint }
  | {
      readonly kind: "set";
      readonly token: bigint;
      readonly kept: number;
      readonly added: readonly SeenAsk[];
      readonly horizonMs: number;
    }
  | {
      readonly kind: "append";
      readonly token: bigint;
      readonly added: readonly SeenAsk[];
      readonly horizonMs: number;
    };

export type DeedEnd =
  | "locked"
  | "extended"
  | "unlocked"
  | "busy"
  | "must retry"
  | "invalid owner"
  | "not held"
  | "written"
  | "stale";

/** The entry that a command is in. */
export interface When {
  readonly term: number;
  readonly leaseMs: number;
  /** No token below it is granted or named any more. */
  readonly floor: bigint;
}

/** The rows of the table of lists that outlived their term. */
export const ORPHAN_ROWS = [
  "the base extends or releases",
  "an heir extends or releases",
  "the base asks again",
  "the first heir asks again",
  "a later heir asks again",
  "the base asks, and not again",
  "others ask",
  "a list is written",
  "the base is released by force",
  "an heir names no token",
  "one that is done comes late",
  "the list ends by time",
] as const;
export type OrphanRow = (typeof ORPHAN_ROWS)[number];

/** What must come of a command. */
export interface Due {
  readonly end: DeedEnd;
  /** Of the grant that is made, confirmed or ended; null: any, or none. */
  readonly token: bigint | null;
}

const NOBODY = { owner: "", waitId: 0n, attempt: 0n, leaseMs: 0 };

export class NaiveRow {
  isHeld = false;
  /** Never empty while it is held. */
  line: readonly SeenHeir[] = [];
  endMs = 0;
  listTerm = 0;
  untilMs = 0;
  top = -1n;

  /** `hit`: called with each row of the table that a command meets. */
  constructor(private readonly hit: (row: OrphanRow) => void = () => undefined) {}

  get base(): SeenHeir {
    return this.line[0] ?? { ...NOBODY, token: -1n };
  }

  get heirs(): readonly SeenHeir[] {
    return this.line.slice(1);
  }

  isOrphaned({ term, leaseMs }: Omit<When, "floor">): boolean {
    return this.isHeld && this.heirs.length > 0 && this.listTerm !== term && leaseMs < this.untilMs;
  }

  /** Carries out `deed`, and returns what must have come of it. */
  take(deed: Deed, when: When): Due {
    const isOld = this.heirs.length > 0 && this.listTerm !== when.term;
    if (isOld && when.leaseMs >= this.untilMs) {
      this.line = this.line.slice(0, 1);
      this.hit("the list ends by time");
    }
    switch (deed.kind) {
      case "try":
        return this.try(deed, when);
      case "extend":
      case "unlock":
        return this.word(deed, when);
      case "force":
        return this.force(deed.token, when);
      default:
        return this.write(deed, when);
    }
  }

  private try(ask: SeenAsk, when: When): Due {
    if (this.isOrphaned(when)) return this.tryOrphaned(ask, when);
    const { leaseMs: nowMs } = when;
    if (this.isHeld && this.endMs > nowMs) {
      return this.base.owner === ask.owner ? this.due("locked", this.base.token) : this.due("busy");
    }
    const [first] = this.heirs;
    if (this.isHeld && first !== undefined) {
      if (first.owner !== ask.owner || first.waitId !== ask.waitId) return this.due("busy");
      this.line = [{ ...first, attempt: ask.attempt }, ...this.heirs.slice(1)];
    } else {
      this.rise(when);
      this.line = [{ ...ask, token: this.top }];
    }
    this.isHeld = true;
    this.endMs = nowMs + ask.leaseMs;
    return this.due("locked", this.base.token);
  }

  private tryOrphaned(ask: SeenAsk, { leaseMs: nowMs }: When): Due {
    const at = this.line.findIndex(({ owner }) => owner === ask.owner);
    const named = this.line[at];
    const isAgain =
      named !== undefined && named.waitId === ask.waitId && named.attempt < ask.attempt;
    if (named === undefined || (at > 0 && !isAgain)) {
      this.hit("others ask");
      return this.due("busy");
    }
    if (at > 0) {
      this.hit(at === 1 ? "the first heir asks again" : "a later heir asks again");
      this.line = this.line.slice(0, at);
      return this.due("busy");
    }
    this.hit(isAgain ? "the base asks again" : "the base asks, and not again");
    if (!isAgain) return this.due("must retry");
    this.line = [{ ...named, attempt: ask.attempt }, ...this.heirs];
    this.endMs = Math.max(this.endMs, nowMs + ask.leaseMs);
    return this.due("locked", named.token);
  }

  private word(deed: Extract<Deed, { kind: "extend" | "unlock" }>, when: When): Due {
    const { owner, token } = deed;
    if (!this.isHeld) return this.due("not held");
    const isOrphaned = this.isOrphaned(when);
    const isHeir = this.heirs.some((heir) => heir.owner === owner);
    if (token === null && isOrphaned && owner !== this.base.owner && isHeir) {
      this.hit("an heir names no token");
      return this.due("must retry");
    }
    const isOfBase = token === null || token === this.base.token;
    // Who speaks of another grant is refused for that while the lease runs only (L5, L6).
    const mayBeHeld = this.endMs > when.leaseMs || (isOrphaned && !isOfBase);
    if (deed.kind === "extend" && !mayBeHeld) return this.due("not held");
    const at = isOfBase ? 0 : this.line.findIndex((member) => member.token === token);
    if (this.line[at]?.owner !== owner || (at > 0 && !isOrphaned)) {
      if (isOrphaned && token !== null && token < this.base.token) {
        this.hit("one that is done comes late");
      }
      return this.due("invalid owner");
    }
    if (isOrphaned) {
      this.hit(at > 0 ? "an heir extends or releases" : "the base extends or releases");
    }
    this.line = this.line.slice(at);
    const meant = this.base.token;
    if (deed.kind === "extend") {
      this.endMs = when.leaseMs + deed.leaseMs;
      return this.due("extended", meant);
    }
    this.release(isOrphaned, when.leaseMs);
    return this.due("unlocked", meant);
  }

  /** The next one may have been told long ago, where the list has outlived its term. */
  private release(isOrphaned: boolean, nowMs: number): void {
    this.line = this.line.slice(1);
    this.isHeld = this.line.length > 0;
    this.endMs = isOrphaned ? this.untilMs : nowMs + this.base.leaseMs;
  }

  private force(token: bigint, when: When): Due {
    const isOrphaned = this.isOrphaned(when);
    if (!this.isHeld || (!isOrphaned && this.endMs <= when.leaseMs)) return this.due("not held");
    if (this.base.token !== token) return this.due("invalid owner");
    if (isOrphaned) this.hit("the base is released by force");
    else this.line = this.line.slice(0, 1);
    this.release(isOrphaned, when.leaseMs);
    return this.due("unlocked", token);
  }

  private write(deed: Extract<Deed, { kind: "set" | "append" }>, when: When): Due {
    const { token, added, horizonMs } = deed;
    const isOrphaned = this.isOrphaned(when);
    if (isOrphaned) this.hit("a list is written");
    if (!this.isHeld || isOrphaned) return this.due("stale");
    const expected = deed.kind === "set" ? this.base : this.line.at(-1);
    const kept = deed.kind === "set" ? deed.kept : this.heirs.length;
    if (expected?.token !== token || kept > this.heirs.length) return this.due("stale");
    const line = this.line.slice(0, 1 + kept);
    for (const ask of added) {
      if (line.some(({ owner }) => owner === ask.owner)) continue;
      this.rise(when);
      line.push({ ...ask, token: this.top });
    }
    this.line = line;
    this.listTerm = when.term;
    const longestMs = Math.max(0, ...this.heirs.map(({ leaseMs }) => leaseMs));
    this.untilMs = Math.max(this.untilMs, when.leaseMs + horizonMs + longestMs);
    return this.due("written");
  }

  /** To the next token. */
  private rise({ floor }: When): void {
    this.top = this.top < floor ? floor : this.top + 1n;
  }

  private due(end: DeedEnd, token: bigint | null = null): Due {
    return { end, token };
  }
}
