/**
 * Which of the planted bugs a run tries: with SVC_PLANTED=all every one (`npm run planted`), else a part of them, another
 * one each day, so that `npm test` keeps its bound and every bug is tried within PARTS days. SVC_PLANTED=N is part N.
 */
const PARTS = 6;
const DAY_MS = 86_400_000;

const given = process.env["SVC_PLANTED"];

export const isAll = given === "all";

const part = given === undefined ? Math.floor(Date.now() / DAY_MS) % PARTS : Number(given);
if (!isAll && !(Number.isInteger(part) && part >= 0 && part < PARTS)) {
  throw new Error(`SVC_PLANTED is all, or 0 to ${PARTS - 1}`);
}

/** For the run's log: how to run the same again. */
export const partText = isAll ? "all planted bugs" : `SVC_PLANTED=${part}, of ${PARTS} parts`;

/** Those of `all` that this run tries; neighbours, which are alike, are in different parts. */
export function partOf<Item>(all: readonly Item[]): readonly Item[] {
  return isAll ? all : all.filter((_, at) => at % PARTS === part);
}
