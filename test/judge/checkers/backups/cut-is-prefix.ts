/**
 * Property: what a backup has of a partition are the entries up to its mark, all of them and nothing
 * more: its image is the state behind the entry that it names, and its log goes on from there without
 * a gap, with the entries that the group applied (7.1, P-132, P-133).
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenBackup, SeenEntry } from "./seen-backups.js";

/** Rows of a state, by key; what they hold as text. */
export type SeenRows = ReadonlyMap<string, string>;

export class CutIsPrefix {
  private readonly findings = new Findings("a backup is a prefix of each log", {
    backups: 1,
    entries: 20,
    images: 1,
  });

  /**
   * `partitions`: that there were at its end. `applied`: an entry of a partition as it was applied;
   * undefined: nobody applied it.
   */
  backup(
    { id, parts }: SeenBackup,
    partitions: readonly number[],
    applied: (partition: number, index: number) => SeenEntry | undefined,
  ): void {
    const { findings } = this;
    findings.count("backups");
    for (const partition of partitions) {
      if (parts.some((part) => part.partition === partition)) continue;
      findings.violation(`backup ${id} lacks partition ${partition}`);
    }
    for (const { partition, before, end, endTerm, entries } of parts) {
      if (!partitions.includes(partition)) {
        findings.violation(`backup ${id} has partition ${partition}, which there was not`);
      }
      const where = `backup ${id}, partition ${partition}`;
      let next = before + 1;
      for (const { index, term, digest } of entries) {
        findings.count("entries");
        if (index !== next) {
          findings.violation(`${where}: entry ${index} comes where ${next} belongs`);
        }
        next = index + 1;
        const own = applied(partition, index);
        if (own === undefined) findings.violation(`${where}: nobody applied entry ${index}`);
        else if (own.term !== term || own.digest !== digest) {
          findings.violation(`${where}: entry ${index} is not the one that was applied`);
        }
      }
      if (next !== end + 1) {
        findings.violation(`${where}: its log ends at ${next - 1}, its mark is ${end}`);
      }
      const last = applied(partition, end);
      if (last !== undefined && last.term !== endTerm) {
        findings.violation(`${where}: the mark is of term ${last.term}, not of ${endTerm}`);
      }
    }
  }

  /** The state of an image, and the state behind the entry that it names. */
  image(id: string, partition: number, index: number, image: SeenRows, state: SeenRows): void {
    this.findings.count("images");
    const difference = differenceOf(image, state);
    if (difference === null) return;
    const where = `backup ${id}, partition ${partition}`;
    this.findings.violation(`${where}: the image is not the state at ${index}: ${difference}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

/** A row that differs, in words; null: there is none. */
export function differenceOf(found: SeenRows, wanted: SeenRows): string | null {
  for (const [key, value] of wanted) {
    const other = found.get(key);
    if (other === undefined) return `row ${nameOf(key)} is missing`;
    if (other !== value) return `row ${nameOf(key)} is another one`;
  }
  for (const key of found.keys()) {
    if (!wanted.has(key)) return `row ${nameOf(key)} is too much`;
  }
  return null;
}

function nameOf(key: string): string {
  return `${key.charCodeAt(0).toString(16)} ${JSON.stringify(key.slice(1, 40))}`;
}
