/**
 * Property C3: what a leader counts as committed is on the disks of a majority of the voters at that moment.
 *
 * Invariants: 1. Judged at the newest index that a leader committed, and only while the voters that it knows stay the
 * same, for a change of them counts from another index on. 2. Of an even number half is enough here: a joint
 * configuration has a voter more than either of its halves. 3. What the disk of a former life held counts: the answer
 * that a leader counts may be older than the loss of the disk.
 */
import { Findings, type Verdict } from "../verdict.js";

type IsDurable = (index: number, term: number) => boolean;

interface Disk {
  readonly life: number;
  readonly isDurable: IsDurable;
}

/** Lives of one node whose disks count. */
const LIVES_KEPT = 3;

export class DurableMajority {
  private readonly findings: Findings;
  private readonly disks = new Map<string, Disk[]>();
  private readonly leaders = new Map<number, { name: string; commit: number }>();

  constructor(minimum = 50) {
    this.findings = new Findings("committed is durable on a majority", { commits: minimum });
  }

  /** Asks from now on `isDurable` what the disk of this life of `node` holds of `group`. */
  disk(node: number, life: number, group: number, isDurable: IsDurable): void {
    const name = `${node}/${group}`;
    let lives = this.disks.get(name);
    if (lives === undefined) this.disks.set(name, (lives = []));
    if (lives.at(-1)?.life === life) return;
    lives.push({ life, isDurable });
    if (lives.length > LIVES_KEPT) lives.shift();
  }

  /** `node`, which leads `group` among `voters`, knows that the entry of `term` at `index` is committed. */
  commit(
    node: number,
    group: number,
    index: number,
    term: number,
    voters: readonly number[],
  ): void {
    const name = `${node}: ${voters.join(" ")}`;
    const last = this.leaders.get(group);
    this.leaders.set(group, { name, commit: index });
    if (last === undefined || last.name !== name || last.commit >= index) return;
    this.findings.count("commits");
    const needed = Math.ceil(voters.length / 2);
    let durable = 0;
    for (const voter of voters) {
      const lives = this.disks.get(`${voter}/${group}`) ?? [];
      if (lives.some((disk) => disk.isDurable(index, term))) durable++;
    }
    if (durable >= needed) return;
    const where = `group ${group}, leader ${node}, index ${index}, term ${term}`;
    const have = `on ${durable} of ${voters.length} disks`;
    this.findings.violation(`${where}: committed, and ${have}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
