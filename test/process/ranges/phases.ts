/**
 * The phases of a move as the listing of ranges shows them, and who of those that take part is killed in which: a table of
 * kills, played on one cluster of real processes, whose moves take long enough to be seen.
 *
 * Invariants: 1. A kill counts only when its phase was listed a moment before. 2. Who is killed stays dead until the move
 * is over, but for a short time at most. 3. After each cell all nodes run, no move is left, and all ballast is there.
 * 4. Nothing is waited for without an end. The time in which an interval is frozen is a part of the phase copying: no
 * listing tells it.
 */
import { sleep } from "../cluster/server-process.js";
import { eventually } from "../placement/placed-nodes.js";
import type { Json } from "../chaos/asking.js";
import type { ListedMove, ListedSpace } from "../chaos/ranges.js";
import type { RangedRun } from "./ranged-run.js";

const PHASES = ["copying", "cut", "aborting"] as const;
type Phase = (typeof PHASES)[number];
const VICTIMS = ["leader of the source", "leader of the target", "leader of meta"] as const;
type Victim = (typeof VICTIMS)[number];

export interface Cell {
  readonly phase: Phase;
  readonly victim: Victim;
}

/** The whole table, in parts of three cells: each part has every phase and every victim once. */
export const PARTS: readonly (readonly Cell[])[] = VICTIMS.map((_, part) =>
  PHASES.map((phase, at): Cell => ({
    phase,
    victim: VICTIMS[(part + at) % VICTIMS.length] as Victim,
  })),
);

export function cellText({ phase, victim }: Cell): string {
  return `the ${victim} dies in the phase ${phase}`;
}

/** Flags of the nodes: nothing but calls changes ranges, and any neighbours may be merged. */
export const PHASE_FLAGS = [
  "--range-split-min-range-size=1",
  "--range-split-threshold=100000",
  "--range-merge-min-size=20000",
  "--range-collection-interval=1h",
];

/** A copy of that takes most of a second at least, and its removal several slices. */
const LARGE = 100;
const LARGE_BYTES = 96 * 1024;
const SMALL = 1500;
const MANY = 250;
/** Between two looks at the listing (ms). */
const LOOK_MS = 2;
const MOVE_MS = 60_000;
const DEAD_MS = 8000;
const LEADER_MS = 400;
/** A move is given up when it would begin for the sixth time; each death of its source's leader costs one. */
const ATTEMPTS = 8;

export class Phases {
  private moves = 0;
  /** Ranges of the space, before the move. */
  private count = 0;

  constructor(
    private readonly run: RangedRun,
    private readonly space: string,
    private readonly say: (text: string) => void,
  ) {}

  /** Keys that make moves slow, behind those of the clients. */
  async fill(): Promise<void> {
    const value = Buffer.alloc(LARGE_BYTES, 7).toString("base64");
    for (let at = 0; at < LARGE; at++)
      await this.must("/v1/kv/try-set", { key: this.large(at), value });
    for (let at = 0; at < SMALL; at += MANY) {
      const items = Array.from({ length: MANY }, (_, next) => {
        return { key: `${this.space}/n${at + next}`, value: "YQ==", durability: 1 };
      });
      await this.must("/v1/kv/try-set-many", { items });
    }
  }

  /** Makes the ballast move and kills the victim in the phase. False: the phase was not seen. */
  async play(cell: Cell): Promise<boolean> {
    const { nodes, ranges } = this.run;
    const leader = await this.prepare();
    const call = this.begin(leader);
    const isSeen =
      cell.phase === "aborting"
        ? await this.abort(cell.victim, leader)
        : await this.killAt(cell, leader);
    const beganMs = performance.now();
    const status = await call;
    this.say(`the call was answered ${status}`);
    for (const node of nodes.all) nodes.launch(node);
    await nodes.allReady();
    const left = await ranges.rest();
    if (left !== null) throw new Error(`still under way after ${cellText(cell)}: ${left}`);
    this.say(`at rest ${Math.round(performance.now() - beganMs)} ms later`);
    await this.lookAtBallast(cell);
    return isSeen;
  }

  /** Whoever leads meta; the key space is registered. */
  private async prepare(): Promise<number> {
    const { run, space: keySpace } = this;
    const [listed] = await run.ranges.listed(1, keySpace);
    this.count = listed?.descriptors.length ?? 0;
    if (this.count === 0) {
      let status = "";
      // While leaders change it is sent back, or nobody knows what came of it: registering repeats.
      const registered = async (): Promise<boolean> => {
        status = await run.change("register", { keySpace }, await this.metaLeader());
        return /Seeded/.test(status);
      };
      await eventually("the key space is registered", registered, () => status);
    }
    return this.metaLeader();
  }

  /** Starts a split, a merge or an unregister in turn, as the ranges allow. */
  private begin(leader: number): Promise<string> {
    const { run, space: keySpace } = this;
    const turn = this.moves++;
    if (this.count < 2) {
      return run.change("split", { keySpace, splitKey: `${keySpace}/k12` }, leader);
    }
    if (turn % 2 === 0) return run.change("unregister", { keySpace }, leader);
    return this.merge(leader);
  }

