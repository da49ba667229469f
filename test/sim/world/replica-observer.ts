/**
 * What a world with replicas on some nodes only shows to whoever checks that, beside what `observe.ts`
 * shows of every world. Types only.
 */
import type { Placement } from "../../judge/checkers/replicas/converged.js";
import type { Versions } from "../../judge/checkers/replicas/at-rest.js";
import type { Led } from "../../judge/checkers/replicas/leaders-spread.js";
import type { Look } from "../../judge/checkers/replicas/no-live-eviction.js";
import type { SeenTargets } from "../../judge/checkers/replicas/comes-to-who-stays.js";
import type { SeenPass } from "../../judge/checkers/replicas/why-told.js";

/** What peace has come to. */
export interface PlacementPeace {
  readonly placement: Placement;
  /** The allocator puts replicas where they belong. */
  readonly hasAllocator: boolean;
  readonly led: readonly Led[];
  /** Leaders are spread. */
  readonly hasBalancer: boolean;
  /** All partitions, meta among them. */
  readonly partitions: readonly number[];
}

export interface ReplicaObserver {
  /** A node writes an entry that changes the members of a group. */
  configWritten(group: number, index: number, term: number, atMs: number): void;
  /** The process of a node is down, or what runs there is not the member that it was. */
  gone(node: number, atMs: number): void;
  back(node: number): void;
  /** A process of a node is open. */
  began(node: number, atMs: number): void;
  /** Somebody orders by hand what makes the generation after `generation`. */
  orderedByHand(partition: number, generation: number): void;
  /** It was carried out, and made generation `made`. */
  orderDone(partition: number, generation: number, made: number): void;
  /** A node asks to leave by itself. */
  leaveAsked(node: number): void;
  /** It was told that it has left. */
  left(node: number, isDrained: boolean): void;
  /** Somebody asked for the removal of another member, and was told that it is done, or refused. */
  removedByForce(): void;
  removalRefused(): void;
  /** Frames between lives that are over, which a node dropped. */
  strays(count: number): void;
  /** Who has a link with whom. */
  links(look: Look): void;
  /** Snapshots that a node takes in and sends, at one moment. */
  transfers(node: number, incoming: number, outgoing: number): void;
  /** What the last pass of the allocator said. */
  pass(pass: SeenPass & SeenTargets): void;
  /** The end of peace. */
  settled(peace: PlacementPeace): void;
  /** Passes between two moments of peace. */
  rested(before: Versions, after: Versions, passes: number): void;
}
