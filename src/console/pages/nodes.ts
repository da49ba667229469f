/** Every member: whether it is ready, what it hosts and does, and when it was heard. */
import type { Page } from "../parts/page.js";
import type { OverviewNode } from "../parts/shapes.js";
import { type Cell, type Column, Table } from "../parts/table.js";
import { count, duration, isSilent, printable } from "../parts/words.js";

function stateOf(node: OverviewNode): Cell {
  const { ready, reason } = node;
  if (isSilent(node)) return { text: "silent", tone: "bad" };
  if (ready) return { text: "ready", tone: "good" };
  return { text: reason === "" ? "not ready" : printable(reason), tone: "warn" };
}

function heard({ ageMs }: OverviewNode): string {
  if (ageMs === null) return "never";
  return ageMs < 1000 ? "now" : `${duration(Math.floor(ageMs / 1000) * 1000)} ago`;
}

const WHO: readonly Column<OverviewNode>[] = [
  { title: "Node", isNumber: true, cell: ({ nodeId }) => String(nodeId) },
  { title: "State", cell: stateOf },
  { title: "Role", cell: ({ role }) => role },
  { title: "Endpoint", cell: (n) => ({ text: printable(n.endpoint), isName: true }) },
];
const WHAT: readonly Column<OverviewNode>[] = [
  { title: "Leads", isNumber: true, cell: (n) => count(n.leadingPartitions) },
  { title: "Requests/s", isNumber: true, cell: (n) => count(n.requestsPerSecond) },
  { title: "Failed/s", isNumber: true, cell: (n) => count(n.failedPerSecond) },
];

export function nodesTable(more: readonly Column<OverviewNode>[] = []): Table<OverviewNode> {
  const columns = [...WHO, ...more, ...WHAT];
  const none = "No member is known.";
  return new Table("Members of the cluster", columns, ({ nodeId }) => String(nodeId), none);
}

export const NODES: Page = {
  name: "nodes",
  title: "Nodes",
  open({ overview }) {
    const table = nodesTable([
      { title: "Heard", cell: heard },
      { title: "Up", cell: ({ uptimeMs, ageMs }) => (ageMs === null ? "–" : duration(uptimeMs)) },
      { title: "Version", cell: ({ version }) => (version === "" ? "–" : printable(version)) },
      { title: "Levels", cell: (n) => (n.levelMax === 0 ? "–" : `${n.levelMin}–${n.levelMax}`) },
      { title: "Hosts", isNumber: true, cell: (n) => count(n.hostedPartitions) },
    ]);
    const refresh = async (): Promise<void> => table.update(overview()?.nodes ?? []);
    return { root: table.root, refresh };
  },
};
