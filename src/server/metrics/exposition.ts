/**
 * The Prometheus text format: families and their samples as lines.
 *
 * Pure. Invariants: 1. A family has its HELP and TYPE before its samples, once.
 */
export type FamilyType = "counter" | "gauge" | "histogram";

/** Begins a family. `help`: one sentence without a full stop. */
export function family(lines: string[], name: string, type: FamilyType, help: string): void {
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
}

/** A family of one series without labels. */
export function scalar(
  lines: string[],
  name: string,
  type: FamilyType,
  help: string,
  value: number,
): void {
  family(lines, name, type, help);
  lines.push(`${name} ${value}`);
}

/**
 * One histogram of a family that was begun. `label`: `name="value"` pairs, or empty; `counts`: of
 * each bucket by itself, the last without bound.
 */
export function histogramLines(
  lines: string[],
  name: string,
  label: string,
  bounds: readonly number[],
  counts: ArrayLike<number>,
  sum: number,
): void {
  const before = label === "" ? "" : `${label},`;
  const own = label === "" ? "" : `{${label}}`;
  let total = 0;
  for (let at = 0; at < counts.length; at++) {
    total += counts[at] ?? 0;
    lines.push(`${name}_bucket{${before}le="${bounds[at] ?? "+Inf"}"} ${total}`);
  }
  lines.push(`${name}_sum${own} ${sum}`, `${name}_count${own} ${total}`);
}
