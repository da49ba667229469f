/**
 * The ends of the items of one many-call, gathered into its answer.
 *
 * Owns the answer in the making. Invariants: 1. Every item ends once; the call ends with the last
 * of them. 2. Items stand in the order of the request (K11). 3. A refusal that met every item is
 * the refusal of the call.
 */
import { assert } from "../../base/assert.js";
import { KvType } from "../../machine/commands/command.js";
import type { KvManyAnswer, KvManyItem, Refusal, RouteHint } from "../api/answers.js";
import type { RequestOf } from "../api/requests.js";
import {
  type CommonEnd,
  KV_ENDS,
  type ManyResult,
  NOWHERE,
  type Origin,
  bareItem,
  emptyMany,
} from "../api/shapes.js";

type KvManyRequest = RequestOf<"many">;

/** Type of a call that ran, whatever its items say (contract 3.4). */
const RAN: Readonly<Record<KvManyRequest["kind"], number>> = {
  "kv-set-many": KvType.set,
  "kv-delete-many": KvType.deleted,
  "kv-get-many": KvType.got,
  "kv-exists-many": KvType.got,
};

export class ManyCall {
  private readonly items: (KvManyItem | null)[];
  private readonly routes: RouteHint[] = [];
  private open: number;
  private refusals = 0;
  private refusal: Refusal | null = null;

  constructor(
    private readonly request: KvManyRequest,
    private readonly servedFrom: string,
    private readonly done: (answer: KvManyAnswer) => void,
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

  /** 1-based number of an equal hint; hints are few, some per partition at most. */
  private numberOf(route: RouteHint): number {
    const { partitionId, generation, endpoint, provenance } = route;
    const at = this.routes.findIndex((known) => {
      const samePlace = known.partitionId === partitionId && known.generation === generation;
      return samePlace && known.endpoint === endpoint && known.provenance === provenance;
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
