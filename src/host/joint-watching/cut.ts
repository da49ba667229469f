/**
 * Which node is asked for which partitions of a watch.
 *
 * Pure. Invariants: 1. A partition is asked of one node at most. 2. Few nodes are asked: first
 * whoever has the most of what is left, of several the one with the lowest id.
 */

export interface Cut {
  readonly parts: readonly { readonly node: number; readonly partitions: readonly number[] }[];
  /** Nobody has them. */
  readonly missing: readonly number[];
}

/** `hostsOf`: the nodes that may be asked for a partition. */
export function cutParts(
  partitions: readonly number[],
  hostsOf: (partition: number) => readonly number[],
): Cut {
  const hosts = new Map(partitions.map((each) => [each, hostsOf(each)]));
  const missing = partitions.filter((each) => hosts.get(each)?.length === 0);
  const parts: { node: number; partitions: number[] }[] = [];
  let left = partitions.filter((each) => !missing.includes(each));
  while (left.length > 0) {
    const counts = new Map<number, number>();
    for (const each of left) {
      for (const node of hosts.get(each) ?? []) counts.set(node, (counts.get(node) ?? 0) + 1);
    }
    const [[node] = [0]] = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const isOf = (each: number): boolean => hosts.get(each)?.includes(node) === true;
    parts.push({ node, partitions: left.filter(isOf) });
    left = left.filter((each) => !isOf(each));
  }
  return { parts, missing };
}
