/**
 * What is looked at where key ranges move: follows each move through what replicas apply, and hands its
 * steps to the checkers of ranges; counts what moves went through.
 *
 * Invariants: 1. A step counts once, when the first replica applied it. 2. What a move is, the record of
 * the meta partition says, as of the entry that began it.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import type { Command, Outcome } from "../../../src/machine/commands/command.js";
import type { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import { Calm } from "../../judge/checkers/ranges/calm.js";
import { CountsTrue } from "../../judge/checkers/ranges/counts-true.js";
import { CutAfterClose } from "../../judge/checkers/ranges/cut-after-close.js";
import {
  type AskedChange,
  HonestStatus,
  type ToldChange,
} from "../../judge/checkers/ranges/honest-status.js";
import { IdsOnce } from "../../judge/checkers/ranges/ids-once.js";
import { LeaseNeverShorter } from "../../judge/checkers/ranges/lease-never-shorter.js";
import { MovesSeen } from "../../judge/checkers/ranges/moves-seen.js";
import { NoOpenAfterCut } from "../../judge/checkers/ranges/no-open-after-cut.js";
import { OneOwner } from "../../judge/checkers/ranges/one-owner.js";
import { Ends, NoLeftOvers, type RangePeace } from "../../judge/checkers/ranges/peace-of-ranges.js";
import { SameState } from "../../judge/checkers/ranges/same-state.js";
import type { SeenMove, SeenRange } from "../../judge/checkers/ranges/seen-moves.js";
import type { MadeMove } from "../../judge/checkers/ranges/through-moves.js";
import { Tiling } from "../../judge/checkers/ranges/tiling.js";
import { UnregisterKeeps } from "../../judge/checkers/ranges/unregister-keeps.js";
import type { Verdict } from "../../judge/checkers/verdict.js";
import { WindowBounded } from "../../judge/checkers/ranges/window-bounded.js";
import type { MovePhase } from "../faults/moves.js";
import { FollowedMove } from "./followed-move.js";
import { rangeStateOf } from "./range-rows.js";
import type { AppliedSeen, RangeListener } from "./range-tap.js";

/** What a world of key ranges is set to. */
export interface RangeSetting {
  /** Keys that are looked at for who accepts them. */
  readonly probes: readonly string[];
  readonly homeOf: (key: string) => number;
  /** Nodes split or merge by themselves. */
  readonly isAutomatic: boolean;
  /** By how much any clock may be off. */
  readonly drift: number;
  /** How much longer than its bound a window may last until a trouble is known to be over (ms). */
  readonly slackMs: number;
}

/** The commands of moves have these members, as far as they are there. */
interface AnyCommand {
  readonly kind: string;
  readonly keySpace?: string;
  readonly moveId?: number;
  readonly attempt?: number;
  readonly reason?: string;
}

export class RangeChecks implements RangeListener {
  readonly owner: OneOwner;
  readonly tiling = new Tiling();
  readonly cuts = new CutAfterClose();
  readonly opened = new NoOpenAfterCut();
  readonly state = new SameState();
  readonly leases: LeaseNeverShorter;
  readonly ids = new IdsOnce();
  readonly window: WindowBounded;
  readonly ends = new Ends();
  readonly leftOvers = new NoLeftOvers();
  readonly honest: HonestStatus;
  readonly calm: Calm;
  readonly counts = new CountsTrue();
  readonly keeps = new UnregisterKeeps();
  readonly went = new MovesSeen();
  /** Moves that were cut, for the judges of histories. */
  readonly made: MadeMove[] = [];
  /** Key spaces of which anything was ever frozen. */
  readonly movedSpaces = new Set<string>();
  /** Told of what moves come to. */
  onPhase: (phase: MovePhase, move: SeenMove) => void = () => undefined;
  /** A call may be what begins a move. */
  hasCalls: () => boolean = () => false;
  private readonly moves = new Map<number, FollowedMove>();
  private readonly rangeCounts = new Map<string, { atMs: number; count: number }[]>();
  private readonly leaving = new Set<string>();
  private mapVersion = -1;

