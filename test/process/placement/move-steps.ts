/**
 * The steps of a move as the placement listing shows them, and who of those that take part is killed at which: a table of
 * kills, played on one cluster of real processes whose replicas are made to move by factors and by leaves.
 *
 * Invariants: 1. A kill counts only when its step was listed a moment before. 2. Who is killed stays dead until the move
 * is over, unless the move waits for it. 3. After each cell all nodes run and are members, and each hosts what the listing
 * says. 4. Nothing is waited for without an end.
 */
import { sleep } from "../cluster/server-process.js";
import { rolesUntil } from "../net/processes.js";
import type { Load } from "./load.js";
import {
  type PartitionPlacement,
  type Placement,
  type PlacedNodes,
  eventually,
} from "./placed-nodes.js";

const STEPS = ["learner", "voter", "removing", "gone"] as const;
type Step = (typeof STEPS)[number];
const VICTIMS = ["coming", "going", "leader of the group", "leader of meta"] as const;
type Victim = (typeof VICTIMS)[number];

/** Factors that make a replica come, and go again. */
const FACTOR = 3;
const RAISED = 4;
/** Between two looks at the listing (ms). */
const LOOK_MS = 5;
/** Whoever was started lately takes no replica for half a minute; a move takes seconds (ms). */
const MOVE_MS = 90_000;

export interface Cell {
  readonly step: Step;
  readonly victim: Victim;
  /** What moves the replica: a factor brings one or takes one away, a leave does both. */
  readonly by: "factor" | "leave";
}

/**
 * The whole table, in parts of four cells: each part has every step once and every victim once. A raised factor has no
 * replica that goes, and a lowered one none that comes: those cells are moves of a leave.
 */
export const PARTS: readonly (readonly Cell[])[] = VICTIMS.map((_, part) =>
  STEPS.map((step, at): Cell => {
    const victim = VICTIMS[(part + VICTIMS.length - at) % VICTIMS.length] as Victim;
    const isLacking = at < 2 ? victim === "going" : victim === "coming";
    return { step, victim, by: isLacking ? "leave" : "factor" };
  }),
);

export function cellText({ step, victim, by }: Cell): string {
  return `the ${victim} dies as a replica is listed as ${step}, moved by a ${by}`;
}

/** What moves, by the voters before; 0 = nobody. */
interface Watched {
  readonly voters: ReadonlyMap<number, readonly number[]>;
  readonly leaver: number;
}

interface Move {
  readonly partition: number;
  readonly coming: number;
  readonly going: number;
  /** Where it is: a replacement is at two steps at once. */
  readonly steps: readonly Step[];
}

export class MoveSteps {
  /** Nodes in the order in which they were started again. */
  private readonly started: number[] = [];

  constructor(
    private readonly nodes: PlacedNodes,
    private readonly load: Load,
    private readonly say: (text: string) => void,
  ) {}

  /**
   * The last partition gets its replica more now: to lower a factor needs nobody who was live for half a minute, so that
   * no part waits for that.
   */
  async prepare(): Promise<void> {
    const record = (await this.listed()).at(-1) as PartitionPlacement;
    await this.setFactor(record.partitionId, RAISED);
    await this.settled(record.partitionId, RAISED);
  }

  /** Makes a replica move and kills the victim at the step. False: the step was not seen in time. */
  async play(cell: Cell): Promise<boolean> {
    const isSeen = cell.by === "leave" ? await this.leave(cell) : await this.changeFactor(cell);
    await this.converged();
    return isSeen;
  }

  /** A partition gets one replica more, or one less. */
  private async changeFactor(cell: Cell): Promise<boolean> {
    const isComing = cell.step === "learner" || cell.step === "voter";
    const [from, to] = isComing ? [FACTOR, RAISED] : [RAISED, FACTOR];
    const records = await this.listed();
    // By the factor: while balance moves a replica, a partition has one more for a moment.
    const known = records.find((record) => record.effectiveReplicationFactor === from);
    const { partitionId } = known ?? (records[0] as PartitionPlacement);
    if (known === undefined) await this.setFactor(partitionId, from);
    await this.settled(partitionId, from);
    const [record] = (await this.listed()).filter((one) => one.partitionId === partitionId);
    const before = this.nodesOf(record as PartitionPlacement);
    await this.setFactor(partitionId, to);
    const watched = { voters: new Map([[partitionId, before]]), leaver: 0 };
    const isSeen = await this.killAt(cell, watched);
    await this.settled(partitionId, to);
    return isSeen;
  }

