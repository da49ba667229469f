/**
 * Property (P-104): after each version of the map every registered key space is tiled by its ranges:
 * sorted by bytes, without gap, overlap or empty interval.
 *
 * Written anew here, from the contract: it does not ask the code that it checks.
 */
import { compareText } from "../../../../src/base/bytes.js";
import { Findings, type Verdict } from "../verdict.js";
import { type SeenRange, intervalText } from "./seen-moves.js";

export class Tiling {
  private readonly findings: Findings;
  private readonly generations = new Map<string, number>();
  private version = -1;

  constructor(minimum: Readonly<Record<string, number>> = { maps: 20, "of several ranges": 10 }) {
    this.findings = new Findings("ranges tile their key spaces", minimum);
  }

  /** The ranges of all key spaces in one version, as the map lists them. */
  map(version: number, spaces: ReadonlyMap<string, readonly SeenRange[]>): void {
    if (version <= this.version) return;
    this.version = version;
    this.findings.count("maps");
    for (const [keySpace, ranges] of spaces) {
      if (ranges.length > 1) this.findings.count("of several ranges");
      const fault = faultOf(ranges);
      if (fault !== null) this.findings.violation(`version ${version}, ${keySpace}: ${fault}`);
      this.compareGenerations(version, ranges);
    }
  }

  /** A range that another partition has is of a later generation. */
  private compareGenerations(version: number, ranges: readonly SeenRange[]): void {
    for (const range of ranges) {
      const name = `${intervalText(range)} at ${range.partitionId}`;
      const known = this.generations.get(name);
      if (known !== undefined && known > range.generation) {
        const text = `version ${version}: ${name} has generation ${range.generation}`;
        // Who unregisters and registers anew begins again.
        if (range.generation !== 1) this.findings.violation(`${text} after ${known}`);
      }
      this.generations.set(name, range.generation);
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