  constructor(private readonly setting: RangeSetting) {
    const { probes, homeOf, isAutomatic, drift, slackMs } = setting;
    this.owner = new OneOwner(probes, homeOf);
    this.leases = new LeaseNeverShorter(drift);
    this.window = new WindowBounded(slackMs);
    this.honest = new HonestStatus(!isAutomatic);
    this.calm = new Calm();
  }

  get all(): readonly { verdict(): Verdict }[] {
    const ofSteps = [this.cuts, this.opened, this.state, this.leases, this.window];
    const ofMaps = [this.owner, this.tiling, this.ids];
    const ofAnswers = [this.honest, this.counts, this.keeps];
    return [...ofSteps, ...ofMaps, ...ofAnswers, this.calm, this.ends, this.leftOvers, this.went];
  }

  homeOf(key: string): number {
    return this.setting.homeOf(key);
  }

  /** Moves between the freeze and the adoption. */
  get frozenMoves(): readonly FollowedMove[] {
    return [...this.moves.values()].filter((move) => move.isFrozen);
  }

  /** In how many ranges a key space lay. */
  readonly rangesOf = (keySpace: string, atMs: number): number => {
    const known = this.rangeCounts.get(keySpace)?.filter((seen) => seen.atMs <= atMs) ?? [];
    return known.at(-1)?.count ?? 0;
  };

  // What replicas apply ---------------------------------------------------------------------------

  applied(seen: AppliedSeen): void {
    seen.commands.forEach((command, at) => {
      const outcome = seen.outcomes[at];
      if (outcome === undefined) return;
      if (seen.group === META_PARTITION) this.meta(seen, command, outcome);
      else if (command.kind.startsWith("range-")) this.data(seen, command, outcome);
    });
    if (seen.group === META_PARTITION) this.lookAtMap(seen);
  }

  installed(_node: number, group: number): void {
    const isTouched = ({ move }: FollowedMove): boolean =>
      [move.source, move.target].includes(group);
    if ([...this.moves.values()].some((each) => !each.isOver && isTouched(each))) {
      this.went.installed();
    }
  }

  private meta({ machine, atMs }: AppliedSeen, command: Command, outcome: Outcome): void {
    if (outcome.kind !== "meta") return;
    const { kind, keySpace = "", moveId = 0, attempt = 0, reason } = command as AnyCommand;
    const isDone = outcome.status === "done";
    const isThere = isDone || outcome.status === "unchanged";
    if (kind === "register-range" && isThere) this.honest.passed(keySpace, true);
    if (kind === "unregister-range" && isThere) this.honest.passed(keySpace, false);
    if (kind === "begin-move") {
      if (isDone) this.began(machine.meta, keySpace, atMs);
      return;
    }
    const followed = this.moves.get(moveId);
    if (followed === undefined) return;
    const { move } = followed;
    if (kind === "retry-move" && isDone) {
      if (followed.isOpened) this.went.retried();
      this.opened.over(moveId, attempt);
      this.onPhase("retried", move);
    }
    if (kind === "cut-range" && isDone) {
      followed.isCut = true;
      this.cuts.cut(move, attempt);
      this.opened.cut(moveId, attempt);
      this.honest.cut(moveId);
      this.went.cut(move);
      this.onPhase("cut", move);
    }
    if (kind === "abort-move" && isDone) {
      this.went.aborted(reason ?? "");
      this.opened.over(moveId, Infinity);
      this.onPhase("aborted", move);
    }
    if (kind === "finish-move" && machine.meta.move(keySpace)?.moveId !== moveId) {
      followed.isOver = true;
      this.honest.ended(moveId);
    }
  }

