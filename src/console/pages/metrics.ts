/** Live figures: curves of the last minutes, kept in this page. All of them are at /metrics. */
import { Notice } from "../parts/action.js";
import { element } from "../parts/elements.js";
import { readMetrics } from "../parts/figures.js";
import type { Page } from "../parts/page.js";
import { Sparkline } from "../parts/sparkline.js";
import { bytes, count } from "../parts/words.js";

const EVERY_MS = 10_000;

/** Families whose sum makes a curve. */
const CURVES: readonly (readonly [family: string, title: string, show: typeof bytes])[] = [
  ["svc_inflight_requests", "Requests in progress", count],
  ["svc_locks_held", "Locks held here", count],
  ["svc_lock_waiters", "Callers that wait for a lock", count],
  ["svc_watchers", "Watches", count],
  ["svc_watch_behind", "Watches set back to the newest state", count],
  ["svc_connections", "Connections", count],
  ["svc_raft_pending_proposals", "Proposals under way", count],
  ["nodejs_heap_used_bytes", "Heap", bytes],
  ["svc_store_used_bytes", "State store", bytes],
];

export const METRICS: Page = {
  name: "metrics",
  title: "Metrics",
  open({ api, history, overview }) {
    const notice = new Notice();
    const cluster = element("div", { class: "figures" });
    const nodes = new Map<string, Sparkline>();
    const own = CURVES.map(([, title, show]) => new Sparkline(title, show));
    const asked = element("h2", {}, "The asked node");
    const root = element(
      "div",
      {},
      notice.root,
      element("h2", {}, "Requests per second"),
      cluster,
      asked,
      element("div", { class: "figures" }, ...own.map((curve) => curve.root)),
    );
    let readAtMs = -EVERY_MS;
    const curveOf = (name: string, title: string): Sparkline => {
      let curve = nodes.get(name);
      if (curve === undefined) {
        curve = new Sparkline(title, count);
        nodes.set(name, curve);
        cluster.append(curve.root);
      }
      return curve;
    };
    const refresh = async (): Promise<void> => {
      curveOf("requests", "All nodes").update(history.of("requests"));
      curveOf("failed", "Of these failed").update(history.of("failed"));
      for (const { nodeId } of overview()?.nodes ?? []) {
        const name = `node ${nodeId}`;
        curveOf(name, `Node ${nodeId}`).update(history.of(name));
      }
      if (performance.now() - readAtMs < EVERY_MS) return;
      readAtMs = performance.now();
      try {
        const names = CURVES.map(([family]) => family);
        const read = readMetrics(await api.text("/metrics"), names);
        for (const [at, [family]] of CURVES.entries()) {
          const series = read.get(family) ?? [];
          if (series.length === 0) continue;
          history.add(
            family,
            series.reduce((sum, { value }) => sum + value, 0),
          );
          own[at]?.update(history.of(family));
        }
        notice.clear();
      } catch (error) {
        notice.fail(error);
      }
    };
    return { root, refresh };
  },
};
