/** Reads a text in the Prometheus format, and says what is wrong with it. */
export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: ReadonlySet<string>;
  /** Samples by their name with labels. */
  readonly samples: ReadonlyMap<string, number>;
}

interface Growing extends Family {
  readonly labels: Set<string>;
  readonly samples: Map<string, number>;
}

const SAMPLE = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/;
const SUFFIX = /_(?:bucket|sum|count)$/;

export interface Read {
  readonly families: ReadonlyMap<string, Family>;
  readonly faults: readonly string[];
}

/** Families in the order in which they come. */
export function readExposition(text: string): Read {
  const families = new Map<string, Growing>();
  const faults: string[] = [];
  let current: Growing | null = null;
  let help: readonly [string, string] | null = null;
  for (const line of text.split("\n")) {
    const [, word, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (word === "HELP") help = [name, rest];
    else if (word === "TYPE") {
      if (help?.[0] !== name) faults.push(`${name} has no HELP`);
      if (families.has(name)) faults.push(`${name} comes twice`);
      current = { name, type: rest, help: help?.[1] ?? "", labels: new Set(), samples: new Map() };
      families.set(name, current);
    } else if (line !== "") readSample(line, current, faults);
  }
  for (const { name, type, help: said } of families.values()) {
    if ((type === "counter") !== name.endsWith("_total")) faults.push(`${name} is a ${type}`);
    if (said === "" || said.endsWith(".")) faults.push(`${name}: "${said}"`);
  }
  return { families, faults };
}

function readSample(line: string, family: Growing | null, faults: string[]): void {
  const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
  const owner = family?.type === "histogram" ? name.replace(SUFFIX, "") : name;
  if (family === null || owner !== family.name || Number.isNaN(Number(value))) {
    faults.push(`out of place: ${line}`);
    return;
  }
  const key = line.slice(0, line.lastIndexOf(" "));
  if (family.samples.has(key)) faults.push(`twice: ${key}`);
  family.samples.set(key, Number(value));
  for (const [, label = ""] of labels.matchAll(/([a-z_]+)="/g)) {
    if (label !== "le") family.labels.add(label);
  }
}
