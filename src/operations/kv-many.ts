/**
 * The many-key operations: set-many, delete-many, get-many, exists-many.
 *
 * May call base, machine, host and this folder. Invariants: 1. Items are independent (K11): each
 * has its own end, in the order of the request. 2. Reads of one partition and durability share one
 * round. 3. The values of one answer are bounded: what does not fit ends as Errored and is to be
 * asked for by itself. 4. The call ends when its last item ended; a refusal that met every item is
 * the refusal of the call.
 */
import { assert, present } from "../base/assert.js";
import { KvType } from "../machine/command.js";
import type { KvReading } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvManyAnswer, KvManyItem, Refusal, RouteHint } from "./answers.js";
import { isAcceptable } from "./input.js";
import { type ReadBudget, changeKey, readKeys } from "./kv.js";
import type {
  KvDeleteManyRequest,
  KvDeleteRequest,
  KvGetManyRequest,
  KvGetRequest,
  KvSetManyRequest,
  KvSetRequest,
} from "./requests.js";
import type { KeyPlace, Serving } from "./serving.js";
import {
  type CommonEnd,
  KV_ENDS,
  type ManyResult,
  NOWHERE,
  type Origin,
  bareItem,
  emptyMany,
} from "./shapes.js";

export type KvManyRequest = KvSetManyRequest | KvDeleteManyRequest | KvGetManyRequest;
type ItemRequest = KvSetRequest | KvDeleteRequest | KvGetRequest;
type Done = (answer: KvManyAnswer) => void;

/** Type of a call that ran, whatever its items say (contract 3.4). */
const RAN: Readonly<Record<KvManyRequest["kind"], number>> = {
  "kv-set-many": KvType.set,
  "kv-delete-many": KvType.deleted,
  "kv-get-many": KvType.got,
  "kv-exists-many": KvType.got,
};

/** Gathers the ends of the items of one call. */
class ManyCall {
  private readonly items: (KvManyItem | null)[];
  private readonly routes: RouteHint[] = [];
  private open: number;
  private refusals = 0;
  private refusal: Refusal | null = null;

  constructor(
    private readonly request: KvManyRequest,
    private readonly servedFrom: string,
    private readonly done: Done,
  ) {
    this.items = request.items.map(() => null);
    this.open = request.items.length;
  }

  end(at: number, result: ManyResult, origin: Origin): void {
    const item = this.request.items[at];
    assert(item !== undefined && this.items[at] === null, "an item ends once");
    const { key, durability } = item;
    const { servedFrom, route } = origin;
    const routeIndex = route === null ? 0 : this.numberOf(route);
    this.items[at] = { key, durability, servedFrom, routeIndex, ...result };
    this.open--;
    if (this.open === 0) this.finish();
  }

  fail(at: number, end: CommonEnd, refusal: Refusal | null, origin: Origin): void {
    if (refusal !== null) {
      this.refusals++;
      this.refusal = refusal;
    }
    this.end(at, bareItem(KV_ENDS[end]), origin);
  }

  /** 1-based number of an equal hint; hints are few, one per partition and generation. */
  private numberOf(route: RouteHint): number {
    const { partitionId, generation } = route;
    const at = this.routes.findIndex((known) => {
      return known.partitionId === partitionId && known.generation === generation;
    });
    return at < 0 ? this.routes.push(route) : at + 1;
  }

  private finish(): void {
    const items = this.items.filter((item) => item !== null);
    const refused = this.refusals === items.length;
    const origin = refused ? NOWHERE : { servedFrom: this.servedFrom, route: null };
    const type = refused ? KvType.mustRetry : RAN[this.request.kind];
    const refusal = refused ? this.refusal : null;
    this.done({ ...emptyMany(type, origin, refusal), items, routes: this.routes });
  }
}

/** One item of a many-read, with its place in the call. */
interface ReadItem {
  readonly at: number;
  readonly item: KvGetRequest;
  readonly origin: Origin;
}

/** Carries out one many-call that is acceptable as a whole. */
export function executeMany(
  serving: Serving,
  request: KvManyRequest,
  deadlineMs: number,
  done: Done,
): void {
  const call = new ManyCall(request, serving.settings.clientEndpoint, done);
  const batches = new Map<GroupAccess, ReadItem[][]>();
  request.items.forEach((item: ItemRequest, at) => {
    const acceptable = isAcceptable(item, serving.settings);
    const place = acceptable ? serving.keyPlace(item.key) : null;
    if (place === null) {
      const end = acceptable ? "mustRetry" : "invalidInput";
      serving.ports.timer.soon(() => call.fail(at, end, null, NOWHERE));
    } else if (item.kind === "kv-set" || item.kind === "kv-delete") {
      changeItem(serving, place, item, deadlineMs, call, at);
    } else {
      let byDurability = batches.get(place.group);
      if (byDurability === undefined) batches.set(place.group, (byDurability = [[], []]));
      byDurability[item.durability]?.push({ at, item, origin: place.origin });
    }
  });
  const budget = { leftBytes: serving.settings.responseMaxBytes };
  for (const [group, byDurability] of batches) {
    for (const batch of byDurability) {
      if (batch.length > 0) readItems(serving, group, batch, budget, deadlineMs, call);
    }
  }
}

function changeItem(
  serving: Serving,
  place: KeyPlace,
  item: KvSetRequest | KvDeleteRequest,
  deadlineMs: number,
  call: ManyCall,
  at: number,
): void {
  changeKey(
    serving,
    place,
    item,
    deadlineMs,
    (end, refusal, executed) => {
      call.fail(at, end, refusal, executed === null ? NOWHERE : place.origin);
    },
    (answer) => {
      const { type, value, revision, expires, lastModified, state } = answer;
      call.end(at, { type, value, revision, expires, lastModified, state }, place.origin);
    },
  );
}

function readItems(
  serving: Serving,
  group: GroupAccess,
  batch: readonly ReadItem[],
  budget: ReadBudget,
  deadlineMs: number,
  call: ManyCall,
): void {
  readKeys(
    serving,
    group,
    batch.map(({ item }) => item),
    budget,
    deadlineMs,
    (end, refusal, executed) => {
      for (const { at, origin } of batch) {
        call.fail(at, end, refusal, executed === null ? NOWHERE : origin);
      }
    },
    (readings) => {
      readings.forEach((reading, number) => {
        const { at, origin } = present(batch[number], "every item has its reading");
        if (reading === null) call.fail(at, "errored", null, origin);
        else call.end(at, readingResult(serving, group, reading), origin);
      });
    },
  );
}

function readingResult(serving: Serving, group: GroupAccess, reading: KvReading): ManyResult {
  const { type, value, revision, leaseEndMs, lastModified, state } = reading;
  const expires = serving.expires(group, leaseEndMs);
  return { type, value, revision, expires, lastModified, state };
}
