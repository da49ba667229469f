/**
 * What takes minutes is tried in parts, another one every third day, so that `npm test` keeps its bound and everything is tried
 * within so many days. A variable of the environment says which: `all`, or the number of a part.
 */
const DAY_MS = 86_400_000;
/** A file may run every third day only (scripts/test.mjs): what it tries goes on each time that it does. */
const DAYS_OF_A_PART = 3;

export class PartOfDay {
  readonly isAll: boolean;
  /** 0 to parts - 1. */
  readonly part: number;

  constructor(
    private readonly variable: string,
    private readonly parts: number,
  ) {
    const given = process.env[variable];
    this.isAll = given === "all";
    this.part =
      given === undefined || this.isAll
        ? Math.floor(Date.now() / (DAY_MS * DAYS_OF_A_PART)) % parts
        : Number(given);
    if (!(Number.isInteger(this.part) && this.part >= 0 && this.part < parts)) {
      throw new Error(`${variable} is all, or 0 to ${parts - 1}`);
    }
  }

  /** For the run's log: how to run the same again. */
  get text(): string {
    const { isAll, variable, part, parts } = this;
    return isAll ? `${variable}=all` : `${variable}=${part}, of ${parts} parts`;
  }

  /** Those of `all` that this run tries; neighbours, which are alike, are in different parts. */
  of<Item>(all: readonly Item[]): readonly Item[] {
    return this.isAll ? all : all.filter((_, at) => at % this.parts === this.part);
  }
}