  /** Ranges that changed lately are left alone: it is asked again until something is folded. */
  private async merge(leader: number): Promise<string> {
    const endMs = performance.now() + MOVE_MS;
    for (;;) {
      const answer = await this.run.asking.ask(leader, "/v1/ranges/merge", {});
      const isNothing = answer?.["status"] === "Completed" && answer["merges"] === 0;
      if (!isNothing || performance.now() > endMs) return String(answer?.["status"]);
      await sleep(100);
    }
  }

  private async killAt({ phase, victim }: Cell, leader: number): Promise<boolean> {
    const seen = await this.until(phase, leader);
    if (seen === null) return false;
    return this.kill(victim, seen, DEAD_MS);
  }

  /** Its source's leader dies again and again until the move is given up; then the victim dies. */
  private async abort(victim: Victim, leader: number): Promise<boolean> {
    let attempt = 0;
    for (let times = 0; times < ATTEMPTS; times++) {
      const seen = await this.until("copying", times === 0 ? leader : 0, attempt + 1);
      if (seen === null) return false;
      if (seen.phase === "aborting") {
        return this.kill(victim, seen, DEAD_MS);
      }
      attempt = seen.attempt;
      await this.kill("leader of the source", seen, 0);
    }
    return false;
  }

  /** False: nobody is known to lead what the victim leads. */
  private async kill(victim: Victim, move: ListedMove, deadMs: number): Promise<boolean> {
    const { nodes, ranges } = this.run;
    const meta = await this.metaLeader();
    const partition = victim === "leader of the source" ? move.source : move.target;
    const node = victim === "leader of meta" ? meta : await this.leaderOf(partition, meta);
    if (node === 0) return false;
    this.say(
      `${move.kind} ${move.moveId} is ${move.phase}: node ${node}, the ${victim}, is killed`,
    );
    await nodes.kill(node);
    const endMs = performance.now() + deadMs;
    while (performance.now() < endMs) {
      const other = nodes.all.find((each) => nodes.isRunning(each)) ?? 0;
      const [space] = await ranges.listed(other, this.space);
      if (space !== undefined && space.moves.length === 0) break;
      await sleep(50);
    }
    nodes.launch(node);
    return true;
  }

  /** A partition that is being made has no leader for a moment. */
  private async leaderOf(partition: number, by: number): Promise<number> {
    const endMs = performance.now() + LEADER_MS;
    for (;;) {
      const node = await this.run.asking.leaderOf(partition, by);
      if (node !== 0 || performance.now() > endMs) return node;
      await sleep(LOOK_MS);
    }
  }

  /**
   * The move as soon as it is listed in the phase, at that attempt or a later one, or as aborting; null when it is past
   * the phase.
   */
  private async until(phase: Phase, asker: number, attempt = 0): Promise<ListedMove | null> {
    const endMs = performance.now() + MOVE_MS;
    let by = asker || (await this.metaLeader());
    let wasSeen = attempt > 1;
    while (performance.now() < endMs) {
      const [space] = (await this.run.ranges.listed(by, this.space)) as [ListedSpace | undefined];
      if (space === undefined) {
        by = await this.metaLeader();
        continue;
      }
      const [move] = space.moves;
      if (move !== undefined) wasSeen = true;
      if (move?.phase === "aborting") return phase === "cut" ? null : move;
      if (move?.phase === phase && move.attempt >= attempt) return move;
      const isPast = move === undefined || (phase === "copying" && move.phase === "cut");
      if (wasSeen && isPast) return null;
      await sleep(LOOK_MS);
    }
    throw new Error(`no move is listed as ${phase}`);
  }

  private async metaLeader(): Promise<number> {
    let leader = 0;
    const { nodes, asking } = this.run;
    await eventually("somebody leads meta", async () => {
      for (const node of nodes.all.filter((each) => nodes.isRunning(each))) {
        const said = await asking.metaLeader(node);
        if (!nodes.isRunning(said) || (await asking.metaLeader(said)) !== said) continue;
        leader = said;
        return true;
      }
      return false;
    });
    return leader;
  }

  private large(at: number): string {
    return `${this.space}/m${at}`;
  }

  private async lookAtBallast(cell: Cell): Promise<void> {
    const { nodes, asking } = this.run;
    for (let at = 0; at < LARGE; at++) {
      const body = { key: this.large(at) };
      const answer = await asking.ask(1 + (at % nodes.count), "/v1/kv/try-get", body);
      const length = Buffer.from(String(answer?.["value"] ?? ""), "base64").length;
      if (length !== LARGE_BYTES || answer?.["revision"] !== 0) {
        const shown = Object.entries(answer ?? {}).filter(([name]) => name !== "value");
        const rest = Object.fromEntries(shown);
        throw new Error(`${body.key} after ${cellText(cell)}: ${JSON.stringify(rest)}`);
      }
    }
    for (const node of nodes.all) {
      const answer = await asking.ask(node, "/v1/kv/scan-all-by-prefix", {
        prefixKey: `${this.space}/n`,
      });
      const count = ((answer?.["items"] ?? []) as readonly Json[]).length;
      if (count !== SMALL)
        throw new Error(`node ${node} shows ${count} keys after ${cellText(cell)}`);
    }
  }

  private async must(path: string, body: object): Promise<void> {
    const answer = await this.run.asking.ask(1, path, body);
    const items = (answer?.["items"] ?? [answer]) as readonly (Json | null)[];
    if (items.every((item) => item?.["type"] === 0)) return;
    throw new Error(`${path} is answered ${JSON.stringify(answer).slice(0, 200)}`);
  }
}