  /**
   * A node that has replicas leaves, and comes back empty: the one that was started last, since whoever has been live for
   * half a minute is needed to take them.
   */
  private async leave(cell: Cell): Promise<boolean> {
    const { nodes } = this;
    const meta = await this.metaLeader();
    const records = await this.listed();
    const held = (node: number): readonly PartitionPlacement[] =>
      records.filter((record) => this.nodesOf(record).includes(node));
    const [leaver] = nodes.running
      .filter((node) => node !== meta && held(node).length > 0)
      .sort((one, other) => this.started.lastIndexOf(other) - this.started.lastIndexOf(one)) as [
      number,
    ];
    const voters = new Map(held(leaver).map((one) => [one.partitionId, this.nodesOf(one)]));
    const left = this.left(leaver);
    // Awaited below, whatever the kill comes to.
    left.catch(() => undefined);
    const isSeen = await this.killAt(cell, { voters, leaver });
    await left;
    this.load.leave(leaver);
    await nodes.lose(leaver);
    await this.start(leaver);
    const [other] = nodes.running.filter((id) => id !== leaver) as [number];
    const wanted = nodes.running.map((id) => `${id} Voter`).join(", ");
    const roles = await rolesUntil(nodes.node(other), wanted);
    if (roles !== wanted) throw new Error(`node ${leaver} does not come back: ${roles}`);
    return isSeen;
  }

  /** Asks until it is out of the member list: its process may be killed meanwhile. */
  private left(leaver: number): Promise<void> {
    const isOut = async (): Promise<boolean> => {
      const list = await this.askAny<{ members: readonly { nodeId: number }[] }>(
        "/v1/cluster/membership",
        leaver,
      );
      if (list?.members.every(({ nodeId }) => nodeId !== leaver) === true) return true;
      const answer = await this.ask<{ left: boolean }>(leaver, "/v1/cluster/leave", {});
      return answer?.left === true;
    };
    return eventually(`node ${leaver} leaves`, isOut, () => this.told());
  }

  /** Looks until a partition is at the step of the cell, and kills. False: all are past it. */
  private async killAt({ step, victim }: Cell, watched: Watched): Promise<boolean> {
    const endMs = performance.now() + MOVE_MS;
    let by = await this.metaLeader();
    while (performance.now() < endMs) {
      const [records, leaders, meta] = await Promise.all([
        this.records(by),
        victim === "leader of the group" ? this.leaders(by) : new Map<number, number>(),
        victim === "leader of meta" ? this.metaLeaderBy(by) : 0,
      ]);
      if (records === null) by = await this.metaLeader();
      const moves = this.movesOf(records ?? [], watched);
      const found = moves.find((move) => move.steps.includes(step));
      if (found !== undefined) {
        const { partition, coming, going } = found;
        const leader = leaders.get(partition) ?? 0;
        const node = {
          ...{ coming, going },
          ...{ "leader of the group": leader, "leader of meta": meta },
        }[victim];
        if (node === 0) return false;
        this.say(`partition ${partition} is at ${step}: node ${node}, the ${victim}, is killed`);
        await this.kill(node, found, watched.leaver);
        return true;
      }
      const isPast = ({ steps }: Move): boolean => {
        return steps.some((one) => STEPS.indexOf(one) > STEPS.indexOf(step));
      };
      if (moves.length > 0 && moves.every(isPast)) return false;
      await sleep(LOOK_MS);
    }
    throw new Error(`nothing moves to the step ${step}\n${await this.told()}`);
  }

  private async kill(node: number, move: Move, leaver: number): Promise<void> {
    const { nodes, load } = this;
    const dead = nodes.kill(node);
    load.leave(node);
    await dead;
    if (node === leaver) {
      // It may be out of the cluster by the time that it runs: then it never serves again.
      nodes.launch(node);
      return;
    }
    const isWaitedFor = node === move.coming && move.steps.includes("learner");
    if (!isWaitedFor) await this.settled(move.partition);
    await this.start(node);
  }

  private async start(node: number): Promise<void> {
    this.started.push(node);
    await this.nodes.launch(node).ready();
    await this.load.open(this.nodes, node);
  }

