/** The cluster at a glance: figures, alarms, and the rates of the last minutes. */
import { element, fill, setText } from "../parts/elements.js";
import type { Page } from "../parts/page.js";
import { Sparkline } from "../parts/sparkline.js";
import type { Overview } from "../parts/shapes.js";
import { nodesTable } from "./nodes.js";
import { count, isReady, printable } from "../parts/words.js";

const TILES: readonly (readonly [title: string, value: (overview: Overview) => string])[] = [
  ["Nodes ready", ({ nodes }) => `${nodes.filter(isReady).length} of ${nodes.length}`],
  ["Partitions led", (o) => `${o.partitions - o.partitionsWithoutLeader} of ${o.partitions}`],
  ["Under-replicated", (o) => count(o.partitionsUnderReplicated)],
  ["Cluster leader", ({ metaLeaderNodeId: id }) => (id === 0 ? "unknown" : `node ${id}`)],
  ["Level", ({ level }) => String(level)],
  ["Asked node", ({ localNodeId }) => `node ${localNodeId}`],
];

export const OVERVIEW: Page = {
  name: "overview",
  title: "Overview",
  open({ overview, history }) {
    const values = TILES.map(() => element("dd", {}, "–"));
    const tiles = element("dl", { class: "tiles" });
    for (const [at, [title]] of TILES.entries()) {
      tiles.append(element("div", { class: "card" }, element("dt", {}, title), values[at] as Node));
    }
    const requests = new Sparkline("Requests per second", count);
    const failed = new Sparkline("Failed per second", count);
    const nodes = nodesTable();
    const alarms = element("ul", { class: "alarms" });
    const calm = element("p", { class: "empty" }, "Nothing to look at.");
    const root = element(
      "div",
      {},
      tiles,
      element("h2", {}, "To look at"),
      alarms,
      calm,
      element("h2", {}, "Nodes"),
      nodes.root,
      element("h2", {}, "Now"),
      element("div", { class: "figures" }, requests.root, failed.root),
    );
    const refresh = async (): Promise<void> => {
      const now = overview();
      for (const [at, [, value]] of TILES.entries()) {
        setText(values[at] as Element, now === null ? "–" : value(now));
      }
      const said = now?.alarms.map(printable) ?? [];
      if ([...alarms.children].map((line) => line.textContent).join() !== said.join()) {
        fill(alarms, ...said.map((text) => element("li", {}, text)));
      }
      calm.hidden = said.length > 0 || now === null;
      nodes.update(now?.nodes ?? []);
      requests.update(history.of("requests"));
      failed.update(history.of("failed"));
    };
    return { root, refresh };
  },
};
