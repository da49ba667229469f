/**
 * The many-key operations: set-many, delete-many, get-many, exists-many.
 *
 * Invariants: 1. Items are independent (K11): each has its own end, in the order of the request. 2.
 * Reads of one partition and durability share one round. 3. The values of one answer are bounded:
 * what does not fit ends as Errored and is to be asked for by itself. 4. The call ends when its
 * last item ended; a refusal that met every item is the refusal of the call. 5. The items of one
 * partition that another node leads go there together. 6. Items whose keys moved meanwhile, with
 * nothing done, are placed anew, together and after a pause; the others do not wait for them.
 */
import { present } from "../../base/assert.js";
import { level, type PartitionId } from "../../base/ids.js";
import { KvType } from "../../machine/commands/command.js";
import type { KvReading } from "../../machine/decision/reading.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvAnswer, KvManyAnswer, Refusal } from "../api/answers.js";
import { Forwarder, type ForwardTask, type ForwardProgress } from "../forwarding/forwarder.js";
import { forwardedRoute, isManyOf, isReading } from "../forwarding/forwarded.js";
import { isAcceptable } from "../admission/input.js";
import { type ReadBudget, type Readings, changeKey, readKeys } from "./kv.js";
import {
  type KvDeleteRequest,
  type KvGetRequest,
  type KvSetRequest,
  type RequestContext,
  type RequestOf,
  mayForward,
} from "../api/requests.js";
import { ManyCall } from "./many-call.js";
import { Attempt, type Fail } from "../serving/attempt.js";
import type { Place, Route } from "../serving/placement.js";
import { MovePauses } from "../serving/move-waits.js";
import type { Serving } from "../serving/serving.js";
import { type ManyResult, NOT_OWNED_ITEM, NOWHERE, type Origin, bareItem } from "../api/shapes.js";

/** Below it no range moves, and nodes do not know items that are to be placed anew. */
const PLACED_ANEW_FROM_LEVEL = level(2);

type KvManyRequest = RequestOf<"many">;
type ItemRequest = KvSetRequest | KvDeleteRequest | KvGetRequest;

/** One item with its place in the call. */
interface PlacedItem<R extends ItemRequest> {
  readonly at: number;
  readonly item: R;
  readonly origin: Origin;
}

/**
 * Carries out one many-call that is acceptable as a whole. `sentBack` is called instead of `done`
 * when nothing was done for any item, because other nodes lead, or with `isUnowned` other
 * partitions have the keys. Who gives it is a node: it reads of each item whether that is so.
 */
export function executeMany(
  serving: Serving,
  request: KvManyRequest,
  context: RequestContext,
  done: (answer: KvManyAnswer) => void,
  sentBack: ((isUnowned: boolean) => void) | null = null,
): void {
  const call: ManyCall = new ManyCall(request, serving.settings.clientEndpoint, (answer) => {
    const { undone, unowned } = spread;
    if (sentBack !== null && undone === request.items.length) sentBack(unowned > 0);
    else done(answer);
  });
  const budget = { leftBytes: serving.settings.responseMaxBytes };
  const unownedType = sentBack === null ? KvType.mustRetry : NOT_OWNED_ITEM;
  const spread = new ManySpread(serving, request, context, call, budget, unownedType);
  spread.begin();
}

/** Spreads the items of one call over the partitions. */
class ManySpread {
  /** Items for which certainly nothing was done, and that may not be passed on from here. */
  undone = 0;
  /** Those of them whose keys other partitions have. */
  unowned = 0;
  private readonly pauses: MovePauses;
  /** Items that wait for a newer map, all together. */
  private pausing: number[] = [];
  /** Version of the map by which items were placed last. */
  private usedVersion = -1;
  /** What the items that were passed on have spent on their way, so that bounces are bounded. */
  private readonly progressOfItem = new Map<number, ForwardProgress>();

  constructor(
    private readonly serving: Serving,
    private readonly request: KvManyRequest,
    private readonly context: RequestContext,
    private readonly call: ManyCall,
    private readonly budget: ReadBudget,
    /** What an item ends as that may not be passed on from here. */
    private readonly unownedType: number,
  ) {
    this.pauses = new MovePauses(serving.moveWaits, context.deadlineMs);
  }

  begin(): void {
    const { serving, call } = this;
    const acceptable: number[] = [];
    this.request.items.forEach((item: ItemRequest, at) => {
      if (isAcceptable(item, serving.settings)) acceptable.push(at);
      else serving.ports.timer.soon(() => call.fail(at, "invalidInput", null, NOWHERE));
    });
    this.spread(acceptable);
  }

