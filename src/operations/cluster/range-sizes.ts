/**
 * How many live keys a range holds.
 *
 * Invariants: 1. A number is exact, or at least what was asked for; what is not known is null.
 */
import { partitionId } from "../../base/ids.js";
import { PAGE_LIMIT_MAX } from "../../base/limits.js";
import { KvType, type RangeDescriptor } from "../../machine/commands/command.js";
import type { GroupAccess } from "../api/host-view.js";
import { Forwarder } from "../forwarding/forwarder.js";
import { gather } from "../kv/kv-gather.js";
import { Durability, type RequestContext } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";

export class RangeSizes {
  constructor(private readonly serving: Serving) {}

  /** All of its live keys, as its leader counted them; null = unknown. */
  exact(keySpace: string, range: RangeDescriptor, then: (keys: number | null) => void): void {
    const { node, ports } = this.serving;
    if (node.rangeSize === undefined) return ports.timer.soon(() => then(null));
    node.rangeSize({ keySpace, ...range }, ({ keys }) => then(keys));
  }

  /** The same, or where nobody counts up to the smallest size that may be split. */
  atLeast(
    keySpace: string,
    range: RangeDescriptor,
    context: RequestContext,
    then: (count: number | null) => void,
  ): void {
    const { serving } = this;
    const { deadlineMs, requestId } = context;
    if (serving.node.rangeSize !== undefined) {
      const enoughKeys = serving.settings.rangeSplitMinSize;
      const asked = { keySpace, ...range, enoughKeys };
      return serving.node.rangeSize(asked, ({ keys }) => then(keys));
    }
    const probe = { keySpace, range, deadlineMs };
    const count = (group: GroupAccess): void => this.countHere(group, probe, 0, null, then);
    const group = serving.node.group(partitionId(range.partitionId));
    if (group?.isLeader() === true) return count(group);
    new Forwarder(serving, {
      partition: partitionId(range.partitionId),
      request: {
        kind: "kv-range",
        prefix: keySpace,
        startKey: range.startKey,
        startInclusive: true,
        endKey: range.endKey,
        endInclusive: false,
        limit: Math.min(PAGE_LIMIT_MAX, Math.max(1, serving.settings.rangeSplitMinSize)),
        cursor: null,
        durability: Durability.persistent,
        plain: true,
      },
      requestId,
      deadlineMs,
      reading: true,
      here: count,
      answered: (answer) => {
        const found = answer.kind === "kv-page" && answer.type === KvType.got ? answer : null;
        // A page that ended early says nothing about what lies behind it.
        const enough = (found?.items.length ?? 0) >= serving.settings.rangeSplitMinSize;
        then(found === null || (found.hasMore && !enough) ? null : found.items.length);
      },
      failed: () => then(null),
    }).go();
  }

  private countHere(
    group: GroupAccess,
    probe: {
      readonly keySpace: string;
      readonly range: RangeDescriptor;
      readonly deadlineMs: number;
    },
    counted: number,
    after: Uint8Array | null,
    then: (count: number | null) => void,
  ): void {
    const { rangeSplitMinSize, pageBytes } = this.serving.settings;
    const query = {
      bucket: probe.keySpace,
      startKey: probe.range.startKey,
      startInclusive: true,
      endKey: probe.range.endKey,
      endInclusive: false,
    };
    group.read(probe.deadlineMs, (result) => {
      if (result.status !== "confirmed") return then(null);
      const limit = Math.max(1, rangeSplitMinSize - counted);
      const { persistent } = Durability;
      const wanted = { query, durability: persistent, after, limit, maxBytes: pageBytes };
      const read = { serving: this.serving, group, deadlineMs: probe.deadlineMs };
      gather(read, wanted, (page) => {
        if (typeof page === "string") return then(null);
        const count = counted + page.items.length;
        if (count >= rangeSplitMinSize || page.next === null) return then(count);
        this.countHere(group, probe, count, page.next, then);
      });
    });
  }
}
