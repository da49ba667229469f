/** Versions and the level, and the step to the next one. */
import { actionButton, Notice } from "../parts/action.js";
import { confirmed } from "../parts/confirmation.js";
import { element, setText } from "../parts/elements.js";
import type { Page } from "../parts/page.js";
import type { Finalized, Overview } from "../parts/shapes.js";
import { printable } from "../parts/words.js";

function levelText({ level, nodes }: Overview): string {
  const highest = Math.min(...nodes.map(({ levelMax }) => levelMax));
  return highest > level
    ? `The cluster is at level ${level}; all members support level ${highest}.`
    : `The cluster is at level ${level}; no member waits for a higher one.`;
}

function versionsText({ nodes }: Overview): string {
  const versions = [...new Set(nodes.map(({ version }) => version).filter(Boolean))].sort();
  const all = versions.map(printable).join(", ");
  return versions.length > 1 ? `Nodes run versions ${all}.` : `All heard nodes run version ${all}.`;
}

export const ABOUT: Page = {
  name: "about",
  title: "About",
  open({ api, overview }) {
    const notice = new Notice();
    const versions = element("p", {}, "–");
    const level = element("p", {}, "–");
    const finalize = actionButton(
      "Finalize the upgrade…",
      notice,
      async () => {
        const next = (overview()?.level ?? 0) + 1;
        const isSure = await confirmed({
          title: `Raise the cluster to level ${next}?`,
          lines: ["There is no way back to the version before, but a restore of an older backup."],
          word: "finalize",
          action: "Finalize",
        });
        if (!isSure) return null;
        const done = await api.post<Finalized>("/v1/cluster/finalize", {});
        return `${done.status}: the cluster is at level ${done.level}.`;
      },
      "danger",
    );
    const root = element(
      "div",
      {},
      element("h2", {}, "Version"),
      versions,
      element("h2", {}, "Level"),
      level,
      finalize,
      notice.root,
      element("h2", {}, "This console"),
      element(
        "p",
        {},
        "It asks the node that served it, by the paths of its REST API and with your role: ",
        "every 2 seconds while it can be seen, never while it is hidden. It sets no cookie and ",
        "calls nobody else. The API is described at ",
        element("a", { href: "/openapi.json" }, "/openapi.json"),
        ".",
      ),
    );
    const refresh = async (): Promise<void> => {
      const now = overview();
      setText(versions, now === null ? "–" : versionsText(now));
      setText(level, now === null ? "–" : levelText(now));
    };
    return { root, refresh };
  },
};
