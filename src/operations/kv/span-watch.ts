/**
 * Whether what was read of some partitions of this node is still what they would show.
 *
 * Opened in the turn of the read. To be asked in a turn in which every one of the partitions was
 * proved again to be led here: then everything that was committed by then is applied, and what
 * stands was the state of every instant in between. Invariants: 1. A lease of a shown item that
 * ended is a change. 2. Whoever opened it closes it.
 */
import type { PageItem } from "../../machine/decision/reading.js";
import type { KeySpan } from "../../machine/kv/pages.js";
import type { ValueWatch } from "../../machine/value-watch.js";
import type { GroupAccess } from "../api/host-view.js";
import { Durability } from "../api/requests.js";

interface Watched {
  readonly group: GroupAccess;
  readonly values: ValueWatch | null;
  /** Of the leadership that was proved. */
  readonly table: GroupAccess["ephemeral"];
  /** When the first lease of what was shown ends (lease time, ms). */
  firstEndMs: number;
}

export class SpanWatch {
  private readonly watched: readonly Watched[];

  constructor(
    readonly groups: readonly GroupAccess[],
    private readonly durability: number,
    span: KeySpan | null,
  ) {
    this.watched = groups.map((group) => {
      const table = group.ephemeral;
      const holder = durability === Durability.persistent ? group.machine : table;
      const values = span === null ? null : (holder?.watchValues(span) ?? null);
      return { group, values, table, firstEndMs: Infinity };
    });
  }

  /** These were shown, each of one of the groups. */
  shows(found: readonly { readonly group: GroupAccess; readonly item: PageItem }[]): void {
    const byGroup = new Map(this.watched.map((one) => [one.group, one]));
    for (const { group, item } of found) {
      const one = byGroup.get(group);
      if (one === undefined || item.leaseEndMs === null) continue;
      one.firstEndMs = Math.min(one.firstEndMs, item.leaseEndMs);
    }
  }

  get stands(): boolean {
    const isEphemeral = this.durability === Durability.ephemeral;
    return this.watched.every(({ group, values, table, firstEndMs }) => {
      if (isEphemeral && (table === null || group.ephemeral !== table)) return false;
      return values?.stands !== false && group.leaseNowMs() < firstEndMs;
    });
  }

  close(): void {
    for (const { values } of this.watched) values?.close();
  }
}