  private movesOf(records: readonly PartitionPlacement[], { voters, leaver }: Watched): Move[] {
    const moves: Move[] = [];
    for (const { partitionId, replicas } of records) {
      const before = voters.get(partitionId);
      if (before === undefined) continue;
      const listed = replicas.map(({ endpoint, role }) => {
        return { id: this.nodes.idOf(endpoint), role };
      });
      const coming = listed.find(({ id }) => !before.includes(id));
      const removing = listed.find(({ role }) => role === "Removing")?.id ?? 0;
      const lost = before.find((id) => listed.every((replica) => replica.id !== id)) ?? 0;
      const steps: Step[] = [];
      if (coming?.role === "Learner") steps.push("learner");
      if (coming?.role === "Voter" && lost === 0) steps.push("voter");
      if (removing !== 0) steps.push("removing");
      else if (lost !== 0) steps.push("gone");
      const going = leaver || removing || lost;
      moves.push({ partition: partitionId, coming: coming?.id ?? 0, going, steps });
    }
    return moves;
  }

  private nodesOf({ replicas }: PartitionPlacement): readonly number[] {
    return replicas.map(({ endpoint }) => this.nodes.idOf(endpoint));
  }

  /** Only voters, and as many as wanted. */
  private settled(partition: number, wanted?: number): Promise<void> {
    const isSettled = async (): Promise<boolean> => {
      const records = await this.listed();
      const replicas = records.find(({ partitionId }) => partitionId === partition)?.replicas ?? [];
      const isRight = wanted === undefined || replicas.length === wanted;
      return isRight && replicas.every(({ role }) => role === "Voter");
    };
    const what = `partition ${partition} has ${wanted ?? "all its"} voters`;
    return eventually(what, isSettled, () => this.told());
  }

  /** All nodes are ready, and each hosts exactly what is listed there. */
  private async converged(): Promise<void> {
    const { nodes } = this;
    await Promise.all(nodes.running.map((id) => nodes.node(id).ready()));
    const isTrue = async (): Promise<boolean> => {
      const all = await Promise.all(nodes.running.map((id) => this.records(id)));
      return all.every((records, at) => {
        return records?.every((record) => {
          return record.hostedLocally === this.nodesOf(record).includes(nodes.running[at] ?? 0);
        });
      });
    };
    await eventually("each node hosts what is listed", isTrue, () => this.told());
  }

  private async setFactor(partitionId: number, replicationFactor: number): Promise<void> {
    const path = "/v1/cluster/replication-factor";
    const isSet = async (): Promise<boolean> => {
      const leader = await this.metaLeader();
      const body = { partitionId, replicationFactor };
      return (await this.ask<{ success: boolean }>(leader, path, body))?.success === true;
    };
    await eventually(`partition ${partitionId} is to have ${replicationFactor}`, isSet);
  }

  /** Null: no answer. */
  private async ask<Answer>(node: number, path: string, body?: object): Promise<Answer | null> {
    try {
      return (await this.nodes.call(node, path, body)) as Answer;
    } catch {
      return null;
    }
  }

  /** The first answer of a node other than `not`. */
  private async askAny<Answer>(path: string, not = 0): Promise<Answer | null> {
    for (const node of this.nodes.running) {
      const answer = node === not ? null : await this.ask<Answer>(node, path);
      if (answer !== null) return answer;
    }
    return null;
  }

  private async records(by: number): Promise<readonly PartitionPlacement[] | null> {
    return (await this.ask<Placement>(by, "/v1/cluster/placement"))?.partitions ?? null;
  }

  private async listed(): Promise<readonly PartitionPlacement[]> {
    return (await this.records(await this.metaLeader())) ?? [];
  }

  private async leaders(by: number): Promise<Map<number, number>> {
    interface Routing {
      readonly leaders: readonly { readonly partitionId: number; readonly endpoint: string }[];
    }
    const routing = await this.ask<Routing>(by, "/v1/cluster/routing");
    const nodes = new Map<string, number>();
    for (const id of this.nodes.running) {
      nodes.set(`http://${(await this.nodes.addresses(id)).grpc}`, id);
    }
    const all = routing?.leaders ?? [];
    return new Map(all.map(({ partitionId, endpoint }) => [partitionId, nodes.get(endpoint) ?? 0]));
  }

  private async metaLeaderBy(by: number): Promise<number> {
    const overview = await this.ask<{ metaLeaderNodeId: number }>(by, "/v1/cluster/overview");
    const leader = overview?.metaLeaderNodeId ?? 0;
    return this.nodes.running.includes(leader) ? leader : 0;
  }

  /** As soon as there is one that runs and says so itself. */
  private async metaLeader(): Promise<number> {
    let leader = 0;
    await eventually("somebody leads meta", async () => {
      for (const node of this.nodes.running) {
        leader = await this.metaLeaderBy(node);
        if (leader !== 0 && (await this.metaLeaderBy(leader)) === leader) return true;
      }
      return false;
    });
    return leader;
  }

  private async told(): Promise<string> {
    return this.nodes.told(await this.metaLeader());
  }
}