  /** Places the items at `places` by the present map, and begins with each. */
  private spread(places: readonly number[]): void {
    const { serving, call } = this;
    const here: number[] = [];
    const there = new Map<PartitionId, number[]>();
    this.usedVersion = serving.placement.mapVersion;
    for (const at of places) {
      const item: ItemRequest = present(this.request.items[at], "the place is one of the call");
      if (serving.placement.keyPlace(item.key)?.group.isLeader() === true) {
        here.push(at);
        continue;
      }
      const route = serving.placement.keyRoute(item.key);
      if (route === null) {
        serving.ports.timer.soon(() => call.fail(at, "mustRetry", null, NOWHERE));
        continue;
      }
      const others = there.get(route.partition);
      if (others === undefined) there.set(route.partition, [at]);
      else others.push(at);
    }
    this.executeHere(here);
    for (const [partition, others] of there) this.forward(partition, others);
  }

  /** Nothing was done for the items at `places`, whose keys other partitions have. */
  private placeAnew(places: readonly number[]): void {
    if (!mayForward(this.context)) {
      this.unowned += places.length;
      this.undone += places.length;
      return this.serving.ports.timer.soon(() => {
        for (const at of places) this.call.end(at, bareItem(this.unownedType), NOWHERE);
      });
    }
    const isPausing = this.pausing.length > 0;
    this.pausing.push(...places);
    if (isPausing) return;
    const take = (): readonly number[] => {
      const { pausing } = this;
      this.pausing = [];
      for (const at of pausing) this.progressOfItem.delete(at);
      return pausing;
    };
    const over = (refusal: Refusal | null): void => {
      for (const at of take()) this.call.fail(at, "mustRetry", refusal, NOWHERE);
    };
    this.pauses.next(this.usedVersion, () => this.spread(take()), over);
  }

  /** Where the item at a place lies by the present map. */
  private routeOf(at: number): Route | null {
    const item: ItemRequest = present(this.request.items[at], "the place is one of the call");
    return this.serving.placement.keyRoute(item.key);
  }

  /** Carries out the items at `places`, whose partitions this node led a moment ago. */
  private executeHere(places: readonly number[]): void {
    const batches = new Map<GroupAccess, PlacedItem<KvGetRequest>[][]>();
    for (const at of places) {
      const item: ItemRequest = present(this.request.items[at], "the place is one of the call");
      const place = this.serving.placement.keyPlace(item.key);
      if (place === null) {
        const route = this.routeOf(at);
        if (route === null) this.sendBack([at], route);
        else this.forward(route.partition, [at]);
      } else if (item.kind === "kv-set" || item.kind === "kv-delete") {
        this.change(place, at, item);
      } else {
        let byDurability = batches.get(place.group);
        if (byDurability === undefined) batches.set(place.group, (byDurability = [[], []]));
        byDurability[item.durability]?.push({ at, item, origin: place.origin });
      }
    }
    for (const [group, byDurability] of batches) {
      for (const batch of byDurability) if (batch.length > 0) this.read(group, batch);
    }
  }

  private change(place: Place, at: number, item: KvSetRequest | KvDeleteRequest): void {
    const { serving, call, context } = this;
    const { origin } = place;
    const fail = this.failOf([{ at, item, origin }]);
    const done = ({ type, value, revision, expires, lastModified, state }: KvAnswer): void => {
      call.end(at, { type, value, revision, expires, lastModified, state }, origin);
    };
    changeKey(new Attempt(serving, place, context.deadlineMs, fail, done, context.trace), item);
  }

  private read(group: GroupAccess, batch: readonly PlacedItem<KvGetRequest>[]): void {
    const { serving, call, budget, context } = this;
    const items = batch.map(({ item }) => item);
    const fail = this.failOf(batch);
    const done = (readings: Readings): void => {
      const unowned: number[] = [];
      readings.forEach((reading, number) => {
        const { at, origin } = present(batch[number], "every item has its reading");
        if (reading === "unowned") unowned.push(at);
        else if (reading === null) call.fail(at, "errored", null, origin);
        else call.end(at, readingResult(serving, group, reading), origin);
      });
      if (unowned.length > 0) this.placeAnew(unowned);
    };
    const place = serving.placement.here(group);
    readKeys(
      new Attempt(serving, place, context.deadlineMs, fail, done, context.trace),
      items,
      budget,
    );
  }

  /** Ends the items of `batch`, or passes them on where nothing was done or changed. */
  private failOf(batch: readonly PlacedItem<ItemRequest>[]): Fail {
    return (end, refusal, executed) => {
      const places = batch.map(({ at }) => at);
      if (end === "unowned") return this.placeAnew(places);
      const moved = end === "moved";
      const known = moved ? "mustRetry" : end;
      const retry = known === "mustRetry" && refusal === null;
      if (executed !== null) {
        const mayRepeat = retry && isReading(this.request.kind) && !executed.isLeader();
        if (moved || mayRepeat) return this.forward(executed.partition, places);
      }
      for (const { at, origin } of batch) {
        let named = executed === null || moved ? NOWHERE : origin;
        if (retry && executed !== null && !executed.isLeader()) {
          named = this.serving.origins.retry(executed);
        }
        this.call.fail(at, known, refusal, named);
      }
    };
  }

