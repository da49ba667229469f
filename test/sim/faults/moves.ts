/**
 * Faults aimed at moves of key ranges: they wait until a move comes to a phase, and strike whoever leads
 * its source, its target or meta then.
 *
 * Invariants: 1. Each heals by itself. 2. What strikes does so between two events of the world, never
 * inside the one that tells of the phase. 3. In peace nothing waits any more.
 */
import { META_PARTITION, moveId } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Scene } from "./fault-context.js";
import type { FaultKind } from "./kinds.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";

export const MOVE_PHASES = [
  ...(["begun", "opened", "imported", "frozen", "closed", "cut", "adopted", "released"] as const),
  ...(["aborted", "unfrozen", "retried", "purged"] as const),
] as const;
export type MovePhase = (typeof MOVE_PHASES)[number];

/** The two partitions of a move. */
export interface MovePair {
  readonly source: number;
  readonly target: number;
}

/** A move that came to a phase. */
export interface MoveThere extends MovePair {
  readonly keySpace: string;
  readonly moveId: number;
}

type Strike = (move: MoveThere) => void;

/** Who waits for what moves come to. */
export class MoveMoments {
  private readonly waiting = new Map<MovePhase, Strike[]>();

  once(phase: MovePhase, strike: Strike): void {
    const list = this.waiting.get(phase) ?? [];
    list.push(strike);
    this.waiting.set(phase, list);
  }

  /** A move comes to `phase`: one of those that wait strikes. */
  came(phase: MovePhase, move: MoveThere): void {
    this.waiting.get(phase)?.shift()?.(move);
  }

  clear(): void {
    this.waiting.clear();
  }
}

/** What most moves depend on comes several times. */
const AIMS: readonly MovePhase[] = [...MOVE_PHASES, "frozen", "frozen", "frozen", "closed", "cut"];
/** What is frozen must wait then; what was just begun is given up. */
const MUTED: readonly MovePhase[] = ["begun", "opened", "opened", "frozen", "frozen", "closed"];

/** It knows of the move, and hears neither of its cut nor of what ends it. */
const DEAFENED: readonly MovePhase[] = ["opened", "imported", "imported", "frozen"];

const GIVEN_UP: readonly MovePhase[] = ["opened", "imported", "imported", "frozen"];

/** Whoever brings a source to its target from then on is not heard by all replicas of the source. */
const BEHIND: readonly MovePhase[] = ["opened", "imported", "imported", "frozen", "frozen"];

/** What each kind may wait for. */
const PHASES: Partial<Record<FaultKind, readonly MovePhase[]>> = {
  ...{ "strike-move": AIMS, "part-move": AIMS, "mute-meta": MUTED, "mute-side": MUTED },
  ...{ "deaf-side": DEAFENED, "give-up": GIVEN_UP, "late-source": BEHIND },
};

/** Around the time that an interval may be frozen, or beyond that in which a target must be led. */
function longMs(prng: Prng): number {
  return prng.chance(1, 3) ? World.between(prng, 300, 4000) : World.between(prng, 4000, 20_000);
}

/** An order is waited for so long (ms). */
const ORDER_MS = 2000;

const ACTIONS = [
  ...(["kill", "kill", "power-loss", "crash-inside", "pause", "isolate", "isolate"] as const),
  ...(["away", "hand-over", "hand-over", "stop", "disk-hung", "store-hung", "disk-slow"] as const),
] as const;
type Action = (typeof ACTIONS)[number];

/**
 * Waits for a moment drawn by `prng`. `struck`: it came, and something was done. False: `kind` is none of
 * these.
 */
