/**
 * Property (P-104): after each version of the map every registered key space is tiled by its ranges:
 * sorted by bytes, without gap, overlap or empty interval; and only ranges that touch are merged.
 *
 * Written anew here, from the contract: it does not ask the code that it checks.
 */
import { compareText } from "../../../../src/base/bytes.js";
import { Findings, type Verdict } from "../verdict.js";
import { type SeenMove, type SeenRange, intervalText } from "./seen-moves.js";

export class Tiling {
  private readonly findings: Findings;
  /** By key space, then by range and partition. */
  private readonly generations = new Map<string, Map<string, number>>();
  private version = -1;
  private spaces: ReadonlyMap<string, readonly SeenRange[]> = new Map();

  constructor(minimum: Readonly<Record<string, number>> = { maps: 20, "of several ranges": 10 }) {
    this.findings = new Findings("ranges tile their key spaces", minimum);
  }

  /** The ranges of all key spaces in one version, as the map lists them. */
  map(version: number, spaces: ReadonlyMap<string, readonly SeenRange[]>): void {
    if (version <= this.version) return;
    this.version = version;
    this.spaces = spaces;
    this.findings.count("maps");
    for (const [keySpace, ranges] of spaces) {
      if (ranges.length > 1) this.findings.count("of several ranges");
      const fault = faultOf(ranges);
      if (fault !== null) this.findings.violation(`version ${version}, ${keySpace}: ${fault}`);
      this.compareGenerations(version, keySpace, ranges);
    }
  }

  /** A move begins, on the map as it was told last. */
  began(move: SeenMove): void {
    if (move.kind !== "merge") return;
    this.findings.count("merges");
    const ranges = this.spaces.get(move.keySpace) ?? [];
    const neighbours = ranges.filter(({ startKey, endKey }) => {
      const isBefore = endKey !== null && endKey === move.startKey;
      return isBefore || (startKey !== null && startKey === move.endKey);
    });
    if (neighbours.some(({ partitionId }) => partitionId === move.target)) return;
    const what = `${intervalText(move)} is merged into partition ${move.target}`;
    this.findings.violation(`${what}, which has no range beside it`);
  }

  /** What a range becomes is of a later generation, for as long as its key space is registered. */
  private compareGenerations(
    version: number,
    keySpace: string,
    ranges: readonly SeenRange[],
  ): void {
    const isNew = ranges.length === 1 && ranges[0]?.generation === 1;
    const before = isNew ? undefined : this.generations.get(keySpace);
    const known = before ?? new Map<string, number>();
    this.generations.set(keySpace, known);
    for (const range of ranges) {
      const name = `${intervalText(range)} at ${range.partitionId}`;
      const was = known.get(name) ?? 0;
      if (was > range.generation) {
        const text = `version ${version}: ${name} has generation ${range.generation}`;
        this.findings.violation(`${text} after ${was}`);
      }
      known.set(name, range.generation);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

function faultOf(ranges: readonly SeenRange[]): string | null {
  if (ranges.length === 0) return "no range";
  for (const [at, { startKey, endKey }] of ranges.entries()) {
    if ((startKey === null) !== (at === 0)) return `range ${at} begins at ${startKey ?? "null"}`;
    const isLast = at === ranges.length - 1;
    if ((endKey === null) !== isLast) return `range ${at} ends at ${endKey ?? "null"}`;
    if (startKey !== null && endKey !== null && compareText(startKey, endKey) >= 0) {
      return `range ${at} is empty`;
    }
    const next = ranges[at + 1];
    if (next !== undefined && next.startKey !== endKey) return `a gap or overlap after range ${at}`;
  }
  return null;
}
