/**
 * What a scrape says: figures by name and labels, and percentiles of histograms.
 *
 * Pure. Invariants: 1. A percentile is the upper edge of its class, never too low; null where too
 * little was counted. 2. A line that is none of the format is no figure.
 */

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export interface Figure {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

function numberOf(text: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  return Number(text);
}

/** The figures of the family `name`. */
export function figuresOf(text: string, name: string): Figure[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith(name)) return [];
    const [, found, labels = "", value = ""] = LINE.exec(line) ?? [];
    if (found !== name || Number.isNaN(numberOf(value))) return [];
    const pairs = [...labels.matchAll(LABEL)].map(([, label = "", held = ""]) => [label, held]);
    return [
      { name, labels: Object.fromEntries(pairs) as Figure["labels"], value: numberOf(value) },
    ];
  });
}

/** How much was counted up to each edge. */
function classesOf(text: string, name: string): Map<number, number> {
  const classes = figuresOf(text, `${name}_bucket`);
  return new Map(classes.map(({ labels, value }) => [numberOf(labels["le"] ?? ""), value]));
}

/** The edge below which `share` of what was counted lies. */
function edge(classes: ReadonlyMap<number, number>, share: number, least: number): number | null {
  const sorted = [...classes].sort(([one], [other]) => one - other);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (total < least) return null;
  return sorted.find(([, count]) => count >= total * share)?.[0] ?? null;
}

/**
 * A percentile of the histogram `name` over the time between two scrapes; over the whole life of
 * the process where less than `least` was counted between them.
 */
export function percentileOf(
  before: string,
  after: string,
  name: string,
  share: number,
  least: number,
): number | null {
  const [from, to] = [classesOf(before, name), classesOf(after, name)];
  const between = new Map([...to].map(([at, count]) => [at, count - (from.get(at) ?? 0)]));
  return edge(between, share, least) ?? edge(to, share, least);
}
