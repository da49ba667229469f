/**
 * The table of `npm run sim -- --grow`: one line per size of cluster.
 *
 * Pure. Invariants: 1. Every figure says what it is per: node, group, replica or operation.
 */
import type { Growth, KeySpan } from "./growth.js";

interface Column {
  readonly title: string;
  readonly cell: (growth: Growth) => string;
}

function perSecond(stretch: KeySpan, count: number): number {
  return (count * 1000) / stretch.simulatedMs;
}

/** Three digits that count, without an exponent. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return `${Math.round(value)}`;
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

const COLUMNS: readonly Column[] = [
  { title: "nodes", cell: ({ nodes }) => `${nodes}` },
  { title: "groups", cell: ({ groups }) => `${groups}` },
  { title: "factor", cell: ({ factor }) => `${factor}` },
  { title: "most replicas/node", cell: ({ most }) => `${most}` },
  { title: "start ms", cell: ({ start }) => short(start.simulatedMs) },
  { title: "spread ms", cell: ({ spread }) => short(spread.simulatedMs) },
  { title: "start cpu ms", cell: ({ start }) => short(start.usedMs) },
  { title: "start frames/node", cell: ({ start, nodes }) => short(start.frames / nodes) },
  { title: "start B/replica", cell: ({ start, replicas }) => short(start.bytes / replicas) },
  { title: "asleep", cell: ({ quiesced }) => `${quiesced}` },
  {
    title: "idle frames/s/node",
    cell: ({ idle, nodes }) => short(perSecond(idle, idle.frames) / nodes),
  },
  {
    title: "idle B/s/replica",
    cell: ({ idle, replicas }) => short(perSecond(idle, idle.bytes) / replicas),
  },
  {
    title: "idle turns/s/node",
    cell: ({ idle, nodes }) => short(perSecond(idle, idle.turns) / nodes),
  },
  {
    title: "idle cpu ms/s/node",
    cell: ({ idle, nodes }) => short(perSecond(idle, idle.usedMs) / nodes),
  },
  {
    title: "broken link B/replica",
    cell: ({ broken, replicas }) => short(broken.bytes / replicas),
  },
  { title: "ops/s", cell: ({ load }) => short(perSecond(load, load.operations)) },
  { title: "frames/op", cell: ({ load }) => short(load.frames / load.operations) },
  { title: "B/op", cell: ({ load }) => short(load.bytes / load.operations) },
  { title: "cpu ms/op", cell: ({ load }) => short(load.usedMs / load.operations) },
  {
    title: "events/s",
    cell: ({ load }) => short((load.events * 1000) / load.usedMs),
  },
  { title: "heap B/replica", cell: ({ memory }) => short(memory.heap) },
  { title: "buffers B/replica", cell: ({ memory }) => short(memory.arrayBuffers) },
  { title: "log B/replica", cell: ({ memory }) => short(memory.log) },
  { title: "store B/replica", cell: ({ memory }) => short(memory.store) },
];

/** As Markdown. */
export function growthHead(): string[] {
  return [
    `| ${COLUMNS.map(({ title }) => title).join(" | ")} |`,
    `|${COLUMNS.map(() => "---:|").join("")}`,
  ];
}

export function growthLine(growth: Growth): string {
  return `| ${COLUMNS.map(({ cell }) => cell(growth)).join(" | ")} |`;
}