  private began(meta: MetaReads, keySpace: string, atMs: number): void {
    const record = meta.move(keySpace);
    if (record === null) return;
    const { moveId, kind, startKey, endKey, source, target } = record;
    const move: SeenMove = { moveId, kind, keySpace, startKey, endKey, source, target };
    this.moves.set(moveId, new FollowedMove(move));
    this.honest.began(move);
    this.tiling.began(move);
    if (kind !== "home" && !this.hasCalls()) this.calm.began(`${kind} of ${keySpace}`, atMs);
    this.onPhase("begun", move);
  }

  private data(seen: AppliedSeen, command: Command, outcome: Outcome): void {
    const { kind, moveId = 0, attempt = 0 } = command as AnyCommand;
    const { status } = outcome as unknown as { readonly status?: string };
    const followed = this.moves.get(moveId);
    if (followed === undefined || status === undefined) return;
    this.went.went(`${kind}: ${status}`);
    const { move } = followed;
    const tried = { ...move, attempt };
    if (status === "mismatch") {
      this.state.mismatched(tried, rangeStateOf(seen.machine, move, seen.proposedMs));
    }
    if (status !== "done" && status !== "closed") return;
    switch (kind) {
      case "range-open":
        if (status === "closed") return;
        followed.opened(seen.atMs);
        return this.onPhase("opened", move);
      case "range-import":
        followed.imported(seen.atMs);
        return this.onPhase("imported", move);
      case "range-freeze":
        return this.froze(followed, attempt, seen);
      case "range-close": {
        const state = rangeStateOf(seen.machine, move, seen.proposedMs);
        this.cuts.closed(seen.group, tried);
        this.state.closed(tried, state);
        this.leases.closed(tried, state, followed.copyTimes(seen.atMs));
        followed.carries(state);
        return this.onPhase("closed", move);
      }
      case "range-adopt":
        return this.adopted(followed, seen);
      case "range-drop":
        this.cuts.undone(tried, "target");
        return;
      case "range-unfreeze":
        return this.unfroze(followed, seen.atMs);
      case "range-release":
        this.cuts.followed(move, "source");
        return this.onPhase("released", move);
      case "range-purge":
        return this.onPhase("purged", move);
    }
  }

  private froze(followed: FollowedMove, attempt: number, seen: AppliedSeen): void {
    const { move } = followed;
    const tried = { ...move, attempt };
    const state = rangeStateOf(seen.machine, move, seen.proposedMs);
    followed.frozen(attempt, seen.atMs);
    this.movedSpaces.add(move.keySpace);
    this.cuts.frozen(seen.group, tried);
    this.state.frozen(tried, state);
    this.leases.frozen(tried, state);
    this.window.frozen(tried, seen.atMs);
    this.owner.owns(move, null);
    this.onPhase("frozen", move);
  }

  /** What was frozen is open again, whichever attempt it was for. */
  private unfroze(followed: FollowedMove, atMs: number): void {
    const { move, frozenAttempt } = followed;
    if (frozenAttempt === null) return;
    const tried = { ...move, attempt: frozenAttempt };
    this.cuts.undone(tried, "source");
    this.opened.unfrozen(move.moveId, frozenAttempt);
    this.window.over(tried, atMs);
    this.owner.owns(move, move.source);
    followed.unfrozen();
    this.onPhase("unfrozen", move);
  }

  private adopted(followed: FollowedMove, seen: AppliedSeen): void {
    const { move, frozenAttempt, frozenMs } = followed;
    const { atMs } = seen;
    const attempt = frozenAttempt ?? 0;
    const tried = { ...move, attempt };
    // What comes with it in one entry has changed the keys already.
    const isAlone = seen.commands.every(({ kind }) => !kind.startsWith("kv-"));
    if (isAlone) this.state.adopted(tried, rangeStateOf(seen.machine, move, seen.proposedMs));
    this.cuts.followed(move, "target");
    this.window.over(tried, atMs);
    this.owner.owns(move, move.target);
    this.made.push({ ...move, frozenMs, adoptedMs: atMs });
    const { keys, tombstones, historyBytes } = followed.carried;
    this.went.imported(keys, tombstones, historyBytes);
    followed.unfrozen();
    this.onPhase("adopted", move);
  }

