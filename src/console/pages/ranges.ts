/** Which keys are where: the ranges of every key space. */
import { element } from "../parts/elements.js";
import { Notice } from "../parts/action.js";
import type { Wide } from "../parts/exact-json.js";
import type { Page } from "../parts/page.js";
import type { Ranges } from "../parts/shapes.js";
import { Table } from "../parts/table.js";
import { printable, shortened } from "../parts/words.js";

interface Row {
  readonly space: string;
  readonly mode: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly partition: number;
  readonly generation: Wide;
}

function border(key: string | null, open: string): { text: string; isName: boolean } {
  const text = key === null ? open : shortened(printable(key));
  return { text, isName: key !== null };
}

export const RANGES: Page = {
  name: "ranges",
  title: "Ranges",
  open({ api }) {
    const notice = new Notice();
    const table = new Table<Row>(
      "Key spaces and their ranges",
      [
        { title: "Key space", cell: (r) => ({ text: printable(r.space), isName: true }) },
        { title: "Routing", cell: ({ mode }) => mode },
        { title: "From", cell: ({ from }) => border(from, "the first key") },
        { title: "Up to, without", cell: ({ to }) => border(to, "the last key, with it") },
        { title: "Partition", isNumber: true, cell: ({ partition }) => String(partition) },
        { title: "Generation", isNumber: true, cell: ({ generation }) => String(generation) },
      ],
      ({ space, from }) => JSON.stringify([space, from]),
      "No key space is registered: all keys are spread by their hash.",
    );
    const refresh = async (): Promise<void> => {
      try {
        const { keySpaces } = await api.get<Ranges>("/v1/ranges");
        const rows = keySpaces.flatMap(({ keySpace, routingMode, descriptors }) =>
          descriptors.map(({ startKey, endKey, partitionId, generation }) => ({
            space: keySpace,
            mode: routingMode,
            from: startKey,
            to: endKey,
            partition: partitionId,
            generation,
          })),
        );
        table.update(rows);
        notice.clear();
      } catch (error) {
        notice.fail(error);
      }
    };
    return { root: element("div", {}, notice.root, table.root), refresh };
  },
};
