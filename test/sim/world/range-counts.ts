/**
 * Listens to who asks for the sizes of ranges and what it is told, and counts the same anew at every
 * entry that is applied meanwhile.
 *
 * Invariants: 1. What is counted is what one replica has applied; a size is of that partition's rows,
 * whoever the keys belong to by then. 2. A size is that of the leader that is asked: of one that has not
 * heard that another one leads it says nothing about the range.
 */
import { partitionId } from "../../../src/base/ids.js";
import type { Node } from "../../../src/host/node.js";
import type { Machine } from "../../../src/machine/machine.js";
import type { CountsTrue } from "../../judge/checkers/ranges/counts-true.js";
import type { SeenInterval } from "../../judge/checkers/ranges/seen-moves.js";
import { liveKeys } from "./range-rows.js";

interface Asked extends SeenInterval {
  readonly partitionId: number;
}

interface Led {
  readonly node: number;
  readonly machine: Machine;
}

/** A count stands while fewer commands than this part of the keys came since. */
const STALE_PART = 20;
/** Keys that may come and go between two slices of a count. */
const BETWEEN_SLICES = 3;

export class RangeCounts {
  private readonly open = new Set<Asked>();

  constructor(
    private readonly nowMs: () => number,
    private readonly checker: CountsTrue,
    /** The newest leader of the partition and what it has; null: nobody leads it. */
    private readonly find: (partition: number) => Led | null,
  ) {}

  /** Listens to one life of a node. */
  attach(node: Node): void {
    const { sizes } = node["parts"].ranges;
    const ask = sizes.ask.bind(sizes);
    const { leader } = sizes["deps"];
    sizes.ask = (range, done) => {
      const fromMs = this.nowMs();
      const asked: Asked = { ...range };
      this.open.add(asked);
      const led = this.find(range.partitionId);
      const isHeard = led?.node === leader(partitionId(range.partitionId));
      const machine = isHeard ? led.machine : null;
      if (machine !== null) this.count(asked, machine);
      ask(range, (size) => {
        this.open.delete(asked);
        const slack = BETWEEN_SLICES + Math.ceil((size.keys ?? 0) / STALE_PART);
        if (machine !== null) {
          this.checker.told(nameOf(asked), fromMs, this.nowMs(), size.keys, slack);
        }
        done(size);
      });
    };
  }

  /** A replica of `group` is the first to apply an entry. */
  applied(group: number, machine: Machine): void {
    for (const asked of this.open) if (asked.partitionId === group) this.count(asked, machine);
  }

  private count(asked: Asked, machine: Machine): void {
    const { least, most } = liveKeys(machine, asked);
    this.checker.counted(nameOf(asked), this.nowMs(), least, most);
  }
}

function nameOf({ partitionId, keySpace, startKey, endKey }: Asked): string {
  return `${keySpace} [${startKey ?? ""}, ${endKey ?? ""}) of partition ${partitionId}`;
}