export function aimAtMove(
  scene: Scene,
  kind: FaultKind,
  prng: Prng,
  struck: (node: number) => void,
): boolean {
  const aims = PHASES[kind];
  if (aims === undefined) return false;
  scene.moments.once(aims[prng.below(aims.length)] as MovePhase, (move) => {
    const delayMs = prng.chance(1, 2) ? 0 : prng.below(40);
    scene.world.schedule(delayMs, () => {
      if (kind === "give-up") giveUp(scene, move, struck);
      else if (kind === "strike-move") strike(scene, move, prng, struck);
      else if (kind === "part-move") part(scene, move, prng, struck);
      else if (kind === "deaf-side") deafen(scene, move, prng, struck);
      else if (kind === "late-source") lag(scene, move, prng, struck);
      else if (kind === "mute-meta") mute(scene, META_PARTITION, longMs(prng), struck);
      else mute(scene, prng.chance(3, 4) ? move.target : move.source, longMs(prng), struck);
    });
  });
  return true;
}

/** Who leads `partition` as the newest leader. */
export function leaderOf(scene: Scene, partition: number): Server | null {
  let found: Server | null = null;
  let term = -1;
  for (const server of scene.servers) {
    const group = server.running?.node.groups().find((each) => each.partition === partition);
    if (group?.isLeader() !== true || group.term() <= term) continue;
    term = group.term();
    found = server;
  }
  return found;
}

function strike(
  scene: Scene,
  { source, target }: MovePair,
  prng: Prng,
  struck: (node: number) => void,
): void {
  const whose = [source, target, META_PARTITION][prng.below(3)] as number;
  const server = leaderOf(scene, whose);
  if (server === null || server.isLost || server.isRetired) return;
  const action = ACTIONS[prng.below(ACTIONS.length)] as Action;
  scene.world.say(server.nodeId, `${action} of the leader of partition ${whose}`);
  if (doIt(scene, action, server, prng)) struck(server.nodeId);
}

function doIt(scene: Scene, action: Action, server: Server, prng: Prng): boolean {
  const { world } = scene;
  const lastsMs = World.between(prng, 100, prng.chance(1, 2) ? 1500 : 8000);
  switch (action) {
    case "kill":
    case "power-loss":
      server.end(action, "struck in the middle of a move");
      return true;
    case "away":
      scene.keepDown(server, lastsMs);
      server.end("kill", "away from the middle of a move on");
      return true;
    case "crash-inside":
      if (server.life === null) return false;
      server.life.crashCountdown = 1 + prng.below(60);
      return true;
    case "pause":
      return pause(scene, server, lastsMs);
    case "isolate":
      return isolate(scene, server, lastsMs);
    case "hand-over":
      server.handOver(prng.chance(1, 2), () => undefined);
      return true;
    case "stop":
      if (server.running === null) return false;
      server.stop(1000 + prng.below(3000));
      return true;
    case "disk-hung":
      server.disk.hungUntilMs = Math.max(server.disk.hungUntilMs, world.nowMs + lastsMs);
      return true;
    case "store-hung":
      server.rows.hungUntilMs = Math.max(server.rows.hungUntilMs, world.nowMs + lastsMs);
      return true;
    case "disk-slow":
      if (server.disk.slowness > 1) return false;
      server.disk.slowness = 10 + prng.below(40);
      scene.until(lastsMs, () => {
        server.disk.slowness = 1;
      });
      return true;
  }
}

function pause(scene: Scene, server: Server, lastsMs: number): boolean {
  const { life } = server;
  if (life === null) return false;
  const calm = server.disturb("paused in the middle of a move");
  life.pause();
  scene.network.silent(server.nodeId);
  scene.until(lastsMs, () => {
    life.resume();
    scene.world.schedule(2000, calm);
  });
  return true;
}

function isolate(scene: Scene, server: Server, lastsMs: number): boolean {
  for (const { nodeId, isRetired } of scene.servers) {
    if (!isRetired && nodeId !== server.nodeId) cutBoth(scene, server.nodeId, nodeId, lastsMs);
  }
  return true;
}

function cutBoth(scene: Scene, a: number, b: number, lastsMs: number): void {
  scene.until(lastsMs, scene.network.cut(a, b));
  scene.until(lastsMs, scene.network.cut(b, a));
}

