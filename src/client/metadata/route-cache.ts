/**
 * What is known about where objects are served: object → partition → target.
 *
 * Owns its tables. Pure but for them. Invariants: 1. Both tables are bounded. 2. A target is given
 * only until its hint expires; hints are renewed by the answers that confirm them. 3. An older
 * generation of a range never replaces a newer one that still holds. 4. A wrong entry costs a
 * forward, nothing else.
 */
import { compareText } from "../../base/bytes.js";
import {
  bucketIndex,
  HASH_ALGORITHM,
  keyHashText,
  keySpaceOf,
  lockHashText,
  sequenceHashText,
} from "../../base/routing.js";
import type { RoutingMetadata, RoutingRange } from "./results.js";
import type { RouteSpace } from "../call/operation.js";
import type { RouteHint } from "../call/route-hint.js";

/** A hint that no answer confirmed for so long is not followed (ms). */
export const HINT_LIFE_MS = 30_000;
const OBJECTS_MAX = 4096;
const PARTITIONS_MAX = 4096;
const SCHEMA_VERSION = 1;
const KEY_RANGE = "KeyRange";

/** What is to be found: something that serves requests. */
export interface Serving {
  /** A hint names it; kept by the cache. */
  hinted: boolean;
}

interface PartitionRoute<Target> {
  target: Target | null;
  untilMs: number;
}
interface ObjectRoute<Target> {
  partition: PartitionRoute<Target>;
  generation: number;
}
interface HashMap {
  readonly poolSize: number;
  readonly offset: number;
  readonly ranges: ReadonlyMap<string, readonly RoutingRange[]>;
}

export class RouteCache<Target extends Serving> {
  private readonly objects: Readonly<Record<RouteSpace, Map<string, ObjectRoute<Target>>>> = {
    sequences: new Map(),
    locks: new Map(),
    keys: new Map(),
  };
  private readonly partitions = new Map<number, PartitionRoute<Target>>();
  private map: HashMap | null = null;

  /** Where to send a request about an object; null = nothing is known. */
  find(space: RouteSpace, name: string, nowMs: number): Target | null {
    const object = this.objects[space].get(name) ?? this.computed(space, name);
    if (object === null) return null;
    const { partition } = object;
    return nowMs < partition.untilMs ? partition.target : null;
  }

  /** An answer about an object came with this hint, which names `target`. */
  learn(space: RouteSpace, name: string, hint: RouteHint, target: Target, nowMs: number): void {
    const partition = this.partition(hint.partitionId);
    const known = this.objects[space].get(name);
    if (known === undefined) {
      this.keep(space, name, { partition, generation: hint.generation });
    } else if (known.partition !== partition || known.generation !== hint.generation) {
      const holds = known.partition.target !== null && nowMs < known.partition.untilMs;
      if (holds && hint.generation < known.generation) return;
      known.partition = partition;
      known.generation = hint.generation;
    }
    partition.target = target;
    partition.untilMs = nowMs + HINT_LIFE_MS;
    target.hinted = true;
  }

  /** Whoever served this object asked to try again: it may be another node now. */
  forget(space: RouteSpace, name: string): void {
    const object = this.objects[space].get(name);
    if (object !== undefined) object.partition.target = null;
  }

  /** A target does not answer: no hint leads there until a later answer names it again. */
  forgetTarget(target: Target): void {
    if (!target.hinted) return;
    target.hinted = false;
    for (const partition of this.partitions.values()) {
      if (partition.target === target) partition.target = null;
    }
  }

  /**
   * Takes in the map of a node. `targetOf`: the target of an endpoint, or null. Leaders fill gaps
   * only: answers are newer. A map of an unknown kind is ignored.
   */
  take(
    metadata: RoutingMetadata,
    targetOf: (endpoint: string) => Target | null,
    nowMs: number,
  ): void {
    const { initialized, schemaVersion, hashAlgorithm, hashPoolSize } = metadata;
    const known = schemaVersion === SCHEMA_VERSION && hashAlgorithm === HASH_ALGORITHM;
    if (!initialized || !known || hashPoolSize < 1) return;
    const ranges = new Map<string, readonly RoutingRange[]>();
    for (const space of metadata.coherent ? metadata.keySpaces : []) {
      if (space.routingMode === KEY_RANGE) ranges.set(space.keySpace, space.ranges);
    }
    this.map = { poolSize: hashPoolSize, offset: metadata.hashPartitionOffset, ranges };
    for (const { partitionId, endpoint } of metadata.leaders) {
      const target = endpoint === "" ? null : targetOf(endpoint);
      const partition = this.partition(partitionId);
      if (target === null || (partition.target !== null && nowMs < partition.untilMs)) continue;
      partition.target = target;
      partition.untilMs = nowMs + HINT_LIFE_MS;
      target.hinted = true;
    }
  }

  private computed(space: RouteSpace, name: string): ObjectRoute<Target> | null {
    const { map } = this;
    if (map === null) return null;
    const range = space === "keys" ? rangeOf(map.ranges.get(keySpaceOf(name)), name) : null;
    const id = range?.partitionId ?? map.offset + bucketIndex(hashText(space, name), map.poolSize);
    const generation = range === null ? 0 : Number(range.generation);
    const object = { partition: this.partition(id), generation };
    this.keep(space, name, object);
    return object;
  }

  private keep(space: RouteSpace, name: string, object: ObjectRoute<Target>): void {
    const objects = this.objects[space];
    if (objects.size >= OBJECTS_MAX) deleteOldest(objects);
    objects.set(name, object);
  }

  private partition(id: number): PartitionRoute<Target> {
    const known = this.partitions.get(id);
    if (known !== undefined) return known;
    if (this.partitions.size >= PARTITIONS_MAX) deleteOldest(this.partitions);
    const partition = { target: null, untilMs: 0 };
    this.partitions.set(id, partition);
    return partition;
  }
}

function deleteOldest<Key>(table: Map<Key, unknown>): void {
  for (const key of table.keys()) {
    table.delete(key);
    return;
  }
}

function hashText(space: RouteSpace, name: string): string {
  if (space === "locks") return lockHashText(name);
  return space === "keys" ? keyHashText(name) : sequenceHashText(name.trim());
}

/** The range of a key among ranges sorted by their start. */
function rangeOf(ranges: readonly RoutingRange[] | undefined, key: string): RoutingRange | null {
  let found: RoutingRange | null = null;
  for (const range of ranges ?? []) {
    if (range.startKey !== null && compareText(range.startKey, key) > 0) break;
    found = range;
  }
  const end = found?.endKey ?? null;
  return found !== null && (end === null || compareText(key, end) < 0) ? found : null;
}