  private lookAtMap({ machine, atMs }: AppliedSeen): void {
    const { meta } = machine;
    const version = meta.cluster()?.mapVersion ?? -1;
    if (version <= this.mapVersion) return;
    this.mapVersion = version;
    const spaces = new Map<string, readonly SeenRange[]>();
    for (const { keySpace, descriptors } of meta.keySpaces()) {
      spaces.set(
        keySpace,
        descriptors.map((range) => ({ keySpace, ...range })),
      );
    }
    this.tiling.map(version, spaces);
    this.ids.map(version, meta.partitions());
    this.honest.map(spaces);
    this.leaving.clear();
    for (const keySpace of meta.leavingKeySpaces()) this.leaving.add(keySpace);
    for (const [keySpace, ranges] of spaces) this.noteCount(keySpace, atMs, ranges.length);
    for (const keySpace of this.rangeCounts.keys()) {
      if (!spaces.has(keySpace)) this.noteCount(keySpace, atMs, 0);
    }
  }

  private noteCount(keySpace: string, atMs: number, count: number): void {
    const list = this.rangeCounts.get(keySpace) ?? [];
    if (list.at(-1)?.count !== count) list.push({ atMs, count });
    this.rangeCounts.set(keySpace, list);
  }

  // What the world tells --------------------------------------------------------------------------

  /** Another node leads `group`, or the same one in another term. */
  leaderChanged(group: number): void {
    for (const followed of this.frozenMoves) {
      const { source, target } = followed.move;
      if (group === META_PARTITION) this.went.leaderChanged("meta");
      else if (group === source) this.went.leaderChanged("source");
      else if (group === target) this.went.leaderChanged("target");
    }
    for (const followed of this.moves.values()) {
      if (followed.move.target === group) followed.isSteady = false;
    }
  }

  /** Looks at all windows; `isLed`: a partition has a leader that serves and knows everything. */
  look(
    atMs: number,
    accepting: (key: string) => readonly number[],
    isLed: (partition: number) => boolean,
    isClear: () => boolean,
  ): void {
    this.owner.look(atMs, accepting, isLed);
    const isMetaLed = isLed(META_PARTITION);
    for (const followed of this.frozenMoves) if (!isMetaLed) this.metaGone(followed);
    this.window.look(atMs, ({ moveId }) => {
      const move = this.moves.get(moveId)?.move;
      return (
        isMetaLed && isClear() && move !== undefined && isLed(move.source) && isLed(move.target)
      );
    });
  }

  private metaGone(followed: FollowedMove): void {
    if (followed.wasMetaGone) return;
    followed.wasMetaGone = true;
    this.went.metaGone();
  }

  asked(id: number, ask: AskedChange, atMs: number): void {
    this.honest.asked(id, ask, atMs);
  }

  told(id: number, answer: ToldChange): void {
    this.honest.told(id, answer);
  }

  witnessed(node: number, space: string, key: string, value: string, found: string | null): void {
    const isRanged = (this.rangeCounts.get(space)?.at(-1)?.count ?? 0) > 0;
    const when = this.leaving.has(space) ? "meanwhile" : isRanged ? "otherwise" : "afterwards";
    this.keeps.read(node, key, value, found, when);
  }

  /** So many hours under a load that swings are over. */
  swung(hours: number): void {
    const counts = [...this.rangeCounts.values()].flat().map(({ count }) => count);
    this.calm.swung(this.moves.size, Math.max(1, ...counts), hours);
  }

  settled(peace: RangePeace): void {
    this.ends.settled(peace);
    this.leftOvers.settled(peace);
  }
}