/** The two leaders of the move, or one of them and that of meta, do not hear each other. */
function part(
  scene: Scene,
  { source, target }: MovePair,
  prng: Prng,
  struck: (node: number) => void,
): void {
  const ends = [source, target, META_PARTITION];
  ends.splice(prng.below(ends.length), 1);
  const [one, other] = ends.map((partition) => leaderOf(scene, partition)?.nodeId ?? 0);
  if (one === undefined || other === undefined || one === other || one * other === 0) return;
  const lastsMs = World.between(prng, 100, 6000);
  if (prng.chance(1, 3)) scene.until(lastsMs, scene.network.cut(one, other));
  else cutBoth(scene, one, other, lastsMs);
  struck(one);
}

/** A majority takes in nothing of one group: every other one goes on. */
function mute(
  scene: Scene,
  partition: number,
  lastsMs: number,
  struck: (node: number) => void,
): void {
  const able = scene.servers.filter(({ isRetired, isLost }) => !isRetired && !isLost);
  const hearing = able.filter(({ deafTo }) => !deafTo.has(partition));
  for (const server of hearing.slice(0, Math.floor(able.length / 2) + 1)) {
    server.deafTo.add(partition);
    scene.until(lastsMs, () => void server.deafTo.delete(partition));
  }
  if (hearing.length > 0) struck(0);
}

/** Somebody else is to lead `partition`. */
export function leadElsewhere(scene: Scene, { running, nodeId }: Server, partition: number): void {
  const heir = scene.servers.find(({ isUp, nodeId: id }) => isUp && id !== nodeId);
  if (running === null || heir === undefined) return;
  running.life.enter(() => {
    const hosted = running.node["parts"].registry.all.find(({ replica }) => {
      return replica.partition === partition;
    });
    hosted?.replica.moveTo({ to: heir.nodeId, mustCarry: false, reason: "balance" });
  });
}

/** By whoever leads meta; what is frozen may be cut before that. */
function giveUp(
  scene: Scene,
  { keySpace, moveId: id }: MoveThere,
  struck: (node: number) => void,
): void {
  const leader = leaderOf(scene, META_PARTITION);
  const running = leader?.running ?? null;
  if (leader === null || running === null) return;
  const { life, node } = running;
  const of = { keySpace, moveId: moveId(id) };
  const command = { kind: "abort-move", ...of, reason: "deadline" } as const;
  life.enter(() => {
    node.metaGroup().proposeFinal(command, 200, node.nowMs() + ORDER_MS, () => undefined);
  });
  struck(leader.nodeId);
}

/** Whoever leads one side goes by what it has applied of meta, while all others go on. */
function deafen(
  scene: Scene,
  { source, target }: MovePair,
  prng: Prng,
  struck: (node: number) => void,
): void {
  const [side, other] = prng.chance(3, 4) ? [source, target] : [target, source];
  const server = leaderOf(scene, side);
  // Without its leader meta would decide nothing.
  if (server === null || server === leaderOf(scene, META_PARTITION)) return;
  if (server.deafTo.has(META_PARTITION)) return;
  // Who led both would neither let go of the keys nor take them.
  if (leaderOf(scene, other) === server) leadElsewhere(scene, server, other);
  server.deafTo.add(META_PARTITION);
  scene.until(World.between(prng, 300, 6000), () => {
    server.deafTo.delete(META_PARTITION);
  });
  struck(server.nodeId);
}

/** A follower hears nothing of the source for a while: it applies the adoption by the target first. */
function lag(scene: Scene, { source }: MovePair, prng: Prng, struck: (node: number) => void): void {
  const leader = leaderOf(scene, source);
  const followers = scene.servers.filter((server) => {
    return server.isUp && server !== leader && !server.deafTo.has(source);
  });
  const server = followers[prng.below(Math.max(1, followers.length))];
  if (server === undefined) return;
  server.deafTo.add(source);
  scene.until(World.between(prng, 300, 3000), () => void server.deafTo.delete(source));
  struck(server.nodeId);
}