  /** Gives the items at `places` to the node that leads `partition`. */
  private forward(partition: PartitionId, places: readonly number[]): void {
    const route = { partition, generation: 0 };
    if (!mayForward(this.context)) return this.sendBack(places, route);
    const { serving, call } = this;
    const { requestId, deadlineMs, trace } = this.context;
    const mustRetry = (refusal: Refusal | null): void => {
      const origin = refusal === null ? serving.origins.elsewhere(route) : NOWHERE;
      for (const at of places) call.fail(at, "mustRetry", refusal, origin);
    };
    const task: ForwardTask = {
      partition,
      request: partOf(this.request, places),
      requestId,
      deadlineMs,
      trace,
      reading: isReading(this.request.kind),
      here: () => this.executeHere(places),
      answered: (answer) => {
        if (isManyOf(answer, places.length)) this.take(places, answer);
        else mustRetry(null);
      },
      unowned: () => this.placeAnew(places),
      isElsewhere: () => places.some((at) => this.routeOf(at)?.partition !== partition),
      failed: mustRetry,
    };
    new Forwarder(serving, task, this.progressOf(places)).go();
  }

  /** The progress of the items at `places`: as far as the one that has come farthest. */
  private progressOf(places: readonly number[]): ForwardProgress {
    const progress: ForwardProgress = { tries: 0, giveUpMs: 0 };
    for (const at of places) {
      const { tries, giveUpMs } = this.progressOfItem.get(at) ?? progress;
      progress.tries = Math.max(progress.tries, tries);
      if (giveUpMs !== 0 && (progress.giveUpMs === 0 || giveUpMs < progress.giveUpMs)) {
        progress.giveUpMs = giveUpMs;
      }
      this.progressOfItem.set(at, progress);
    }
    return progress;
  }

  /** Takes over the results of another node, as far as the answer has room for their values. */
  private take(places: readonly number[], answer: KvManyAnswer): void {
    const { budget, call } = this;
    const hints = this.serving.settings.routingHints;
    const unowned: number[] = [];
    answer.items.forEach((item, number) => {
      const at = present(places[number], "every result has its item");
      if (item.type === NOT_OWNED_ITEM) return void unowned.push(at);
      const hint = item.routeIndex === 0 ? null : (answer.routes[item.routeIndex - 1] ?? null);
      const origin = { servedFrom: item.servedFrom, route: forwardedRoute(hint, hints) };
      const { type, value, revision, expires, lastModified, state } = item;
      const sizeBytes = value?.length ?? 0;
      budget.leftBytes -= sizeBytes;
      if (sizeBytes > 0 && budget.leftBytes < 0) return call.fail(at, "errored", null, origin);
      if (answer.refusal !== null) return call.fail(at, "mustRetry", answer.refusal, NOWHERE);
      call.end(at, { type, value, revision, expires, lastModified, state }, origin);
    });
    if (unowned.length > 0) this.placeAnew(unowned);
  }

  /** Nothing was done for the items at `places`; whoever sent them here may place them anew. */
  private sendBack(places: readonly number[], route: Route | null): void {
    const { serving, call } = this;
    this.undone += places.length;
    const origin = serving.origins.elsewhere(route);
    const mayTell = serving.clusterLevel() >= PLACED_ANEW_FROM_LEVEL;
    const type = mayTell ? this.unownedType : KvType.mustRetry;
    serving.ports.timer.soon(() => {
      for (const at of places) call.end(at, bareItem(type), origin);
    });
  }
}

/** The call for the items at `places` alone. */
function partOf(request: KvManyRequest, places: readonly number[]): KvManyRequest {
  const pick = <T>(items: readonly T[]): T[] =>
    places.map((at) => present(items[at], "the place is one of the call"));
  switch (request.kind) {
    case "kv-set-many":
      return { kind: request.kind, items: pick(request.items) };
    case "kv-delete-many":
      return { kind: request.kind, items: pick(request.items), plain: request.plain };
    default:
      return { kind: request.kind, items: pick(request.items), plain: request.plain };
  }
}

function readingResult(serving: Serving, group: GroupAccess, reading: KvReading): ManyResult {
  const { type, value, revision, leaseEndMs, lastModified, state } = reading;
  const expires = serving.expires(group, leaseEndMs);
  return { type, value, revision, expires, lastModified, state };
}
